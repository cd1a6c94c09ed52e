//! The search for stamps, which sections write meanwhile: therefore as machine code, for the reasons of `fold`.

use std::ops::Range;

/// Stamps that are looked at together: a cache line of them.
pub(super) const AT_ONCE: usize = 64;

/// Masks that are passed over where all of their lines were found, and lines of stamps that are read of one CPU before
/// the next one's.
const PART: usize = 4;

/// CPUs whose stamps are read side by side: 42 ns a group instead of 94 for each CPU's from first to last, with 160 CPUs
/// and 5 lines a group; 48 of four CPUs, 51 of sixteen (AMD EPYC, Zen 3, in a virtual machine).
const SIDE_BY_SIDE: usize = 8;

/// Parts ahead of the one that is looked at to fetch, behind a CPU's last ones those of the CPUs that have its place
/// among those side by side next, if there are any: 4.7 ns a line of stamps, 5.1 with the CPU's own next part, 5.6
/// without (Intel Xeon, model 167, 160 lines of stamps).
const AHEAD: usize = 2;

/// Pieces of the longest run that is divided: with 25 % of groups of five lines written at random a fold takes 1.41 µs a
/// group instead of 1.52, and as long if runs of up to 48 lines are divided; with all written, and all divided, a sixth longer
/// (Intel Xeon, model 167).
const MOST_PIECES: usize = 3;

/// The mask of as many stamps.
const ALL: u64 = u64::MAX;

/// The stamps of a CPU, and those of them that say that a line was written: not 0, and `low` to `low + width`, modulo
/// 256.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    stamps: usize,
    low: u8,
    width: u8,
}

impl Window {
    /// Returns the window of the epochs `from` to `to`, for stamps at an address.
    pub(super) fn new(stamps: usize, from: u64, to: u64) -> Window {
        match to.saturating_sub(from) {
            width @ ..255 => Window { stamps, low: from as u8, width: width as u8 },
            // all that were ever written
            _ => Window { stamps, low: 1, width: 254 },
        }
    }

    /// Returns the address of the stamps of a part.
    fn part(self, part: usize) -> usize {
        self.stamps + part * PART * AT_ONCE
    }
}

/// Lines that are to be read.
#[derive(Debug)]
pub(super) struct Changed {
    /// A bit for each line, in masks of as many as are looked at together.
    masks: Vec<u64>,
    lines: usize,
}

impl Changed {
    /// Makes room for so many lines, none of which is to be read.
    pub(super) fn new(lines: usize) -> Changed {
        let mut changed = Changed { masks: vec![0; lines.div_ceil(AT_ONCE)], lines };
        changed.clear();
        changed
    }

    /// Removes all lines from those to read.
    ///
    /// Behind the last one bits are set, or its mask would never be full, and be searched for on each CPU where all was
    /// written.
    pub(super) fn clear(&mut self) {
        self.masks.fill(0);
        if let Some(last) = self.masks.last_mut()
            && !self.lines.is_multiple_of(AT_ONCE)
        {
            *last = ALL << (self.lines % AT_ONCE);
        }
    }

    /// Adds a line to those to read.
    pub(super) fn insert(&mut self, line: usize) {
        self.masks[line / AT_ONCE] |= 1 << (line % AT_ONCE);
    }

    /// Adds all lines to those to read.
    pub(super) fn insert_all(&mut self) {
        self.masks.fill(ALL);
    }

    /// Adds the lines with a stamp in the window of a CPU: some CPUs' stamps part by part, side by side, as each begin
    /// on a page that nothing foretells, and a single CPU's are too few for prefetchers.
    ///
    /// # Safety
    /// Of each CPU the stamps of all lines, rounded up to [`AT_ONCE`], may be read.
    pub(super) unsafe fn find(&mut self, windows: &[Window]) {
        let search = search();
        let parts = self.masks.len().div_ceil(PART);
        for (first, side_by_side) in windows.chunks(SIDE_BY_SIDE).enumerate() {
            for (part, masks) in self.masks.chunks_mut(PART).enumerate() {
                let later = part + AHEAD;
                for (place, window) in side_by_side.iter().enumerate() {
                    // where all was written the search costs next to nothing
                    if masks.iter().all(|mask| *mask == ALL) {
                        break;
                    }
                    let ahead = windows.get((first + later / parts) * SIDE_BY_SIDE + place).unwrap_or(window);
                    let (stamps, ahead) = (window.part(part), ahead.part(later % parts));
                    // SAFETY: by the caller's promise.
                    unsafe { search(masks, stamps, ahead, window.low, window.width) };
                }
            }
        }
    }

    /// Returns the runs of at most `most` neighbouring lines, in their order. If pieces have a length, runs of a few of
    /// them come in pieces of at most that and about the same length.
    pub(super) fn runs(&self, most: usize, piece: Option<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut line = 0;
        std::iter::from_fn(move || {
            let start = self.end_of(line, self.lines, 0);
            line = self.end_of(start, self.lines.min(start.saturating_add(most)), ALL);
            let len = line - start;
            if let Some(piece) = piece
                && len > piece
                && len <= MOST_PIECES * piece
            {
                line = start + len.div_ceil(len.div_ceil(piece));
            }
            (start < line).then_some(start..line)
        })
    }

    /// Returns the end of the lines from `line` on, at most `end`, whose bits are those of `bits`, which are all alike.
    fn end_of(&self, mut line: usize, end: usize, bits: u64) -> usize {
        while line < end {
            let others = (self.masks[line / AT_ONCE] ^ bits) >> (line % AT_ONCE);
            if others != 0 {
                return end.min(line + others.trailing_zeros() as usize);
            }
            line = (line / AT_ONCE + 1) * AT_ONCE;
        }
        end
    }
}

/// Adds to the masks a bit for each of the stamps at an address that is in the window, and fetches those at another one.
type Search = unsafe fn(&mut [u64], usize, usize, u8, u8);

/// Returns the search for this machine.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn search() -> Search {
    if std::arch::is_x86_feature_detected!("avx512bw") {
        search_evex
    } else if std::arch::is_x86_feature_detected!("avx2") {
        search_vex
    } else {
        search_sse
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn search() -> Search {
    search_portable
}

/// The search by 64 stamps at a time.
///
/// # Safety
/// For each mask 64 stamps at `stamps` may be read; the machine has AVX-512BW.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn search_evex(masks: &mut [u64], stamps: usize, ahead: usize, low: u8, width: u8) {
    if masks.is_empty() {
        return;
    }
    // SAFETY: loads of as many stamps as there are masks for, by the caller's promise; a fetch ahead may have any
    // address. Volatile: sections write the stamps.
    unsafe {
        std::arch::asm!(
            "vpbroadcastb zmm17, {low:e}",
            "vpbroadcastb zmm18, {width:e}",
            "2:",
            "vmovdqu64 zmm16, zmmword ptr [{stamps}]",
            "prefetcht0 byte ptr [{stamps} + {ahead}]",
            "vptestmb k1, zmm16, zmm16",
            "vpsubb zmm16, zmm16, zmm17",
            // at most
            "vpcmpub k1 {{k1}}, zmm16, zmm18, 2",
            "kmovq {mask}, k1",
            "or qword ptr [{masks}], {mask}",
            "add {stamps}, 64",
            "add {masks}, 8",
            "cmp {masks}, {end}",
            "jne 2b",
            low = in(reg) u32::from(low),
            width = in(reg) u32::from(width),
            stamps = inout(reg) stamps => _,
            ahead = in(reg) ahead.wrapping_sub(stamps),
            masks = inout(reg) masks.as_mut_ptr() => _,
            end = in(reg) masks.as_mut_ptr_range().end,
            mask = out(reg) _,
            out("xmm16") _,
            out("xmm17") _,
            out("xmm18") _,
            out("k1") _,
            options(nostack),
        );
    }
}

/// The search by 32 stamps at a time.
///
/// # Safety
/// For each mask 64 stamps at `stamps` may be read; the machine has AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn search_vex(masks: &mut [u64], stamps: usize, ahead: usize, low: u8, width: u8) {
    if masks.is_empty() {
        return;
    }
    // SAFETY: as in `search_evex`. At this call nothing is expected in the upper halves of registers.
    unsafe {
        std::arch::asm!(
            "vmovd xmm4, {low:e}",
            "vpbroadcastb ymm4, xmm4",
            "vmovd xmm5, {width:e}",
            "vpbroadcastb ymm5, xmm5",
            "vpxor xmm6, xmm6, xmm6",
            "2:",
            "vmovdqu ymm0, ymmword ptr [{stamps}]",
            "vmovdqu ymm1, ymmword ptr [{stamps} + 32]",
            "prefetcht0 byte ptr [{stamps} + {ahead}]",
            "vpcmpeqb ymm2, ymm0, ymm6",
            "vpcmpeqb ymm3, ymm1, ymm6",
            "vpsubb ymm0, ymm0, ymm4",
            "vpsubb ymm1, ymm1, ymm4",
            // at most
            "vpminub ymm7, ymm0, ymm5",
            "vpcmpeqb ymm0, ymm0, ymm7",
            "vpminub ymm7, ymm1, ymm5",
            "vpcmpeqb ymm1, ymm1, ymm7",
            "vpandn ymm0, ymm2, ymm0",
            "vpandn ymm1, ymm3, ymm1",
            "vpmovmskb {mask:e}, ymm0",
            "vpmovmskb {high:e}, ymm1",
            "shl {high}, 32",
            "or {mask}, {high}",
            "or qword ptr [{masks}], {mask}",
            "add {stamps}, 64",
            "add {masks}, 8",
            "cmp {masks}, {end}",
            "jne 2b",
            "vzeroupper",
            low = in(reg) u32::from(low),
            width = in(reg) u32::from(width),
            stamps = inout(reg) stamps => _,
            ahead = in(reg) ahead.wrapping_sub(stamps),
            masks = inout(reg) masks.as_mut_ptr() => _,
            end = in(reg) masks.as_mut_ptr_range().end,
            mask = out(reg) _,
            high = out(reg) _,
            out("xmm0") _,
            out("xmm1") _,
            out("xmm2") _,
            out("xmm3") _,
            out("xmm4") _,
            out("xmm5") _,
            out("xmm6") _,
            out("xmm7") _,
            options(nostack),
        );
    }
}

/// The search by 16 stamps at a time.
///
/// # Safety
/// For each mask 64 stamps at `stamps` may be read.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn search_sse(masks: &mut [u64], stamps: usize, ahead: usize, low: u8, width: u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    const STEP: usize = 16;
    for (line, mask) in masks.iter_mut().enumerate() {
        let ahead = std::ptr::with_exposed_provenance(ahead.wrapping_add(line * AT_ONCE));
        // SAFETY: a fetch ahead may have any address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead) };
        for step in 0..AT_ONCE / STEP {
            // SAFETY: by the caller's promise.
            let found = unsafe { matches(stamps + line * AT_ONCE + step * STEP, low, width) };
            *mask |= u64::from(found) << (step * STEP);
        }
    }
}

/// Returns a bit for each of the 16 stamps at an address that is in the window.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn matches(stamps: usize, low: u8, width: u8) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_set1_epi8};
    // SAFETY: SSE2 is part of x86-64.
    #[allow(unused_unsafe)]
    let (low, width): (__m128i, __m128i) =
        unsafe { (_mm_set1_epi8(low.cast_signed()), _mm_set1_epi8(width.cast_signed())) };
    let mask: u32;
    // SAFETY: loads 16 bytes that may be read by the caller's promise. Volatile: sections write them.
    unsafe {
        std::arch::asm!(
            "movdqu {x}, xmmword ptr [{stamps}]",
            "pxor {zero}, {zero}",
            "pcmpeqb {zero}, {x}",
            "psubb {x}, {low}",
            "movdqa {least}, {width}",
            "pminub {least}, {x}",
            "pcmpeqb {least}, {x}",
            "pandn {zero}, {least}",
            "pmovmskb {mask:e}, {zero}",
            stamps = in(reg) stamps,
            low = in(xmm_reg) low,
            width = in(xmm_reg) width,
            x = out(xmm_reg) _,
            zero = out(xmm_reg) _,
            least = out(xmm_reg) _,
            mask = out(reg) mask,
            options(nostack, preserves_flags, readonly),
        );
    }
    mask
}

/// The search stamp by stamp.
///
/// # Safety
/// For each mask 64 stamps at `stamps` may be read.
#[cfg(any(not(target_arch = "x86_64"), miri, test))]
unsafe fn search_portable(masks: &mut [u64], stamps: usize, _ahead: usize, low: u8, width: u8) {
    use std::sync::atomic::{AtomicU8, Ordering};
    for (line, mask) in masks.iter_mut().enumerate() {
        for place in 0..AT_ONCE {
            let address = stamps + line * AT_ONCE + place;
            // SAFETY: may be read by the caller's promise; only written as what it is.
            let stamp = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU8>(address) };
            let stamp = stamp.load(Ordering::Acquire);
            let is_in = stamp != 0 && stamp.wrapping_sub(low) <= width;
            *mask |= u64::from(is_in) << place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found_if_it_is_in_the_window_and_not_zero() {
        // with what may be read behind the last
        let stamps: Vec<u8> = (0..=255).chain(0..=255).chain(0..64).collect();
        let address = stamps.as_ptr().expose_provenance();
        for (from, to) in
            [(0, 0), (0, 1), (3, 5), (250, 260), (511, 512), (7, 207), (1, 255), (5, 260), (0, 9000)]
        {
            for (first, lines) in [(0, 512), (5, 1), (17, 73), (240, 272)] {
                let mut changed = Changed::new(lines);
                // SAFETY: as many stamps and more.
                unsafe { changed.find(&[Window::new(address + first, from, to)]) };
                let found: Vec<usize> = changed.runs(usize::MAX, None).flatten().collect();
                let is_in = |line: &usize| {
                    let stamp = (first + line) as u8;
                    stamp != 0 && (from..=to).any(|epoch| epoch as u8 == stamp)
                };
                assert_eq!(found, (0..lines).filter(is_in).collect::<Vec<_>>(), "{from} to {to}");
            }
        }
    }

    #[test]
    fn what_any_cpu_wrote_is_found() {
        let (mut first, mut second) = (vec![0u8; 1024], vec![0u8; 1024]);
        first[..1000].fill(7);
        first[600] = 0;
        (second[600], second[601]) = (8, 9);
        let windows = [&first, &second].map(|stamps| Window::new(stamps.as_ptr().expose_provenance(), 7, 8));
        let mut changed = Changed::new(1000);
        // SAFETY: as many stamps and more.
        unsafe { changed.find(&windows) };
        assert!(changed.runs(usize::MAX, None).eq(std::iter::once(0..1000)));
        changed.clear();
        // SAFETY: as above.
        unsafe { changed.find(&windows[1..]) };
        assert!(changed.runs(usize::MAX, None).eq(std::iter::once(600..601)));
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn all_searches_find_the_same_stamps() {
        let mut random = 1u64;
        let stamps: Vec<u8> = (0..PART * AT_ONCE)
            .map(|_| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                if random >> 62 == 0 { 0 } else { (random >> 40) as u8 }
            })
            .collect();
        let address = stamps.as_ptr().expose_provenance();
        for (low, width) in [(0, 0), (1, 254), (7, 3), (250, 20), (255, 0), (128, 127), (0, 254)] {
            let found = |search: Search| {
                let mut masks = [0; PART];
                // SAFETY: as many stamps as masks.
                unsafe { search(&mut masks, address, address, low, width) };
                masks
            };
            let expected = found(search_portable);
            assert_eq!(found(search_sse), expected, "{low}, {width}");
            if std::arch::is_x86_feature_detected!("avx2") {
                assert_eq!(found(search_vex), expected, "{low}, {width}");
            }
            assert_eq!(found(search()), expected, "{low}, {width}");
        }
    }

    #[test]
    fn a_line_is_found_on_whichever_cpu_it_was_written() {
        for (cpus, lines) in [(1, 1_usize), (3, 64), (7, 300), (8, 256), (9, 257), (17, 1000), (40, 1300)] {
            let room = lines.div_ceil(AT_ONCE) * AT_ONCE;
            let mut stamps = vec![vec![0u8; room]; cpus];
            let written: Vec<usize> = (0..lines).filter(|line| line % 7 == 3 || *line == lines - 1).collect();
            for line in &written {
                stamps[line % cpus][*line] = 5;
            }
            let window = |stamps: &Vec<u8>| Window::new(stamps.as_ptr().expose_provenance(), 5, 6);
            let windows: Vec<Window> = stamps.iter().map(window).collect();
            let mut changed = Changed::new(lines);
            // SAFETY: there are stamps of all lines, rounded up.
            unsafe { changed.find(&windows) };
            let found: Vec<usize> = changed.runs(1, None).map(|run| run.start).collect();
            assert_eq!(found, written, "{cpus} CPUs");
        }
    }

    #[test]
    fn runs_are_all_lines_that_were_inserted() {
        let mut changed = Changed::new(256);
        let runs = |changed: &Changed, most| changed.runs(most, None).collect::<Vec<_>>();
        assert_eq!(runs(&changed, 99), []);
        for line in [0, 1, 15, 16, 17, 40, 254, 255] {
            changed.insert(line);
        }
        assert_eq!(runs(&changed, 99), [0..2, 15..18, 40..41, 254..256]);
        assert_eq!(runs(&changed, 2), [0..2, 15..17, 17..18, 40..41, 254..256]);
        let mut changed = Changed::new(100);
        changed.insert_all();
        assert_eq!(runs(&changed, 64), [0..64, 64..100]);
        assert_eq!(runs(&changed, 99), [0..99, 99..100]);
        // in time that does not grow with the lines behind a run: a quadratic search would take a minute
        let mut changed = Changed::new(16 << 20);
        changed.insert_all();
        assert_eq!(changed.runs(256, Some(8)).count(), (16 << 20) / 256);
    }

    #[test]
    fn short_runs_are_divided_into_pieces() {
        for (lines, ends) in
            [(8, &[11][..]), (9, &[8, 12]), (17, &[9, 15, 20]), (24, &[11, 19, 27]), (25, &[28])]
        {
            let mut changed = Changed::new(64);
            (3..3 + lines).for_each(|line| changed.insert(line));
            let pieces: Vec<_> = changed.runs(64, Some(8)).collect();
            assert!(pieces.iter().map(|piece| piece.end).eq(ends.iter().copied()), "{lines}: {pieces:?}");
            assert!(pieces.into_iter().flatten().eq(3..3 + lines));
        }
    }
}
