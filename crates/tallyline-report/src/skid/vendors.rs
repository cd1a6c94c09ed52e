//! The vendors' rules for pairs that a CPU retires as one, where a recording has too few samples to tell.
//!
//! Pairs that decoders fuse by the rules are taken to retire as one, but on AMD's Zen 3, 4 and 5: there recordings have
//! samples between the halves of pairs that the manuals call fused. Pairs on aarch64 touch no memory, so that it
//! does not matter for what is accessed which of them are one.

use FlagOperation::{Add, And, Cmp, Dec, Inc, Sub, Test};
use JumpCondition::{Carry, Other, Signed, Zero};
use OperandForm::{Immediate, Memory, Registers};
use RuleOrigin::{Published, Recordings};
use tallyline_inference::code::{FlagOperation, FusiblePair, JumpCondition, OperandForm};

/// Kinds of pairs that are one: any of the operations with any of the operands and conditions.
#[derive(Debug)]
struct Pairs {
    operations: &'static [FlagOperation],
    operands: &'static [OperandForm],
    conditions: &'static [JumpCondition],
}

/// A CPU generation with its rules of macro-fusion (which compare-and-jump pairs it fuses), from manuals, published
/// measurements, or recordings.
#[derive(Debug)]
pub(crate) struct Generation {
    /// The name that reports say.
    name: &'static str,
    /// The vendor as CPUs say it.
    vendor: &'static str,
    family: u32,
    /// The models; none for all that no row above has.
    models: &'static [u32],
    pairs: &'static [Pairs],
    source: RuleOrigin,
}

/// The source of a generation's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleOrigin {
    /// The vendor's manuals, or measurements that others published.
    Published,
    /// Recordings that this project made.
    Recordings,
    /// Nothing: no pairs are taken for one.
    Nothing,
}

const ALL: &[JumpCondition] = &[Zero, Carry, Signed, Other];
const COMPARED: &[JumpCondition] = &[Zero, Carry, Signed];
const COUNTED: &[JumpCondition] = &[Zero, Signed];
const REGISTERS: &[OperandForm] = &[Registers, Immediate];

// never an immediate and memory, memory relative to the program counter, or memory that is written
const WITH_MEMORY: &[OperandForm] = &[Registers, Immediate, Memory];

const INTEL: &str = "GenuineIntel";
const AMD: &str = "AuthenticAMD";
const HYGON: &str = "HygonGenuine";

/// Optimization Reference Manual, macro-fusion in Nehalem: compares and tests, of 64 bits too.
const NEHALEM: &[Pairs] = &[
    Pairs { operations: &[Test], operands: WITH_MEMORY, conditions: ALL },
    Pairs { operations: &[Cmp], operands: WITH_MEMORY, conditions: COMPARED },
];

/// The manual's table of macro-fusible instructions in Sandy Bridge, the same in Haswell.
const SANDY_BRIDGE: &[Pairs] = &[
    Pairs { operations: &[Test, And], operands: WITH_MEMORY, conditions: ALL },
    Pairs { operations: &[Cmp, Add, Sub], operands: WITH_MEMORY, conditions: COMPARED },
    Pairs { operations: &[Inc, Dec], operands: REGISTERS, conditions: COUNTED },
];

/// Measurements of decoders (corsix.org, "x86 macro-op fusion notes") have no `inc` and `dec` from Ice Lake on, nor
/// memory; recordings of 6-207 have no sample between the halves of pairs with memory.
const ICE_LAKE: &[Pairs] = &[
    Pairs { operations: &[Test, And], operands: WITH_MEMORY, conditions: ALL },
    Pairs { operations: &[Cmp, Add, Sub], operands: WITH_MEMORY, conditions: COMPARED },
];

/// Software Optimization Guides of families 15h and 17h, and A. Fog, "The microarchitecture of Intel, AMD and VIA
/// CPUs". Memory: as in recordings of family 25 and 26.
const BULLDOZER: &[Pairs] = &[Pairs { operations: &[Cmp, Test], operands: REGISTERS, conditions: ALL }];

/// The Software Optimization Guides of families 19h and 1Ah have pairs of registers that are decoded as one. Yet an
/// interrupt comes between the halves: in recordings of models 25-1, 25-17 and 26-2 each kind of pair with enough
/// samples has some there, of registers, too (`sub $1, %rsi; jne` 269, 71 and 42).
const ZEN_3: &[Pairs] = &[];

/// The first row that fits is a CPU's. Vendors and families without a row are taken for CPUs without such pairs.
static GENERATIONS: &[Generation] = &[
    row(
        "Intel Core 2, which has such pairs in 32-bit code alone",
        INTEL,
        6,
        &[15, 22, 23, 29],
        &[],
        Published,
    ),
    row("Intel Nehalem and Westmere", INTEL, 6, &[26, 30, 31, 37, 44, 46, 47], NEHALEM, Published),
    row(
        "Intel Atom and its successors",
        INTEL,
        6,
        &[
            28, 38, 39, 53, 54, 55, 74, 76, 77, 87, 90, 92, 93, 95, 117, 122, 133, 134, 150, 156, 175, 182,
            190, 221,
        ],
        &[],
        RuleOrigin::Nothing,
    ),
    row(
        "Intel Sandy Bridge to Cannon Lake",
        INTEL,
        6,
        &[42, 45, 58, 60, 61, 62, 63, 69, 70, 71, 78, 79, 85, 86, 94, 102, 142, 158, 165, 166],
        SANDY_BRIDGE,
        Published,
    ),
    row("Intel Ice Lake and later", INTEL, 6, &[], ICE_LAKE, Published),
    row("Intel Ice Lake and later", INTEL, 19, &[], ICE_LAKE, Published),
    row("AMD Bulldozer to Excavator", AMD, 21, &[], BULLDOZER, Published),
    row("AMD Zen and Zen 2", AMD, 23, &[], BULLDOZER, Published),
    row("AMD Zen 3 and Zen 4", AMD, 25, &[], ZEN_3, Recordings),
    row("AMD Zen 5", AMD, 26, &[], ZEN_3, Recordings),
    row("Hygon Dhyana", HYGON, 24, &[], BULLDOZER, Published),
];

const fn row(
    name: &'static str,
    vendor: &'static str,
    family: u32,
    models: &'static [u32],
    pairs: &'static [Pairs],
    source: RuleOrigin,
) -> Generation {
    Generation { name, vendor, family, models, pairs, source }
}

impl Generation {
    /// Returns the generation of a CPU by perf's identifier of the model (vendor, family, model, stepping); `None`
    /// if it is not in the table.
    pub(crate) fn of(cpu_id: &str) -> Option<&'static Generation> {
        // headers have commas, tables of events hyphens
        let mut parts = cpu_id.split([',', '-']);
        let vendor = parts.next()?;
        let family: u32 = parts.next()?.parse().ok()?;
        let model: Option<u32> = parts.next().and_then(|model| model.parse().ok());
        GENERATIONS.iter().find(|row| {
            let is_model = row.models.is_empty() || model.is_some_and(|model| row.models.contains(&model));
            row.vendor == vendor && row.family == family && is_model
        })
    }

    /// Returns the name of the CPU generation and the origin of its rules of macro-fusion, as a text for reports.
    pub(crate) fn source(&self) -> String {
        match self.source {
            Published => format!("assumed by the rules published for {}", self.name),
            Recordings => format!("assumed by recordings of {}", self.name),
            RuleOrigin::Nothing => format!("assumed as two: no rules are published for {}", self.name),
        }
    }

    /// Returns `true` if CPUs of this generation fuse a kind of compare-and-jump pair, by its rules.
    pub(crate) fn is_fused(&self, pair: &FusiblePair) -> bool {
        self.pairs.iter().any(|row| {
            row.operations.contains(&pair.operation())
                && row.operands.contains(&pair.operands())
                && row.conditions.contains(&pair.condition())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FlagOperation::{Or, Xor};
    use OperandForm::{MemoryImmediate, MemoryWritten, RelativeMemory};

    fn is_fused(
        cpu: &str,
        operation: FlagOperation,
        operands: OperandForm,
        condition: JumpCondition,
    ) -> bool {
        let pair = FusiblePair::new(operation, operands, condition);
        Generation::of(cpu).is_some_and(|rules| rules.is_fused(&pair))
    }

    #[test]
    fn intel_s_generations_have_the_pairs_of_their_manuals() {
        let (core, nehalem, skylake, emerald) =
            ("GenuineIntel-6-23-6", "GenuineIntel-6-44-2", "GenuineIntel-6-85-7", "GenuineIntel-6-207-2");
        // (operation, condition): Core 2, Nehalem, Sandy Bridge to Cannon Lake, Ice Lake and later
        for (operation, condition, expected) in [
            (Cmp, Zero, [false, true, true, true]),
            (Cmp, Signed, [false, true, true, true]),
            (Cmp, Other, [false; 4]),
            (Test, Other, [false, true, true, true]),
            (And, Other, [false, false, true, true]),
            (Sub, Carry, [false, false, true, true]),
            (Add, Other, [false; 4]),
            (Inc, Zero, [false, false, true, false]),
            (Dec, Carry, [false; 4]),
            (Or, Zero, [false; 4]),
            (Xor, Zero, [false; 4]),
        ] {
            let found =
                [core, nehalem, skylake, emerald].map(|cpu| is_fused(cpu, operation, Registers, condition));
            assert_eq!(found, expected, "{operation:?} {condition:?}");
        }
        for cpu in [nehalem, skylake, emerald] {
            assert!(is_fused(cpu, Cmp, Memory, Carry) && is_fused(cpu, Test, Memory, Zero), "{cpu}");
            for operands in [MemoryImmediate, RelativeMemory, MemoryWritten] {
                assert!(!is_fused(cpu, Cmp, operands, Zero) && !is_fused(cpu, Test, operands, Zero), "{cpu}");
            }
        }
        // as headers of recordings have it
        assert!(is_fused("GenuineIntel,6,207,2", Cmp, Memory, Zero));
        let source = |cpu| Generation::of(cpu).map(Generation::source).unwrap_or_default();
        assert_eq!(source(skylake), "assumed by the rules published for Intel Sandy Bridge to Cannon Lake");
        assert_eq!(
            source("GenuineIntel-6-190-0"),
            "assumed as two: no rules are published for Intel Atom and its successors"
        );
        // Gracemont; a model that is not known yet has what the latest have
        assert!(!is_fused("GenuineIntel-6-190-0", Cmp, Registers, Zero));
        assert!(is_fused("GenuineIntel-6-250-0", Cmp, Memory, Zero));
    }

    #[test]
    fn amd_s_generations_have_the_pairs_of_their_guides_without_memory() {
        let (bulldozer, zen_2, zen_3, zen_5, hygon) = (
            "AuthenticAMD-21-2-0",
            "AuthenticAMD-23-49-0",
            "AuthenticAMD-25-1-1",
            "AuthenticAMD-26-2-1",
            "HygonGenuine-24-1-1",
        );
        for (operation, expected) in [
            // recordings of Zen 3, 4 and 5 have samples between the halves
            (Cmp, [true, true, false, false, true]),
            (Test, [true, true, false, false, true]),
            (Sub, [false; 5]),
            (Or, [false; 5]),
            (Dec, [false; 5]),
        ] {
            for condition in ALL {
                let found = [bulldozer, zen_2, zen_3, zen_5, hygon]
                    .map(|cpu| is_fused(cpu, operation, Registers, *condition));
                assert_eq!(found, expected, "{operation:?} {condition:?}");
            }
        }
        let source = |cpu| Generation::of(cpu).map(Generation::source);
        assert_eq!(source(zen_3).as_deref(), Some("assumed by recordings of AMD Zen 3 and Zen 4"));
        for operands in [Memory, MemoryImmediate, RelativeMemory, MemoryWritten] {
            assert!(!is_fused(zen_2, Cmp, operands, Zero) && !is_fused(zen_5, Cmp, operands, Zero));
        }
    }

    #[test]
    fn of_other_cpus_nothing_is_assumed() {
        for cpu in ["", "CentaurHauls-6-15-9", "0x00000000410fd4f1", "GenuineIntel", "GenuineIntel-15-4-1"] {
            assert!(Generation::of(cpu).is_none(), "{cpu}");
        }
    }

    #[test]
    fn no_model_has_two_rows() {
        let mut all: Vec<u32> = GENERATIONS.iter().flat_map(|row| row.models).copied().collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    }
}
