//! The ABIs' rules for types in structs: the only source of alignments, for every caller. A declared alignment
//! (`DW_AT_alignment`) comes first, then the machine's rules.

use super::size_of;
use crate::model::{Member, MemberKind, Qualifier, RecordId, Target, Type, TypeId, Types};

/// The longest chain of typedefs, qualifiers and arrays that is followed.
const CHAIN_LIMIT: usize = 256;

/// The most that a type's own alignment can be.
const MOST: u64 = 1 << 12;

/// The numbers of machines (`e_machine`) whose scalars do not all align as their size.
mod machine {
    pub(super) const I386: u16 = 3;
    pub(super) const M68K: u16 = 4;
    pub(super) const IAMCU: u16 = 6;
    pub(super) const S390: u16 = 22;
    pub(super) const ARM: u16 = 40;
    pub(super) const SH: u16 = 42;
    pub(super) const CRIS: u16 = 76;
    pub(super) const MIPS: u16 = 8;
    pub(super) const PPC: u16 = 20;
    pub(super) const PPC64: u16 = 21;
    pub(super) const AARCH64: u16 = 183;
    pub(super) const AVR: u16 = 83;
    pub(super) const OPENRISC: u16 = 92;
    pub(super) const ARC: u16 = 93;
    pub(super) const MSP430: u16 = 105;
    pub(super) const NIOS2: u16 = 113;
    pub(super) const MICROBLAZE: u16 = 189;
    pub(super) const ARC_V2: u16 = 195;
}

/// Returns the alignment in bytes that the target's ABI gives a scalar of `size` bytes inside a struct (i386: 4 for 8
/// bytes). On unknown machines it is the size, up to 16.
pub(crate) fn scalar_align(target: Target, size: u64) -> u64 {
    let most = match target.machine {
        // x87's 12 bytes and everything of 8 align to 4; vectors and quadruple precision do not
        machine::I386 | machine::IAMCU if size < 16 => 4,
        machine::SH | machine::OPENRISC | machine::ARC | machine::ARC_V2 => 4,
        machine::NIOS2 | machine::MICROBLAZE => 4,
        machine::M68K | machine::MSP430 => 2,
        machine::AVR | machine::CRIS => 1,
        machine::S390 | machine::ARM => 8,
        _ => 16,
    };
    size.clamp(1, 16).next_power_of_two().min(most)
}

/// The ABI's alignment rules for vectors and atomics, in which compilers and their options differ on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The largest alignment of a vector.
    vector: u64,
    /// The alignment of a vector of 8 bytes.
    short_vector: u64,
    /// The largest size that an atomic type is aligned to.
    atomic: u64,
}

const COMMON: Rules = Rules { vector: MOST, short_vector: 8, atomic: 16 };

/// Returns the sets of vector and atomic alignment rules that compilers for this machine use, the likeliest first.
/// Measured with gcc 12 and clang 14.
pub fn rules(target: Target) -> &'static [Rules] {
    match target.machine {
        // gcc without SSE, gcc with it, clang
        machine::I386 | machine::IAMCU => {
            &[Rules { short_vector: 4, ..COMMON }, COMMON, Rules { atomic: 8, ..COMMON }]
        }
        // from z13 on (`-mvx`), and before
        machine::S390 => &[Rules { vector: 8, atomic: 8, ..COMMON }, Rules { atomic: 8, ..COMMON }],
        machine::ARM => &[Rules { vector: 8, atomic: 8, ..COMMON }],
        machine::AARCH64 => &[Rules { vector: 16, ..COMMON }],
        // gcc, clang
        machine::MIPS | machine::PPC | machine::PPC64 => &[COMMON, Rules { atomic: 8, ..COMMON }],
        _ => &[COMMON],
    }
}

/// Returns `true` if a number is a valid alignment: a power of two up to 2^28. Damaged files contain others.
pub fn is_alignment(align: u64) -> bool {
    align.is_power_of_two() && align <= 1 << 28
}

/// Computes the alignment of a type in bytes, at least 1, under a set of alignment rules; calls `record` for the
/// alignment of a struct, class or union.
pub fn type_align(
    types: &Types,
    mut id: TypeId,
    rules: Rules,
    record: &mut dyn FnMut(RecordId) -> u64,
) -> u64 {
    let scalar = |size| scalar_align(types.target(), size);
    let mut least = 1;
    for _ in 0..CHAIN_LIMIT {
        if let Some(align) = types.declared_alignment(id).filter(|align| is_alignment(*align)) {
            return align.max(least);
        }
        let own = match types.get(id) {
            Type::Qualified { qualifier, of } => {
                if qualifier == Qualifier::Atomic {
                    least = atomic(size_of(types, of), rules);
                }
                id = of;
                continue;
            }
            Type::Typedef { of, .. } | Type::Annotated { of } => {
                id = of;
                continue;
            }
            Type::Array(array) => {
                let array = types.array(array);
                if !array.vector {
                    id = array.of;
                    continue;
                }
                match size_of(types, id).clamp(1, MOST).next_power_of_two() {
                    8 => rules.short_vector,
                    size => size.min(rules.vector),
                }
            }
            // of two numbers, real and imaginary
            Type::Base { name, bits } if is_complex(types.name(name)) => scalar(u64::from(bits / 16)),
            Type::Base { bits, .. } => scalar(u64::from(bits / 8)),
            Type::Pointer { .. }
            | Type::MemberPointer { .. }
            | Type::Function(_)
            | Type::Descriptor { .. } => scalar(types.pointer_size()),
            Type::Enum(item) => scalar(types.enumeration(item).size),
            Type::Record(id) => record(id),
            // the type of nullptr has the size of a pointer, others none
            Type::Opaque { .. } => scalar(size_of(types, id)),
            Type::Void | Type::Missing | Type::Text { .. } => 1,
        };
        return own.max(least);
    }
    1
}

/// Computes the alignment in bytes of a member under a set of alignment rules, considering that clang pads `_Atomic`
/// members beyond their type's size; calls `record` for the alignment of a struct, class or union.
pub fn member_align(
    types: &Types,
    member: &Member,
    rules: Rules,
    record: &mut dyn FnMut(RecordId) -> u64,
) -> u64 {
    let align = type_align(types, member.ty, rules, record);
    if is_padded_atomic(types, member) { align.max(atomic(member.size, rules)) } else { align }
}

/// Returns `true` if the member is an `_Atomic` that takes more bytes than its type because clang has padded it to a
/// power of two.
pub(crate) fn is_padded_atomic(types: &Types, member: &Member) -> bool {
    member.kind == MemberKind::Data
        && member.bitfield.is_none()
        && member.size > size_of(types, member.ty)
        && (is_atomic(types, member.ty) || types.as_record(types.strip(member.ty)).is_some())
}

/// Returns `true` if the type is `_Atomic`, also behind typedefs and qualifiers.
pub fn is_atomic(types: &Types, mut id: TypeId) -> bool {
    for _ in 0..CHAIN_LIMIT {
        id = match types.get(id) {
            Type::Qualified { qualifier: Qualifier::Atomic, .. } => return true,
            Type::Qualified { of, .. } | Type::Typedef { of, .. } | Type::Annotated { of } => of,
            _ => return false,
        };
    }
    false
}

/// Returns what an atomic type of a size is aligned to, whatever it is made of.
fn atomic(size: u64, rules: Rules) -> u64 {
    if size.is_power_of_two() && size <= rules.atomic { size } else { 1 }
}

/// Returns `true` if a scalar type is a complex number, by its name: `complex float` of gcc, `complex` of
/// clang, `complex128` of Go, `complex(kind=4)` of Fortran.
pub(crate) fn is_complex(name: &[u8]) -> bool {
    let has = |word: &[u8]| name.windows(word.len()).any(|part| part == word);
    name.starts_with(b"complex") || has(b"_Complex") || has(b"__complex__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_align_as_the_machine_s_abi_says() {
        let target = |machine| Target { machine, big_endian: false };
        for (machine, size, align) in [
            (62, 8, 8),
            (62, 16, 16),
            (183, 16, 16),
            (machine::I386, 8, 4),
            (machine::I386, 12, 4),
            (machine::I386, 16, 16),
            (machine::I386, 2, 2),
            (machine::ARM, 8, 8),
            (machine::S390, 16, 8),
            (machine::M68K, 4, 2),
            (machine::AVR, 4, 1),
            (0, 0, 1),
            (0, u64::MAX, 16),
        ] {
            assert_eq!(scalar_align(target(machine), size), align, "{size} bytes on machine {machine}");
        }
    }

    #[test]
    fn complex_numbers_are_told_by_their_names() {
        for name in ["complex float", "complex", "_Complex double", "complex128", "complex(kind=4)"] {
            assert!(is_complex(name.as_bytes()), "{name}");
        }
        for name in ["float", "long double", "int", "xcomplex"] {
            assert!(!is_complex(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn atomic_types_align_as_large_as_they_are_up_to_a_limit() {
        assert_eq!([1, 3, 4, 16, 32].map(|size| atomic(size, COMMON)), [1, 1, 4, 16, 1]);
        let arm = rules(target_of(machine::ARM))[0];
        assert_eq!([8, 16].map(|size| atomic(size, arm)), [8, 1]);
    }

    fn target_of(machine: u16) -> Target {
        Target { machine, big_endian: false }
    }
}
