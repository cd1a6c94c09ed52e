//! Cutting the section of units into windows, between units.

use super::Windows;
use super::reload::Section;
use crate::INFLATED_LIMIT;
use crate::elf::Part;
use crate::error::Result;
use std::io::{self, Read};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, ScopedJoinHandle};

/// Windows of a section, in order. Their memory goes back to be used again.
pub(super) struct WindowStream<'s> {
    /// Until they are taken.
    pub(super) windows: Option<Receiver<io::Result<Vec<u8>>>>,
    spent: Sender<Vec<u8>>,
    // the most bytes that are kept to be used again
    most: usize,
    cutter: Option<ScopedJoinHandle<'s, ()>>,
}

impl WindowStream<'_> {
    /// Gives back the memory of a window, unless it is that of a unit that is longer than others.
    pub(super) fn give_back(&self, window: Vec<u8>) {
        if window.capacity() <= self.most {
            // nobody needs it where all windows are there
            let _ = self.spent.send(window);
        }
    }
}

impl Drop for WindowStream<'_> {
    /// Waits for the thread: a scope does so only for what it runs, not for what it leaves behind.
    fn drop(&mut self) {
        // without a taker it ends
        self.windows = None;
        if let Some(cutter) = self.cutter.take() {
            let _ = cutter.join();
        }
    }
}

/// Returns the number of windows that may wait for their turn. Inflating takes longer than scanning, so it is
/// best never to wait for compressed data; the more there is of it, the less it matters.
fn ahead(info: &Part<'_>) -> usize {
    let size = usize::try_from(info.size()).unwrap_or(usize::MAX);
    match info.is_compressed() {
        true => (size >> 24).min(4),
        false => usize::from(size >> 26 != 0),
    }
}

/// Starts to cut a section into windows; none if that cannot be done.
pub(super) fn cut<'s>(
    scope: &'s thread::Scope<'s, '_>,
    info: &'s Part<'_>,
    section: Option<&'s Section<'_>>,
    sizes: Windows,
    little_endian: bool,
) -> Result<Option<WindowStream<'s>>> {
    let stream = match section.filter(|section| section.is_compressed()) {
        Some(section) => section.stream_from(0)?,
        // the budget was looked at before
        None => info.stream(&AtomicU64::new(INFLATED_LIMIT))?,
    };
    let Some(stream) = stream else { return Ok(None) };
    let (send, windows) = sync_channel(ahead(info));
    let (spent, again) = channel();
    let most = sizes.most.saturating_mul(2);
    let left = usize::try_from(info.size()).unwrap_or(usize::MAX);
    let cutter = WindowCutter { stream, left, sizes, little_endian, again };
    let started = thread::Builder::new().spawn_scoped(scope, move || cutter.run(&send));
    Ok(started.ok().map(|cutter| WindowStream { windows: Some(windows), spent, most, cutter: Some(cutter) }))
}

/// The most memory that is taken before it is known that there is something to fill it with.
const RESERVED: usize = 64 << 20;

/// Cuts the section of units into windows, between units.
struct WindowCutter<'a> {
    stream: Box<dyn Read + Send + 'a>,
    // how many bytes it still has, as the file says
    left: usize,
    sizes: Windows,
    little_endian: bool,
    // windows that were looked at
    again: Receiver<Vec<u8>>,
}

impl WindowCutter<'_> {
    /// Sends the windows until there are no more, or nobody takes them.
    fn run(mut self, send: &SyncSender<io::Result<Vec<u8>>>) {
        let mut size = self.sizes.first;
        let mut rest = Vec::new();
        loop {
            let window = match self.next(&mut rest, size) {
                Ok(window) if window.is_empty() => return,
                window => window,
            };
            let failed = window.is_err();
            if send.send(window).is_err() || failed {
                return;
            }
            size = size.saturating_mul(2).min(self.sizes.most);
        }
    }

    /// Reads the next window: the rest of the one before and the bytes that follow. Damage at its end is
    /// found by the reader of its units.
    fn next(&mut self, rest: &mut Vec<u8>, size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.again.try_recv().unwrap_or_default();
        bytes.clear();
        bytes.append(rest);
        let mut wanted = size;
        loop {
            let more = wanted.saturating_sub(bytes.len());
            // what a unit says of its length may be more than there is
            bytes.reserve_exact(more.min(self.left).min(RESERVED));
            let read = (&mut self.stream).take(more as u64).read_to_end(&mut bytes)?;
            self.left = self.left.saturating_sub(read);
            if read < more {
                return Ok(bytes);
            }
            match whole_units(&bytes, self.little_endian) {
                // a unit that is longer than a window
                (0, needed) => wanted = needed.max(bytes.len().saturating_add(1)),
                (end, _) => {
                    rest.extend_from_slice(&bytes[end..]);
                    bytes.truncate(end);
                    return Ok(bytes);
                }
            }
        }
    }
}

/// Returns the offsets at which the last whole unit ends, and at which the one after it would.
fn whole_units(bytes: &[u8], little_endian: bool) -> (usize, usize) {
    let mut end = 0;
    loop {
        let Some(next) = unit_length(&bytes[end..], little_endian).and_then(|length| end.checked_add(length))
        else {
            return (end, end);
        };
        if next > bytes.len() {
            return (end, next);
        }
        end = next;
    }
}

/// Returns the size of the unit at the start of some bytes, with its length field.
fn unit_length(bytes: &[u8], little_endian: bool) -> Option<usize> {
    let start: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let short = if little_endian { u32::from_le_bytes(start) } else { u32::from_be_bytes(start) };
    if short != u32::MAX {
        return usize::try_from(short).ok()?.checked_add(4);
    }
    let start: [u8; 8] = bytes.get(4..12)?.try_into().ok()?;
    let long = if little_endian { u64::from_le_bytes(start) } else { u64::from_be_bytes(start) };
    usize::try_from(long).ok()?.checked_add(12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_cut_where_they_end() {
        let unit = |length: u32, size: usize| [&length.to_le_bytes()[..], &vec![7; size]].concat();
        let all = [unit(3, 3), unit(100, 100), unit(1, 1), unit(50, 20)].concat();
        for first in [1, 8, 12, 200] {
            let (send, windows) = sync_channel(100);
            let (spent, again) = channel();
            spent.send(vec![9; 30]).expect("open");
            let (stream, sizes) = (Box::new(&all[..]), Windows { first, most: 40 });
            let left = all.len();
            WindowCutter { stream, left, sizes, little_endian: true, again }.run(&send);
            drop(send);
            let windows: Vec<Vec<u8>> = windows.into_iter().map(|window| window.expect("read")).collect();
            assert_eq!(windows.concat(), all);
            for window in &windows[..windows.len() - 1] {
                assert_eq!(whole_units(window, true).0, window.len(), "{first}");
            }
        }
        // the last one is damaged: that is for others to find
        assert_eq!(whole_units(&all, true), (7 + 104 + 5, 7 + 104 + 5 + 54));
        assert_eq!(unit_length(&[0xff; 12], true), None, "longer than any memory");
    }
}
