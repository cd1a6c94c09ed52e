//! Types field by field: what accesses each byte of a type, how often, how long, from where.

use super::aggregate::Weighing;
use super::members::{Member, fill_room, members};
use super::operand::Operand;
use super::profile::{NONE, Point, Profile};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// How some bytes were accessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Samples.
    pub samples: u64,
    /// What percentages weigh.
    pub total: u64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Samples that do both, which are in either number.
    pub updates: u64,
    /// The sum of what percentages weigh, of stores alone.
    pub stored: u64,
    /// The sum of the weights.
    pub weight: u64,
    /// Where data came from: data sources as recorded, with how many samples.
    pub sources: BTreeMap<u64, u64>,
    /// On which CPUs.
    pub cpus: BTreeSet<u32>,
}

impl Use {
    /// Adds another's.
    pub fn add(&mut self, other: &Use) {
        self.samples += other.samples;
        self.total = self.total.saturating_add(other.total);
        self.loads += other.loads;
        self.stores += other.stores;
        self.updates += other.updates;
        self.stored = self.stored.saturating_add(other.stored);
        self.weight = self.weight.saturating_add(other.weight);
        for (source, samples) in &other.sources {
            *self.sources.entry(*source).or_insert(0) += samples;
        }
        self.cpus.extend(&other.cpus);
    }

    fn count(&mut self, point: &Point, operand: &Operand, weighing: Weighing) {
        let total = weighing.of(point);
        self.samples += point.samples;
        self.total = self.total.saturating_add(total);
        let is_store = is_store(point, operand);
        let is_load = !is_store || is_load(point, operand);
        self.loads += if is_load { point.samples } else { 0 };
        self.updates += if is_load && is_store { point.samples } else { 0 };
        if is_store {
            self.stores += point.samples;
            self.stored = self.stored.saturating_add(total);
        }
        self.weight = self.weight.saturating_add(point.weight.weight.saturating_mul(point.samples));
        if let Some(source) = point.source {
            *self.sources.entry(source.0).or_insert(0) += point.samples;
        }
        if point.cpu != NONE {
            self.cpus.insert(point.cpu);
        }
    }
}

/// Whether an access writes: the hardware says it, or the instruction.
pub fn is_store(point: &Point, operand: &Operand) -> bool {
    match point.source {
        Some(source) if source.is_store() => true,
        Some(source) if source.is_load() => false,
        _ => operand.writes,
    }
}

/// Whether an access reads: the hardware says it, or the instruction. Hardware samples one of the two halves
/// of `addq $1, (mem)`.
fn is_load(point: &Point, operand: &Operand) -> bool {
    match point.source {
        Some(source) if source.is_store() || source.is_load() => source.is_load(),
        _ => operand.reads,
    }
}

/// A type of one file, and how it was accessed.
#[derive(Clone, Debug, Default)]
pub struct TypeUse {
    /// The file that the code is in, by path.
    pub dso: String,
    /// Its build-id, in hexadecimal digits.
    pub build_id: Option<String>,
    /// The type.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its members.
    pub members: Vec<Member>,
    /// For each event with samples, its name and how each offset was accessed.
    pub events: Vec<(String, BTreeMap<u64, Use>)>,
    /// All events together: how one of two offsets was accessed, of which it is not known which it was.
    pub either: BTreeMap<[u64; 2], Use>,
    /// Of a node of a container: the parts that it was accessed through, by name, with how many samples.
    pub parts: BTreeMap<String, u64>,
}

impl TypeUse {
    /// All events together.
    pub fn offsets(&self) -> BTreeMap<u64, Use> {
        let mut all: BTreeMap<u64, Use> = BTreeMap::new();
        for (offset, one) in self.events.iter().flat_map(|(_, offsets)| offsets) {
            all.entry(*offset).or_default().add(one);
        }
        all
    }

    /// How it was accessed as a whole.
    pub fn whole(&self) -> Use {
        let mut whole = Use::default();
        let certain = self.events.iter().flat_map(|(_, offsets)| offsets.values());
        certain.chain(self.either.values()).for_each(|one| whole.add(one));
        whole
    }
}

/// Counts the types that some samples access, those most accessed first. Each file has its own: two
/// programs' types of one name need not be the same.
pub fn annotate(profile: &Profile, weighing: Weighing, accepts: impl Fn(&Point) -> bool) -> Vec<TypeUse> {
    #[derive(Default)]
    struct OfType {
        events: BTreeMap<u32, BTreeMap<u64, Use>>,
        either: BTreeMap<[u64; 2], Use>,
        /// The parts that it was accessed through: their types, and where they start.
        parts: BTreeMap<(u32, u64), u64>,
    }
    let mut found: FxHashMap<u32, OfType> = FxHashMap::default();
    for point in profile.points.iter().filter(|point| accepts(point)) {
        let Some(operand) = profile.outcome(point).operand() else { continue };
        // a node is one object, whichever of its parts the code knows
        let (ty, start) = operand.within.map_or((operand.ty, 0), |node| (node.ty, node.start));
        let of_type = found.entry(ty).or_default();
        if operand.within.is_some() {
            *of_type.parts.entry((operand.ty, start)).or_insert(0) += point.samples;
        }
        // also an event that only has such samples is named
        let offsets = of_type.events.entry(point.event).or_default();
        let one = match operand.or {
            None => offsets.entry(start.saturating_add(operand.offset)).or_default(),
            Some(or) => {
                of_type.either.entry([operand.offset, or].map(|at| start.saturating_add(at))).or_default()
            }
        };
        one.count(point, operand, weighing);
    }
    // units have types of their own that are the same
    let mut merged: BTreeMap<(u32, String, u64), (TypeUse, OfType)> = BTreeMap::new();
    for (ty, of_events) in found {
        let (Some(dso), Some((table, id))) = (profile.joined.types.get(ty as usize), profile.joined.get(ty))
        else {
            continue;
        };
        let name = tallyline_layout::print::type_text(table.types(), id);
        let size = tallyline_layout::query::size_of(table.types(), id);
        let (of_type, known) = merged.entry((dso.0, name.clone(), size)).or_insert_with(|| {
            let file = profile.dso(dso.0);
            let of_type = TypeUse {
                dso: file.map_or_else(String::new, |dso| dso.path.clone()),
                build_id: file.and_then(|dso| dso.build_id).map(|id| id.to_string()),
                name,
                size,
                members: members(table.types(), id),
                events: Vec::new(),
                either: BTreeMap::new(),
                parts: BTreeMap::new(),
            };
            (of_type, OfType::default())
        });
        for ((part, start), samples) in of_events.parts {
            let Some((table, id)) = profile.joined.get(part) else { continue };
            let name = tallyline_layout::print::type_text(table.types(), id);
            fill_room(&mut of_type.members, start, &name, table.types(), id);
            *of_type.parts.entry(name).or_insert(0) += samples;
        }
        for (event, offsets) in of_events.events {
            let known = known.events.entry(event).or_default();
            offsets.iter().for_each(|(offset, one)| known.entry(*offset).or_default().add(one));
        }
        for (offsets, one) in &of_events.either {
            known.either.entry(*offsets).or_default().add(one);
        }
    }
    let mut list: Vec<TypeUse> =
        merged.into_values().map(|(of_type, of)| named(profile, of_type, of.events, of.either)).collect();
    list.sort_by_cached_key(|of_type| (std::cmp::Reverse(of_type.whole().total), of_type.name.clone()));
    list
}

fn named(
    profile: &Profile,
    of_type: TypeUse,
    events: BTreeMap<u32, BTreeMap<u64, Use>>,
    either: BTreeMap<[u64; 2], Use>,
) -> TypeUse {
    let name =
        |event: u32| profile.events.get(event as usize).map_or_else(String::new, |event| event.name.clone());
    let events = events.into_iter().map(|(event, offsets)| (name(event), offsets)).collect();
    TypeUse { events, either, ..of_type }
}
