//! Public items of the libraries.
//!
//! Counted are items that another crate can name: public in modules that are public up to the crate's
//! root, or re-exported from there. Each counts once, for the crate that defines it. A *type* is a
//! struct, union, enumeration, trait or alias; a *field* is one with `pub` of such a struct or union
//! (fields of variants, methods and associated items are not counted).

use super::Measure;
use super::record::Config;
use crate::source::{ItemKind, Sources};

pub(super) fn measure(sources: &Sources, config: &Config) -> Vec<Measure> {
    let mut types = Vec::new();
    let mut fields = Vec::new();
    for (id, of) in sources.crates.iter().enumerate() {
        if !config.public.contains(&of.package) {
            continue;
        }
        for (module, name) in sources.reachable(id) {
            let Some(item) = sources.modules[module].items.get(&name) else { continue };
            if item.kind != ItemKind::Type {
                continue;
            }
            types.push(format!("{}: {}::{name}", item.at, sources.path_of(module)));
            for (field, at) in &item.public_fields {
                fields.push(format!("{at}: {}::{name}.{field}", sources.path_of(module)));
            }
        }
    }
    let measure =
        |name, title, places: Vec<String>| Measure { name, title, count: places.len(), places, note: None };
    vec![
        measure("public-types", "public types of layout, profile and their successors", types),
        measure("public-fields", "public fields of layout, profile and their successors", fields),
    ]
}
