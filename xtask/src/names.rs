//! Sheets of names with their doc lines, for readers who have never seen the project.
//!
//! A reader says of each name what it is or does, by its path, signature and doc lines alone: what the reader cannot
//! tell, the name or the line has to say. Drawn are items that are public or visible in their whole crate and have a
//! doc comment, in `crates/*/src` without tests, each with the same chance.

use crate::source::{self, is_test};
use anyhow::{Context, Result};
use std::path::Path;
use syn::spanned::Spanned;

/// An item of a sheet.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    /// The path: module file, type, name.
    path: String,
    /// The declaration without its body, on one line.
    signature: String,
    /// The lines of the doc comment.
    doc: Vec<String>,
}

/// Prints a sheet: `count` items drawn by `seed`, or all of them in the order of files.
pub(crate) fn run(root: &Path, seed: Option<u64>, count: usize) -> Result<()> {
    let mut items = Vec::new();
    for file in source::files(root, &["crates/*/src/**.rs"])? {
        let text = std::fs::read_to_string(root.join(&file)).with_context(|| file.display().to_string())?;
        let syntax = syn::parse_file(&text)
            .map_err(|error| anyhow::anyhow!("{}:{}: {error}", file.display(), error.span().start().line))?;
        let module = file.with_extension("").display().to_string().replacen("crates/", "", 1);
        let module = module.replacen("/src/", "/", 1).replace('/', "::");
        let module = module.trim_end_matches("::mod").trim_end_matches("::lib").to_owned();
        collect(&text, &module, &syntax.items, &mut items);
    }
    let chosen = match seed {
        Some(seed) => draw(items, seed, count),
        None => items,
    };
    for (number, item) in chosen.iter().enumerate() {
        println!("{}. {}\n   {}", number + 1, item.path, item.signature);
        item.doc.iter().for_each(|line| println!("   /// {line}"));
        println!();
    }
    Ok(())
}

/// Collects the items of a module that have a doc comment and are visible in the whole crate at least.
fn collect(text: &str, module: &str, items: &[syn::Item], found: &mut Vec<Named>) {
    let mut add = |path: String, visibility: &syn::Visibility, attributes: &[syn::Attribute], from, to| {
        let doc = doc_lines(attributes);
        if is_wide(visibility) && !doc.is_empty() {
            found.push(Named { path, signature: signature(text, from, to), doc });
        }
    };
    for item in items {
        let span = item.span();
        match item {
            syn::Item::Fn(item) if !is_test(&item.attrs) => {
                let path = format!("{module}::{}", item.sig.ident);
                add(path, &item.vis, &item.attrs, start(&item.vis, item.sig.span()), item.sig.span().end());
            }
            syn::Item::Struct(item) if !is_test(&item.attrs) => {
                let (path, end) = (format!("{module}::{}", item.ident), item.generics.span().end());
                let end = if item.generics.params.is_empty() { item.ident.span().end() } else { end };
                add(path, &item.vis, &item.attrs, start(&item.vis, item.struct_token.span()), end);
            }
            syn::Item::Enum(item) if !is_test(&item.attrs) => {
                let path = format!("{module}::{}", item.ident);
                let from = start(&item.vis, item.enum_token.span());
                add(path, &item.vis, &item.attrs, from, item.ident.span().end());
            }
            syn::Item::Trait(item) if !is_test(&item.attrs) => {
                let path = format!("{module}::{}", item.ident);
                let from = start(&item.vis, item.trait_token.span());
                add(path, &item.vis, &item.attrs, from, item.ident.span().end());
            }
            syn::Item::Type(item) => {
                let path = format!("{module}::{}", item.ident);
                add(path, &item.vis, &item.attrs, start(&item.vis, item.type_token.span()), span.end());
            }
            syn::Item::Const(item) => {
                let path = format!("{module}::{}", item.ident);
                let from = start(&item.vis, item.const_token.span());
                add(path, &item.vis, &item.attrs, from, item.ty.span().end());
            }
            syn::Item::Static(item) => {
                let path = format!("{module}::{}", item.ident);
                let from = start(&item.vis, item.static_token.span());
                add(path, &item.vis, &item.attrs, from, item.ty.span().end());
            }
            syn::Item::Impl(block) if block.trait_.is_none() && !is_test(&block.attrs) => {
                let syn::Type::Path(of) = &*block.self_ty else { continue };
                let Some(of) = of.path.segments.last() else { continue };
                for member in &block.items {
                    match member {
                        syn::ImplItem::Fn(item) => {
                            let path = format!("{module}::{}::{}", of.ident, item.sig.ident);
                            let from = start(&item.vis, item.sig.span());
                            add(path, &item.vis, &item.attrs, from, item.sig.span().end());
                        }
                        syn::ImplItem::Const(item) => {
                            let path = format!("{module}::{}::{}", of.ident, item.ident);
                            let from = start(&item.vis, item.const_token.span());
                            add(path, &item.vis, &item.attrs, from, item.ty.span().end());
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_wide(visibility: &syn::Visibility) -> bool {
    match visibility {
        syn::Visibility::Public(_) => true,
        syn::Visibility::Restricted(part) => part.path.is_ident("crate"),
        syn::Visibility::Inherited => false,
    }
}

/// Returns where a declaration starts: with its visibility, if that is written.
fn start(visibility: &syn::Visibility, declaration: proc_macro2::Span) -> proc_macro2::LineColumn {
    match visibility {
        syn::Visibility::Inherited => declaration.start(),
        written => written.span().start(),
    }
}

/// Returns the text between two places as one line.
fn signature(text: &str, from: proc_macro2::LineColumn, to: proc_macro2::LineColumn) -> String {
    let mut result = String::new();
    for (number, line) in text.lines().enumerate().skip(from.line - 1).take(to.line + 1 - from.line) {
        let first = if number + 1 == from.line { from.column } else { 0 };
        let last = if number + 1 == to.line { to.column } else { usize::MAX };
        let part: String = line.chars().take(last).skip(first).collect();
        if !result.is_empty() {
            result.push(' ');
        }
        result += part.trim();
    }
    result
}

fn doc_lines(attributes: &[syn::Attribute]) -> Vec<String> {
    let text = |attribute: &syn::Attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
        pair.path.is_ident("doc").then(|| text.value().trim().to_owned())
    };
    attributes.iter().filter_map(text).collect()
}

/// Returns `count` of some values, or all if there are fewer, by a seed.
fn draw<T>(mut values: Vec<T>, seed: u64, count: usize) -> Vec<T> {
    let mut state = seed;
    let mut next = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    let mut drawn = Vec::new();
    while drawn.len() < count && !values.is_empty() {
        let index = (next() % values.len() as u64) as usize;
        drawn.push(values.swap_remove(index));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::{Named, collect, draw};

    fn names(text: &str) -> Vec<Named> {
        let mut found = Vec::new();
        collect(text, "m", &syn::parse_file(text).expect("parses").items, &mut found);
        found
    }

    #[test]
    fn items_have_path_signature_and_doc() {
        let found = names(
            "/// A thing.\n///\n/// More.\npub struct Thing<T>(T);\n\nimpl<T> Thing<T> {\n    /// Returns it.\n    #[must_use]\n    pub(crate) const fn get(\n        &self,\n    ) -> u8 {\n        1\n    }\n}\n",
        );
        let [thing, get] = &found[..] else { panic!("{found:?}") };
        assert_eq!((thing.path.as_str(), thing.signature.as_str()), ("m::Thing", "pub struct Thing<T>"));
        assert_eq!(thing.doc, ["A thing.", "", "More."]);
        assert_eq!(get.path, "m::Thing::get");
        assert_eq!(get.signature, "pub(crate) const fn get( &self, ) -> u8");
    }

    #[test]
    fn private_items_tests_and_those_without_a_comment_are_left_out() {
        let text = "/// Own.\nfn own() {}\npub fn bare() {}\n/// Above.\npub(super) fn above() {}\n#[cfg(test)]\nmod tests {\n    /// In a test.\n    pub fn test() {}\n}\n";
        assert_eq!(names(text), []);
    }

    #[test]
    fn a_seed_draws_the_same_values_each_once() {
        let first = draw((0..100).collect(), 7, 20);
        assert_eq!(first, draw((0..100).collect(), 7, 20));
        assert_ne!(first, draw((0..100).collect(), 8, 20));
        let mut sorted = first;
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 20);
        assert_eq!(draw(vec![1, 2], 1, 5).len(), 2);
    }
}
