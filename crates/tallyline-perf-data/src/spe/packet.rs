//! Packets as the hardware writes them: a header of one or two bytes, and a payload of 1, 2, 4 or 8 bytes,
//! least significant first. Arm ARM (DDI 0487), "Statistical Profiling Extension sample record".

/// The longest packet: one that aligns to 16 bytes. With a payload they have up to 10.
pub(super) const LONGEST: usize = 17;

/// A packet of an Arm SPE trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// A filler without content.
    Padding,
    /// The end of a record without a time.
    End,
    /// The end of a record, with the time at which it was made.
    Timestamp(u64),
    /// The kind of an address (see [`address`]), and its bits, some of which are flags.
    Address(u8, u64),
    /// The kind of a counter of cycles (see [`counter`]), and its value.
    Counter(u8, u64),
    /// `CONTEXTIDR` of exception level 1 or 2: Linux puts the thread's number there.
    Context(u64),
    /// The sampled operation: its class, [`class`], and its details.
    Operation(u8, u8),
    /// The events of the operation, [`event`](super::record::event) bits.
    Events(u64),
    /// The source of the data: each family of CPUs has its own numbers.
    DataSource(u64),
    /// A packet of a kind that is not known here, whose length its header gives.
    Unknown,
}

/// The kinds of address packets.
pub(super) mod address {
    pub(in super::super) const PC: u8 = 0;
    pub(in super::super) const VIRTUAL: u8 = 2;
    pub(in super::super) const PHYSICAL: u8 = 3;
}

/// The kinds of counter packets.
pub(super) mod counter {
    pub(in super::super) const TOTAL: u8 = 0;
}

/// The classes of sampled operations, by their numbers in operation packets.
pub(super) mod class {
    pub(in super::super) const OTHER: u8 = 0;
    pub(in super::super) const MEMORY: u8 = 1;
    pub(in super::super) const BRANCH: u8 = 2;
}

/// The reason why bytes do not begin with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketError {
    /// A packet that continues after the available bytes.
    Short,
    /// Bytes that no packet begins with.
    Damaged,
}

/// Returns the packet that bytes begin with, and its length. `offset` is where they are in the hardware's
/// buffer, which packets that align count from.
pub(super) fn read(bytes: &[u8], offset: u64) -> Result<(Packet, usize), PacketError> {
    let first = *bytes.first().ok_or(PacketError::Short)?;
    match first {
        0x00 => return Ok((Packet::Padding, 1)),
        0x01 => return Ok((Packet::End, 1)),
        // an extended header: two more bits of the index, and a header
        0x20..=0x23 => {}
        _ => return short(bytes, first, 0),
    }
    match *bytes.get(1).ok_or(PacketError::Short)? {
        0 => {
            let alignment = 2_u64 << (first & 3);
            let len = (alignment - offset % alignment) as usize;
            // where it is at the boundary's last byte its second byte is behind that
            let len = if len < 2 { len + alignment as usize } else { len };
            if len > bytes.len() { Err(PacketError::Short) } else { Ok((Packet::Padding, len)) }
        }
        second => {
            let (packet, len) = short(&bytes[1..], second, (first & 3) << 3)?;
            // only addresses and counters have so many
            let is_indexed = matches!(packet, Packet::Address(..) | Packet::Counter(..) | Packet::Unknown);
            if is_indexed { Ok((packet, len + 1)) } else { Err(PacketError::Damaged) }
        }
    }
}

/// Returns a packet whose header has its size in bits 4 and 5; `index` is what an extended header adds.
fn short(bytes: &[u8], header: u8, index: u8) -> Result<(Packet, usize), PacketError> {
    // the two upper bits tell headers that have a size from those that have none
    if !matches!(header >> 6, 1 | 2) {
        return Err(PacketError::Damaged);
    }
    let size = 1 << (header >> 4 & 3);
    let payload = bytes.get(1..1 + size).ok_or(PacketError::Short)?;
    let value = payload.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let index = index | header & 7;
    let packet = match header {
        0x71 => Packet::Timestamp(value),
        _ if header & 0xcf == 0x42 => Packet::Events(value),
        _ if header & 0xcf == 0x43 => Packet::DataSource(value),
        _ if header & 0xfc == 0x64 => Packet::Context(value),
        _ if header & 0xfc == 0x48 => Packet::Operation(header & 3, value as u8),
        _ if header & 0xf8 == 0xb0 => Packet::Address(index, value),
        _ if header & 0xf8 == 0x98 => Packet::Counter(index, value),
        _ => Packet::Unknown,
    };
    Ok((packet, 1 + size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_packet_is_read() {
        for (bytes, packet) in [
            (&[0_u8][..], Packet::Padding),
            (&[1], Packet::End),
            (&[0x71, 8, 7, 6, 5, 4, 3, 2, 1], Packet::Timestamp(0x0102_0304_0506_0708)),
            (&[0xb0, 0x34, 0x12, 0, 0, 0, 0, 0, 0x80], Packet::Address(0, 0x8000_0000_0000_1234)),
            (&[0xb3, 1, 0, 0, 0, 0, 0, 0, 0], Packet::Address(3, 1)),
            (&[0x98, 0x2a, 1], Packet::Counter(0, 0x12a)),
            (&[0x9a, 3, 0], Packet::Counter(2, 3)),
            // an extended header: index 8 + 4
            (&[0x21, 0x9c, 5, 0], Packet::Counter(12, 5)),
            (&[0x20, 0xb4, 1, 0, 0, 0, 0, 0, 0, 0], Packet::Address(4, 1)),
            (&[0x64, 1, 2, 0, 0], Packet::Context(0x201)),
            (&[0x65, 1, 2, 0, 0], Packet::Context(0x201)),
            (&[0x48, 0], Packet::Operation(class::OTHER, 0)),
            (&[0x49, 1], Packet::Operation(class::MEMORY, 1)),
            (&[0x4a, 3], Packet::Operation(class::BRANCH, 3)),
            (&[0x42, 0x12], Packet::Events(0x12)),
            (&[0x52, 0x12, 0x04], Packet::Events(0x412)),
            (&[0x62, 1, 2, 3, 4], Packet::Events(0x0403_0201)),
            (&[0x72, 1, 0, 0, 0, 0, 0, 0, 1], Packet::Events(0x0100_0000_0000_0001)),
            (&[0x43, 0xe], Packet::DataSource(0xe)),
            (&[0x53, 0xe, 1], Packet::DataSource(0x10e)),
            // no kind of packet today, of two bytes
            (&[0x5f, 1, 2], Packet::Unknown),
        ] {
            assert_eq!(read(bytes, 0), Ok((packet, bytes.len())), "{bytes:x?}");
            for len in 0..bytes.len() {
                assert_eq!(read(&bytes[..len], 0), Err(PacketError::Short), "{bytes:x?} cut at {len}");
            }
            assert!(bytes.len() <= LONGEST);
        }
    }

    #[test]
    fn what_is_no_packet_is_damaged() {
        for bytes in
            [&[0x02_u8, 0][..], &[0x3f, 0], &[0xc1, 0], &[0xff, 0], &[0x20, 0xff, 0], &[0x20, 0x49, 0]]
        {
            assert_eq!(read(bytes, 0), Err(PacketError::Damaged), "{bytes:x?}");
        }
    }

    #[test]
    fn a_packet_that_aligns_ends_at_a_boundary_of_the_buffer() {
        let bytes =
            [0x23, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for offset in [0_u64, 3, 9, 14] {
            let (packet, len) = read(&bytes, offset).expect("it is there as a whole");
            assert_eq!((packet, (offset + len as u64) % 16), (Packet::Padding, 0));
            assert!((2..=17).contains(&len));
        }
        assert_eq!(read(&bytes[..7], 8), Err(PacketError::Short));
        assert_eq!(read(&[0x20, 0], 6), Ok((Packet::Padding, 2)));
    }
}
