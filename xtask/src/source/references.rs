//! The paths in a piece of syntax.

use super::PathUse;
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Returns true for attributes that say `#[cfg(test)]`, also with other conditions, or `#[test]`.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            // `all(test, …)`, but not `not(test)`
            let text = list.tokens.to_string().replace(' ', "");
            text == "test"
                || text.starts_with("all(test,")
                || text.contains(",test,")
                || text.ends_with(",test)")
        }
        _ => false,
    })
}

/// Collects the paths of everything it visits, `use` declarations in functions included.
pub(super) struct Collector {
    /// The item that is visited.
    pub(super) within: String,
    /// The paths found.
    pub(super) found: Vec<PathUse>,
    /// The `use` declarations found inside functions.
    pub(super) inner_imports: Vec<syn::ItemUse>,
}

impl Collector {
    pub(super) fn new(within: &str) -> Collector {
        Collector { within: within.to_owned(), found: Vec::new(), inner_imports: Vec::new() }
    }

    fn push(&mut self, path: Vec<String>, line: usize) {
        self.found.push(PathUse { path, line, within: self.within.clone() });
    }

    /// Collects what looks like a path in the tokens of a macro's call.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        // colons since the last name; a single one ends a path
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Group(group) => {
                    self.end(&mut path, line);
                    colons = 0;
                    self.tokens(group.stream());
                }
                _ => {
                    self.end(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        // `crate` alone is a part of `pub(crate)`
        let path = std::mem::take(path);
        if !path.is_empty()
            && !matches!(&*path, [only] if only == "crate" || only == "super" || only == "self")
        {
            self.push(path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_some() {
            segments.insert(0, String::new());
        }
        self.push(segments, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.inner_imports.push(item.clone());
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    // tests, wherever they stand
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Collector;
    use syn::visit::Visit;

    fn paths(text: &str) -> Vec<String> {
        let item: syn::Item = syn::parse_str(text).expect("an item");
        let mut collector = Collector::new("f");
        collector.visit_item(&item);
        collector.found.iter().map(|found| found.path.join("::")).collect()
    }

    #[test]
    fn finds_paths_in_types_expressions_and_patterns() {
        let found = paths(
            "fn f(a: super::A<crate::B>) -> u8 { match x::y() { p::Q(..) => crate::r::S { t: 1 }.t } }",
        );
        for expected in ["super::A", "crate::B", "x::y", "p::Q", "crate::r::S"] {
            assert!(found.iter().any(|path| path == expected), "{expected} in {found:?}");
        }
    }

    #[test]
    fn finds_paths_in_calls_of_macros() {
        let found = paths("fn f() { assert!(matches!(a, super::b::C::D { e: g::h(1) }), \"{}\", i); }");
        for expected in ["super::b::C::D", "g::h"] {
            assert!(found.iter().any(|path| path == expected), "{expected} in {found:?}");
        }
    }

    #[test]
    fn a_visibility_in_a_macro_is_no_path() {
        assert!(
            !paths("group! { pub(crate) struct A { pub(super) a: u8 } }")
                .iter()
                .any(|path| path == "crate" || path == "super")
        );
    }

    #[test]
    fn leaves_test_functions_out() {
        let found = paths("impl A { #[cfg(test)] fn f() { crate::only_in_tests(); } }");
        assert!(!found.iter().any(|path| path.contains("only_in_tests")), "{found:?}");
    }
}
