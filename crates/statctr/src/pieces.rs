//! The memory of an array: [`Pieces`].

use crate::error::Result;
use crate::memory::Lines;
use std::ops::Range;

/// The memory of an array of counters or of groups of counters, split into pieces that each fit into a unit (one CPU's
/// part of counter memory); all but the last have equally many elements.
///
/// Most arrays have one, which is found by a comparison: a division, and a list of runs to look it up in, cost
/// more than an update.
#[derive(Debug)]
pub(crate) struct Pieces<T = Lines> {
    first: Option<T>,
    first_len: usize,
    /// The number of elements in each piece but the last is 2 to the power of this.
    shift: u32,
    len: usize,
    rest: Vec<T>,
}

impl<T> Pieces<T> {
    /// Allocates memory for an array of `len` elements (counters or groups of counters), calling `take` with the number
    /// of elements of each piece, at most `most`.
    pub(crate) fn take(len: usize, most: usize, mut take: impl FnMut(usize) -> Result<T>) -> Result<Self> {
        let shift = most.max(1).ilog2();
        let mut pieces = Pieces { first: None, first_len: 0, shift, len, rest: Vec::new() };
        let mut left = len;
        while left > 0 {
            let elements = left.min(pieces.piece_len());
            let lines = take(elements)?;
            left -= elements;
            if pieces.first.is_none() {
                (pieces.first, pieces.first_len) = (Some(lines), elements);
            } else {
                pieces.rest.push(lines);
            }
        }
        Ok(pieces)
    }

    /// Returns the number of elements (counters or groups of counters) of the array, over all pieces of its memory.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns an iterator over the pieces of the memory of an array of counters or of groups, each with its number of
    /// elements.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&T, usize)> {
        let first = self.first.iter().map(|piece| (piece, self.first_len));
        let rest = self.rest.iter().enumerate().map(|(place, piece)| {
            let before = (place + 1) * self.piece_len();
            (piece, self.piece_len().min(self.len - before))
        });
        first.chain(rest)
    }

    fn piece_len(&self) -> usize {
        1 << self.shift
    }

    /// Returns the piece (part of the array's memory) that contains the element (counter or group of counters) at
    /// `index` of the array, and the element's index in the piece; `None` beyond the end.
    #[inline(always)]
    pub(crate) fn find(&self, index: usize) -> Option<(&T, usize)> {
        self.find_map(index, |piece, index| Some((piece, index)))
    }

    /// Returns what `found` returns for the piece (part of the array's memory) that contains the element (counter or
    /// group of counters) at `index` of the array, and the element's index in the piece; `None` beyond the end.
    ///
    /// A loop loads once what `found` loads of the piece, where the array has a single one: it is then at a place that
    /// the compiler knows, and not at one of two.
    #[inline(always)]
    pub(crate) fn find_map<'a, R>(
        &'a self,
        index: usize,
        found: impl Fn(&'a T, usize) -> Option<R>,
    ) -> Option<R> {
        if index < self.first_len {
            return found(self.first.as_ref()?, index);
        }
        if index >= self.len {
            return None;
        }
        found(self.rest.get((index >> self.shift) - 1)?, index & (self.piece_len() - 1))
    }

    /// Calls `visit` for each piece (part of the array's memory) with elements (counters or groups of counters) of
    /// `range`: the piece, those elements' indices in it, and the number of elements of `range` before them.
    pub(crate) fn for_each(&self, range: Range<usize>, mut visit: impl FnMut(&T, Range<usize>, usize)) {
        let mut from = range.start;
        while from < range.end {
            let Some((lines, index)) = self.find(from) else { return };
            let count = (self.piece_len() - index).min(range.end - from);
            visit(lines, index..index + count, from - range.start);
            from += count;
        }
    }
}
