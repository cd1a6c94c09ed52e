//! The members of a type as a tree, with offsets that count from the outermost type.

use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::{Type, TypeId, Types};
use tallyline_debuginfo::type_text;

/// The depth of nested members beyond which the rest is left out.
const DEPTH_LIMIT: usize = 16;

/// The number of members that one type may unfold to.
const MEMBERS_LIMIT: usize = 1 << 14;

/// A member, base class or variant of a type with the members nested in it, for listings of a type field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub(crate) number: u32,
    pub(crate) ty: String,
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) children: Vec<Member>,
    pub(crate) truncated: bool,
}

impl Member {
    /// Creates an entry for a member in a listing of a type field by field: its number among its siblings, type, name,
    /// offset and size in bytes, and nested members (`truncated` if some of these are left out).
    pub fn new(
        number: u32,
        ty: String,
        name: String,
        (offset, size): (u64, u64),
        truncated: bool,
        children: Vec<Member>,
    ) -> Member {
        Member { number, ty, name, offset, size, truncated, children }
    }

    /// Returns the member's number among all members of the type that declares it: the type's own, then the
    /// discriminant, then those of the variants. Numbers have gaps, as members without a location are not listed.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the name of the member's type.
    pub fn ty(&self) -> &str {
        &self.ty
    }

    /// Returns the member's name, after that of its variant if it is in one; empty for a base class or an unnamed
    /// member.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the member's offset in bytes from the start of the outermost type.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the member's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the members of the member's type, nested below it.
    pub fn children(&self) -> &[Member] {
        &self.children
    }

    /// Returns `true` if nested members were left out because they are too deep or too many.
    pub fn truncated(&self) -> bool {
        self.truncated
    }
}

/// Lists the members of a struct, class or union with all nested ones; empty for other types.
pub fn members(types: &Types, id: TypeId) -> Vec<Member> {
    let mut budget = MEMBERS_LIMIT;
    of_type(types, id, 0, 0, &mut budget).unwrap_or_default()
}

/// Says what a node has room for: the member that is but bytes there becomes an object of the type.
pub(super) fn fill_room(members_of: &mut [Member], start: u64, name: &str, types: &Types, id: TypeId) {
    let size = abi::size_of(types, id);
    let holds = |member: &&mut Member| {
        member.offset <= start && start - member.offset < member.size && size <= member.size
    };
    let Some(member) = members_of.iter_mut().find(holds) else { return };
    if member.ty == name {
        return;
    }
    // the innermost one of the size is the room itself
    let is_bytes = (member.offset, member.size) == (start, size)
        && member.children.iter().all(|inner| inner.ty.contains("char"));
    if !is_bytes {
        return fill_room(&mut member.children, start, name, types, id);
    }
    let mut budget = MEMBERS_LIMIT;
    member.ty = name.to_owned();
    member.children = of_type(types, id, start, 0, &mut budget).unwrap_or_default();
}

/// Returns the path to the part of a node that is of a type and starts at a byte.
pub(super) fn path_to_part(members_of: &[Member], start: u64, name: &str) -> Option<Vec<u32>> {
    let holds = |member: &&Member| member.offset <= start && start - member.offset < member.size.max(1);
    members_of.iter().filter(holds).find_map(|member| {
        let behind = match member.offset == start && member.ty == name {
            true => Vec::new(),
            false => path_to_part(&member.children, start, name)?,
        };
        Some(std::iter::once(member.number).chain(behind).collect())
    })
}

/// Returns the members of a type; `None` if there are too many.
fn of_type(types: &Types, id: TypeId, base: u64, depth: usize, budget: &mut usize) -> Option<Vec<Member>> {
    let Type::Record(record) = types.get(types.strip(id)) else { return Some(Vec::new()) };
    let record = types.record(record);
    let own = types.members(record).iter().chain(types.tag(record)).map(|member| (None, member));
    let all = types.variants(record);
    let variants = all.iter().flat_map(|variant| {
        let name = Some(types.name(variant.name)).filter(|name| all.len() > 1 && !name.is_empty());
        types.variant_members(variant).iter().map(move |member| (name, member))
    });
    let mut list = Vec::new();
    for (number, (variant, member)) in
        (0..).zip(own.chain(variants)).filter(|(_, (_, member))| member.is_placed())
    {
        if depth >= DEPTH_LIMIT {
            return None;
        }
        *budget = budget.checked_sub(1)?;
        let offset = base.saturating_add(member.offset);
        let children = of_type(types, member.ty, offset, depth + 1, budget);
        let name = String::from_utf8_lossy(types.name(member.name));
        list.push(Member {
            number,
            ty: type_text(types, member.ty),
            name: match variant {
                Some(variant) => format!("{}.{name}", String::from_utf8_lossy(variant)),
                None => name.into_owned(),
            },
            offset,
            size: member.size,
            truncated: children.is_none(),
            children: children.unwrap_or_default(),
        });
    }
    Some(list)
}
