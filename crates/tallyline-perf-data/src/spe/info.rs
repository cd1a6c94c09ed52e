//! The recording's description of the CPUs that have traces, and of their clock.

use super::source::Cpu;
use crate::Result;
use crate::abi::auxtrace;
use crate::bytes::Cursor;
use std::collections::HashMap;

/// The CPUs that wrote traces.
#[derive(Clone, Debug, Default)]
pub(super) struct SpeMetadata {
    cpus: HashMap<u64, Cpu>,
    /// The model of all CPUs, if they are the same.
    any: Option<Cpu>,
}

impl SpeMetadata {
    /// Reads the body of a `PERF_RECORD_AUXTRACE_INFO`. None of hardware that is not Arm's SPE.
    pub(super) fn parse(mut at: Cursor<'_>) -> Result<Option<Self>> {
        const WHAT: &str = "description of a trace";
        let kind = at.u32(WHAT)?;
        at.u32(WHAT)?;
        if kind != auxtrace::ARM_SPE {
            return Ok(None);
        }
        let words: Vec<u64> = at.words(at.rest().len() as u64 / 8, WHAT)?.iter().collect();
        // the first version has two words and no number of its own: the PMU, and a ring for each CPU or not
        if words.len() <= 2 {
            return Ok(Some(Self::default()));
        }
        // the version, the length of this, the PMU, how many CPUs
        let [_, len, _, count, ..] = words[..] else {
            return Err(at.error(format!("{WHAT}: {} words", words.len())));
        };
        let mut rest = usize::try_from(len).ok().and_then(|len| words.get(len..)).unwrap_or_default();
        let mut cpus = HashMap::new();
        for _ in 0..count {
            // a magic number, the CPU, how many words follow; its model, PMU, interval, and events where they are known
            let [_, cpu, parameters, midr, ..] = rest[..] else {
                return Err(at.error(format!("{WHAT}: {count} CPUs, {} are there", cpus.len())));
            };
            let size = usize::try_from(parameters).ok().and_then(|more| more.checked_add(3));
            let Some((own, others)) =
                size.filter(|size| *size > 3).and_then(|size| rest.split_at_checked(size))
            else {
                return Err(at.error(format!("{WHAT}: CPU {cpu} has {parameters} words")));
            };
            rest = others;
            cpus.insert(cpu, Cpu { midr, events: own.get(6).copied().unwrap_or(0) });
        }
        let first = cpus.values().next().copied();
        let any = first.filter(|first| cpus.values().all(|cpu| cpu.midr == first.midr));
        Ok(Some(Self { cpus, any }))
    }

    /// Sets the model of the CPUs from the recording's header, where the trace's description is too old to
    /// have it.
    pub(super) fn set_model(&mut self, cpu_id: Option<&str>) {
        if self.cpus.is_empty() {
            let digits = cpu_id.map(|id| id.trim_start_matches("0x"));
            let midr = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            self.any = midr.map(|midr| Cpu { midr, events: 0 });
        }
    }

    /// Returns the model of a CPU.
    pub(super) fn cpu(&self, number: Option<u32>) -> Option<Cpu> {
        match number {
            Some(number) if !self.cpus.is_empty() => self.cpus.get(&number.into()).copied(),
            _ => self.any,
        }
    }
}

/// A CPU's entry in a perf.data file's description of Arm SPE traces: its number, model (`MIDR_EL1`), SPE PMU, shortest
/// sampling interval, and event bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuMetadata {
    /// The number of the CPU.
    pub(crate) number: u32,
    /// The CPU's `MIDR_EL1`: designer, part and revision.
    pub(crate) midr: u64,
    /// The type number of the PMU that traces the CPU.
    pub(crate) pmu: Option<u32>,
    /// The shortest sampling interval (period) of the CPU's SPE PMU; 0 if not known.
    pub(crate) min_interval: u64,
    /// A mask of the event bits that the CPU can report in packets.
    pub(crate) events: u64,
}

impl CpuMetadata {
    /// Describes a CPU that is traced by Arm SPE: its number, its `MIDR_EL1`, the type number of the SPE PMU, the
    /// shortest sampling interval, and a mask of the event bits that it reports.
    pub fn new(number: u32, midr: u64, pmu: u32, min_interval: u64, events: u64) -> Self {
        Self { number, midr, pmu: Some(pmu), min_interval, events }
    }

    /// Returns a mask of the event bits that the CPU can report in SPE packets.
    #[inline]
    pub fn events(&self) -> u64 {
        self.events
    }
}

/// Begins the part of each CPU.
const MAGIC: u64 = 0x1010_1010_1010_1010;

/// Encodes the body of the record that describes Arm SPE traces (`PERF_RECORD_AUXTRACE_INFO`), as perf writes it
/// since Linux 6.14: a header and an entry for each CPU.
pub fn auxtrace_info(pmu: u32, cpus: &[CpuMetadata]) -> Vec<u64> {
    const VERSION: u64 = 2;
    const HEADER: u64 = 4;
    const PARAMETERS: u64 = 4;
    let mut words = vec![VERSION, HEADER, pmu.into(), cpus.len() as u64];
    for cpu in cpus {
        let pmu = cpu.pmu.map_or(u64::MAX, u64::from);
        words.extend([MAGIC, cpu.number.into(), PARAMETERS, cpu.midr, pmu, cpu.min_interval, cpu.events]);
    }
    words
}

/// The conversion from a CPU's time-stamp counter to the nanoseconds of a recording: `PERF_RECORD_TIME_CONV`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeConversion {
    /// The number of bits to shift right: nanoseconds are `zero + (counter * multiplier >> shift)`.
    pub(crate) shift: u64,
    /// The factor that the counter's value is multiplied by before it is shifted right.
    pub(crate) multiplier: u64,
    /// The time in nanoseconds that a counter's value of 0 stands for.
    pub(crate) zero: u64,
    /// The value at some time, and the mask of the bits, of a counter that is shorter than 64 bits.
    pub(crate) short: Option<(u64, u64)>,
}

impl TimeConversion {
    /// Creates the conversion of a 64-bit time-stamp counter: nanoseconds are `zero + (counter * multiplier
    /// >> shift)`.
    pub const fn new(shift: u64, multiplier: u64, zero: u64) -> Self {
        Self { shift, multiplier, zero, short: None }
    }

    /// Returns the time in nanoseconds, of the recording's clock, that a time-stamp counter value of 0 stands for.
    #[inline]
    pub fn zero(&self) -> u64 {
        self.zero
    }

    /// Reads the body of the record; older ones end before the last parts. None where it says nothing.
    pub(super) fn parse(mut at: Cursor<'_>) -> Result<Option<Self>> {
        const WHAT: &str = "conversion of times";
        let (shift, multiplier, zero) = (at.u64(WHAT)?, at.u64(WHAT)?, at.u64(WHAT)?);
        let mut short = None;
        if at.rest().len() >= 18 {
            let (cycles, mask) = (at.u64(WHAT)?, at.u64(WHAT)?);
            short = (at.rest().get(1) == Some(&1)).then_some((cycles, mask));
        }
        Ok((shift < 64 && multiplier > 0).then_some(Self { shift, multiplier, zero, short }))
    }

    /// Encodes the conversion as the body of a record `PERF_RECORD_TIME_CONV`, in 64-bit words.
    pub(crate) fn words(&self) -> [u64; 6] {
        let (cycles, mask) = self.short.unwrap_or_default();
        // two truths, a byte each: the conversion is there, the counter is short
        let capabilities = u64::from_ne_bytes([1, self.short.is_some().into(), 0, 0, 0, 0, 0, 0]);
        [self.shift, self.multiplier, self.zero, cycles, mask, capabilities]
    }

    /// Converts a value of the time-stamp counter to nanoseconds, with the kernel's arithmetic.
    pub(crate) fn time(&self, mut counter: u64) -> u64 {
        if let Some((cycles, mask)) = self.short {
            counter = cycles.wrapping_add(counter.wrapping_sub(cycles) & mask);
        }
        let (whole, part) = (counter >> self.shift, counter & ((1 << self.shift) - 1));
        let scaled = |number: u64| number.wrapping_mul(self.multiplier);
        self.zero.wrapping_add(scaled(whole)).wrapping_add(scaled(part) >> self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::ByteOrder;

    fn body(halves: [u32; 2], words: &[u64]) -> Vec<u8> {
        let halves = halves.iter().flat_map(|half| half.to_le_bytes());
        halves.chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
    }

    fn info(kind: u32, words: &[u64]) -> Result<Option<SpeMetadata>> {
        SpeMetadata::parse(Cursor::new(&body([kind, 0], words), ByteOrder::Little, 0))
    }

    #[test]
    fn descriptions_of_all_versions_are_read() {
        let cpu =
            |number, midr, events| CpuMetadata { number, midr, pmu: Some(9), min_interval: 1024, events };
        let two = auxtrace_info(9, &[cpu(0, 0x410f_d0c0, 1), cpu(3, 0x410f_d0c0, 2)]);
        let found = info(4, &two).expect("well-formed").expect("SPE");
        assert_eq!(found.cpu(Some(3)), Some(Cpu { midr: 0x410f_d0c0, events: 2 }));
        assert_eq!(found.cpu(Some(1)), None);
        assert_eq!(found.cpu(None).map(|cpu| cpu.midr), Some(0x410f_d0c0), "all are the same");
        let mixed = auxtrace_info(9, &[cpu(0, 0x410f_d0c0, 1), cpu(3, 0x410f_d490, 2)]);
        assert_eq!(info(4, &mixed).expect("well-formed").expect("SPE").cpu(None), None);
        // without the events
        let short =
            info(4, &[2, 4, 9, 1, MAGIC, 5, 3, 0x410f_d490, 9, 1024]).expect("well-formed").expect("SPE");
        assert_eq!(short.cpu(Some(5)), Some(Cpu { midr: 0x410f_d490, events: 0 }));
        // the first version: the header of the recording says the model
        let mut first = info(4, &[9, 1]).expect("well-formed").expect("SPE");
        first.set_model(Some("0x00000000410fd0c0"));
        assert_eq!(first.cpu(Some(7)).map(|cpu| cpu.midr), Some(0x410f_d0c0));
        assert!(info(1, &[0; 12]).expect("another kind").is_none());
    }

    #[test]
    fn descriptions_that_end_early_are_refused() {
        assert!(info(4, &[2, 4, 9]).is_err());
        assert!(info(4, &[2, 4, 9, u64::MAX]).is_err());
        assert!(info(4, &[2, u64::MAX, 9, 1, MAGIC, 5, 3, 0, 0, 0]).is_err());
        assert!(info(4, &[2, 4, 9, 1, MAGIC, 5, u64::MAX, 0, 0, 0]).is_err());
        assert!(info(4, &[2, 4, 9, 1, MAGIC, 5, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn counters_become_times() {
        let clock = |words: &[u64], caps: [u8; 8]| {
            let bytes = [words.iter().flat_map(|word| word.to_le_bytes()).collect(), caps.to_vec()].concat();
            TimeConversion::parse(Cursor::new(&bytes, ByteOrder::Little, 0)).expect("well-formed")
        };
        // 25 MHz: 40 nanoseconds each
        let whole = clock(&[21, 40 << 21, 5_000_000_000, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]).expect("a clock");
        assert_eq!(whole.time(0), 5_000_000_000);
        assert_eq!(whole.time(1_000_001), 5_000_000_000 + 40_000_040);
        let short = clock(&[0, 1, 0, 0x1_0000_0010, 0xffff_ffff], [1, 1, 0, 0, 0, 0, 0, 0]).expect("a clock");
        assert_eq!(short.time(0x20), 0x1_0000_0020, "the counter began anew");
        assert_eq!(clock(&[21, 0, 0, 0, 0], [0; 8]), None);
        assert_eq!(clock(&[64, 1, 0, 0, 0], [0; 8]), None);
        let written = whole.words().iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let read = TimeConversion::parse(Cursor::new(&written, ByteOrder::NATIVE, 0)).expect("well-formed");
        assert_eq!(read, Some(whole));
        let bytes = [21_u64, 7, 9].map(u64::to_le_bytes).concat();
        let old = TimeConversion::parse(Cursor::new(&bytes, ByteOrder::Little, 0)).expect("well-formed");
        assert_eq!(old, Some(TimeConversion { shift: 21, multiplier: 7, zero: 9, short: None }));
    }
}
