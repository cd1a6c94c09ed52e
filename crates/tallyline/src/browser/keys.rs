//! Keys, from what a terminal sends for them.

/// A key press in the terminal browser, decoded from the terminal's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-U: erases all typed text.
    EraseLine,
    /// Ctrl-W: erases the last typed word.
    EraseWord,
    /// Ctrl-C: ends the browser.
    Interrupt,
}

/// The sequences that start with an escape (xterm's, VT220's, and those of application mode).
const SEQUENCES: [(&[u8], Key); 19] = [
    (b"\x1b[A", Key::Up),
    (b"\x1bOA", Key::Up),
    (b"\x1b[B", Key::Down),
    (b"\x1bOB", Key::Down),
    (b"\x1b[C", Key::Right),
    (b"\x1bOC", Key::Right),
    (b"\x1b[D", Key::Left),
    (b"\x1bOD", Key::Left),
    (b"\x1b[5~", Key::PageUp),
    (b"\x1b[6~", Key::PageDown),
    (b"\x1b[H", Key::Home),
    (b"\x1bOH", Key::Home),
    (b"\x1b[1~", Key::Home),
    (b"\x1b[F", Key::End),
    (b"\x1bOF", Key::End),
    (b"\x1b[4~", Key::End),
    (b"\x1b[Z", Key::BackTab),
    // F1 is help in perf
    (b"\x1bOP", Key::Char('h')),
    (b"\x1b[11~", Key::Char('h')),
];

/// Returns the keys that some bytes stand for. What is not known is left out: a sequence to its last byte.
pub(super) fn decode(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        if let Some((sequence, key)) = SEQUENCES.iter().find(|(sequence, _)| rest.starts_with(sequence)) {
            keys.push(*key);
            rest = &rest[sequence.len()..];
            continue;
        }
        rest = after;
        match first {
            0x1b if matches!(after.first(), Some(b'[' | b'O')) => {
                let end = after[1..].iter().position(|byte| (0x40..=0x7e).contains(byte));
                rest = end.map_or(&[], |end| &after[end + 2..]);
            }
            0x1b => keys.push(Key::Escape),
            3 => keys.push(Key::Interrupt),
            b'\r' | b'\n' => keys.push(Key::Enter),
            b'\t' => keys.push(Key::Tab),
            8 | 0x7f => keys.push(Key::Backspace),
            0x15 => keys.push(Key::EraseLine),
            0x17 => keys.push(Key::EraseWord),
            0..0x20 => {}
            _ => {
                let length = match first {
                    0xf0.. => 4,
                    0xe0.. => 3,
                    0xc0.. => 2,
                    _ => 1,
                };
                let start = bytes.len() - rest.len() - 1;
                let end = (start + length).min(bytes.len());
                if let Some(letter) =
                    std::str::from_utf8(&bytes[start..end]).ok().and_then(|text| text.chars().next())
                {
                    keys.push(Key::Char(letter));
                    rest = &bytes[end..];
                }
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_letters_and_what_is_not_known_are_told_apart() {
        assert_eq!(decode(b"q"), [Key::Char('q')]);
        assert_eq!(decode(b"\x1b"), [Key::Escape]);
        assert_eq!(decode(b"\x1b[B\x1b[5~x"), [Key::Down, Key::PageUp, Key::Char('x')]);
        // Ctrl-right of xterm, which nobody uses here
        assert_eq!(decode(b"\x1b[1;5Cj"), [Key::Char('j')]);
        assert_eq!(decode("ä\r".as_bytes()), [Key::Char('ä'), Key::Enter]);
        assert_eq!(decode(b"\xc3"), []);
        assert_eq!(decode(b"\x03\x7f\t"), [Key::Interrupt, Key::Backspace, Key::Tab]);
        assert_eq!(decode(b"\x15\x17"), [Key::EraseLine, Key::EraseWord]);
    }
}
