//! Functions whose address a program takes, so that it can call them indirectly.

use super::image::{Image, Machine};
use rustc_hash::FxHashSet;

/// The number of bytes of code that are searched at once.
const CHUNK: usize = 1 << 16;

/// The bytes that an instruction with an address in it has in front of that, and the address.
const LENGTH: usize = 6;

/// Addresses below that are too common as numbers to be taken for addresses.
const LOWEST: u64 = 1 << 16;

/// Returns those of the function addresses in `asked` that the program stores in data or loads into a register, so that
/// an indirect call may reach them. Other programs and libraries are not searched.
pub fn addresses_taken(image: &Image, asked: &FxHashSet<u64>) -> Vec<u64> {
    let mut found: FxHashSet<u64> = image.slots().filter(|address| asked.contains(address)).collect();
    if image.machine() == Machine::X86_64 {
        for region in image.regions() {
            let mut inside = 0;
            while inside < region.size && found.len() < asked.len() {
                let Some(bytes) = region.bytes(inside, CHUNK + LENGTH) else { break };
                let start = region.address.wrapping_add(inside);
                if region.code {
                    found.extend(in_code(&bytes, start).filter(|address| asked.contains(address)));
                } else {
                    let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk::<8>());
                    found.extend(
                        words.map(|word| u64::from_le_bytes(*word)).filter(|word| asked.contains(word)),
                    );
                }
                inside += CHUNK as u64;
            }
        }
    }
    let mut found: Vec<u64> = found.into_iter().collect();
    found.sort_unstable();
    found
}

/// Returns what may be an address in code: of `lea` relative to the next instruction, and in numbers of 32 bits.
fn in_code(bytes: &[u8], start: u64) -> impl Iterator<Item = u64> {
    bytes.windows(LENGTH).zip(start..).flat_map(|(window, at)| {
        let number = i32::from_le_bytes([window[2], window[3], window[4], window[5]]);
        let is_lea = window[0] == 0x8d && window[1] & 0xc7 == 0x05;
        let relative = at.wrapping_add(LENGTH as u64).wrapping_add_signed(number.into());
        let absolute = u64::try_from(number).ok().filter(|address| *address >= LOWEST);
        [is_lea.then_some(relative), absolute].into_iter().flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_seen_in_code_that_makes_them() {
        // lea 0x10(%rip), %rax; mov $0x401234, %edi; call 0x2000
        let code = [0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xbf, 0x34, 0x12, 0x40, 0, 0xe8, 0xef, 0x0f, 0, 0, 0x90];
        let found: Vec<u64> = in_code(&code, 0x1000).collect();
        assert!(found.contains(&0x1017) && found.contains(&0x40_1234), "{found:x?}");
        assert!(!found.contains(&0x2000), "{found:x?}");
    }
}
