//! Objects that programs publish, and the parts of a type that may coincide.

use std::collections::BTreeMap;
use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::{Type, TypeId, Types};
use tallyline_debuginfo::type_text;

/// Objects that a program published, by address.
pub(crate) struct Objects {
    by_address: BTreeMap<u64, Published>,
    /// The address of the program's counter of published objects.
    pub(crate) counted_at: u64,
}

/// Objects published in one call.
struct Published {
    end: u64,
    size: u64,
    ty: String,
    /// The number of publications up to and including this one.
    count: usize,
}

impl Objects {
    pub(crate) fn parse(text: &str) -> Self {
        let mut objects = Objects { by_address: BTreeMap::new(), counted_at: 0 };
        for (count, line) in text.lines().enumerate() {
            let mut words = line.split('\t');
            let ty = simple(words.next().expect("a type"));
            let first = words.next().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
            let first = first.expect("an address");
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
            let (size, length) = (number(), number());
            if count == 0 {
                objects.counted_at = first;
            } else {
                let end = first + size * length;
                objects.by_address.insert(first, Published { end, size, ty, count });
            }
        }
        objects
    }

    /// Returns the size of objects of a type.
    pub(crate) fn size_of(&self, wanted: &str) -> Option<u64> {
        self.by_address.values().find(|published| published.ty == wanted).map(|published| published.size)
    }

    /// Returns the type and the offset of an address, when so many have been published.
    pub(crate) fn at(&self, address: u64, count: usize) -> Option<(&str, u64)> {
        let (first, published) = self.by_address.range(..=address).next_back()?;
        let is_there = address < published.end && published.count <= count;
        is_there.then(|| (published.ty.as_str(), (address - first) % published.size))
    }
}

/// Returns a type's name without what languages put in front of it: `struct `, scopes; without blanks.
pub(crate) fn simple(name: &str) -> String {
    let name: String = name.replace("struct ", "").replace("class ", "").replace("union ", "");
    let scopes = name.split_once('<').map_or(name.as_str(), |(before, _)| before);
    let start = scopes.rfind([':', '.', '/']).map_or(0, |end| end + 1);
    name[start..].replace("UL>", ">").replace(' ', "")
}

/// An access path from a type to a leaf at an offset: each type, and the offset in it. Arrays are left out: an
/// element stands for any of them.
pub(crate) type AccessPath = Vec<(String, u64)>;

/// Returns the access paths to the leaves at an offset, through unions and variants.
pub(crate) fn access_paths(types: &Types, ty: TypeId, offset: u64) -> Vec<AccessPath> {
    let ty = types.strip(ty);
    let name = simple(&type_text(types, ty));
    let below: Vec<(TypeId, u64)> = match types.get(ty) {
        Type::Record(record) => {
            let record = types.record(record);
            let variants = types.variants(record).iter().flat_map(|variant| types.variant_members(variant));
            let members = types.members(record).iter().chain(variants).chain(types.tag(record));
            members
                .filter(|member| member.takes_bytes())
                .filter_map(|member| {
                    let inside = offset.checked_sub(member.offset)?;
                    (inside < member.size).then_some((member.ty, inside))
                })
                .collect()
        }
        Type::Array(array) => {
            let of = types.array(array).of;
            vec![(of, offset % abi::size_of(types, of).max(1))]
        }
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    let is_array = matches!(types.get(ty), Type::Array(_));
    for (part, inside) in below {
        for mut path in access_paths(types, part, inside) {
            // an element stands for all, and for the array
            if !is_array {
                path.insert(0, (name.clone(), offset - inside + path[0].1));
            }
            found.push(path);
        }
    }
    if found.is_empty() {
        found.push(vec![(name, offset)]);
    }
    found
}

/// Returns true if two parts may coincide: an access path to one ends with one to the other.
pub(crate) fn agree(one: &[AccessPath], other: &[AccessPath]) -> bool {
    one.iter().any(|one| other.iter().any(|other| one.ends_with(other) || other.ends_with(one)))
}
