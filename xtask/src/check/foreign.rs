//! Foreign crates that one crate owns: others don't name them, and no public signature has their types.

use super::record::Config;
use super::{Measure, Tree};
use crate::source::{self, ItemKind, Location, PathUse, Sources, Target};
use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn measure(tree: &Tree<'_>, config: &Config) -> Result<Vec<Measure>> {
    let places = files_naming(tree, "gimli", config.owners.get("gimli").map_or("", String::as_str))?;
    let naming = Measure {
        name: "files-naming-gimli",
        title: "files that name gimli outside its crate",
        count: places.len(),
        places,
        note: None,
    };
    let foreign: BTreeSet<&str> = config.owners.keys().map(String::as_str).collect();
    let places = signatures_naming(&tree.sources, &foreign);
    let signatures = Measure {
        name: "foreign-signatures",
        title: "public items with types of gimli, object or a decoder in their signatures",
        count: places.len(),
        places,
        note: None,
    };
    Ok(vec![naming, signatures])
}

/// Lists the files of all crates but the owner, tests and examples included, in which a crate's name is
/// a word of the code.
fn files_naming(tree: &Tree<'_>, name: &str, owner: &str) -> Result<Vec<String>> {
    let mut places = Vec::new();
    for file in source::files(tree.root, &["crates/*.rs"])? {
        if file.starts_with(Path::new("crates").join(owner)) {
            continue;
        }
        let text =
            std::fs::read_to_string(tree.root.join(&file)).with_context(|| file.display().to_string())?;
        let tokens: TokenStream =
            text.parse().map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
        if let Some(line) = first_line_naming(tokens, name) {
            places.push(format!("{}:{line}: names {name}", file.display()));
        }
    }
    Ok(places)
}

fn first_line_naming(tokens: TokenStream, name: &str) -> Option<usize> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == name => Some(ident.span().start().line),
        TokenTree::Group(group) => first_line_naming(group.stream(), name),
        _ => None,
    })
}

/// Lists the public items of all libraries with a path into one of these crates in their signatures.
/// Of a type that is its public fields and the signatures of its public methods.
fn signatures_naming(sources: &Sources, foreign: &BTreeSet<&str>) -> Vec<String> {
    let mut places = Vec::new();
    for id in sources.libraries.values() {
        for (module, name) in sources.reachable(*id) {
            let Some(item) = sources.modules[module].items.get(&name) else { continue };
            for PathUse { path, line, within } in &item.signature {
                if let Some(Target::Foreign(named)) = sources.resolve(module, path)
                    && foreign.contains(named.as_str())
                {
                    let at = Location { file: sources.modules[module].file.clone(), line: *line };
                    let method = if *within == name { String::new() } else { format!("::{within}") };
                    let kind = if item.kind == ItemKind::Type { "type" } else { "item" };
                    places.push(format!("{at}: {kind} {name}{method} names {}", path.join("::")));
                }
            }
        }
    }
    places.sort();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::{first_line_naming, signatures_naming};
    use crate::source::from_text;
    use std::collections::BTreeSet;

    #[test]
    fn comments_and_longer_words_name_nothing() {
        let tokens = |text: &str| text.parse().expect("tokens");
        assert_eq!(first_line_naming(tokens("// gimli\nfn gimlis() { \"gimli\"; }"), "gimli"), None);
        assert_eq!(
            first_line_naming(tokens("mod a {\n fn f() { g(gimli::DW_AT_name) }\n}"), "gimli"),
            Some(2)
        );
    }

    fn places(text: &str) -> Vec<String> {
        signatures_naming(&from_text(&[("one", text)]), &BTreeSet::from(["gimli", "object"]))
    }

    #[test]
    fn signatures_are_fields_methods_and_functions_that_others_can_name() {
        let found = places(
            "use gimli::Dwarf as D; pub struct A { pub f: D<u8>, g: object::File } struct Hidden { pub f: D<u8> }
             impl A { pub fn m(&self) -> Option<object::Symbol> { gimli::x() } fn own(&self, d: D) {} }
             pub fn free(a: &[gimli::Reader]) {} fn inner(d: D) {} pub fn body() { gimli::y(); }",
        );
        let items: Vec<&str> = found.iter().filter_map(|place| place.split(": ").nth(1)).collect();
        let expected = ["type A names D", "type A::m names object::Symbol", "item free names gimli::Reader"];
        assert_eq!(items.len(), expected.len(), "{found:?}");
        for item in expected {
            assert!(items.contains(&item), "{item} in {found:?}");
        }
    }
}
