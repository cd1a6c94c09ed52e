//! Names as the program has them, from those that the linker knows.

use std::borrow::Cow;

/// Longer names are left as they are: what they unfold to could be without end.
const LEN_LIMIT: usize = 1 << 14;

/// Demangles a C++ or Rust symbol name, without the hash at the end of Rust's; other names are returned as they
/// are.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if name.len() > LEN_LIMIT || !name.starts_with("_R") && !name.starts_with("_Z") {
        return name.into();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}").into();
    }
    let parsed = cpp_demangle::Symbol::new_with_options(
        name,
        &cpp_demangle::ParseOptions::default().recursion_limit(128),
    );
    // perf leaves out parameters, as they are in the way of a table
    let options = cpp_demangle::DemangleOptions::default().no_params().no_return_type().recursion_limit(128);
    match parsed.map(|symbol| symbol.demangle_with_options(&options)) {
        Ok(Ok(text)) => text.into(),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn each_language_has_its_names_back() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_ZN5store3addEi"), "store::add");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvC7mycrate3run"), "mycrate::run");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
    }
}
