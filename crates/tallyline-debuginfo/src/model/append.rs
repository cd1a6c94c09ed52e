//! Putting models together that were read in parallel.

use super::{Member, NameId, Position, Range, Type, TypeId, Types};
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;

/// The mapping of one model's ids to those of another.
struct Shift {
    types: u32,
    records: u32,
    enums: u32,
    arrays: u32,
    functions: u32,
    members: u32,
    variants: u32,
    enumerators: u32,
    parameters: u32,
    dimensions: u32,
    // of a table that was taken over, and of the others, which are consecutive
    names_of_section: FxHashMap<NameId, NameId>,
    names_from: u32,
    names: Vec<NameId>,
}

impl Types {
    /// Merges the types of several files into one [`Types`], in this order. An error if some are from DWARF and others
    /// from BTF, or pointer sizes differ.
    pub fn merged(parts: Vec<Types>) -> Result<Types> {
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else { return Ok(Types::default()) };
        for part in parts {
            if (all.origin, all.pointer_size) != (part.origin, part.pointer_size) {
                return Err(Error::Mixed);
            }
            all.append(part)?;
        }
        Ok(all)
    }

    /// Appends all types of another [`Types`] of the same file to this one. Returns a function from an old type id to
    /// the new one.
    pub fn absorb(&mut self, other: Types) -> Result<impl Fn(TypeId) -> TypeId + use<>> {
        let before = self.types.len().saturating_sub(1) as u32;
        self.append(other)?;
        Ok(move |id: TypeId| if id == TypeId::VOID { id } else { TypeId(id.0.saturating_add(before)) })
    }

    /// Appends all types of another [`Types`] of the same file to this one, under new ids.
    pub(crate) fn append(&mut self, mut other: Types) -> Result<()> {
        // what nothing was read into has not even void, which all others begin with
        if self.types.is_empty() {
            std::mem::swap(self, &mut other);
            std::mem::swap(&mut self.warnings, &mut other.warnings);
            self.warnings.append(&mut other.warnings);
            self.nearest = other.nearest.or(self.nearest.take());
            return Ok(());
        }
        if other.types.is_empty() {
            self.warnings.append(&mut other.warnings);
            self.nearest = self.nearest.take().or(other.nearest);
            return Ok(());
        }
        let shift = Shift::new(self, &other)?;
        if !self.natural.is_empty() {
            self.natural.resize(self.records.len(), 0);
            self.natural.extend(&other.natural);
        }
        other.types.iter_mut().for_each(|ty| shift.ty(ty));
        self.types.extend(other.types.drain(1..));
        for mut record in other.records {
            record.name = shift.name(record.name);
            record.path = shift.name(record.path);
            record.tag = shift.range(record.tag, shift.members);
            record.members = shift.range(record.members, shift.members);
            record.variants = shift.range(record.variants, shift.variants);
            record.declared_at = shift.position(record.declared_at);
            self.records.push(record);
        }
        for mut item in other.enums {
            item.name = shift.name(item.name);
            item.enumerators = shift.range(item.enumerators, shift.enumerators);
            item.declared_at = shift.position(item.declared_at);
            self.enums.push(item);
        }
        for mut array in other.arrays {
            array.of = shift.id(array.of);
            array.dimensions = shift.range(array.dimensions, shift.dimensions);
            self.arrays.push(array);
        }
        for mut function in other.functions {
            function.returns = shift.id(function.returns);
            function.parameters = shift.range(function.parameters, shift.parameters);
            self.functions.push(function);
        }
        self.members.extend(other.members.into_iter().map(|member| shift.member(member)));
        for mut variant in other.variants {
            variant.name = shift.name(variant.name);
            variant.ty = shift.id(variant.ty);
            variant.members = shift.range(variant.members, shift.members);
            self.variants.push(variant);
        }
        for mut item in other.enumerators {
            item.name = shift.name(item.name);
            self.enumerators.push(item);
        }
        for mut parameter in other.parameters {
            parameter.name = shift.name(parameter.name);
            parameter.ty = shift.id(parameter.ty);
            self.parameters.push(parameter);
        }
        self.dimensions.append(&mut other.dimensions);
        self.paths.extend(other.paths.iter().map(|(id, path)| (shift.id(*id), shift.name(*path))));
        self.listed.extend(other.listed.iter().map(|id| shift.id(*id)));
        for mut source in other.sources {
            source.unit = shift.name(source.unit);
            source.declared_at = shift.position(source.declared_at);
            self.sources.push(source);
        }
        self.alignments.extend(other.alignments.into_iter().map(|(id, align)| (shift.id(id), align)));
        self.warnings.append(&mut other.warnings);
        self.nearest = self.nearest.take().or(other.nearest);
        Ok(())
    }
}

impl Shift {
    fn new(into: &mut Types, from: &Types) -> Result<Shift> {
        let mut named = |id: NameId| into.intern(from.name(id));
        let (of_section, others) = from.names.ids();
        let names_from = others.start;
        let names_of_section = of_section.map(|id| named(id).map(|new| (id, new))).collect::<Result<_>>()?;
        let names = others.map(|id| named(NameId(id))).collect::<Result<_>>()?;
        let start = |mine: usize, theirs: usize| match mine.checked_add(theirs) {
            Some(sum) if sum < 1 << 31 => Ok(mine as u32),
            _ => Err(Error::Limit { what: "entries in a table of types", limit: 1 << 31 }),
        };
        Ok(Shift {
            // void is in both
            types: start(into.types.len() - 1, from.types.len())?,
            records: start(into.records.len(), from.records.len())?,
            enums: start(into.enums.len(), from.enums.len())?,
            arrays: start(into.arrays.len(), from.arrays.len())?,
            functions: start(into.functions.len(), from.functions.len())?,
            members: start(into.members.len(), from.members.len())?,
            variants: start(into.variants.len(), from.variants.len())?,
            enumerators: start(into.enumerators.len(), from.enumerators.len())?,
            parameters: start(into.parameters.len(), from.parameters.len())?,
            dimensions: start(into.dimensions.len(), from.dimensions.len())?,
            names_of_section,
            names_from,
            names,
        })
    }

    fn id(&self, id: TypeId) -> TypeId {
        if id == TypeId::VOID { id } else { TypeId(id.0.saturating_add(self.types)) }
    }

    fn name(&self, id: NameId) -> NameId {
        match id.0.checked_sub(self.names_from) {
            Some(index) => self.names[index as usize],
            None => self.names_of_section.get(&id).copied().unwrap_or(NameId::NONE),
        }
    }

    fn range(&self, range: Range, by: u32) -> Range {
        Range { start: range.start + by, end: range.end + by }
    }

    fn position(&self, position: Position) -> Position {
        Position { file: self.name(position.file), ..position }
    }

    fn member(&self, member: Member) -> Member {
        Member {
            name: self.name(member.name),
            ty: self.id(member.ty),
            declared_at: self.position(member.declared_at),
            ..member
        }
    }

    fn ty(&self, ty: &mut Type) {
        match ty {
            Type::Void | Type::Missing | Type::Text { .. } => {}
            Type::Base { name, .. } | Type::Opaque { name } => *name = self.name(*name),
            Type::Pointer { to, .. } => *to = self.id(*to),
            Type::MemberPointer { class, to } => {
                *class = self.id(*class);
                *to = self.id(*to);
            }
            Type::Qualified { of, .. } | Type::Annotated { of } | Type::Descriptor { of, .. } => {
                *of = self.id(*of)
            }
            Type::Typedef { name, of } => {
                *name = self.name(*name);
                *of = self.id(*of);
            }
            Type::Array(id) => id.0 += self.arrays,
            Type::Function(id) => id.0 += self.functions,
            Type::Record(id) => id.0 += self.records,
            Type::Enum(id) => id.0 += self.enums,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_nothing_was_read_into_change_nothing_but_warnings() {
        let warned = |text: &str| Types { warnings: vec![text.into()], ..Types::default() };
        let some = || Types { types: vec![Type::Void], warnings: vec!["some".into()], ..Types::default() };
        let mut empty = warned("none");
        empty.append(some()).expect("room");
        assert_eq!((empty.types.len(), &empty.warnings[..]), (1, &["none".into(), "some".into()][..]));
        let mut filled = some();
        filled.append(warned("none")).expect("room");
        assert_eq!((filled.types.len(), &filled.warnings[..]), (1, &["some".into(), "none".into()][..]));
        let mut neither = Types::default();
        neither.append(Types::default()).expect("room");
        assert!(neither.types.is_empty());
    }
}
