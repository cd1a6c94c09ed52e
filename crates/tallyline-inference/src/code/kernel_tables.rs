//! Tables of a Linux kernel about single instructions: static keys, warnings and exception fixups.

/// An entry of one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KernelTableEntry {
    /// The address of the instruction that the entry is about.
    pub(super) from: u64,
    /// The address that the table names; the code at `from` may say otherwise.
    pub(super) to: u64,
    /// The table that the entry is from.
    pub(super) kind: EntryKind,
}

/// The table that an entry is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    /// `__jump_table`: a static key.
    StaticKey,
    /// `__bug_table`: a trap that only warns.
    Warning,
    /// `__ex_table`: an instruction that may fault.
    Fixup,
}

/// A parser of the entry at an address.
type ParseEntry = fn(u64, &[u8]) -> Option<KernelTableEntry>;

/// The tables: section, size of an entry, parser.
const TABLES: [(&str, usize, ParseEntry); 3] =
    [("__jump_table", 16, static_key), ("__bug_table", 12, warning), ("__ex_table", 12, fixup)];

/// Reads the entries about instructions that `is_code` accepts, sorted by address. `section` returns the address and
/// the bytes of a section.
pub(super) fn read(
    section: impl Fn(&str) -> Option<(u64, Vec<u8>)>,
    is_code: impl Fn(u64) -> bool,
) -> Vec<KernelTableEntry> {
    let mut entries = Vec::new();
    for (name, size, parse) in TABLES {
        let Some((start, bytes)) = section(name) else { continue };
        let slots = (start..).step_by(size).zip(bytes.chunks_exact(size));
        entries.extend(slots.filter_map(|(at, entry)| parse(at, entry)));
    }
    entries.retain(|entry| is_code(entry.from));
    entries.sort_unstable();
    entries
}

/// Reads an address that is stored relative to its own location.
fn relative(at: u64, entry: &[u8], offset: usize) -> Option<u64> {
    let bytes = entry.get(offset..offset.checked_add(4)?)?.try_into().ok()?;
    Some(at.wrapping_add(offset as u64).wrapping_add_signed(i32::from_le_bytes(bytes).into()))
}

/// Parses a `struct jump_entry`: the instruction and the target of the jump that the key turns on.
fn static_key(at: u64, entry: &[u8]) -> Option<KernelTableEntry> {
    Some(KernelTableEntry {
        from: relative(at, entry, 0)?,
        to: relative(at, entry, 4)?,
        kind: EntryKind::StaticKey,
    })
}

/// Parses a `struct exception_table_entry`: the instruction that may fault and its fixup.
fn fixup(at: u64, entry: &[u8]) -> Option<KernelTableEntry> {
    Some(KernelTableEntry {
        from: relative(at, entry, 0)?,
        to: relative(at, entry, 4)?,
        kind: EntryKind::Fixup,
    })
}

/// Parses a `struct bug_entry` with file and line; `None` unless its flags mark the trap as a warning.
fn warning(at: u64, entry: &[u8]) -> Option<KernelTableEntry> {
    const FLAGS: usize = 10;
    const WARNS: u8 = 1;
    let from = relative(at, entry, 0)?;
    let warns = entry.get(FLAGS).is_some_and(|flags| flags & WARNS != 0);
    warns.then_some(KernelTableEntry { from, to: from, kind: EntryKind::Warning })
}
