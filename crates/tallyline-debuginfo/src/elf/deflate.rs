//! Deflate streams that start between two bytes.
//!
//! An inflater starts at the first bit of a byte, and a block of deflate ends at any bit. Blocks without
//! contents, put in front, end at any bit as well, so that what follows them keeps its place within its
//! bytes, as stored blocks need.

/// A block with fixed codes that holds only its end: a header of 3 bits, and a code of 7.
const FIXED: [(u32, u32); 2] = [(0b010, 3), (0, 7)];

/// The order in which a block gives the lengths of the codes for code lengths, up to that of length 1.
const LENGTH_ORDER: [u8; 18] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1];

/// Returns bytes that decode to nothing and end at bit `bits % 8` of their last byte, whose other bits are
/// those of `shared`: the byte of the stream that two blocks share.
pub(super) fn prefix(bits: u32, shared: u8) -> Vec<u8> {
    let bits = bits % 8;
    let mut writer = BitWriter::default();
    if bits % 2 == 1 {
        write_odd_block(&mut writer);
    }
    while writer.bits % 8 != bits {
        FIXED.into_iter().for_each(|(value, count)| writer.write(value, count));
    }
    if let Some(last) = writer.bytes.last_mut().filter(|_| bits != 0) {
        *last |= shared & (0xff << bits);
    }
    writer.bytes
}

/// Writes a block with codes of its own that holds only its end, in an odd number of bits.
fn write_odd_block(writer: &mut BitWriter) {
    writer.write(0b100, 3);
    // 257 literals, one distance
    writer.write(0, 5);
    writer.write(0, 5);
    writer.write(LENGTH_ORDER.len() as u32 - 4, 4);
    for length in LENGTH_ORDER {
        // repeated zeros and zero have 2 bits, one has 1
        writer.write(
            match length {
                18 | 0 => 2,
                1 => 1,
                _ => 0,
            },
            3,
        );
    }
    // the codes, with their first bit in the lowest place: 0 for one, 01 for zero, 11 for repeated zeros
    const ONE: (u32, u32) = (0, 1);
    const ZEROS: (u32, u32) = (0b11, 2);
    // literal 0 and the end of the block have codes of one bit, and so has the distance
    let zeros = |count: u32| [ZEROS, (count - 11, 7)];
    let lengths = [[ONE].as_slice(), &zeros(138), &zeros(117), &[ONE], &[ONE]].concat();
    lengths.into_iter().for_each(|(value, count)| writer.write(value, count));
    // the end of the block is the second of the two codes
    writer.write(1, 1);
}

/// A writer of bits, the lowest of each byte first.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    bits: u32,
}

impl BitWriter {
    fn write(&mut self, value: u32, count: u32) {
        for bit in 0..count {
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> bit & 1) as u8) << (self.bits % 8);
            }
            self.bits += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zlib_rs::{Inflate, InflateFlush, Status};

    #[test]
    fn a_stream_goes_on_behind_a_prefix_at_any_bit() {
        for bits in 0..8 {
            // a last block with fixed codes: the letter `a` (0x91 in 8 bits, the highest first), the end
            let mut stream = BitWriter::default();
            stream.write(0, bits);
            stream.write(0b011, 3);
            stream.write(u32::from(0x91_u8.reverse_bits()), 8);
            stream.write(0, 7);
            let (first, rest) = stream.bytes.split_first().expect("some");
            let mut bytes = prefix(bits, *first);
            if bits == 0 {
                bytes.push(*first);
            }
            bytes.extend(rest);
            let mut out = [0; 4];
            let mut inflate = Inflate::new(false, 15);
            let status = inflate.decompress(&bytes, &mut out, InflateFlush::Finish);
            assert_eq!((status, inflate.total_out()), (Ok(Status::StreamEnd), 1), "{bits}");
            assert_eq!(out[0], b'a');
        }
    }
}
