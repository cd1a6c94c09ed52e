//! Traces made by hand, for tests: what the plugin writes, without a program.

use super::format::SyncPoint;

/// Builder of a trace file's bytes in memory, for tests: it writes what the QEMU plugin would.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
    instructions: u64,
    points: u64,
}

/// Builder of one block of a thread's events (accesses, synchronisations) in a trace file, for tests.
#[derive(Debug)]
pub(crate) struct ThreadBuilder {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    events: Vec<u8>,
    accesses: u32,
    points: u32,
    now: u64,
    instruction: u64,
    address: u64,
    point: u64,
    remembered: [u64; 256],
    // of the block: instructions run, instruction, address
    start: (u64, u64, u64),
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(value: u64) -> u64 {
    (value << 1) ^ ((value as i64 >> 63) as u64)
}

impl Builder {
    /// Creates a trace file, for tests, whose header says that one of `every` memory accesses was recorded.
    pub(crate) fn new(every: u64) -> Self {
        let mut body = Vec::new();
        body.extend(0_u32.to_le_bytes());
        body.extend(1_u32.to_le_bytes());
        body.extend(every.to_le_bytes());
        body.extend(7_u32.to_le_bytes());
        body.extend(0_u64.to_le_bytes());
        body.extend(6_u16.to_le_bytes());
        body.extend(b"x86_64");
        let mut builder = Self::default();
        builder.block(b"TLT1", &body);
        builder
    }

    pub(crate) fn block(&mut self, kind: &[u8; 4], body: &[u8]) {
        self.bytes.extend(kind);
        self.bytes.extend((body.len() as u32).to_le_bytes());
        self.bytes.extend(body);
    }

    /// Adds `count` instructions of 4 bytes each, the first at `address`, to the trace file's instruction table;
    /// returns the index of the first.
    pub(crate) fn instructions(&mut self, address: u64, count: u32) -> u64 {
        let first = self.instructions;
        let mut body = first.to_le_bytes().to_vec();
        body.extend(count.to_le_bytes());
        let mut end = 0_u64;
        for at in 0..u64::from(count) {
            varint(&mut body, zigzag((address + 4 * at).wrapping_sub(end)) << 1);
            body.push(4);
            end = address + 4 * at + 4;
        }
        self.instructions += u64::from(count);
        self.block(b"INSN", &body);
        first
    }

    pub(crate) fn mapping(&mut self, start: u64, length: u64, offset: u64, path: &str) {
        let mut body = Vec::new();
        body.extend(7_u32.to_le_bytes());
        body.extend(5_u32.to_le_bytes());
        body.extend(start.to_le_bytes());
        body.extend(length.to_le_bytes());
        body.extend(offset.to_le_bytes());
        body.extend((path.len() as u16).to_le_bytes());
        body.extend(path.as_bytes());
        self.block(b"MAPS", &body);
    }

    /// Returns the next number in the order of all threads' synchronisations (0, 1, …), for
    /// [`ThreadBuilder::point`].
    pub(crate) fn number(&mut self) -> u64 {
        self.points += 1;
        self.points - 1
    }

    /// Writes a thread's pending events (accesses, synchronisations) as one block of the trace file, and empties
    /// `thread` for its next block.
    pub(crate) fn thread(&mut self, thread: &mut ThreadBuilder) {
        let fresh = ThreadBuilder {
            now: thread.now,
            instruction: thread.instruction,
            address: thread.address,
            start: (thread.now, thread.instruction, thread.address),
            ..ThreadBuilder::new(thread.process, thread.thread)
        };
        let written = std::mem::replace(thread, fresh);
        let mut body = Vec::new();
        for half in [written.process, written.thread, written.accesses, written.points] {
            body.extend(half.to_le_bytes());
        }
        for word in [written.start.0, written.start.1, written.start.2, 10, 20] {
            body.extend(word.to_le_bytes());
        }
        body.extend(&written.events);
        self.block(b"ACCS", &body);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl ThreadBuilder {
    pub(crate) fn new(process: u32, thread: u32) -> Self {
        Self {
            process,
            thread,
            events: Vec::new(),
            accesses: 0,
            points: 0,
            now: 0,
            instruction: 0,
            address: 0,
            point: 0,
            remembered: [0; 256],
            start: (0, 0, 0),
        }
    }

    /// Appends a memory access to a block of a thread's trace events, for tests: by the instruction of an index,
    /// executed `advance` instructions after the thread's previous access.
    pub(crate) fn access(&mut self, instruction: u64, address: u64, size: u64, store: bool, advance: u64) {
        let distance = instruction.wrapping_sub(self.instruction);
        let together = distance == advance;
        let head = u64::from(size.trailing_zeros()) | u64::from(store) << 3 | u64::from(together) << 4;
        varint(&mut self.events, head | zigzag(distance) << 5);
        if !together {
            varint(&mut self.events, advance);
        }
        let remembered = &mut self.remembered[instruction as usize % 256];
        let from = if *remembered != 0 { *remembered } else { self.address };
        varint(&mut self.events, zigzag(address.wrapping_sub(from)));
        *remembered = address;
        self.address = address;
        self.instruction = instruction;
        self.now = self.now.wrapping_add(advance);
        self.accesses += 1;
    }

    /// Appends a synchronisation with other threads to a block of a thread's trace events, for tests; `number`, from
    /// [`Builder::number`], is its place in the order of all threads' synchronisations.
    pub(crate) fn point(&mut self, kind: SyncPoint, number: u64) {
        let number_of_kind = (0..).find(|number| SyncPoint::from_number(*number) == Some(kind));
        varint(&mut self.events, 7 | number_of_kind.expect("each kind has a number") << 3);
        varint(&mut self.events, number.wrapping_sub(self.point));
        varint(&mut self.events, 0);
        self.point = number;
        self.points += 1;
    }
}
