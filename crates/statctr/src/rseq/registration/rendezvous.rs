//! One area for all copies of this library in a process.
//!
//! A program and the libraries that it loads may each have a copy, of which none sees another's
//! symbols. Each object that has one carries a note (`PT_NOTE`) that leads to its [`Beacon`]. A copy
//! that looks for an area asks the first object that has a note, in the order in which they were
//! loaded, then the next, until one has an area: all copies thereby ask the same one, whichever of
//! them counts first. That object is kept from being unloaded.

use super::here;
use super::{Found, Outcome, Register};
use crate::sys::keep_loaded;
use std::ffi::{CStr, CString, c_int, c_void};

/// Type of the note: the version of [`Beacon`].
const NOTE_TYPE: u32 = 1;
const NOTE_NAME: &[u8] = b"statctr\0";
const MAGIC: u64 = u64::from_le_bytes(*b"statctr1");

/// Services of one copy of this library to all. Its layout is shared by all versions of the library.
#[derive(Debug)]
#[repr(C)]
struct Beacon {
    magic: u64,
    /// Chooses an area and registers the calling thread; the [`Outcome`].
    choose: extern "C" fn(offset: &mut isize) -> u8,
    register: Register,
}

static BEACON: Beacon = Beacon { magic: MAGIC, choose: choose_here, register: here::register_thread };

extern "C" fn choose_here(offset: &mut isize) -> u8 {
    let outcome;
    (outcome, *offset) = here::choose();
    outcome as u8
}

/// Does nothing. The note comes with this function, into every object that has it.
#[unsafe(naked)]
extern "C" fn carry_note() {
    std::arch::naked_asm!(
        ".pushsection .note.statctr, \"a\", @note",
        ".balign 4",
        ".long 8, 4, {note_type}",
        ".asciz \"statctr\"",
        "3: .long {beacon} - 3b",
        ".popsection",
        "ret",
        note_type = const NOTE_TYPE,
        beacon = sym BEACON,
    )
}

/// An object of the process that has a copy.
struct Copy {
    beacon: *const Beacon,
    /// File of a library; empty for the program.
    file: CString,
}

/// Finds the area that all copies use.
pub(super) fn find() -> Option<Found> {
    carry_note();
    let mut foreign = None;
    let mut copies = copies();
    if copies.is_empty() {
        // somebody removed the notes
        copies.push(Copy { beacon: &raw const BEACON, file: CString::default() });
    }
    for copy in copies {
        if !keep_loaded(&copy.file) {
            continue;
        }
        // SAFETY: a beacon of an object that stays loaded.
        let beacon = unsafe { &*copy.beacon };
        let mut offset = 0;
        let outcome = Outcome::from_number((beacon.choose)(&mut offset));
        match outcome {
            Some(outcome @ (Outcome::Own | Outcome::Adopted)) => {
                return Some(Found { outcome, offset, register: Some(beacon.register) });
            }
            Some(outcome @ Outcome::Foreign) => {
                foreign = Some(Found { outcome, offset: 0, register: None });
            }
            _ => {}
        }
    }
    foreign
}

/// Returns the objects with a copy, in the order in which they were loaded.
fn copies() -> Vec<Copy> {
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
        // SAFETY: the loader's description of an object, and the vector below.
        let (object, found) = unsafe { (&*object, &mut *found.cast::<(Vec<Copy>, bool)>()) };
        let (copies, is_program) = found;
        // SAFETY: the loader's pointer to the object's headers, and its name.
        let beacon = unsafe { beacon_of(object) };
        if let Some(beacon) = beacon {
            let named = !*is_program && !object.dlpi_name.is_null();
            // SAFETY: a string of the loader's.
            let name = || unsafe { CStr::from_ptr(object.dlpi_name) }.to_owned();
            let file = if named { name() } else { CString::default() };
            copies.push(Copy { beacon, file });
        }
        *is_program = false;
        0
    }
    // the first object is the program
    let mut found = (Vec::new(), true);
    // SAFETY: `visit` takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found.0
}

/// Returns an object's beacon.
///
/// # Safety
/// A description from `dl_iterate_phdr`.
unsafe fn beacon_of(object: &libc::dl_phdr_info) -> Option<*const Beacon> {
    if object.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: the loader's pointer and number.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    headers.iter().filter(|header| header.p_type == libc::PT_NOTE).find_map(|header| {
        let start = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        // SAFETY: a segment that is loaded, as notes are.
        let notes = unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), header.p_memsz as usize)
        };
        let place = find_note(notes, (header.p_align as usize).max(4))?;
        let distance = i32::from_ne_bytes(notes.get(place..place + 4)?.try_into().ok()?);
        let beacon: *const Beacon = std::ptr::with_exposed_provenance(
            start.wrapping_add(place).wrapping_add_signed(distance as isize),
        );
        // SAFETY: where a note of this name and type leads.
        (unsafe { (*beacon).magic } == MAGIC).then_some(beacon)
    })
}

/// Returns the offset of the content of our note.
fn find_note(notes: &[u8], align: usize) -> Option<usize> {
    let word = |at: usize| Some(u32::from_ne_bytes(notes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let padded = |length: u32| (length as usize).checked_next_multiple_of(if align == 8 { 8 } else { 4 });
    let mut at = 0usize;
    loop {
        let (name, content, kind) = (word(at)?, word(at + 4)?, word(at + 8)?);
        let name_at = at + 12;
        // with 8 the content is aligned from the note's start
        let content_at = if align == 8 {
            at.checked_add((12 + name as usize).checked_next_multiple_of(8)?)?
        } else {
            name_at.checked_add(padded(name)?)?
        };
        if kind == NOTE_TYPE
            && content == 4
            && notes.get(name_at..name_at.checked_add(name as usize)?)? == NOTE_NAME
        {
            return Some(content_at);
        }
        at = content_at.checked_add(padded(content)?)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, content.len() as u32, kind] {
            note.extend(word.to_ne_bytes());
        }
        for part in [name, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn a_note_is_found_behind_others() {
        let others =
            [note(b"GNU\0", 3, &[1; 20]), note(b"statctr\0", 99, &[0; 4]), note(b"x\0", 1, &[])].concat();
        assert_eq!(find_note(&others, 4), None);
        let all = [others.clone(), note(NOTE_NAME, NOTE_TYPE, &[7, 0, 0, 0])].concat();
        assert_eq!(find_note(&all, 4), Some(others.len() + 20));
    }

    #[test]
    fn damaged_notes_are_passed_over() {
        let whole = note(NOTE_NAME, NOTE_TYPE, &[7, 0, 0, 0]);
        for length in 0..whole.len() - 8 {
            assert_eq!(find_note(&whole[..length], 4), None, "{length}");
        }
        let mut long = whole.clone();
        long[0..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!((find_note(&long, 4), find_note(&long, 8)), (None, None));
    }

    #[test]
    fn this_program_has_a_note() {
        assert!(copies().iter().any(|copy| std::ptr::eq(copy.beacon, &raw const BEACON)));
    }
}
