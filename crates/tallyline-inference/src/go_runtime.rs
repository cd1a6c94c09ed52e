//! Knowledge about Go's runtime: the goroutine register, allocations, maps.
//!
//! A map's keys and elements lie in groups that the runtime reaches through untyped pointers, because one copy of the
//! code serves maps of all types. Each group starts with a control word; behind it lie slots of the map's own types,
//! which that code does not reveal.

use super::analysis::Analysis;
use super::catalog::Catalog;
use super::lookup::Resolution;
use super::strided_value::StridedValue;
use super::value::{Pointer, State, Value};
use crate::code::{Machine, Register};
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::program::GO;

/// Members that point to groups.
const TO_GROUPS: [(&[u8], &[u8]); 2] =
    [(b"internal/runtime/maps.groupReference", b"data"), (b"internal/runtime/maps.groupsReference", b"data")];

/// The member with the size of a map's groups.
const GROUP_SIZE: (&[u8], &[u8]) = (b"internal/abi.MapType", b"GroupSize");

/// A placeholder for the size of a group, which only the running program knows; no other index has this stride.
const GROUP_STEP: i64 = 1 << 24;

impl Analysis<'_, '_, '_, '_> {
    /// Returns `true` if the code was compiled from Go.
    pub(super) fn is_go(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.language() == GO)
    }

    /// Returns the value of a field whose target the runtime knows better than its type says.
    pub(super) fn runtime_field_value(&mut self, ty: TypeId, offset: u64) -> Option<Value> {
        if !self.is_go() {
            return None;
        }
        let (record, member) = self.catalog.member_at(ty, offset)?;
        let field = (record.as_slice(), member.as_slice());
        if field == GROUP_SIZE {
            return Some(Value::from(StridedValue::multiple(GROUP_STEP)));
        }
        if !TO_GROUPS.contains(&field) {
            return None;
        }
        let control = self.globals.group_control().and_then(|place| self.catalog.type_at(place))?;
        self.catalog.go_control = Some(control);
        Some(Value::pointer(control))
    }

    /// Sets the goroutine register at entry.
    pub(super) fn seed_goroutine(&mut self) {
        if !self.is_go() {
            return;
        }
        let register = match self.image.machine() {
            Machine::X86_64 => Register(14),
            Machine::Aarch64 | Machine::Other => Register(28),
        };
        if let Some(ty) = self.globals.goroutine().and_then(|place| self.catalog.type_at(place)) {
            let to = self.catalog.object(ty);
            self.at_entry.push((register, Value::pointer(to)));
        }
    }

    /// Returns the results of a runtime function that allocates or looks up by a type descriptor.
    pub(super) fn runtime_call_result(&mut self, name: &str, state: &State) -> Option<Vec<Value>> {
        let name = name.strip_prefix("runtime.")?;
        let Value::Constant(described) = state.get(Register(0)) else { return None };
        let place = self.globals.runtime_type(described as u64, self.image.runtime_types())?;
        let ty = self.catalog.type_at(place)?;
        let to = match name {
            "newobject" | "makeslice" | "mallocgc" => ty,
            _ if name.starts_with("mapaccess") || name.starts_with("mapassign") => {
                self.catalog.map_element(ty)?
            }
            _ => return None,
        };
        let to = self.catalog.object(to);
        Some(vec![Value::pointer(to)])
    }
}

impl Catalog<'_, '_, '_> {
    /// Returns true for the control word of a group; what lies behind it is not another control word.
    pub(super) fn is_control_word(&self, id: TypeId) -> bool {
        self.go_control == Some(id)
    }

    /// Resolves a pointer into a group.
    pub(super) fn resolve_in_group(&mut self, pointer: Pointer) -> Resolution {
        let size = self.size(pointer.to);
        match u32::try_from(pointer.offset) {
            Ok(offset) if u64::from(offset) < size && i64::from(pointer.stride) % GROUP_STEP == 0 => {
                Resolution::At { ty: pointer.to, offset }
            }
            _ => Resolution::Opaque,
        }
    }
}
