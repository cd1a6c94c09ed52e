//! Work in parallel whose results are written in order.

use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, available_parallelism};

/// The number of pieces that a worker may be ahead of the writer.
const AHEAD: usize = 4;

/// The most text that one piece is kept for its turn.
pub(super) const TEXT_LIMIT: usize = 8 << 20;

/// The result of a piece.
pub(super) enum Done<P> {
    /// The text to write.
    Text(Vec<u8>),
    /// More than [`TEXT_LIMIT`]: it has to be written as it is made.
    Large(P),
}

/// Makes text of pieces in as many workers as there are CPUs, and writes it in the order of the
/// pieces. `worker` makes what does the work, once a thread; what is too large for it goes to `alone`.
pub(super) fn in_order<P: Send, W: FnMut(P) -> Done<P>>(
    worker: impl Fn() -> W + Sync,
    mut alone: impl FnMut(P, &mut dyn Write) -> Result<()>,
    out: &mut dyn Write,
    produce: impl FnOnce(&mut dyn FnMut(P) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let (pieces, taken) = channel();
    let (finished, results) = channel();
    let taken = Mutex::new(taken);
    thread::scope(|scope| {
        let mut threads = 0;
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            let (finished, taken, worker) = (finished.clone(), &taken, &worker);
            let run = move || work(worker(), taken, &finished);
            threads += usize::from(thread::Builder::new().spawn_scoped(scope, run).is_ok());
        }
        drop(finished);
        let mut waiting = Waiting { results, done: BTreeMap::new(), sent: 0, written: 0 };
        produce(&mut |piece| {
            if threads == 0 {
                return alone(piece, out);
            }
            if pieces.send((waiting.sent, piece)).is_err() {
                bail!("the workers have ended");
            }
            waiting.sent += 1;
            waiting.write(threads * AHEAD, &mut alone, out)
        })?;
        drop(pieces);
        waiting.write(0, &mut alone, out)
    })
}

fn work<P>(
    mut worker: impl FnMut(P) -> Done<P>,
    taken: &Mutex<Receiver<(usize, P)>>,
    finished: &Sender<(usize, Done<P>)>,
) {
    loop {
        // nobody panics while holding it
        let Ok(Ok((number, piece))) = taken.lock().map(|pieces| pieces.recv()) else { return };
        if finished.send((number, worker(piece))).is_err() {
            return;
        }
    }
}

/// The finished pieces and the next one to write.
struct Waiting<P> {
    results: Receiver<(usize, Done<P>)>,
    done: BTreeMap<usize, Done<P>>,
    sent: usize,
    written: usize,
}

impl<P> Waiting<P> {
    /// Writes what has its turn, until no more than so many pieces are under way.
    fn write(
        &mut self,
        ahead: usize,
        alone: &mut impl FnMut(P, &mut dyn Write) -> Result<()>,
        out: &mut dyn Write,
    ) -> Result<()> {
        loop {
            while let Some(done) = self.done.remove(&self.written) {
                match done {
                    Done::Text(text) => out.write_all(&text)?,
                    Done::Large(piece) => alone(piece, out)?,
                }
                self.written += 1;
            }
            if self.sent - self.written <= ahead {
                return Ok(());
            }
            let Ok((number, done)) = self.results.recv() else { bail!("a worker has ended early") };
            self.done.insert(number, done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_large_ones_are_done_alone() {
        let mut out = Vec::new();
        let worker = || {
            |number: usize| match number % 10 {
                0 => Done::Large(number),
                _ => Done::Text(format!("{number}\n").into_bytes()),
            }
        };
        let alone = |number: usize, out: &mut dyn Write| Ok(writeln!(out, "{number}")?);
        in_order(worker, alone, &mut out, |send| (0..1000).try_for_each(send)).expect("written");
        let expected: String = (0..1000).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn what_cannot_be_written_ends_it() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let worker = || |_: usize| Done::Text(b"text".to_vec());
        let result = in_order(worker, |_, _| Ok(()), &mut Full, |send| (0..1000).try_for_each(send));
        assert!(result.is_err());
    }
}
