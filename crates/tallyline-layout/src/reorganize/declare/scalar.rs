//! C spellings of scalars.

/// Returns C's name for a base type: the program's own words if they are C's, else a type of the same width;
/// `None` if C has none that wide.
pub(super) fn base(name: &[u8], bits: u32) -> Option<&'static str> {
    let name = String::from_utf8_lossy(name);
    let words: Vec<&str> = name.split_whitespace().collect();
    let count = |word: &str| words.iter().filter(|known| **known == word).count();
    let has = |word| count(word) != 0;
    if has("complex") || has("_Complex") {
        return Some(match (has("float"), has("double"), has("long"), bits) {
            (true, ..) => "_Complex float",
            (_, true, true, _) => "_Complex long double",
            (_, true, false, _) => "_Complex double",
            (.., 16) => "_Complex char",
            (.., 32) => "_Complex short",
            (.., 64) => "_Complex int",
            (.., 128) => "_Complex long long",
            _ => return None,
        });
    }
    if has("double") {
        return Some(if has("long") { "long double" } else { "double" });
    }
    if (has("_Bool") || has("bool")) && bits == 8 {
        return Some("_Bool");
    }
    // words that only integers of C consist of
    let of_c =
        words.iter().all(|word| matches!(*word, "signed" | "unsigned" | "int" | "long" | "short" | "char"));
    if of_c && !words.is_empty() {
        return match (count("long"), has("short"), has("char")) {
            (0, false, true) if bits == 8 => Some("char"),
            (0, true, _) => Some("short"),
            (1, ..) => Some("long"),
            (2.., ..) => Some("long long"),
            (0, false, false) => Some("int"),
            _ => by_width(bits),
        };
    }
    match name.as_ref() {
        "float" => Some("float"),
        "_Float128" | "__float128" | "__ieee128" if bits == 128 => Some("quadruple"),
        _ => by_width(bits),
    }
}

fn by_width(bits: u32) -> Option<&'static str> {
    Some(match bits {
        8 => "char",
        16 => "short",
        32 => "int",
        64 => "long long",
        128 => "__int128",
        _ => return None,
    })
}

/// Returns an integer as wide as an enumeration.
pub(super) fn enumeration(size: u64) -> Option<&'static str> {
    Some(match size {
        1 => "unsigned char",
        2 => "unsigned short",
        4 => "unsigned int",
        8 => "unsigned long long",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::base;

    #[test]
    fn the_program_s_words_are_kept() {
        for (name, bits, c) in [
            ("long unsigned int", 64, "long"),
            ("long", 32, "long"),
            ("long long unsigned int", 64, "long long"),
            ("short int", 16, "short"),
            ("unsigned char", 8, "char"),
            ("unsigned int", 32, "int"),
            ("_Bool", 8, "_Bool"),
            ("long double", 96, "long double"),
            ("complex double", 128, "_Complex double"),
            ("_Complex long double", 256, "_Complex long double"),
            ("_Complex short", 32, "_Complex short"),
            ("__int128 unsigned", 128, "__int128"),
        ] {
            assert_eq!(base(name.as_bytes(), bits), Some(c), "{name}");
        }
    }

    #[test]
    fn what_c_has_no_word_for_is_as_wide() {
        assert_eq!(base(b"char", 32), Some("int"), "Rust's");
        assert_eq!(base(b"usize", 64), Some("long long"));
        assert_eq!(base(b"wchar_t", 32), Some("int"));
        assert_eq!(base(b"u24", 24), None);
    }
}
