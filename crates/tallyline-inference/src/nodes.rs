//! Nodes of containers: objects that C++ libraries reach by their bases, which are the same for all types of
//! elements, and by the element that they have room for.
//!
//! A part is taken for that of a node where only one type of node has such a part, or where of several one is
//! made from what the scopes, or the variable in the register, are made from. An element is only in a node
//! where nothing in the function keeps such an object by itself.

use super::analysis::Analysis;
use super::catalog::Catalog;
use super::outcome::Within;
use super::value::{State, Value};
use crate::code::Memory;
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::program::PartOf;

/// The maximum number of records between a part and the node around it.
const DEPTH_LIMIT: usize = 8;

/// The maximum number of node types with one part.
const NODES_LIMIT: usize = 256;

/// A node type's DIE, and the offset of a part in it.
type Node = (u64, u64);

impl Catalog<'_, '_, '_> {
    /// Returns the node types that contain a type.
    fn nodes_of(&mut self, part: TypeId) -> &[Node] {
        if !self.nodes.contains_key(&part) {
            let found = self.find_nodes(part).unwrap_or_default();
            self.nodes.insert(part, found);
        }
        self.nodes.get(&part).map_or(&[], Vec::as_slice)
    }

    fn find_nodes(&mut self, part: TypeId) -> Option<Vec<Node>> {
        let (_, record) = self.types().as_record(part)?;
        if !record.language.is_cpp() {
            return None;
        }
        let place = self.die_offset(part)?;
        let units = self.units.as_mut()?;
        // a base that is made for all types of elements, or an element
        let is_base = units.templates(place).is_empty();
        let mut found = Vec::new();
        let mut open = vec![(place, 0_u64, false, 0_usize)];
        while let Some((place, start, is_in_room, depth)) = open.pop() {
            if depth > DEPTH_LIMIT || found.len() >= NODES_LIMIT {
                return None;
            }
            let mut is_last = true;
            for outer in units.parts_of(place) {
                let follows = match outer.how {
                    PartOf::Room => !is_in_room,
                    PartOf::Derived => is_in_room || is_base,
                    PartOf::Member => is_in_room,
                };
                if follows {
                    is_last = false;
                    let is_in_room = is_in_room || outer.how == PartOf::Room;
                    open.push((outer.record, start.saturating_add(outer.at), is_in_room, depth + 1));
                }
            }
            let is_node = depth > 0 && is_last && !units.templates(place).is_empty();
            if is_node && !found.contains(&(place, start)) {
                found.push((place, start));
            }
        }
        found.sort_unstable();
        found.retain(|(place, _)| {
            let node = self.type_at(*place);
            node.is_some_and(|node| self.has_plain_base(node, 0))
        });
        Some(found)
    }

    /// Returns true if a record derives from a class that is not a template, as all nodes do that shared code links.
    fn has_plain_base(&mut self, record: TypeId, depth: usize) -> bool {
        let record = self.strip(record);
        let Some((_, known)) = self.types().as_record(record) else { return false };
        let bases = self.types().members(known).iter().filter(|member| member.is_base() && member.size > 0);
        let bases: Vec<TypeId> = bases.map(|member| member.ty).collect();
        bases.into_iter().any(|base| {
            let base = self.strip(base);
            self.templates_of_variable(base).is_empty()
                || (depth < DEPTH_LIMIT && self.has_plain_base(base, depth + 1))
        })
    }
}

impl Analysis<'_, '_, '_, '_> {
    /// Returns the node that an object is a part of, if it is unambiguous. `pointer` is the value of the address.
    pub(super) fn within(
        &mut self,
        state: &State,
        position: usize,
        memory: &Memory,
        ty: TypeId,
        pointer: TypeId,
    ) -> Option<Within> {
        // what a register leads to: variables on the stack and at fixed places are objects by themselves
        let base = match state.get(memory.base?) {
            Value::Pointer(base) => Some(base.to),
            Value::Unknown(_) => None,
            _ => return None,
        };
        let part = self.catalog.strip(ty);
        let nodes = self.catalog.nodes_of(part).to_vec();
        if nodes.is_empty() {
            return None;
        }
        // the code has come to it by the node, or by the node's base
        for whole in [Some(pointer), base].into_iter().flatten() {
            let whole = self.catalog.strip(whole);
            if whole == part {
                continue;
            }
            let mut through = nodes.iter().filter(|(node, _)| {
                let node = self.catalog.type_at(*node);
                node.is_some_and(|node| node == whole || self.catalog.contains_type(node, 0, whole))
            });
            if let (Some((node, start)), None) = (through.next(), through.next()) {
                let (node, start) = (*node, u32::try_from(*start).ok()?);
                let ty = self.catalog.type_at(node)?;
                return Some(Within { ty: self.catalog.object(ty), start });
            }
        }
        let (place, start) = match nodes[..] {
            [only] => only,
            _ => {
                let mut known = self.templates_in_base(position);
                known.extend(self.templates(position).iter().cloned());
                let units = self.catalog.units.as_mut()?;
                let mut made = nodes.iter().filter(|(place, _)| {
                    let own = units.templates(*place);
                    own.iter().any(|(_, ty)| known.iter().any(|(_, known)| known == ty))
                });
                let only = made.next().copied()?;
                if made.next().is_some() {
                    return None;
                }
                only
            }
        };
        let is_element = self.catalog.die_offset(part).is_some_and(|part| {
            self.catalog.units.as_mut().is_some_and(|units| !units.templates(part).is_empty())
        });
        if is_element && self.keeps(part) {
            return None;
        }
        let ty = self.catalog.type_at(place)?;
        Some(Within { ty: self.catalog.object(ty), start: u32::try_from(start).ok()? })
    }

    /// Returns true if a variable of the function has a type.
    fn keeps(&mut self, ty: TypeId) -> bool {
        (0..self.function.variables.len() as u32).any(|variable| {
            let own = self.variable_type(variable);
            own.is_some_and(|own| self.catalog.strip(own) == ty)
        })
    }
}
