//! Names of tracepoints and probes from the tracing data: what tracefs says of their formats. perf writes it into
//! streams in front of samples, and into files as a section; it is the start of a `trace.dat`.

use crate::Result;
use crate::bytes::{ByteOrder, Cursor, until_nul};
use std::collections::HashMap;

/// The magic number at the start of tracing data.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Returns `system:name` by the number of each event.
///
/// # Errors
/// Bytes that are no tracing data, or end early: with the names that came before.
pub(super) fn names(bytes: &[u8], offset: u64) -> (HashMap<u64, String>, Result<()>) {
    let mut names = HashMap::new();
    let result = read(bytes, offset, &mut names);
    (names, result)
}

fn read(bytes: &[u8], offset: u64, names: &mut HashMap<u64, String>) -> Result<()> {
    // numbers are in an order that the data says itself, behind its version
    let start = Cursor::new(bytes, ByteOrder::Little, offset);
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(start.error("tracing data that does not start as such"));
    };
    let version = until_nul(rest);
    let head = MAGIC.len() + version.len() + 1;
    let order = match bytes.get(head) {
        Some(0) => ByteOrder::Little,
        Some(_) => ByteOrder::Big,
        None => return Err(start.error("tracing data that ends in its header")),
    };
    // the order, the size of a long, that of a page
    let behind = head as u64 + 2;
    let mut at = Cursor::new(bytes.get(head + 2..).unwrap_or_default(), order, offset + behind);
    at.u32("size of a page")?;
    for part in ["header_page", "header_event"] {
        at.take(part.len() as u64 + 1, "header of tracing data")?;
        sized(&mut at)?;
    }
    for _ in 0..at.u32("number of formats")? {
        sized(&mut at)?;
    }
    for _ in 0..at.u32("number of systems")? {
        let system = until_nul(at.rest());
        at.take(system.len() as u64 + 1, "name of a system")?;
        let system = String::from_utf8_lossy(system);
        for _ in 0..at.u32("number of events")? {
            if let Some((id, name)) = name_of(sized(&mut at)?) {
                names.insert(id, format!("{system}:{name}"));
            }
        }
    }
    Ok(())
}

/// Reads a size of 64 bits, and that many bytes.
fn sized<'a>(at: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let size = at.u64("size of a format")?;
    at.take(size, "a format")
}

/// Returns the number and the name of an event by its format, as in tracefs.
fn name_of(format: &[u8]) -> Option<(u64, &str)> {
    let text = std::str::from_utf8(format).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some((field("ID:")?.parse().ok()?, field("name:")?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Encodes tracing data with events of one system.
    pub(in super::super) fn tracing_data(system: &str, events: &[(u64, &str)]) -> Vec<u8> {
        let mut bytes = [MAGIC, b"0.5\0", &[u8::from(cfg!(target_endian = "big")), 8]].concat();
        bytes.extend(4096_u32.to_ne_bytes());
        let sized = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as u64).to_ne_bytes());
            bytes.extend(text.as_bytes());
        };
        bytes.extend(b"header_page\0");
        sized(&mut bytes, "\tfield: u64 timestamp;\n");
        bytes.extend(b"header_event\0");
        sized(&mut bytes, "# compressed entry header\n");
        bytes.extend(1_u32.to_ne_bytes());
        sized(&mut bytes, "name: function\nID: 1\n");
        bytes.extend(1_u32.to_ne_bytes());
        bytes.extend(system.as_bytes());
        bytes.push(0);
        bytes.extend((events.len() as u32).to_ne_bytes());
        for (id, name) in events {
            sized(&mut bytes, &format!("name: {name}\nID: {id}\nformat:\n\tfield:int common_pid;\n"));
        }
        bytes.extend([0; 12]);
        bytes
    }

    #[test]
    fn events_are_named_by_their_system_and_format() {
        let bytes = tracing_data("probe_server", &[(1329, "main"), (7, "accept")]);
        let (names, result) = names(&bytes, 0);
        assert!(result.is_ok());
        assert_eq!(names.get(&1329).map(String::as_str), Some("probe_server:main"));
        assert_eq!((names.len(), names.get(&7).map(String::as_str)), (2, Some("probe_server:accept")));
    }

    #[test]
    fn tracing_data_that_ends_early_keeps_the_names_before() {
        let bytes = tracing_data("sched", &[(1, "one"), (2, "two")]);
        let mut counts = Vec::new();
        for len in 0..bytes.len() - 12 {
            let (names, result) = names(&bytes[..len], 0);
            assert!(result.is_err(), "{len} of {} bytes look whole", bytes.len());
            counts.push(names.len());
        }
        assert!(counts.is_sorted() && counts.last() == Some(&1), "{counts:?}");
        let mut odd = bytes;
        odd[3] = b'T';
        assert!(names(&odd, 0).1.is_err());
    }
}
