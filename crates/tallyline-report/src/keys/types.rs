//! Sort keys of the data type: type, field, cache line of the type.

use super::{Counts, Key, Needs};
use crate::names::NameId;
use crate::operand::Outcome;
use crate::profile::Profile;
use crate::samples::SampleGroup;
use tallyline_inference::Pseudo;

/// Marks the values of what has no type; below it are names, and lines of types.
const OTHER: u64 = 1 << 63;

const UNKNOWN: &str = "(unknown)";

pub(super) const TYPE: Key = Key {
    name: "type",
    aliases: &[],
    title: "Data Type",
    needs: Needs::TYPES,
    value: |profile, group| match profile.outcome(group) {
        Outcome::Typed(operand) => operand.object().0.into(),
        other => untyped(other),
    },
    text: plain,
};

pub(super) const TYPE_OFFSET: Key = Key {
    name: "typeoff",
    aliases: &[],
    title: "Data Type Offset",
    needs: Needs::TYPES,
    value: |profile, group| match profile.outcome(group) {
        Outcome::Typed(operand) => operand.text.0.into(),
        other => profile.slot(group.charged).map_or_else(|| untyped(other), |slot| slot.0.into()),
    },
    text: plain,
};

pub(super) const TYPE_LINE: Key = Key {
    name: "typecln",
    aliases: &[],
    title: "Data Type Cacheline",
    needs: Needs::TYPES,
    value: |profile, group| match profile.outcome(group) {
        Outcome::Typed(operand) => {
            let line = line_in_object(profile, group, operand.offset_in_object());
            u64::from(operand.object().0) << 31 | line.min((1 << 31) - 1)
        }
        other => untyped(other),
    },
    text: |profile, value, counts| {
        if value & OTHER != 0 {
            return plain(profile, value, counts);
        }
        format!("{}: cache-line {}", profile.text(NameId((value >> 31) as u32)), value & ((1 << 31) - 1))
    },
};

/// Returns the number of the object's cache line that was accessed. With the data's address it is the real one,
/// as objects need not start on a line; otherwise it is computed as if the object started on one.
fn line_in_object(profile: &Profile, group: &SampleGroup, offset: u64) -> u64 {
    let size = u64::from(profile.info().line_size);
    match group.address.checked_sub(offset) {
        // the address is that of the access charged, not of another instruction
        Some(start) if group.address != 0 && group.charged == group.place => {
            group.address / size - start / size
        }
        _ => offset / size,
    }
}

fn untyped(outcome: &Outcome) -> u64 {
    let pseudo = match outcome {
        Outcome::Pseudo(pseudo) => Pseudo::ALL.iter().position(|known| known == pseudo),
        _ => None,
    };
    OTHER | pseudo.unwrap_or(Pseudo::ALL.len()) as u64
}

fn plain(profile: &Profile, value: u64, _: &Counts) -> String {
    if value & OTHER == 0 {
        return profile.text(NameId(value as u32)).to_owned();
    }
    Pseudo::ALL.get((value & !OTHER) as usize).map_or(UNKNOWN, |pseudo| pseudo.name()).to_owned()
}
