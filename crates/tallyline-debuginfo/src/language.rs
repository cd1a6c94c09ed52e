//! Filters of a program's units, by language and by name.

use gimli::constants::{self, DwLang};

/// Languages by the names that people use for them.
const LANGUAGES: [(&str, DwLang); 40] = [
    ("ada83", constants::DW_LANG_Ada83),
    ("ada95", constants::DW_LANG_Ada95),
    ("asm", constants::DW_LANG_Mips_Assembler),
    ("bliss", constants::DW_LANG_BLISS),
    ("c", constants::DW_LANG_C),
    ("c89", constants::DW_LANG_C89),
    ("c99", constants::DW_LANG_C99),
    ("c11", constants::DW_LANG_C11),
    ("c++", constants::DW_LANG_C_plus_plus),
    ("c++03", constants::DW_LANG_C_plus_plus_03),
    ("c++11", constants::DW_LANG_C_plus_plus_11),
    ("c++14", constants::DW_LANG_C_plus_plus_14),
    ("cobol74", constants::DW_LANG_Cobol74),
    ("cobol85", constants::DW_LANG_Cobol85),
    ("d", constants::DW_LANG_D),
    ("dylan", constants::DW_LANG_Dylan),
    ("fortran77", constants::DW_LANG_Fortran77),
    ("fortran90", constants::DW_LANG_Fortran90),
    ("fortran95", constants::DW_LANG_Fortran95),
    ("fortran03", constants::DW_LANG_Fortran03),
    ("fortran08", constants::DW_LANG_Fortran08),
    ("go", constants::DW_LANG_Go),
    ("haskell", constants::DW_LANG_Haskell),
    ("java", constants::DW_LANG_Java),
    ("julia", constants::DW_LANG_Julia),
    ("modula2", constants::DW_LANG_Modula2),
    ("modula3", constants::DW_LANG_Modula3),
    ("objc", constants::DW_LANG_ObjC),
    ("objc++", constants::DW_LANG_ObjC_plus_plus),
    ("ocaml", constants::DW_LANG_OCaml),
    ("opencl", constants::DW_LANG_OpenCL),
    ("pascal83", constants::DW_LANG_Pascal83),
    ("pli", constants::DW_LANG_PLI),
    ("python", constants::DW_LANG_Python),
    ("renderscript", constants::DW_LANG_RenderScript),
    ("rust", constants::DW_LANG_Rust),
    ("swift", constants::DW_LANG_Swift),
    ("upc", constants::DW_LANG_UPC),
    ("c17", constants::DW_LANG_C17),
    ("zig", constants::DW_LANG_Zig),
];

/// Returns the DWARF number (`DW_LANG_…`) of a programming language given by its name, such as `c++14`, in any case;
/// `None` if it is unknown.
pub fn language(name: &str) -> Option<u64> {
    let known = LANGUAGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(_, number)| u64::from(number.0))
}

/// A filter of compilation units by programming language and name. The default accepts all, and the types of BTF, which
/// has no units, are always accepted.
#[derive(Clone, Debug, Default)]
pub struct UnitFilter {
    /// The languages of the units to accept, by DWARF's numbers; all if there are none.
    pub languages: Vec<u64>,
    /// The languages of the units to leave out, by DWARF's numbers.
    pub not_languages: Vec<u64>,
    /// The prefix of the names of the units to leave out.
    pub exclude: Option<Vec<u8>>,
}

impl UnitFilter {
    /// Returns `true` if the filter accepts every compilation unit.
    pub(crate) fn is_everything(&self) -> bool {
        self.languages.is_empty() && self.not_languages.is_empty() && self.exclude.is_none()
    }

    /// Returns `true` if the filter accepts a compilation unit of this name and language (a `DW_LANG` number).
    pub(crate) fn accepts(&self, name: &[u8], language: u64) -> bool {
        (self.languages.is_empty() || self.languages.contains(&language))
            && !self.not_languages.contains(&language)
            && !self.exclude.as_ref().is_some_and(|prefix| name.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_known_in_any_case() {
        assert_eq!(language("C++11"), Some(0x1a));
        assert_eq!(language("rust"), Some(0x1c));
        assert_eq!(language("c+"), None);
    }

    #[test]
    fn units_pass_by_language_and_name() {
        let filter =
            UnitFilter { languages: vec![12], exclude: Some(b"lib/".into()), ..UnitFilter::default() };
        assert!(filter.accepts(b"main.c", 12));
        assert!(!filter.accepts(b"main.rs", 28));
        assert!(!filter.accepts(b"lib/a.c", 12));
        let filter = UnitFilter { not_languages: vec![28], ..UnitFilter::default() };
        assert!(filter.accepts(b"main.c", 12) && !filter.accepts(b"main.rs", 28));
    }
}
