//! C spellings of the types of members.

use super::{Owner, Shared, Writer, scalar};
use crate::explain::Packing;
use tallyline_debuginfo::abi::size_of;
use tallyline_debuginfo::model::{Member, Qualifier, Type, TypeId};

/// The nesting depth at which size and alignment replace a type.
pub(super) const DEPTH_LIMIT: usize = 60;

/// The longest chain of typedefs, qualifiers and arrays that is followed.
const CHAIN_LIMIT: usize = 256;

/// The types that no keyword names in every compiler.
pub(super) const PRELUDE: &str = "typedef float quadruple __attribute__((mode(TF)));";

/// A type in front of a name, and what goes behind the name.
struct Spelled {
    front: String,
    behind: String,
}

impl Spelled {
    fn plain(front: impl Into<String>) -> Spelled {
        Spelled { front: front.into(), behind: String::new() }
    }
}

/// Spells types, and declares what they need first.
pub(super) struct Speller<'w, 'r, 't, 'u> {
    pub(super) writer: &'w mut Writer<'r, 't>,
    pub(super) uses: &'u mut Vec<usize>,
    pub(super) depth: usize,
}

impl Speller<'_, '_, '_, '_> {
    /// Returns the declaration of a member that takes whole bytes.
    pub(super) fn member(
        &mut self,
        index: usize,
        member: &Member,
        size: u64,
        align: u64,
        packing: Packing,
    ) -> String {
        let abi = &self.writer.reorganizer.abi;
        let natural = abi.align_of_member(member);
        // a base whose tail is used again, or an empty class: bytes stand for it
        let whole = self.writer.size_of(member.ty) == size;
        let (spelled, own) = match whole.then(|| self.spell(member.ty)).flatten() {
            Some(spelled) => (spelled, natural),
            None => (Spelled { front: "char".into(), behind: format!("[{size}]") }, 1),
        };
        let given = match packing {
            Packing::Natural | Packing::PackedMembers => own,
            Packing::Packed => 1,
            Packing::Most(most) => own.min(most),
        };
        let attribute = match align.cmp(&given) {
            std::cmp::Ordering::Equal => String::new(),
            std::cmp::Ordering::Greater => format!(" __attribute__((aligned({align})))"),
            std::cmp::Ordering::Less => format!(" __attribute__((packed, aligned({align})))"),
        };
        format!("{} m{index}{}{attribute};", spelled.front, spelled.behind)
    }

    /// Returns the type of a bitfield.
    pub(super) fn scalar(&mut self, ty: TypeId) -> String {
        self.spell(ty).map_or_else(|| "int".to_string(), |spelled| spelled.front)
    }

    /// Spells a type in C; `None` if C has no form for it.
    fn spell(&mut self, id: TypeId) -> Option<Spelled> {
        let types = self.writer.reorganizer.types();
        if let Some(align) = types.declared_alignment(id).filter(|align| align.is_power_of_two()) {
            return self.aligned(id, align);
        }
        self.spell_unaligned(id)
    }

    fn spell_unaligned(&mut self, mut id: TypeId) -> Option<Spelled> {
        let types = self.writer.reorganizer.types();
        for _ in 0..CHAIN_LIMIT {
            let of = match types.get(id) {
                Type::Qualified { qualifier: Qualifier::Atomic, of } => return self.atomic(of),
                Type::Typedef { of, .. } | Type::Qualified { of, .. } | Type::Annotated { of } => of,
                Type::Array(array) => return self.array(id, types.array(array)),
                Type::Base { name, bits } => {
                    return scalar::base(types.name(name), bits).map(Spelled::plain);
                }
                Type::Enum(item) => {
                    return scalar::enumeration(types.enumeration(item).size).map(Spelled::plain);
                }
                Type::Pointer { .. } | Type::Function(_) => return Some(Spelled::plain("void *")),
                Type::MemberPointer { .. } => {
                    let words = size_of(types, id) / types.pointer_size().max(1);
                    return Some(Spelled { front: "void *".into(), behind: array_of(words, 1) });
                }
                Type::Record(record) => {
                    return Some(Spelled::plain(self.writer.shared(record, self.uses)));
                }
                Type::Void
                | Type::Missing
                | Type::Text { .. }
                | Type::Opaque { .. }
                | Type::Descriptor { .. } => return None,
            };
            if types.declared_alignment(of).is_some() {
                return self.spell(of);
            }
            id = of;
        }
        None
    }

    fn atomic(&mut self, of: TypeId) -> Option<Spelled> {
        let inner = self.spell(of)?;
        inner.behind.is_empty().then(|| Spelled::plain(format!("_Atomic({})", inner.front)))
    }

    fn array(&mut self, id: TypeId, array: tallyline_debuginfo::model::Array) -> Option<Spelled> {
        let types = self.writer.reorganizer.types();
        if self.depth >= DEPTH_LIMIT {
            return None;
        }
        self.depth += 1;
        let element = self.spell(array.of);
        self.depth -= 1;
        let mut element = element?;
        if array.vector {
            let name = format!("v{}", id.index());
            let bytes = size_of(types, id);
            return self.typedef(id, &name, |name| {
                format!("typedef {} {name} __attribute__((vector_size({bytes})));", element.front)
            });
        }
        let dimensions = types.dimensions(array);
        let mut behind: String = dimensions.iter().map(|count| format!("[{count}]")).collect();
        if dimensions.is_empty() {
            behind += "[0]";
        }
        element.behind.insert_str(0, &behind);
        Some(element)
    }

    /// Returns a type that was declared with an alignment of its own: a typedef carries it.
    fn aligned(&mut self, id: TypeId, align: u64) -> Option<Spelled> {
        if self.depth >= DEPTH_LIMIT {
            return None;
        }
        self.depth += 1;
        let inner = self.spell_unaligned(id);
        self.depth -= 1;
        let inner = inner?;
        let name = format!("t{}", id.index());
        self.typedef(id, &name, |name| {
            format!("typedef {} {name}{} __attribute__((aligned({align})));", inner.front, inner.behind)
        })
    }

    /// Declares a type once.
    fn typedef(&mut self, id: TypeId, name: &str, text: impl FnOnce(&str) -> String) -> Option<Spelled> {
        let shared = match self.writer.types.get(&id) {
            Some(shared) => *shared,
            None => {
                let shared = self.writer.source.shared.len();
                // what it needs is needed by whoever uses it too
                self.writer.source.shared.push(Shared::default());
                self.writer.types.insert(id, shared);
                let text = text(name);
                self.writer.line(Owner::Shared(shared), &text);
                shared
            }
        };
        self.uses.push(shared);
        Some(Spelled::plain(name))
    }
}

fn array_of(words: u64, least: u64) -> String {
    if words > least { format!("[{words}]") } else { String::new() }
}
