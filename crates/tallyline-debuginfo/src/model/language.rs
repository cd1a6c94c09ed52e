//! Languages.

use gimli::constants::{self as c, DwLang};

/// C23, which gimli has no name for.
const C_23: DwLang = DwLang(0x3e);

/// C++23, which gimli has no name for.
const CPP_23: DwLang = DwLang(0x3a);

/// Fortran 2023, which gimli has no name for.
const FORTRAN_23: DwLang = DwLang(0x3f);

/// Algol 68, which gimli has no name for.
const ALGOL_68: DwLang = DwLang(0x44);

/// Languages by the number that `DW_AT_language_name` has for them, which says nothing of versions:
/// the first version that has a number of its own stands for them all. Of those that are left out
/// nothing depends on the language.
const NAMES: [(u64, DwLang); 22] = [
    (0x01, c::DW_LANG_Ada83),
    (0x03, c::DW_LANG_C),
    (0x04, c::DW_LANG_C_plus_plus),
    (0x05, c::DW_LANG_Cobol74),
    (0x07, c::DW_LANG_D),
    (0x09, c::DW_LANG_Fortran77),
    (0x0a, c::DW_LANG_Go),
    (0x0b, c::DW_LANG_Haskell),
    (0x0c, c::DW_LANG_Java),
    (0x0d, c::DW_LANG_Julia),
    (0x0f, c::DW_LANG_Modula2),
    (0x10, c::DW_LANG_Modula3),
    (0x11, c::DW_LANG_ObjC),
    (0x12, c::DW_LANG_ObjC_plus_plus),
    (0x13, c::DW_LANG_OCaml),
    (0x15, c::DW_LANG_Pascal83),
    (0x16, c::DW_LANG_PLI),
    (0x19, c::DW_LANG_Rust),
    (0x1a, c::DW_LANG_Swift),
    (0x1c, c::DW_LANG_Zig),
    (0x1d, c::DW_LANG_Mips_Assembler),
    (0x2e, ALGOL_68),
];

/// The programming language of a compilation unit, as a `DW_LANG` number; 0 if it is unknown, as in BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Language(pub u16);

impl Language {
    /// Returns `true` if the language is C++, of any version, or Objective-C++.
    pub fn is_cpp(self) -> bool {
        matches!(
            DwLang(self.0),
            c::DW_LANG_C_plus_plus
                | c::DW_LANG_C_plus_plus_03
                | c::DW_LANG_C_plus_plus_11
                | c::DW_LANG_C_plus_plus_14
                | c::DW_LANG_C_plus_plus_17
                | c::DW_LANG_C_plus_plus_20
                | CPP_23
                | c::DW_LANG_ObjC_plus_plus
        )
    }

    /// Returns `true` if the language is C, of any version, or Objective-C.
    pub fn is_c(self) -> bool {
        matches!(
            DwLang(self.0),
            c::DW_LANG_C
                | c::DW_LANG_C89
                | c::DW_LANG_C99
                | c::DW_LANG_C11
                | c::DW_LANG_C17
                | C_23
                | c::DW_LANG_ObjC
        )
    }

    /// Returns `true` if the language is Rust.
    pub fn is_rust(self) -> bool {
        DwLang(self.0) == c::DW_LANG_Rust
    }

    /// Returns `true` if the language is Go.
    pub fn is_go(self) -> bool {
        DwLang(self.0) == c::DW_LANG_Go
    }

    /// Returns `true` if the language is Zig.
    pub fn is_zig(self) -> bool {
        DwLang(self.0) == c::DW_LANG_Zig
    }

    /// Returns `true` if the language's compiler records the alignment of every type and member (`DW_AT_alignment`),
    /// not only those that the source asks for.
    pub fn notes_alignment(self) -> bool {
        self.is_rust() || self.is_zig()
    }

    /// Converts a language number of DWARF 6 (`DW_LNAME`, the value of `DW_AT_language_name`) to a language; `None` if
    /// it is unknown.
    pub(crate) fn by_name(number: u64) -> Option<Language> {
        NAMES.iter().find(|(known, _)| *known == number).map(|(_, language)| Language(language.0))
    }

    /// Returns `true` if the language is Fortran, of any version.
    pub(crate) fn is_fortran(self) -> bool {
        matches!(
            DwLang(self.0),
            c::DW_LANG_Fortran77
                | c::DW_LANG_Fortran90
                | c::DW_LANG_Fortran95
                | c::DW_LANG_Fortran03
                | c::DW_LANG_Fortran08
                | c::DW_LANG_Fortran18
                | FORTRAN_23
        )
    }

    /// Returns the default index of an array's first element in this language (0 in C, 1 in Fortran), used if the file
    /// has no `DW_AT_lower_bound`.
    pub(crate) fn lower_bound(self) -> i64 {
        let is_one = self.is_fortran()
            || matches!(
                DwLang(self.0),
                c::DW_LANG_Ada83
                    | c::DW_LANG_Ada95
                    | c::DW_LANG_Ada2005
                    | c::DW_LANG_Ada2012
                    | c::DW_LANG_Cobol74
                    | c::DW_LANG_Cobol85
                    | c::DW_LANG_Pascal83
                    | c::DW_LANG_Modula2
                    | c::DW_LANG_Modula3
                    | c::DW_LANG_PLI
                    | c::DW_LANG_Julia
                    | ALGOL_68
            );
        i64::from(is_one)
    }

    /// Returns `true` if the language stores arrays in column-major order (Fortran, Julia), the default if the file
    /// does not say.
    pub(crate) fn is_column_major(self) -> bool {
        self.is_fortran() || DwLang(self.0) == c::DW_LANG_Julia
    }

    /// Returns the text that the language writes between a scope and a name: `::` or `.`.
    pub fn separator(self) -> &'static [u8] {
        if self.is_zig() { b"." } else { b"::" }
    }

    /// Returns `true` if the language can declare types of one name in several namespaces or types, so that a name
    /// alone does not identify a type.
    pub fn has_scopes(self) -> bool {
        self.is_cpp() || self.is_rust() || self.is_zig()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_start_at_one_where_the_language_says_so() {
        let ones = [0x03, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0d, 0x0e, 0x0f, 0x17, 0x1f, 0x22, 0x23];
        let later = [0x2d, 0x2e, 0x2f, 0x3f, 0x44];
        for number in 0..0x80 {
            let expected = i64::from(ones.contains(&number) || later.contains(&number));
            assert_eq!(Language(number).lower_bound(), expected, "{number:#x}");
        }
    }

    #[test]
    fn names_of_dwarf_6_lead_to_the_same_bounds() {
        let ones = [0x01, 0x05, 0x09, 0x0d, 0x0f, 0x10, 0x15, 0x16, 0x2e];
        for number in 0..0x40 {
            let bound = Language::by_name(number).map_or(0, Language::lower_bound);
            assert_eq!(bound, i64::from(ones.contains(&number)), "{number:#x}");
        }
        assert!(Language::by_name(0x04).is_some_and(Language::is_cpp));
        assert!(Language::by_name(0x19).is_some_and(Language::is_rust));
    }
}
