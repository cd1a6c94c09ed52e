//! Any bytes as a file and its companion: a length (4 bytes, low first), so many bytes of the file,
//! and the rest of whatever it asks for. No panic, no endless work.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use tallyline_debuginfo::{Companion, Companions, Contents, Format, Request, Wanted, read_with};
use tallyline_layout::print::pahole::{Printer, Style};

struct Same<'b>(&'b [u8]);

impl Companions for Same<'_> {
    fn open(&self, _wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        Ok(Contents::Bytes(self.0.to_vec()))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return };
    let length = (u32::from_le_bytes(*length) as usize).min(rest.len());
    let (file, companion) = rest.split_at(length);
    for wanted in [Wanted::Records, Wanted::named(["outer", "both", "own", "bulk2"])] {
        let request = Request { format: Some(Format::Dwarf), wanted, positions: true, ..Request::default() };
        let Ok(types) = read_with(file, &request, &Same(companion)) else { continue };
        let mut printer = Printer::new(&types, Style { budget: 1 << 20, ..Style::default() });
        for id in types.listed() {
            printer.print(*id);
            printer.clear();
        }
    }
});
