//! Resolution of pointers: to a field of the target, of a record around it, or of an array element.

use super::catalog::{ACCESS_PATHS_LIMIT, Catalog};
use super::value::{Pointer, Value};
use tallyline_debuginfo::model::{Type, TypeId};
use tallyline_debuginfo::program::is_room_name;

/// The maximum nesting depth of records in the search for an enclosing one.
const ENCLOSING_LIMIT: usize = 6;

/// The maximum depth of inheritance in the search for a derived class.
const DERIVED_LIMIT: usize = 3;

/// The result of resolving a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// A byte of an object.
    At {
        /// The type of the object.
        ty: TypeId,
        /// The offset of the byte in the object.
        offset: u32,
    },
    /// Either of two bytes of an object.
    Either {
        /// The type of the object.
        ty: TypeId,
        /// The offsets of the two bytes in the object.
        offsets: [u32; 2],
    },
    /// An unknown target type: `void`, or only declared.
    Opaque,
    /// A function as the target.
    Function,
    /// An unknown offset in a known target.
    UnknownOffset,
    /// An address outside of the target.
    Outside,
}

impl Catalog<'_, '_, '_> {
    /// Adds an offset to a pointer and normalizes it where it certainly steps over elements.
    pub(super) fn add_normalized(&mut self, pointer: Pointer, step: i64) -> Value {
        let Some(offset) =
            i64::from(pointer.offset).checked_add(step).and_then(|sum| i32::try_from(sum).ok())
        else {
            return Value::Unknown(0);
        };
        if pointer.ends_elements && step >= 0 {
            return Value::Pointer(Pointer { offset, ..pointer });
        }
        let pointer = Pointer { ends_elements: false, ..pointer };
        let size = self.size(pointer.to).min(1 << 30) as i32;
        // in a flexible array member the stride is that of elements, not of objects
        let goes_over_objects = size > 0 && i64::from(pointer.stride) % i64::from(size) == 0;
        let is_whole = goes_over_objects
            && step != 0
            && step % i64::from(size) == 0
            && !self.is_control_word(pointer.to);
        if is_whole && !self.extends_to(pointer.to, offset) {
            return Value::Pointer(pointer.with_stride(step.unsigned_abs()));
        }
        if size > 0 && self.is_scalar(pointer.to) {
            return Value::Pointer(Pointer { offset: offset.rem_euclid(size), ..pointer });
        }
        Value::Pointer(Pointer { offset, ..pointer })
    }

    /// Returns true if an offset behind a record's size still belongs to it: by a flexible array member, or in a
    /// record that starts with it.
    fn extends_to(&mut self, base: TypeId, offset: i32) -> bool {
        let base = self.strip(base);
        let Ok(offset) = u64::try_from(offset) else { return false };
        if matches!(self.types().get(base), Type::Array(_)) {
            return matches!(self.enclosing(base, offset as i64, &[]), Enclosing::One(..));
        }
        if self.types().as_record(base).is_none() {
            return false;
        }
        if self.flexible(base, offset).is_some() {
            return true;
        }
        let (Some(place), Some(units)) = (self.die_offset(base), &mut self.units) else { return false };
        let derived = units.derived(place);
        derived.into_iter().any(|place| self.type_at(place).is_some_and(|id| self.size(id) > offset))
    }

    /// Returns true if the part of its target that a strided pointer addresses is known.
    pub(super) fn is_part_known(&mut self, pointer: Pointer) -> bool {
        self.resolve(pointer, 1, &[]) != Resolution::UnknownOffset
    }

    /// Resolves a pointer to a type and an offset in it.
    pub(super) fn resolve(&mut self, pointer: Pointer, access: u64, scopes: &[(String, u64)]) -> Resolution {
        if pointer.ends_elements {
            return self.control_byte.map_or(Resolution::Outside, |ty| Resolution::At { ty, offset: 0 });
        }
        let stripped = self.strip(pointer.to);
        match self.types().get(stripped) {
            Type::Void | Type::Missing | Type::Opaque { .. } => return Resolution::Opaque,
            Type::Function(_) => return Resolution::Function,
            _ if self.is_control_word(stripped) => return self.resolve_in_group(pointer),
            _ => {}
        }
        let size = self.size(pointer.to);
        let offset = i64::from(pointer.offset);
        if let Some((_, record)) = self.types().as_record(stripped)
            && record.declaration
        {
            return Resolution::Opaque;
        }
        if pointer.stride != 0 {
            let found = self.resolve_strided(pointer, access, scopes);
            return match (found, pointer.alternatives()) {
                (Resolution::UnknownOffset, Some(places)) => {
                    self.resolve_either(pointer, places, access, scopes)
                }
                _ => found,
            };
        }
        if let Ok(inside) = u64::try_from(offset) {
            if inside < size {
                return self.resolve_at(pointer.to, inside);
            }
            if let Some(inside) = self.flexible(stripped, inside) {
                return Resolution::At { ty: pointer.to, offset: inside };
            }
            match self.derived(stripped, inside, scopes) {
                Derived::One(derived) => return self.resolve_at(derived, inside),
                // not taken for an array of bases
                Derived::Several => return Resolution::Outside,
                Derived::None => {}
            }
            // a part is followed by the rest of its record: a list head leads to the list's entries
            match self.enclosing(stripped, offset, scopes) {
                Enclosing::One(outer, inside) => return self.resolve_at(outer, inside),
                Enclosing::Several if self.types().as_record(stripped).is_some() => {
                    return Resolution::Outside;
                }
                _ => {}
            }
        } else {
            match self.enclosing(stripped, offset, scopes) {
                Enclosing::One(outer, inside) => return self.resolve_at(outer, inside),
                Enclosing::Several => return Resolution::Outside,
                Enclosing::None => {}
            }
        }
        let is_near = offset.unsigned_abs() < size.saturating_mul(NEAR_OBJECTS);
        if size > 0 && (is_near || self.is_scalar(pointer.to)) {
            return self.resolve_at(pointer.to, modulo(offset, size));
        }
        Resolution::Outside
    }

    /// Resolves a pointer to one of two places in one object.
    fn resolve_either(
        &mut self,
        pointer: Pointer,
        places: [i32; 2],
        access: u64,
        scopes: &[(String, u64)],
    ) -> Resolution {
        match places.map(|offset| self.resolve(Pointer::at(pointer.to, offset), access, scopes)) {
            [one, other] if one == other => one,
            [Resolution::At { ty, offset: one }, Resolution::At { ty: same, offset: other }]
                if ty == same =>
            {
                Resolution::Either { ty, offsets: [one.min(other), one.max(other)] }
            }
            _ => Resolution::UnknownOffset,
        }
    }

    /// Resolves a strided pointer: to one part of each object, or of each element of an array in it.
    fn resolve_strided(&mut self, pointer: Pointer, access: u64, scopes: &[(String, u64)]) -> Resolution {
        let stripped = self.strip(pointer.to);
        let (size, step) = (self.size(stripped), u64::from(pointer.stride));
        let offset = i64::from(pointer.offset);
        if let Ok(inside) = u64::try_from(offset)
            && inside >= size
        {
            if let Some((inside, element)) = self.flexible_element(stripped, inside)
                && step % element == 0
            {
                return Resolution::At { ty: pointer.to, offset: inside };
            }
            if size > 0
                && step % size != 0
                && let Derived::One(to) = self.derived(stripped, inside, scopes)
            {
                return self.resolve_strided(Pointer { to, ..pointer }, access, scopes);
            }
        }
        if size == 0 {
            return Resolution::Outside;
        }
        if step % size == 0 || self.is_scalar(stripped) {
            return self.resolve_at(pointer.to, modulo(offset, size));
        }
        if let Ok(inside) = u64::try_from(offset)
            && inside < size
            && self.is_in_element(stripped, inside, step)
        {
            return self.resolve_at(pointer.to, inside);
        }
        if let Some(inside) = self.offset_in_scalar_array(stripped, offset, step) {
            return self.resolve_at(pointer.to, inside);
        }
        match self.folded_array_offset(stripped, offset, step, access) {
            Some(inside) => self.resolve_at(pointer.to, inside),
            None => Resolution::UnknownOffset,
        }
    }

    /// Returns true if an offset is in an array that the stride steps over: by whole elements, or by any amount over
    /// scalar elements.
    fn is_in_element(&mut self, ty: TypeId, offset: u64, step: u64) -> bool {
        let paths = self.access_paths(ty, offset);
        paths.iter().any(|path| {
            path.windows(2).any(|pair| {
                let is_array = matches!(self.types().get(pair[0].0), Type::Array(_));
                let size = if is_array { self.size(pair[1].0) } else { 0 };
                size > 0 && (step.is_multiple_of(size) || self.is_scalar(pair[1].0))
            })
        })
    }

    /// Returns the offset in the first element of a scalar array for a pointer that starts right before the array or
    /// behind its end: loops count from there.
    fn offset_in_scalar_array(&mut self, array: TypeId, offset: i64, step: u64) -> Option<u64> {
        let Type::Array(id) = self.types().get(array) else { return None };
        let element = self.types().array(id).of;
        let (size, whole) = (self.size(element), self.size(array));
        let near = i64::try_from(step).ok()?;
        let is_near =
            offset >= near.checked_neg()? && offset < i64::try_from(whole).ok()?.checked_add(near)?;
        let is_stepping = size > 0 && step.is_multiple_of(size) && self.is_scalar(element);
        (is_near && is_stepping).then(|| modulo(offset, size))
    }

    /// Returns true if a leaf of a size starts at an offset.
    fn has_leaf(&mut self, ty: TypeId, offset: u64, size: u64) -> bool {
        let paths = self.access_paths(ty, offset);
        let leaves: Vec<(TypeId, u64)> = paths.iter().filter_map(|path| path.last().copied()).collect();
        leaves.into_iter().any(|(leaf, inside)| inside == 0 && self.size(leaf) == size)
    }

    /// Returns the offset in the first element of the array member that a strided pointer addresses, where the
    /// compiler folded the array's start into the index. `None` if several arrays fit, or none does.
    fn folded_array_offset(&mut self, id: TypeId, offset: i64, step: u64, access: u64) -> Option<u64> {
        let (_, record) = self.types().as_record(id)?;
        let members: Vec<_> = self.types().members(record).to_vec();
        let mut found = None;
        for member in members.iter().filter(|member| member.takes_bytes()) {
            let ty = self.strip(member.ty);
            let Type::Array(array) = self.types().get(ty) else { continue };
            let element = self.types().array(array).of;
            let size = self.size(element);
            if size == 0 || !step.is_multiple_of(size) {
                continue;
            }
            let start = i64::try_from(member.offset).ok()?;
            // the first byte of the array that the stride reaches; an array of unknown length has them all
            let inside = modulo(offset.checked_sub(start)?, step);
            let first = member.offset + inside % size;
            if (inside < member.size || member.size == 0)
                && self.has_leaf(id, first, access)
                && found.replace(first).is_some()
            {
                return None;
            }
        }
        found
    }

    /// Resolves an offset to the object itself, or to what its raw buffer stores.
    fn resolve_at(&mut self, ty: TypeId, offset: u64) -> Resolution {
        let paths = self.access_paths(ty, offset);
        let mut stored = None;
        if let Some(path) = paths.first() {
            for pair in path.windows(2) {
                let is_room = self.types().as_record(pair[0].0).is_some_and(|(_, record)| {
                    record.language.is_cpp() && is_room_name(self.types().name(record.name))
                });
                if is_room {
                    stored = Some(pair[1]);
                    break;
                }
            }
        }
        match stored {
            Some((ty, offset)) => Resolution::At { ty: self.object(ty), offset: offset as u32 },
            None => Resolution::At { ty, offset: offset as u32 },
        }
    }

    /// Returns the only record that contains a type at such an offset that an offset before or behind the part is in
    /// the record too.
    fn enclosing(&mut self, part: TypeId, offset: i64, scopes: &[(String, u64)]) -> Enclosing {
        let Some(place) = self.die_offset(part) else { return Enclosing::Several };
        let mut level = vec![(place, 0_u64)];
        for _ in 0..ENCLOSING_LIMIT {
            let Some(units) = self.units.as_mut() else { return Enclosing::Several };
            let mut next = Vec::new();
            for (place, behind) in &level {
                for (outer, at) in units.enclosing(*place) {
                    next.push((outer, behind.saturating_add(at)));
                }
            }
            next.sort_unstable();
            next.dedup();
            if next.len() > ACCESS_PATHS_LIMIT {
                return Enclosing::Several;
            }
            let mut fitting: Vec<(u64, u64)> = Vec::new();
            for (place, behind) in &next {
                let inside = i64::try_from(*behind).ok().and_then(|behind| behind.checked_add(offset));
                let inside = inside.and_then(|inside| u64::try_from(inside).ok());
                if let (Some(inside), Some(id)) = (inside, self.type_at(*place))
                    && inside < self.size(id)
                {
                    fitting.push((*place, inside));
                }
            }
            match fitting[..] {
                [] => level = next,
                [(place, inside)] => {
                    return self.type_at(place).map_or(Enclosing::Several, |id| Enclosing::One(id, inside));
                }
                _ => {
                    let Some(units) = self.units.as_mut() else { return Enclosing::Several };
                    let mut chosen = fitting.iter().filter(|(place, _)| {
                        let templates = units.templates(*place);
                        templates.iter().any(|(_, ty)| scopes.iter().any(|(_, known)| known == ty))
                    });
                    let (Some(&(place, inside)), None) = (chosen.next(), chosen.next()) else {
                        return Enclosing::Several;
                    };
                    return self.type_at(place).map_or(Enclosing::Several, |id| Enclosing::One(id, inside));
                }
            }
            if level.is_empty() {
                return Enclosing::None;
            }
        }
        Enclosing::None
    }

    /// Returns the offset in the first element of a record's flexible array member.
    fn flexible(&mut self, id: TypeId, offset: u64) -> Option<u32> {
        self.flexible_element(id, offset).map(|(inside, _)| inside)
    }

    /// Returns the offset in the first element of a record's flexible array member, and the size of an element.
    fn flexible_element(&mut self, id: TypeId, offset: u64) -> Option<(u32, u64)> {
        let (_, record) = self.types().as_record(id)?;
        let last = *self.types().members(record).iter().rev().find(|member| member.is_placed())?;
        let ty = self.strip(last.ty);
        let Type::Array(array) = self.types().get(ty) else { return None };
        let array = self.types().array(array);
        let open = self.types().dimensions(array).first().is_none_or(|length| *length <= 1);
        let element = self.size(array.of);
        let inside = offset.checked_sub(last.offset).filter(|_| open && element > 0)?;
        Some((u32::try_from(last.offset + inside % element).ok()?, element))
    }

    /// Returns the record that starts with another and reaches to an offset. Of several, the one that shares a
    /// template argument with the scopes.
    fn derived(&mut self, base: TypeId, offset: u64, scopes: &[(String, u64)]) -> Derived {
        let Some(place) = self.die_offset(base) else { return Derived::None };
        let mut level = vec![place];
        for _ in 0..DERIVED_LIMIT {
            let Some(units) = self.units.as_mut() else { return Derived::None };
            let mut next: Vec<u64> = level.iter().flat_map(|place| units.derived(*place)).collect();
            next.sort_unstable();
            next.dedup();
            let mut fitting = Vec::new();
            for place in &next {
                if let Some(id) = self.type_at(*place)
                    && self.size(id) > offset
                {
                    fitting.push((*place, id));
                }
            }
            match fitting[..] {
                [] => level = next,
                [(_, only)] => return Derived::One(only),
                _ => return self.matching_scopes(&fitting, scopes).map_or(Derived::Several, Derived::One),
            }
        }
        Derived::None
    }

    /// Returns the only record that starts with another and has a part of a type at an offset behind it.
    pub(super) fn derived_with(&mut self, base: TypeId, offset: u64, part: TypeId) -> Option<TypeId> {
        let base = self.strip(base);
        let (_, record) = self.types().as_record(base)?;
        if !record.language.is_cpp() || offset < self.size(base) || self.is_scalar(part) {
            return None;
        }
        let mut level = vec![self.die_offset(base)?];
        for _ in 0..DERIVED_LIMIT {
            let units = self.units.as_mut()?;
            let mut next: Vec<u64> = level.iter().flat_map(|place| units.derived(*place)).collect();
            next.sort_unstable();
            next.dedup();
            if next.len() > ACCESS_PATHS_LIMIT {
                return None;
            }
            let ids: Vec<TypeId> = next.iter().filter_map(|place| self.type_at(*place)).collect();
            let mut fitting = ids.into_iter().filter(|id| self.contains_type(*id, offset, part));
            if let Some(only) = fitting.next() {
                return fitting.next().is_none().then_some(only);
            }
            level = next;
        }
        None
    }

    /// Returns the only record that starts with another and reaches to an offset.
    pub(super) fn derived_only(&mut self, base: TypeId, offset: u64) -> Option<TypeId> {
        match self.derived(base, offset, &[]) {
            Derived::One(only) => Some(only),
            _ => None,
        }
    }

    /// Returns the only record that shares a template argument with the scopes: by name and type, else by type.
    fn matching_scopes(&mut self, records: &[(u64, TypeId)], scopes: &[(String, u64)]) -> Option<TypeId> {
        let units = self.units.as_mut()?;
        let templates: Vec<_> = records.iter().map(|(place, _)| units.templates(*place)).collect();
        let only = |is_alike: fn(&(String, u64), &(String, u64)) -> bool| {
            let is_made = |own: &crate::catalog::Templates| {
                own.iter().any(|own| scopes.iter().any(|known| is_alike(own, known)))
            };
            let mut made = records.iter().zip(&templates).filter(|(_, own)| is_made(own));
            made.next().filter(|_| made.next().is_none()).map(|((_, id), _)| *id)
        };
        only(|own, known| own == known).or_else(|| only(|own, known| own.1 == known.1))
    }
}

/// The record that starts with an object.
enum Derived {
    /// No record that starts with the object and reaches to the offset.
    None,
    /// The only record that starts with the object and reaches to the offset.
    One(TypeId),
    /// Several records that start with the object and reach to the offset.
    Several,
}

/// The record that contains an object.
enum Enclosing {
    /// No record reaches so far.
    None,
    /// The only record, with the offset in it.
    One(TypeId, u64),
    /// Several records, or unknown.
    Several,
}

/// The maximum distance, in objects, of an access that still counts as one to the same type: loops of a known length
/// count down from behind their end.
const NEAR_OBJECTS: u64 = 4096;

/// Reduces an offset modulo the size of an object, for objects side by side.
pub(super) fn modulo(offset: i64, size: u64) -> u64 {
    offset.rem_euclid(i64::try_from(size).unwrap_or(i64::MAX).max(1)) as u64
}
