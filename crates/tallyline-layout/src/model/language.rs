//! Languages.

use gimli::constants::{self as c, DwLang};

/// C23, which gimli has no name for.
const C_23: DwLang = DwLang(0x3e);

/// C++23, which gimli has no name for.
const CPP_23: DwLang = DwLang(0x3a);

/// The language of a unit, by DWARF's number; 0 where it is not known, as in BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Language(pub u16);

impl Language {
    /// Whether it is a version of C++.
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

    /// Whether it is a version of C, Objective-C among them.
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

    /// Whether it is Rust.
    pub fn is_rust(self) -> bool {
        DwLang(self.0) == c::DW_LANG_Rust
    }

    /// Whether it is Go.
    pub fn is_go(self) -> bool {
        DwLang(self.0) == c::DW_LANG_Go
    }

    /// Whether it is Zig.
    pub fn is_zig(self) -> bool {
        DwLang(self.0) == c::DW_LANG_Zig
    }

    /// Whether the compiler notes the alignment of every type and member, and not just where it was
    /// asked for.
    pub fn notes_alignment(self) -> bool {
        self.is_rust() || self.is_zig()
    }

    /// What stands between the names of scopes.
    pub fn separator(self) -> &'static [u8] {
        if self.is_zig() { b"." } else { b"::" }
    }

    /// Whether types are declared in other types and in namespaces, so that a name alone does not
    /// say which type is meant.
    pub fn has_scopes(self) -> bool {
        self.is_cpp() || self.is_rust() || self.is_zig()
    }
}
