//! Options that say which types are shown.

use anyhow::{Context, Result};
use clap::Args;
use tallyline_debuginfo::{UnitFilter, language};
use tallyline_layout::query::Filter;

#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Only types with at least this many holes
    #[arg(short = 'H', long, value_name = "NUMBER", default_value_t = 0)]
    holes: u32,

    /// Only types with at least this many bit holes
    #[arg(short = 'B', long, alias = "bit_holes", value_name = "NUMBER", default_value_t = 0)]
    bit_holes: u32,

    /// Only types with a hole of at least this many bytes; prints their names
    #[arg(short = 'z', long, alias = "hole_size_ge", value_name = "BYTES", default_value_t = 0)]
    pub(super) hole_size: u64,

    /// Only types with exactly this many bytes of padding at the end
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    padding: u64,

    /// Only types with at least this many bytes of padding at the end
    #[arg(long, alias = "padding_ge", value_name = "BYTES", default_value_t = 0)]
    padding_at_least: u64,

    /// Only types whose names start with this
    #[arg(short = 'y', long, alias = "prefix_filter", value_name = "PREFIX")]
    prefix: Option<String>,

    /// No types whose names start with this
    #[arg(short = 'x', long, value_name = "PREFIX")]
    exclude: Option<String>,

    /// No types declared in files whose paths start with this
    #[arg(short = 'D', long, alias = "decl_exclude", value_name = "PREFIX")]
    declared_exclude: Option<String>,

    /// No types of units whose names start with this
    #[arg(short = 'X', long, alias = "cu_exclude", value_name = "PREFIX")]
    unit_exclude: Option<String>,

    /// Only types of units in these languages, comma-separated: c11, c++14, rust, go, …
    #[arg(long, value_name = "LANGUAGES")]
    lang: Option<String>,

    /// No types of units in these languages
    #[arg(long, alias = "lang_exclude", value_name = "LANGUAGES")]
    lang_exclude: Option<String>,

    /// Only structs and classes
    #[arg(long)]
    structs: bool,

    /// Only unions
    #[arg(long)]
    unions: bool,

    /// Only packed types
    #[arg(long)]
    packed: bool,

    /// Only types that end with a flexible array
    #[arg(long, alias = "with_flexible_array")]
    with_flexible_array: bool,

    /// Only types that contain a struct with a flexible array
    #[arg(long, alias = "with_embedded_flexible_array")]
    with_embedded_flexible_array: bool,
}

impl FilterArgs {
    /// Returns the filter of types.
    pub(super) fn filter(&self) -> Filter {
        let bytes = |text: &Option<String>| text.as_ref().map(|text| text.clone().into_bytes());
        Filter {
            structs: self.structs || self.packed,
            unions: self.unions,
            packed: self.packed,
            prefix: bytes(&self.prefix),
            exclude: bytes(&self.exclude),
            declared_exclude: bytes(&self.declared_exclude),
            holes: self.holes,
            bit_holes: self.bit_holes,
            hole_size: self.hole_size,
            padding: self.padding,
            padding_at_least: self.padding_at_least,
            flexible: self.with_flexible_array,
            embedded_flexible: self.with_embedded_flexible_array,
        }
    }

    /// Returns the filter of compilation units.
    pub(super) fn units(&self) -> Result<UnitFilter> {
        let numbers = |list: &Option<String>| list.as_deref().map_or(Ok(Vec::new()), languages);
        Ok(UnitFilter {
            languages: numbers(&self.lang)?,
            not_languages: numbers(&self.lang_exclude)?,
            exclude: self.unit_exclude.clone().map(String::into_bytes),
        })
    }
}

/// Parses a comma-separated list of programming languages into DWARF language codes (`DW_LANG_*`).
pub(crate) fn languages(list: &str) -> Result<Vec<u64>> {
    let number = |name: &str| language(name).with_context(|| format!("unknown language {name:?}"));
    list.split(',').map(number).collect()
}
