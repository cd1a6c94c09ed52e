//! Patterns of names: `*` for anything, `?` for one byte.

/// Returns `true` if a requested name contains a wildcard, `*` or `?`.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Returns `true` if a pattern with the wildcards `*` and `?` matches the whole of `text`.
pub fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // where the last star was, and how much it takes
    let mut star = None;
    while position < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == text[position] => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                at = star_at + 1;
                position = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        assert!(fits(b"tcp_*", b"tcp_sock"));
        assert!(fits(b"*sock", b"tcp_sock"));
        assert!(fits(b"t?p*so*", b"tcp_sock"));
        assert!(!fits(b"tcp", b"tcp_sock"));
        assert!(!fits(b"tcp_*x", b"tcp_sock"));
    }
}
