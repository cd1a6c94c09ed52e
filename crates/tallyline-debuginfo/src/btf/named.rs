//! Types by name: every entry is walked over, and only those are made into types that the wanted
//! ones need. What is only pointed to is read for its name, as from DWARF.

use super::decode::{Decoder, Entry, kind};
use crate::PointerTargets;
use crate::error::Result;
use crate::model::{Type, TypeId, Types};

/// The part of a type that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Nothing,
    /// The name of the type.
    Name,
    /// The layout of the type.
    Layout,
}

/// The types that are needed, and those still to be read.
struct Needs {
    // by id
    known: Vec<Need>,
    pending: Vec<(TypeId, Need)>,
    pointer_targets: PointerTargets,
}

impl Needs {
    fn add(&mut self, id: TypeId, need: Need) {
        // void, and ids that lead nowhere, need nothing
        if let Some(known) = self.known.get_mut(id.index())
            && *known < need
        {
            *known = need;
            self.pending.push((id, need));
        }
    }
}

impl Decoder<'_> {
    /// Appends a place for every type, and reads those of these names and the types that they need; those that are
    /// only pointed to as far as `pointer_targets` says.
    pub(super) fn decode_named(
        mut self,
        names: &[Vec<u8>],
        pointer_targets: PointerTargets,
        types: &mut Types,
    ) -> Result<()> {
        let mut starts = vec![0];
        let mut wanted = Vec::new();
        while !self.bytes.is_empty() {
            starts.push(self.bytes.position());
            let entry = self.entry()?;
            let ty = match entry.kind {
                // what tells the size of pointers is among these
                kind::INT => self.type_of(entry, types)?,
                kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 | kind::TYPEDEF => {
                    if names.iter().any(|name| self.is_called(entry.name, name)) {
                        wanted.push(TypeId(types.len() as u32));
                    }
                    self.skip(entry, types)?
                }
                _ => self.skip(entry, types)?,
            };
            types.push(ty)?;
        }
        let known = vec![Need::Nothing; types.len()];
        let mut needs = Needs { known, pending: Vec::new(), pointer_targets };
        if let Some(void) = needs.known.first_mut() {
            *void = Need::Layout;
        }
        wanted.iter().for_each(|id| needs.add(*id, Need::Layout));
        while let Some((id, need)) = needs.pending.pop() {
            if needs.known[id.index()] == need {
                self.bytes.seek(starts[id.index()]);
                let entry = self.entry()?;
                types.types[id.index()] = self.needed(entry, need, &mut needs, types)?;
            }
        }
        types.listed = wanted;
        Ok(())
    }

    /// Makes a type of an entry, and notes what it needs.
    fn needed(&mut self, entry: Entry, need: Need, needs: &mut Needs, types: &mut Types) -> Result<Type> {
        // an anonymous one is printed where it is used
        let is_record = matches!(entry.kind, kind::STRUCT | kind::UNION);
        if is_record && need == Need::Name && entry.name != 0 {
            return self.declaration(entry, entry.kind == kind::UNION, types);
        }
        let ty = self.type_of(entry, types)?;
        match ty {
            Type::Pointer { to, .. } => needs.add(to, Need::Name),
            Type::Array(array) => needs.add(types.array(array).of, need),
            Type::Qualified { of, .. } | Type::Annotated { of } => needs.add(of, need),
            Type::Typedef { of, .. }
                if need == Need::Layout || needs.pointer_targets > PointerTargets::Names =>
            {
                needs.add(of, Need::Layout);
            }
            Type::Typedef { name, .. } => return Ok(Type::Typedef { name, of: TypeId::VOID }),
            Type::Record(record) => {
                let record = types.record(record);
                types.members(record).iter().for_each(|member| needs.add(member.ty, Need::Layout));
            }
            Type::Function(function) => {
                let function = types.function(function);
                needs.add(function.returns, Need::Name);
                types.parameters(function).iter().for_each(|parameter| needs.add(parameter.ty, Need::Name));
            }
            _ => {}
        }
        Ok(ty)
    }
}
