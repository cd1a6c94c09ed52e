//! Folds of whole pieces: groups, arrays of groups, arrays of counters.

use super::fold::{TILE, Tile, fold_tile};
use super::layout::CHUNK_WORDS;
use super::owner::Lines;
use std::ops::Range;

/// Sums several groups of counters over the CPUs, each a piece of counter memory of `chunks` cache lines, and passes
/// the sums to `sink(index of the piece, index of the first word in it, sums)`. Adjacent pieces are read in one pass.
pub(crate) fn fold_runs<'a>(
    pieces: impl IntoIterator<Item = &'a Lines>,
    chunks: usize,
    mut sink: impl FnMut(usize, usize, &[u64]),
) {
    let mut tile = Tile::new();
    let mut pieces = pieces.into_iter().peekable();
    let mut index = 0;
    let at_once = TILE / chunks.max(1);
    while let Some(first) = pieces.next() {
        let mut run = 1;
        let mut last = first;
        while run < at_once {
            let Some(next) = pieces.next_if(|next| last.is_followed_by(next)) else { break };
            last = next;
            run += 1;
        }
        if run > 1 {
            let sums = tile.zeroed(run * chunks);
            // SAFETY: the pieces of the run are adjacent, have no second copies, and are borrowed.
            unsafe { fold_tile(first.handle(), sums) };
            for (offset, piece) in sums.chunks_exact(chunks * CHUNK_WORDS).enumerate() {
                sink(index + offset, 0, piece);
            }
        } else {
            fold_piece(first, chunks, &mut tile, |word, sums| sink(index, word, sums));
        }
        index += run;
    }
}

/// Sums the counter words of the rows `rows` of an array (groups of `chunks` cache lines each) over the CPUs and passes
/// the sums to `sink(row, index of the first word in it, sums)`. `lines` is the array's piece of counter memory, of
/// which `front` lines precede the first row.
pub(crate) fn fold_rows(
    lines: &Lines,
    front: usize,
    chunks: usize,
    rows: Range<usize>,
    mut sink: impl FnMut(usize, usize, &[u64]),
) {
    let mut tile = Tile::new();
    let at_once = (TILE / chunks.max(1)).max(1);
    let mut row = rows.start;
    while row < rows.end {
        let step = at_once.min(rows.end - row);
        let mut done = 0;
        while done < step * chunks {
            let part = (step * chunks - done).min(TILE);
            let sums = tile.zeroed(part);
            lines.fold_in_tile(front + row * chunks + done, sums);
            if step == 1 {
                sink(row, done * CHUNK_WORDS, sums);
            } else {
                for (offset, sums) in sums.chunks_exact(chunks * CHUNK_WORDS).enumerate() {
                    sink(row + offset, 0, sums);
                }
            }
            done += part;
        }
        row += step;
    }
}

/// Sums the first `chunks` cache lines of a piece (consecutive cache lines) of counter memory over the CPUs, a tile
/// (some lines) at a time, and passes the sums to `sink(index of the first word, sums)`.
pub(crate) fn fold_piece_tiles(lines: &Lines, chunks: usize, sink: impl FnMut(usize, &[u64])) {
    fold_piece(lines, chunks, &mut Tile::new(), sink);
}

fn fold_piece(lines: &Lines, chunks: usize, tile: &mut Tile, mut sink: impl FnMut(usize, &[u64])) {
    let mut done = 0;
    while done < chunks {
        let step = (chunks - done).min(TILE);
        let sums = tile.zeroed(step);
        lines.fold_in_tile(done, sums);
        sink(done * CHUNK_WORDS, sums);
        done += step;
    }
}
