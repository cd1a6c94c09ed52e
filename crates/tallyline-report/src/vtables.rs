//! Classes of virtual calls: a table of functions has no type in the debug information, but the object that its address
//! was loaded from has one.

use super::answers::All;
use super::binaries::Binaries;
use super::index::PlaceId;
use super::names::NameId;
use super::operand::Outcome;
use super::samples::{Operands, Samples};
use rustc_hash::{FxHashMap, FxHashSet};
use tallyline_debuginfo::type_text;
use tallyline_inference::code::{Body, Effect, Register};
use tallyline_inference::{self as infer, Pseudo, TypeTable};
use tallyline_perf_data::spaces::DsoId;

/// The bytes of a slot of the table.
const SLOT: i64 = 8;

/// Names the slots of tables that samples are charged to: class and number of the slot.
pub(super) fn name_slots(
    samples: &mut Samples,
    operands: &Operands,
    binaries: &Binaries,
    answers: &All,
) -> FxHashMap<PlaceId, NameId> {
    let is_table = |place: &PlaceId| matches!(operands.outcome(*place), Outcome::Pseudo(Pseudo::Vtable));
    let charged: FxHashSet<PlaceId> =
        samples.groups.iter().map(|group| group.charged).filter(is_table).collect();
    let mut bodies: FxHashMap<(DsoId, u64), Body> = FxHashMap::default();
    let mut found = FxHashMap::default();
    for place in charged {
        let (Some(dso), address) = samples.linked(place) else { continue };
        let (Some(program), Some(Ok(answers))) = (binaries.get(dso), answers.get(&dso)) else { continue };
        let Some(function) = answers.table().function_at(address) else { continue };
        let Some(entry) = function.ranges().first().map(|range| range.start) else { continue };
        let decode = || Body::of_function(&program.image, function.ranges());
        let body = bodies.entry((dso, entry)).or_insert_with(decode);
        if let Some(text) = slot(body, answers.table(), address) {
            found.insert(place, samples.names.intern(&text));
        }
    }
    found
}

/// Returns the class and the slot that an instruction reads.
fn slot(body: &Body, table: &TypeTable, address: u64) -> Option<String> {
    let position = body.position(address)?;
    let memory = body.instructions()[position].memory()?;
    let number = memory.displacement().checked_div(SLOT).filter(|_| memory.index().is_none())?;
    let loaded = loaded_by(body, position, memory.base()?)?;
    let infer::Outcome::Typed(typed) = table.outcome(loaded)? else { return None };
    let class = type_text(table.types(), typed.ty());
    Some(format!("{} {class}, slot {number}", Pseudo::Vtable.name()))
}

/// Returns the instruction that loaded a register, if it is in the same block.
fn loaded_by(body: &Body, position: usize, register: Register) -> Option<u64> {
    let block = &body.blocks()[body.block_of(position)?];
    let before = body.instructions().get(block.instructions().start as usize..position)?;
    let writer = before.iter().rev().find(|instruction| {
        body.effects(instruction).iter().flat_map(Effect::written).any(|written| written == register)
    })?;
    let loads = |effect: &Effect| matches!(effect, Effect::Load { to, .. } if *to == register);
    body.effects(writer).iter().any(loads).then_some(writer.address())
}
