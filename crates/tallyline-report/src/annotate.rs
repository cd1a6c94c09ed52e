//! Types field by field: what accesses each byte of a type, how often, how long, from where.

use super::aggregate::Weighing;
use super::ambiguous_names::element_of;
use super::index::JoinedId;
use super::members::{Member, fill_room, members, path_to_part};
use super::operand::Operand;
use super::profile::Profile;
use super::samples::SampleGroup;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use tallyline_debuginfo::abi;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::type_text;
use tallyline_inference::members_of;
use tallyline_perf_data::spaces::DsoId;

#[cfg(test)]
mod tests;

/// Statistics of the sampled accesses to some bytes of a type: samples, reads and writes, weights, data sources,
/// CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub(crate) samples: u64,
    pub(crate) total: u64,
    pub(crate) loads: u64,
    pub(crate) stores: u64,
    pub(crate) updates: u64,
    pub(crate) stored: u64,
    pub(crate) weight: u64,
    pub(crate) sources: BTreeMap<u64, u64>,
    pub(crate) cpus: BTreeSet<u32>,
}

impl Use {
    /// Creates statistics from the number of samples that read and of those that write (`loads`, `stores`), and the
    /// weight of each (`loaded`, `stored`).
    pub fn of_reads_and_writes(loads: u64, stores: u64, loaded: u64, stored: u64) -> Use {
        let (samples, total) = (loads.saturating_add(stores), loaded.saturating_add(stored));
        Use { samples, total, loads, stores, stored, ..Use::default() }
    }

    /// Returns the number of sampled accesses to these bytes of a type.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the amount that percentages are computed from: the sum of the sampled accesses' periods or weights, by
    /// the report's [`Weighing`].
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of sampled accesses that read these bytes of a type, read-modify-writes included.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// Returns the number of sampled accesses that write these bytes of a type, read-modify-writes included.
    pub fn stores(&self) -> u64 {
        self.stores
    }

    /// Returns the number of sampled read-modify-writes of these bytes of a type; they are counted in both
    /// [`loads`](Self::loads) and [`stores`](Self::stores).
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns the part of [`total`](Self::total), the sum of periods or weights, that belongs to accesses that write.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Returns the sum of the recorded latencies (perf's `weight`), in cycles, of all sampled accesses to these bytes
    /// of a type; 0 where none were recorded.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the numbers of sampled accesses to these bytes of a type by recorded data source word
    /// (`PERF_SAMPLE_DATA_SRC`).
    pub fn sources(&self) -> &BTreeMap<u64, u64> {
        &self.sources
    }

    /// Returns the CPUs on which accesses to these bytes of a type were sampled; empty if CPUs were not recorded or not
    /// kept.
    pub fn cpus(&self) -> &BTreeSet<u32> {
        &self.cpus
    }

    /// Adds the statistics of other sampled accesses to these.
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

    fn count(&mut self, group: &SampleGroup, operand: &Operand, weighing: Weighing) {
        let total = weighing.of(group);
        self.samples += group.samples;
        self.total = self.total.saturating_add(total);
        let is_store = is_store(group, operand);
        let is_load = !is_store || is_load(group, operand);
        self.loads += if is_load { group.samples } else { 0 };
        self.updates += if is_load && is_store { group.samples } else { 0 };
        if is_store {
            self.stores += group.samples;
            self.stored = self.stored.saturating_add(total);
        }
        self.weight = self.weight.saturating_add(group.weight.weight().saturating_mul(group.samples));
        if let Some(source) = group.source {
            *self.sources.entry(source.0).or_insert(0) += group.samples;
        }
        self.cpus.extend(group.cpu);
    }
}

/// Returns `true` if a sampled access writes: by the sample's data source if it says so, else by its instruction.
pub fn is_store(group: &SampleGroup, operand: &Operand) -> bool {
    match group.source {
        Some(source) if source.is_store() => true,
        Some(source) if source.is_load() => false,
        _ => operand.writes,
    }
}

/// Returns `true` if a sampled access reads: by the sample's data source if it says so, else by its instruction.
/// Hardware samples one of the two halves of `addq $1, (mem)`.
fn is_load(group: &SampleGroup, operand: &Operand) -> bool {
    match group.source {
        Some(source) if source.is_store() || source.is_load() => source.is_load(),
        _ => operand.reads,
    }
}

/// A type in one program and the sampled accesses to it, by offset, by member and by sampled event (such as `cycles`).
#[derive(Clone, Debug, Default)]
pub struct TypeUse {
    pub(crate) dso: String,
    pub(crate) build_id: Option<String>,
    pub(crate) name: String,
    /// The name with scopes and without a keyword, of an array that of its elements; empty if it is not known.
    pub(crate) qualified: String,
    pub(crate) element: Option<String>,
    pub(crate) size: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) place: Option<String>,
    pub(crate) events: Vec<(String, BTreeMap<u64, Use>)>,
    pub(crate) rows: BTreeMap<Row, Use>,
    pub(crate) either: BTreeMap<[u64; 2], Use>,
    pub(crate) parts: BTreeMap<String, u64>,
}

impl TypeUse {
    /// Describes a type of `size` bytes in a program (path, build-id) with the accesses to each offset, for each
    /// event by name. `place` is the source position of the definition, `members` are its members.
    pub fn new(
        (dso, build_id): (String, Option<String>),
        name: String,
        size: u64,
        place: Option<String>,
        members: Vec<Member>,
        events: Vec<(String, BTreeMap<u64, Use>)>,
    ) -> TypeUse {
        let mut made = TypeUse { dso, build_id, events, name, size, place, members, ..TypeUse::default() };
        made.fill_rows();
        made
    }

    /// Returns the path of the program or library whose code accesses the type.
    pub fn dso(&self) -> &str {
        &self.dso
    }

    /// Returns the build-id in hexadecimal of the program or library whose code accesses the type; `None` if it is not
    /// known.
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// Returns the name of the accessed type; with its scopes if other sampled types have the same without.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the type with its scopes and without a keyword, such as `ns::T`; of an array of structs, that
    /// of an element. Empty for types without a name, and if only the document of a recording is known.
    pub fn qualified_name(&self) -> &str {
        &self.qualified
    }

    /// Returns the element type's name if the accessed type is an array of structs; size, members and offsets are
    /// then those of one element. `None` for other types.
    pub fn element(&self) -> Option<&str> {
        self.element.as_deref()
    }

    /// Returns the size of the type in bytes; of an array of structs, that of an element.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the members of the type; of an array of structs, those of an element.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the source position of the type's definition, such as `file.c:12`; `None` unless other sampled types
    /// of the program have the same name.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Returns, for each sampled event with samples of the type, its name and the sampled accesses by offset in the
    /// type.
    pub fn events(&self) -> &[(String, BTreeMap<u64, Use>)] {
        &self.events
    }

    /// Returns the type with the samples of one event (such as `cycles`) alone; `None` if it has no samples of that.
    /// Those at one of two offsets, which are not kept by event, are left out.
    pub fn of_event(&self, event: &str) -> Option<TypeUse> {
        let events: Vec<_> = self.events.iter().filter(|(name, _)| name == event).cloned().collect();
        let (rows, either) = (BTreeMap::new(), BTreeMap::new());
        let mut made = (!events.is_empty()).then(|| TypeUse { events, rows, either, ..self.clone() })?;
        made.fill_rows();
        Some(made)
    }

    /// Returns the sampled accesses, over all sampled events, by the members that they may belong to.
    pub fn rows(&self) -> &BTreeMap<Row, Use> {
        &self.rows
    }

    /// Returns those sampled accesses, over all sampled events, for which only two possible offsets are known, by that
    /// pair of offsets.
    pub fn either(&self) -> &BTreeMap<[u64; 2], Use> {
        &self.either
    }

    /// Returns, for the type of a container's node (of a list, tree or map), the numbers of samples that accessed
    /// objects embedded in it, by the objects' type name; empty for other types.
    pub fn parts(&self) -> &BTreeMap<String, u64> {
        &self.parts
    }
}

/// An offset in a type at which sampled accesses begin, with the members that they may belong to: usually one; several
/// where members of unions, variants or bitfields share the accessed bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub(crate) offset: u64,
    pub(crate) members: Vec<Vec<u32>>,
}

impl Row {
    /// Returns the offset in bytes in the accessed type at which the access begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the members that the access may belong to, each as a path of member numbers from the type inwards;
    /// an empty path stands for bytes of no member.
    pub fn members(&self) -> &[Vec<u32>] {
        &self.members
    }
}

impl Row {
    /// Returns the path (member numbers from the type inwards) of the innermost member that surely contains the access:
    /// the common prefix of all possible ones.
    pub(crate) fn common(&self) -> &[u32] {
        let Some((first, others)) = self.members.split_first() else { return &[] };
        let shared = |other: &Vec<u32>| first.iter().zip(other).take_while(|(a, b)| a == b).count();
        &first[..others.iter().map(shared).min().unwrap_or(first.len())]
    }

    /// Returns `true` if the access may belong to more than one member.
    pub(crate) fn is_open(&self) -> bool {
        self.members.len() > 1
    }
}

impl TypeUse {
    /// Computes the sampled accesses by member ([`rows`](Self::rows)) from those by offset ([`events`](Self::events)).
    pub fn fill_rows(&mut self) {
        for (offset, one) in self.events.iter().flat_map(|(_, offsets)| offsets) {
            let row = Row { offset: *offset, members: paths_at(&self.members, *offset) };
            self.rows.entry(row).or_default().add(one);
        }
    }

    /// Returns the statistics of the sampled accesses that surely belong to the member at a path (member numbers from
    /// the type inwards), its own members included.
    pub fn of_member(&self, path: &[u32]) -> Use {
        let mut sum = Use::default();
        self.rows.iter().filter(|(row, _)| row.common().starts_with(path)).for_each(|(_, one)| sum.add(one));
        sum
    }

    /// Returns the sampled accesses that belong to one of several members of the member at a path (member numbers from
    /// the type inwards), without it being known to which; an empty path means the type itself.
    pub fn open_in(&self, path: &[u32]) -> impl Iterator<Item = (&Row, &Use)> {
        self.rows.iter().filter(move |(row, _)| row.is_open() && row.common() == path)
    }

    /// Returns the sampled accesses to the type as a whole, over all offsets and sampled events.
    pub fn whole(&self) -> Use {
        let mut whole = Use::default();
        let certain = self.events.iter().flat_map(|(_, offsets)| offsets.values());
        certain.chain(self.either.values()).for_each(|one| whole.add(one));
        whole
    }
}

/// Counts the sampled accesses to each type, by offset and member, in the samples that `accepts` admits; the most
/// accessed type comes first. Types of different programs stay apart, and so do different types of one name within a
/// program.
pub fn annotate(
    profile: &Profile,
    weighing: Weighing,
    accepts: impl Fn(&SampleGroup) -> bool,
) -> Vec<TypeUse> {
    let mut found: FxHashMap<JoinedId, OfType> = FxHashMap::default();
    let mut elements: FxHashMap<JoinedId, Option<u64>> = FxHashMap::default();
    for group in profile.groups().iter().filter(|group| accepts(group)) {
        let Some(operand) = profile.outcome(group).operand() else { continue };
        // a node is one object, whichever of its parts the code knows
        let (ty, start) = operand.within.map_or((operand.ty, 0), |node| (node.ty, node.start));
        // of an array each element is an object
        let element = *elements.entry(ty).or_insert_with(|| {
            let (table, id) = profile.joined().get(ty)?;
            Some(abi::size_of(table.types(), element_of(table.types(), id)?)).filter(|size| *size > 0)
        });
        let of_type = found.entry(ty).or_default();
        if operand.within.is_some() {
            *of_type.parts.entry((operand.ty, start)).or_insert(0) += group.samples;
        }
        // also an event that only has such samples is named
        let offsets = of_type.events.entry(group.event).or_default();
        let in_object = |offset: u64| {
            let offset = start.saturating_add(offset);
            element.map_or(offset, |size| offset % size)
        };
        let offset = in_object(operand.offset);
        match operand.or {
            None => {
                offsets.entry(offset).or_default().count(group, operand, weighing);
                let field = Field {
                    part: (operand.ty, start),
                    // a node is no array
                    offset: if element.is_some() { offset } else { operand.offset },
                    size: operand.size,
                    candidates: operand.candidates,
                };
                of_type.fields.entry(field).or_default().count(group, operand, weighing);
            }
            Some(or) => {
                let both = [offset, in_object(or)];
                of_type.either.entry(both).or_default().count(group, operand, weighing);
            }
        }
    }
    let mut list = merge(profile, found);
    let mut names: BTreeMap<(String, String), u32> = BTreeMap::new();
    for of_type in &list {
        *names.entry((of_type.dso.clone(), of_type.name.clone())).or_default() += 1;
    }
    for of_type in &mut list {
        if names.get(&(of_type.dso.clone(), of_type.name.clone())) == Some(&1) {
            of_type.place = None;
        }
    }
    list
}

/// A type of one unit.
#[derive(Default)]
struct OfType {
    events: BTreeMap<u32, BTreeMap<u64, Use>>,
    fields: FxHashMap<Field, Use>,
    either: BTreeMap<[u64; 2], Use>,
    /// The parts that it was accessed through: their types, and where they start.
    parts: BTreeMap<(JoinedId, u64), u64>,
}

/// A part of a type that was accessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Field {
    /// The type and where it starts in the object.
    part: (JoinedId, u64),
    offset: u64,
    size: u16,
    candidates: u64,
}

/// The file, name with scopes, size and hashed content of a type: units whose types agree in these have one type.
type MergeKey = (DsoId, String, u64, (u64, u64));

/// Puts those types together that several units have, those most accessed first.
fn merge(profile: &Profile, found: FxHashMap<JoinedId, OfType>) -> Vec<TypeUse> {
    let mut definitions: FxHashMap<DsoId, Definitions<'_>> = FxHashMap::default();
    let mut merged: FxHashMap<MergeKey, (TypeUse, Events)> = FxHashMap::default();
    for (ty, of_unit) in found {
        let (Some((dso, _)), Some((table, id))) = (profile.joined().source(ty), profile.joined().get(ty))
        else {
            continue;
        };
        let types = table.types();
        let definitions = definitions.entry(dso).or_insert_with(|| Definitions::new(types));
        let whole_name = profile.joined().qualified_name(ty);
        let element = element_of(types, id);
        let (own, id) = (id, element.unwrap_or(id));
        let size = abi::size_of(types, id);
        let is_record = types.as_record(types.strip(id)).is_some();
        let content = if is_record { definitions.content(id) } else { Default::default() };
        let (of_type, events) = merged.entry((dso, whole_name, size, content)).or_insert_with(|| {
            let file = profile.dso(dso);
            let text = |id: TypeId| profile.joined().ambiguous.text(types, id);
            let of_type = TypeUse {
                dso: file.map_or_else(String::new, |dso| dso.path().to_owned()),
                build_id: file.and_then(|dso| dso.build_id()).map(|id| id.to_string()),
                qualified: String::from_utf8_lossy(&types.qualified_name(id)).into_owned(),
                name: text(own),
                element: element.map(text),
                size,
                members: members(types, id),
                ..TypeUse::default()
            };
            (of_type, Events::new())
        });
        // of several units that define the same the first by name, whatever their order
        let place = definitions.place(id).filter(|_| is_record);
        of_type.place = [of_type.place.take(), place].into_iter().flatten().min();
        of_type.add(profile, events, of_unit);
    }
    let name = |event: u32| {
        profile.info().events.get(event as usize).map_or_else(String::new, |event| event.name.clone())
    };
    let with_events = |(of_type, events): (TypeUse, Events)| {
        let events = events.into_iter().map(|(event, offsets)| (name(event), offsets)).collect();
        TypeUse { events, ..of_type }
    };
    let mut list: Vec<TypeUse> = merged.into_values().map(with_events).collect();
    list.sort_by_cached_key(|of_type| {
        let definition = (of_type.place.clone(), of_type.size, of_type.members.clone());
        let total = std::cmp::Reverse(of_type.whole().total);
        (total, of_type.name.clone(), of_type.dso.clone(), definition)
    });
    list
}

/// The accesses to each offset, by event.
type Events = BTreeMap<u32, BTreeMap<u64, Use>>;

impl TypeUse {
    /// Adds what one unit has of the type.
    fn add(&mut self, profile: &Profile, events: &mut Events, of_unit: OfType) {
        for ((part, start), samples) in of_unit.parts {
            let Some((table, id)) = profile.joined().get(part) else { continue };
            fill_room(&mut self.members, start, &type_text(table.types(), id), table.types(), id);
            *self.parts.entry(profile.joined().name(part)).or_insert(0) += samples;
        }
        for (event, offsets) in of_unit.events {
            let known = events.entry(event).or_default();
            offsets.iter().for_each(|(offset, one)| known.entry(*offset).or_default().add(one));
        }
        for (offsets, one) in &of_unit.either {
            self.either.entry(*offsets).or_default().add(one);
        }
        for (field, one) in &of_unit.fields {
            let row = self.row(profile, field);
            self.rows.entry(row).or_default().add(one);
        }
    }

    fn row(&self, profile: &Profile, field: &Field) -> Row {
        let start = field.part.1;
        let offset = start.saturating_add(field.offset);
        let members = self.paths(profile, field).unwrap_or_else(|| paths_at(&self.members, offset));
        Row { offset, members }
    }

    /// Returns the paths to the members that an access can be of; none where the part is not a member.
    fn paths(&self, profile: &Profile, field: &Field) -> Option<Vec<Vec<u32>>> {
        let (part, start) = field.part;
        let (table, id) = profile.joined().get(part)?;
        let types = table.types();
        let element = element_of(types, id);
        let paths = members_of(types, element.unwrap_or(id), field.offset, field.size, field.candidates);
        if start == 0 && self.name == profile.joined().name(part) {
            return Some(paths);
        }
        let before = path_to_part(&self.members, start, &type_text(types, id))?;
        Some(paths.into_iter().map(|path| before.iter().copied().chain(path).collect()).collect())
    }
}

/// Returns the paths to the innermost members that have a byte. Bases without members lie on top of others, and
/// nothing accesses them.
fn paths_at(members: &[Member], offset: u64) -> Vec<Vec<u32>> {
    let has = |member: &&Member| member.offset <= offset && offset - member.offset < member.size;
    let is_empty_base = |member: &Member| member.name.is_empty() && member.children.is_empty();
    let mut found: Vec<&Member> = members.iter().filter(has).collect();
    if found.iter().any(|member| !is_empty_base(member)) {
        found.retain(|member| !is_empty_base(member));
    }
    let inside = |member: &&Member| {
        let inner = paths_at(&member.children, offset);
        let number = member.number;
        inner.into_iter().map(move |path| std::iter::once(number).chain(path).collect()).collect::<Vec<_>>()
    };
    if found.is_empty() { vec![Vec::new()] } else { found.iter().flat_map(inside).collect() }
}
