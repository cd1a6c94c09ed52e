//! What the ABIs of machines say about numbers and pointers in structs.

use crate::model::Target;

/// The numbers of machines (`e_machine`) whose scalars do not all align as their size.
mod machine {
    pub(super) const I386: u16 = 3;
    pub(super) const M68K: u16 = 4;
    pub(super) const IAMCU: u16 = 6;
    pub(super) const S390: u16 = 22;
    pub(super) const ARM: u16 = 40;
    pub(super) const SH: u16 = 42;
    pub(super) const CRIS: u16 = 76;
    pub(super) const AVR: u16 = 83;
    pub(super) const OPENRISC: u16 = 92;
    pub(super) const ARC: u16 = 93;
    pub(super) const MSP430: u16 = 105;
    pub(super) const NIOS2: u16 = 113;
    pub(super) const MICROBLAZE: u16 = 189;
    pub(super) const ARC_V2: u16 = 195;
}

/// The alignment in bytes that a scalar of a size has in a struct. A machine that is not known has
/// the rules of most.
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
}
