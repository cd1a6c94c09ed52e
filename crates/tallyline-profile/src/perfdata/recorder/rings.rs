//! The rings, and their way into the file.

use super::os::Ring;
use crate::perfdata::abi::{misc, record as kind};
use crate::perfdata::file::BuildId;
use crate::perfdata::writer::Writer;
use std::fs::File;
use std::io::Result;
use std::os::fd::RawFd;

/// What went through.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) samples: u64,
    /// As the kernel says in between; what was lost last it may not have said.
    pub(super) lost: u64,
    pub(super) last_time: u64,
}

/// One ring a CPU, with the descriptor that says when it fills.
#[derive(Debug, Default)]
pub(super) struct Rings {
    rings: Vec<(RawFd, Ring)>,
    buffer: Vec<u8>,
}

impl Rings {
    pub(super) fn add(&mut self, descriptor: RawFd, ring: Ring) {
        self.rings.push((descriptor, ring));
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(|(descriptor, _)| *descriptor).collect()
    }

    /// Empties all into the file, and marks the round: what comes later is not older than what was
    /// there in the round before.
    pub(super) fn drain_round(&mut self, writer: &mut Writer<File>, tally: &mut Tally) -> Result<()> {
        let before = writer.written();
        self.drain(writer, tally)?;
        if writer.written() > before { writer.finish_round() } else { Ok(()) }
    }

    /// Empties all into the file; without the mark perf keeps these records until there is one.
    pub(super) fn drain(&mut self, writer: &mut Writer<File>, tally: &mut Tally) -> Result<()> {
        for (_, ring) in &mut self.rings {
            let buffer = &mut self.buffer;
            buffer.clear();
            // copied first, so that the kernel has its room back before the disk is waited for
            ring.drain(|first, second| {
                buffer.extend_from_slice(first);
                buffer.extend_from_slice(second);
                Ok(())
            })?;
            scan(&self.buffer, writer, tally);
            if !self.buffer.is_empty() {
                writer.records(&self.buffer)?;
            }
        }
        Ok(())
    }
}

/// Counts samples, and notes what the file's header will say of files.
fn scan(mut bytes: &[u8], writer: &mut Writer<File>, tally: &mut Tally) {
    while let Some((header, _)) = bytes.split_first_chunk::<8>() {
        let [k0, k1, k2, k3, m0, m1, s0, s1] = *header;
        let size = usize::from(u16::from_ne_bytes([s0, s1]));
        let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size >= 8) else { return };
        bytes = rest;
        let body = &record[8..];
        let word = |index: usize| body.get(index * 8..)?.first_chunk().copied().map(u64::from_ne_bytes);
        match u32::from_ne_bytes([k0, k1, k2, k3]) {
            kind::SAMPLE => {
                tally.samples += 1;
                // behind the identifier, the address and the thread, which are always asked for
                if let Some(time) = word(3) {
                    tally.last_time = tally.last_time.max(time);
                    writer.sample_time(time);
                }
            }
            kind::LOST => tally.lost += word(1).unwrap_or(0),
            kind::MMAP2 if u16::from_ne_bytes([m0, m1]) & misc::MMAP_BUILD_ID != 0 => {
                // process, start, length, offset; then the length of the id, three bytes, the id
                let id = body.get(36..56).and_then(|id| {
                    let len = usize::from(*body.get(32)?).min(id.len());
                    BuildId::new(&id[..len])
                });
                let path = body.get(64..).and_then(|path| path.split(|byte| *byte == 0).next());
                if let (Some(id), Some(path)) = (id, path) {
                    writer.build_id(false, path, id);
                }
            }
            _ => {}
        }
    }
}
