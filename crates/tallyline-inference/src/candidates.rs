//! Candidate fields of an access: members of unions and of variants overlap, and bitfields share bytes.
//!
//! Every field that covers the first byte of an access is a candidate. The order is fixed for each type and offset,
//! so that a set of candidates is a set of positions. The access size, the bits that are used and the facts about
//! enum tags remove candidates.

use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::{Member, Record, Type, TypeId, Types};

/// The maximum nesting depth of members; what lies deeper is left out.
const DEPTH_LIMIT: usize = 32;

/// The maximum number of candidates of one access; all beyond it count as possible.
const LIMIT: usize = 64;

/// The set of all candidates.
pub(super) const ALL: u64 = u64::MAX;

/// The enum variant that a candidate is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VariantMembership {
    /// The tag that selects the variant; none for an enum of one variant.
    pub(super) tag: Option<Tag>,
    /// The value of the tag; none for the variant that all other values select.
    pub(super) value: Option<u64>,
    /// The enum: its type and its offset in the object.
    of: (TypeId, u64),
}

/// The tag of an enum, which selects the variant of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// The offset in the object.
    pub(super) offset: u64,
    /// The size in bytes.
    pub(super) size: u8,
    /// The values that select variants, sorted.
    pub(super) values: Vec<u64>,
}

/// A field at the first byte of an access.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The path of the field; empty if there is none.
    pub(super) path: String,
    /// The member at each level, as the reports' `Member::number` counts them, down to the first array.
    pub(super) trail: Vec<u32>,
    /// The variants around the field, outermost first.
    variants: Vec<VariantMembership>,
    /// The tag, if the field is one.
    pub(super) tag: Option<Tag>,
    // the enum whose tag it is, if others lie there too, with all of its variants
    tag_of: Option<((TypeId, u64), Vec<VariantMembership>)>,
    // the bits of the object, if it is a bitfield
    bits: Option<(u64, u64)>,
    rank: SizeMatch,
}

/// The match between the size of an access and that of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SizeMatch {
    /// The field has the size.
    Field,
    /// A record or an array that starts with the field has the size.
    Whole,
    /// No object that starts there has the size.
    None,
}

impl Candidate {
    /// Returns true if the field has the size of the access and is not a bitfield.
    pub(super) fn is_field(&self) -> bool {
        self.rank == SizeMatch::Field && self.bits.is_none()
    }

    /// Returns true for a bitfield.
    pub(super) fn is_bitfield(&self) -> bool {
        self.bits.is_some()
    }
}

/// Returns the candidates at an offset of an object for an access of a size; 0 for an unknown size.
pub(super) fn candidates(types: &Types, ty: TypeId, offset: u64, size: u64) -> Vec<Candidate> {
    let mut walk = CandidateWalk {
        types,
        size,
        found: Vec::new(),
        path: Vec::new(),
        trail: Vec::new(),
        arrays: 0,
        variants: Vec::new(),
    };
    walk.go(ty, offset, 0, SizeMatch::None, 0);
    walk.found
}

/// Returns those of some candidates that an access can be of. `bits` are those of the access that its value
/// depends on, if they are known; `is_possible` says whether the object can be of a variant.
pub(super) fn possible(
    all: &[Candidate],
    offset: u64,
    bits: Option<u64>,
    is_possible: impl Fn(&VariantMembership) -> bool,
) -> u64 {
    if all.len() < 2 {
        return ALL;
    }
    let uses = |candidate: &Candidate| match (candidate.bits, bits) {
        (Some((start, count)), Some(bits)) => {
            let first = offset.saturating_mul(8);
            (start..start.saturating_add(count))
                .any(|bit| bit.checked_sub(first).is_some_and(|bit| bit < 64 && bits & (1 << bit) != 0))
        }
        _ => true,
    };
    let mut kept: Vec<usize> = (0..all.len())
        .filter(|index| uses(&all[*index]) && all[*index].variants.iter().all(&is_possible))
        .collect();
    if kept.is_empty() {
        // what contradicts itself proves nothing
        kept = (0..all.len()).collect();
    }
    for index in 0..all.len() {
        let Some((of, variants)) = &all[index].tag_of else { continue };
        let of_enum = |other: &usize| all[*other].variants.iter().any(|variant| variant.of == *of);
        let is_proven = variants.iter().filter(|variant| is_possible(variant)).count() == 1;
        if is_proven && kept.iter().any(of_enum) {
            kept.retain(|other| *other != index);
        } else if all[index].rank == SizeMatch::Field && kept.contains(&index) {
            // the tag in bytes of a variant: which variant it is nothing has said yet
            kept.retain(|other| *other == index || !of_enum(other));
        } else if kept.iter().any(of_enum) {
            kept.retain(|other| *other != index);
        }
    }
    let best = kept.iter().map(|index| all[*index].rank).min().unwrap_or(SizeMatch::None);
    kept.retain(|index| all[*index].rank == best);
    let beyond = if all.len() >= 64 { 1 << 63 } else { 0 };
    kept.iter().filter(|index| **index < 64).fold(beyond, |set, index| set | 1 << index)
}

/// Returns the paths of some candidates, each once; empty ones are left out.
pub(super) fn paths(all: &[Candidate], set: u64) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for (index, candidate) in all.iter().enumerate() {
        let is_in = set & (1_u64.checked_shl(index as u32).unwrap_or(1 << 63)) != 0;
        if is_in && !candidate.path.is_empty() && !paths.contains(&candidate.path.as_str()) {
            paths.push(&candidate.path);
        }
    }
    paths
}

/// Returns the paths to the members that some candidates are, each once.
pub(super) fn trails(all: Vec<Candidate>, set: u64) -> Vec<Vec<u32>> {
    let is_in = |index: usize| set & (1_u64.checked_shl(index as u32).unwrap_or(1 << 63)) != 0;
    let chosen = all.into_iter().enumerate().filter(|(index, _)| is_in(*index));
    let mut trails: Vec<Vec<u32>> = chosen.map(|(_, candidate)| candidate.trail).collect();
    trails.sort_unstable();
    trails.dedup();
    trails
}

struct CandidateWalk<'t> {
    types: &'t Types,
    size: u64,
    found: Vec<Candidate>,
    path: Vec<String>,
    trail: Vec<u32>,
    // how many arrays the walk is in
    arrays: usize,
    variants: Vec<VariantMembership>,
}

impl CandidateWalk<'_> {
    /// Adds what lies at an offset of a part, which is itself `base` bytes behind the object's start.
    fn go(&mut self, ty: TypeId, offset: u64, base: u64, outer: SizeMatch, depth: usize) {
        if self.found.len() >= LIMIT {
            return;
        }
        let types = self.types;
        let ty = types.strip(ty);
        let is_whole = self.size != 0 && offset == 0 && abi::size_of(types, ty) == self.size;
        let rank = if is_whole { SizeMatch::Whole } else { outer };
        let parts = self.found.len();
        match types.get(ty) {
            _ if depth > DEPTH_LIMIT => {}
            Type::Record(id) => {
                let record = types.record(id);
                let all = types.members(record);
                for member in self.members(all, offset) {
                    self.member(number_of(all, member), member, offset, base, rank, depth);
                }
                self.variants(ty, record, offset, base, rank, depth);
            }
            Type::Array(array) => {
                let element = types.array(array).of;
                let size = abi::size_of(types, element);
                self.path.push("[]".to_owned());
                self.arrays += 1;
                if size == 0 {
                    self.leaf(rank, None);
                } else {
                    let inside = offset % size;
                    self.go(element, inside, base + (offset - inside), rank, depth + 1);
                }
                self.arrays -= 1;
                self.path.pop();
            }
            _ if is_whole => self.leaf(SizeMatch::Field, None),
            // the bytes behind the first of a number are what compilers load that use only those
            Type::Base { name, bits }
                if offset != 0
                    && offset.saturating_add(self.size) <= u64::from(bits / 8)
                    && !is_float(types.name(name)) =>
            {
                self.leaf(SizeMatch::Field, None);
            }
            _ => self.leaf(rank, None),
        }
        if self.found.len() == parts {
            self.leaf(rank, None);
        }
    }

    /// Returns the members that lie at an offset. Of bitfields all that share bits with the access.
    fn members<'m>(&self, members: &'m [Member], offset: u64) -> Vec<&'m Member> {
        let types = self.types;
        let is_at = |member: &Member| {
            let open = member.size == 0 && matches!(types.get(types.strip(member.ty)), Type::Array(_));
            offset.checked_sub(member.offset).is_some_and(|inside| inside < member.size || open)
        };
        let takes = |member: &&Member| member.takes_bytes();
        let is_bitfield =
            members.iter().filter(takes).any(|member| member.bitfield.is_some() && is_at(member));
        let (first, end) =
            (offset.saturating_mul(8), offset.saturating_add(self.size.max(1)).saturating_mul(8));
        let shares = |member: &&Member| match member.bitfield {
            Some(bits) if is_bitfield => {
                member.bit_offset < end && first < member.bit_offset.saturating_add(bits.size.into())
            }
            _ => is_at(member),
        };
        let found: Vec<&Member> = members.iter().filter(takes).filter(shares).collect();
        match found.is_empty() {
            true => members.iter().filter(takes).filter(|member| is_at(member)).collect(),
            false => found,
        }
    }

    fn member(
        &mut self,
        number: u32,
        member: &Member,
        offset: u64,
        base: u64,
        rank: SizeMatch,
        depth: usize,
    ) {
        let (depth_of_path, depth_of_trail) = (self.path.len(), self.trail.len());
        self.step(number);
        if !member.is_base() && member.name.is_some() {
            self.path.push(String::from_utf8_lossy(self.types.name(member.name)).into_owned());
        }
        match member.bitfield {
            Some(bits) => {
                let start = base.saturating_mul(8).saturating_add(member.bit_offset);
                self.leaf(SizeMatch::Field, Some((start, bits.size.into())));
            }
            None => {
                let at = base.saturating_add(member.offset);
                self.go(member.ty, offset.saturating_sub(member.offset), at, rank, depth + 1);
            }
        }
        self.path.truncate(depth_of_path);
        self.trail.truncate(depth_of_trail);
    }

    /// Goes to a member; those of elements of an array have no row of their own.
    fn step(&mut self, number: u32) {
        if self.arrays == 0 {
            self.trail.push(number);
        }
    }

    fn variants(
        &mut self,
        ty: TypeId,
        record: &Record,
        offset: u64,
        base: u64,
        rank: SizeMatch,
        depth: usize,
    ) {
        let types = self.types;
        let variants = types.variants(record);
        let of = (ty, base);
        let tag = types.tag(record).filter(|tag| (1..=8).contains(&tag.size)).map(|tag| Tag {
            offset: base.saturating_add(tag.offset),
            size: tag.size as u8,
            values: variants.iter().filter_map(|variant| Some(narrow(variant.tag?, tag.size))).collect(),
        });
        let in_variant = |value: Option<i128>| {
            let value = value.zip(tag.as_ref()).map(|(value, tag)| narrow(value, tag.size.into()));
            VariantMembership { tag: tag.clone(), value, of }
        };
        let before = self.found.len();
        // the tag is counted behind the members, and those of variants behind it
        let tag_number = types.members(record).len() as u32;
        let mut first = tag_number + u32::from(types.tag(record).is_some());
        for variant in variants {
            let depth_of_path = self.path.len();
            if variants.len() > 1 && variant.name.is_some() {
                self.path.push(String::from_utf8_lossy(types.name(variant.name)).into_owned());
            }
            self.variants.push(in_variant(variant.tag));
            let all = types.variant_members(variant);
            for member in self.members(all, offset) {
                self.member(first + number_of(all, member), member, offset, base, rank, depth);
            }
            first += all.len() as u32;
            self.variants.pop();
            self.path.truncate(depth_of_path);
        }
        let Some(member) = types.tag(record) else { return };
        let Some(inside) = offset.checked_sub(member.offset).filter(|inside| *inside < member.size) else {
            return;
        };
        let is_alone = self.found.len() == before;
        let is_start = inside == 0 && self.size <= member.size;
        let depth_of_trail = self.trail.len();
        self.step(tag_number);
        self.leaf(if is_start { SizeMatch::Field } else { rank }, None);
        self.trail.truncate(depth_of_trail);
        if let Some(leaf) = self.found.last_mut() {
            let all = || variants.iter().map(|variant| in_variant(variant.tag)).collect();
            leaf.tag_of = (!is_alone).then(|| (of, all()));
            leaf.tag = tag;
        }
    }

    fn leaf(&mut self, rank: SizeMatch, bits: Option<(u64, u64)>) {
        if self.found.len() >= LIMIT {
            return;
        }
        let mut path = String::new();
        for part in &self.path {
            if !path.is_empty() && part != "[]" {
                path.push('.');
            }
            path.push_str(part);
        }
        self.found.push(Candidate {
            path,
            trail: self.trail.clone(),
            variants: self.variants.clone(),
            tag: None,
            tag_of: None,
            bits,
            rank,
        });
    }
}

/// Returns true if a base type's name is that of a floating-point type.
fn is_float(name: &[u8]) -> bool {
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    has(b"float") || has(b"double") || matches!(name, b"f16" | b"f32" | b"f64" | b"f128")
}

/// Returns the index of a member among its siblings.
fn number_of(all: &[Member], member: &Member) -> u32 {
    all.iter().position(|one| std::ptr::eq(one, member)).unwrap_or_default() as u32
}

/// Returns the bit pattern of a tag in memory.
fn narrow(value: i128, size: u64) -> u64 {
    value as u64 & mask(size)
}

/// Returns the mask of the lowest bytes of a word.
pub(super) fn mask(size: u64) -> u64 {
    if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 }
}
