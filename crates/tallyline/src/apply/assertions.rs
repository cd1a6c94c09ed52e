//! Assertions at compile time that hold an edited declaration, in the words of its language.

use clap::ValueEnum;
use std::path::Path;
use tallyline_source::Language;

/// The form of the compile-time assertions that are written below an edited declaration, such as `static_assert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AssertionStyle {
    /// `_Static_assert`, `static_assert`, `const _: () = assert!(…)`, by the language
    Language,
    /// The kernel's static_assert() without a message
    Kernel,
    /// No assertions
    None,
}

impl AssertionStyle {
    /// Returns the form of assertions for a source tree: the Linux kernel's in its own tree, else the language's
    /// standard.
    pub(crate) fn of_project(root: &Path) -> AssertionStyle {
        match root.join("Kbuild").is_file() && root.join("include/linux/build_bug.h").is_file() {
            true => AssertionStyle::Kernel,
            false => AssertionStyle::Language,
        }
    }
}

/// The properties of an edited struct (greatest size, alignments, distances of members) that compile-time assertions
/// are to check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The type, as code behind its declaration names it; empty where it has no name there.
    pub(crate) ty: String,
    /// The alignment of the type.
    pub(crate) align: Option<u64>,
    /// The largest size of the type in bytes.
    pub(crate) most_size: Option<u64>,
    /// Members with their alignments.
    pub(crate) aligned: Vec<(String, u64)>,
    /// Pairs of members, with the smallest distance in bytes from the start of the first to that of the second.
    pub(crate) apart: Vec<(String, String, u64)>,
}

/// Returns the source text of the compile-time assertions for an edited struct, one in a line.
pub(crate) fn assertions(promise: &Promise, language: Language, style: AssertionStyle) -> String {
    let Promise { ty, .. } = promise;
    if ty.is_empty() || style == AssertionStyle::None {
        return String::new();
    }
    let is_kernel = style == AssertionStyle::Kernel && language == Language::C;
    let (alignment, offset, size) = match language {
        Language::C if is_kernel => ("__alignof__", "offsetof", "sizeof"),
        // without a header
        Language::C => ("_Alignof", "__builtin_offsetof", "sizeof"),
        Language::Cpp => ("alignof", "__builtin_offsetof", "sizeof"),
        Language::Rust => ("core::mem::align_of", "core::mem::offset_of!", "core::mem::size_of"),
    };
    let of_type = |function: &str| match language {
        Language::Rust => format!("{function}::<{ty}>()"),
        _ => format!("{function}({ty})"),
    };
    let offset_of = |member: &str| format!("{offset}({ty}, {member})");
    let mut all: Vec<(String, String)> = Vec::new();
    if let Some(align) = promise.align {
        all.push((
            format!("{} % {align} == 0", of_type(alignment)),
            format!("{ty} has cache lines of its own"),
        ));
    }
    for (member, align) in &promise.aligned {
        all.push((format!("{} % {align} == 0", offset_of(member)), format!("{member} begins a cache line")));
    }
    for (member, next, bytes) in &promise.apart {
        let text = format!("{next} is on no cache line of {member}");
        all.push((format!("{} - {} >= {bytes}", offset_of(next), offset_of(member)), text));
    }
    if let Some(most) = promise.most_size {
        all.push((format!("{} <= {most}", of_type(size)), format!("{ty} has no holes")));
    }
    let one = |(condition, text): (String, String)| match language {
        Language::C if is_kernel => format!("static_assert({condition});\n"),
        Language::C => format!("_Static_assert({condition}, \"{text}\");\n"),
        Language::Cpp => format!("static_assert({condition}, \"{text}\");\n"),
        Language::Rust => format!("const _: () = assert!({condition}, \"{text}\");\n"),
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise() -> Promise {
        Promise {
            ty: "struct s".into(),
            align: Some(64),
            aligned: vec![("lock".into(), 64)],
            apart: vec![("limit".into(), "count".into(), 72)],
            most_size: Some(128),
        }
    }

    #[test]
    fn assertions_are_in_the_words_of_the_language() {
        let c = assertions(&promise(), Language::C, AssertionStyle::Language);
        assert_eq!(c.lines().count(), 4);
        assert!(c.contains(
            "_Static_assert(_Alignof(struct s) % 64 == 0, \"struct s has cache lines of its own\");\n"
        ));
        let kernel = assertions(&promise(), Language::C, AssertionStyle::Kernel);
        assert!(kernel.contains("static_assert(offsetof(struct s, lock) % 64 == 0);\n"), "{kernel}");
        let of_rust = Promise { ty: "S".into(), ..promise() };
        let rust = assertions(&of_rust, Language::Rust, AssertionStyle::Kernel);
        assert!(
            rust.contains("assert!(core::mem::offset_of!(S, count) - core::mem::offset_of!(S, limit) >= 72")
        );
        assert_eq!(assertions(&promise(), Language::Cpp, AssertionStyle::None), "");
        assert_eq!(assertions(&Promise::default(), Language::Cpp, AssertionStyle::Language), "");
    }
}
