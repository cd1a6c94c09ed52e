//! Tests that assert a time.
//!
//! Counted are assertions in tests whose condition names `elapsed`, or a variable that the same function
//! bound to something elapsed. A message of the assertion may name it.

use super::{Measure, Tree};
use crate::source;
use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

pub(super) fn measure(tree: &Tree<'_>) -> Result<Measure> {
    let mut places = Vec::new();
    for file in source::files(tree.root, &["crates/*.rs", "xtask/*.rs"])? {
        let text = std::fs::read_to_string(tree.root.join(&file))?;
        let Ok(syntax) = syn::parse_file(&text) else { continue };
        let all = file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs");
        for line in assertions(&syntax, all) {
            places.push(format!("{}:{line}: asserts a time", file.display()));
        }
    }
    Ok(Measure {
        name: "timed-tests",
        title: "assertions of a time in tests",
        count: places.len(),
        places,
        note: None,
    })
}

/// Returns the lines of assertions of a time: in the whole file, or in its test modules only.
fn assertions(file: &syn::File, all: bool) -> Vec<usize> {
    let mut finder = Finder { in_test: all, ..Finder::default() };
    finder.visit_file(file);
    finder.lines
}

#[derive(Default)]
struct Finder {
    in_test: bool,
    /// Variables of the function that hold a time.
    times: BTreeSet<String>,
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let outer = self.in_test;
        self.in_test |= source::is_test(&module.attrs);
        visit::visit_item_mod(self, module);
        self.in_test = outer;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let outer = std::mem::take(&mut self.times);
        visit::visit_item_fn(self, function);
        self.times = outer;
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (syn::Pat::Ident(name), Some(init)) = (&local.pat, &local.init) {
            let mut elapsed = Elapsed::default();
            elapsed.visit_expr(&init.expr);
            if elapsed.found {
                self.times.insert(name.ident.to_string());
            }
        }
        visit::visit_local(self, local);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let asserts = call.path.segments.last().is_some_and(|name| {
            let name = name.ident.to_string();
            name.starts_with("assert") || name.starts_with("debug_assert")
        });
        let both_sides = call.path.segments.last().is_some_and(|name| name.ident.to_string().contains("_eq"));
        if self.in_test && asserts && names_time(call.tokens.clone(), &self.times, both_sides) {
            self.lines.push(call.span().start().line);
        }
    }
}

/// Finds a call of `elapsed` whose value is kept: not one in a condition further in.
#[derive(Default)]
struct Elapsed {
    found: bool,
}

impl<'ast> Visit<'ast> for Elapsed {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.found |= call.method == "elapsed";
        visit::visit_expr_method_call(self, call);
    }

    fn visit_block(&mut self, _: &'ast syn::Block) {}

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_expr_binary(&mut self, _: &'ast syn::ExprBinary) {}
}

/// Returns true if the condition names a time: the first argument, of two that are compared both.
fn names_time(tokens: TokenStream, times: &BTreeSet<String>, both_sides: bool) -> bool {
    let mut commas = usize::from(!both_sides);
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => {
                if commas == 1 {
                    return false;
                }
                commas += 1;
            }
            TokenTree::Ident(name) if name == "elapsed" || times.contains(&name.to_string()) => return true,
            TokenTree::Group(group) => {
                // commas inside separate other things
                let mut inner = vec![group.stream()];
                while let Some(stream) = inner.pop() {
                    for token in stream {
                        match token {
                            TokenTree::Ident(name)
                                if name == "elapsed" || times.contains(&name.to_string()) =>
                            {
                                return true;
                            }
                            TokenTree::Group(group) => inner.push(group.stream()),
                            _ => {}
                        }
                    }
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    fn lines(text: &str, all: bool) -> Vec<usize> {
        super::assertions(&syn::parse_file(text).expect("parses"), all)
    }

    #[test]
    fn finds_assertions_of_elapsed_time_and_of_variables_that_hold_one() {
        let text = "fn t() {\nassert!(start.elapsed() < LIMIT);\nlet took = start.elapsed().as_secs();\nassert!(took < 5, \"slow\");\nassert_eq!(1, f(took));\n}";
        assert_eq!(lines(text, true), [2, 4, 5]);
    }

    #[test]
    fn messages_and_other_functions_assert_no_time() {
        let text = "fn a() { let took = s.elapsed(); assert!(ok, \"after {took:?}\", took); }\nfn b() { assert!(took > 1); }";
        assert!(lines(text, true).is_empty());
    }

    #[test]
    fn code_that_is_no_test_may() {
        let text = "fn a() { assert!(s.elapsed() > L); }\n#[cfg(test)] mod tests {\nfn b() { assert!(s.elapsed() > L); } }";
        assert_eq!(lines(text, false), [3]);
    }
}
