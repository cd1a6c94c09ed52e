//! Numbers of bytes on the command line.

/// Parses a number of bytes with an optional suffix K, M or G (powers of 1024, in either case): `4096`, `100M`, `2g`.
/// Zero is an error.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((end, 'K' | 'k')) => (&text[..end], 10),
        Some((end, 'M' | 'm')) => (&text[..end], 20),
        Some((end, 'G' | 'g')) => (&text[..end], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| format!("`{text}` is no size: a number with K, M or G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("100M"), Ok(100 << 20));
        assert_eq!(parse_size("2g"), Ok(2 << 30));
        for odd in ["", "K", "0", "-1", "1T", "99999999999G"] {
            assert!(parse_size(odd).is_err(), "{odd}");
        }
    }
}
