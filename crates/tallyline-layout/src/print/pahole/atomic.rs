//! C11's atomic types where they are base types of their own, as compilers before DWARF 5 wrote them.

use std::borrow::Cow;

/// Returns the C spelling of the type that `atomic_…` wraps; none if a name does not start so.
pub(super) fn value_type(name: &[u8]) -> Option<Cow<'static, str>> {
    let name = std::str::from_utf8(name.strip_prefix(b"atomic_")?).ok()?;
    let word = match name {
        "bool" => "_Bool",
        "schar" => "signed char",
        "llong" => "long long",
        "ullong" => "unsigned long long",
        "ulong" => "unsigned long",
        "uchar" => "unsigned char",
        "ushort" => "unsigned short",
        "uint" => "unsigned int",
        "char" | "short" | "int" | "long" => return Some(name.to_string().into()),
        "int8_t" => "signed char",
        "int16_t" => "short",
        "int32_t" => "int",
        "int64_t" => "long",
        "uint8_t" => "unsigned char",
        "uint16_t" => "unsigned short",
        "uint32_t" => "unsigned int",
        "uint64_t" => "unsigned long",
        // the rest of `stdatomic.h`, by the names that compilers have for them without a header
        _ => return Some(format!("__{}TYPE__", name.strip_suffix('t')?.to_ascii_uppercase()).into()),
    };
    Some(word.into())
}

#[cfg(test)]
mod tests {
    use super::value_type;

    #[test]
    fn every_atomic_type_of_c_has_a_spelling() {
        for (name, value) in [
            ("atomic_int", "int"),
            ("atomic_schar", "signed char"),
            ("atomic_ullong", "unsigned long long"),
            ("atomic_uint32_t", "unsigned int"),
            ("atomic_size_t", "__SIZE_TYPE__"),
            ("atomic_uint_least16_t", "__UINT_LEAST16_TYPE__"),
            ("atomic_intptr_t", "__INTPTR_TYPE__"),
        ] {
            assert_eq!(value_type(name.as_bytes()).as_deref(), Some(value), "{name}");
        }
        assert_eq!(value_type(b"int"), None);
        assert_eq!(value_type(b"atomic_flag"), None);
    }
}
