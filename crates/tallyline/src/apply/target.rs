//! The structs to edit, and the layouts that their new declarations promise.

use super::assertions::{AssertionStyle, Promise, assertions};
use super::counter::{ReplacedMember, Shape};
use super::layouts::Layout;
use super::refused::Refused;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::{Access, Language, Member, MemberKind, Record, RecordId, Types};
use tallyline_layout::reorganize::Proposal;
use tallyline_source::{self as source, Change, Edit};

/// A struct whose declaration in the sources is to be edited: its names, its current and its new layout.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name of the struct as it is shown.
    pub(crate) name: String,
    /// The name in the declaration, without scopes; empty for an unnamed struct.
    pub(crate) tag: Vec<u8>,
    /// The name in debug information, without scopes but with the arguments of a template or a generic type.
    instance: Vec<u8>,
    /// The scopes of the struct, with `::` between.
    pub(crate) scopes: Vec<u8>,
    /// The typedefs of the struct.
    pub(crate) aliases: Vec<Vec<u8>>,
    /// The language of the declaration.
    pub(crate) language: source::Language,
    /// The file of the declaration, as the debug information names it.
    pub(crate) declared_in: String,
    /// The line of the declaration; 0 where only the name is known.
    pub(crate) line: u32,
    /// The present layout of the struct.
    pub(crate) current: Layout,
    /// The layout that the edit of the struct promises.
    pub(crate) promised: Layout,
    /// The source file, once it is found.
    pub(crate) path: PathBuf,
    lines: Vec<u32>,
    order: Vec<usize>,
    aligned: Vec<(usize, u64)>,
    pads: Vec<Pad>,
    align: Option<u64>,
    extends_first: bool,
    /// The members that get another type: counters, and values on cache lines of their own.
    pub(crate) replaced: Vec<ReplacedMember>,
    /// The members that stay what they are, by name, and why.
    pub(crate) kept_members: Vec<(String, Refused)>,
    /// The edits of what uses the counters, by file.
    pub(crate) uses: BTreeMap<PathBuf, Vec<Edit>>,
    shape: Option<Shape>,
    /// The form of the assertions that are written below the declaration.
    pub(crate) style: AssertionStyle,
    // members may be named outside of the declaration
    is_open: bool,
}

/// Padding to declare as a member, or a marker of a group, which has no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pad {
    /// The member in front of the padding, by its index in today's order.
    after: usize,
    /// The name of the padding's member.
    name: String,
    /// The size of the padding in bytes.
    bytes: u64,
}

/// A member in a struct's new layout: its offset, and the alignment or padding to declare for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewPlace {
    /// The name of the member; empty for an unnamed struct or union.
    pub(crate) name: String,
    /// The present offset of the member in bytes.
    pub(crate) from: u64,
    /// The offset of the member in bytes.
    pub(crate) offset: u64,
    /// The alignment to declare for the member.
    pub(crate) align: Option<u64>,
    /// The bytes of padding to declare in front of the member.
    pub(crate) pad: u64,
}

/// A struct's new layout with alignments and padding, beyond a mere order of members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewLayout {
    /// The members in their new order; empty where they stay as they are.
    pub(crate) members: Vec<NewPlace>,
    /// The alignment to declare for the type.
    pub(crate) align: Option<u64>,
    /// Bytes of padding to declare behind the last member.
    pub(crate) pad: u64,
    /// The size in bytes.
    pub(crate) size: u64,
    /// Members that become striped counters, by name.
    pub(crate) counters: Vec<String>,
}

impl NewLayout {
    /// Returns `true` if the new layout of the struct keeps objects, or members, on separate cache lines by declared
    /// alignments or by padding at the end.
    pub(crate) fn is_apart(&self) -> bool {
        self.pad > 0 || self.align.is_some() || self.members.iter().any(|member| member.align.is_some())
    }
}

impl Target {
    /// Creates a target (struct to edit) from a proposal of a smaller member order; `None` if debug information does
    /// not say where the struct is declared, or in a language that can be edited.
    pub(crate) fn of_proposal(types: &Types, name: &str, proposal: &Proposal) -> Option<Target> {
        let target = Target::of_record(types, name, proposal.record())?;
        let members = types.members(types.record(proposal.record()));
        let declared = declared(members);
        let index = |all: usize| declared.iter().position(|known| *known == all);
        Some(Target {
            promised: layout(types, proposal.members(), proposal.proposed().size()),
            order: proposal.order().iter().filter_map(|all| index(*all)).collect(),
            ..target
        })
    }

    /// Returns `true` if the struct is declared in a Rust module, given by its path within a crate, or in a module
    /// within that.
    pub(crate) fn is_in_module(&self, module: &[String]) -> bool {
        // the crate's name is in front of the modules'
        let mut scopes = self.name.split("::").skip(1);
        module.iter().all(|part| scopes.next() == Some(part))
    }

    /// Describes the edit that gives a struct the proposed order by cache-line groups (members meant to share cache
    /// lines), with marker members around the groups.
    ///
    /// # Errors
    /// In words, if the declaration is not known, or a group would begin in front of all members.
    pub(crate) fn of_groups(types: &Types, name: &str, proposal: &Proposal) -> Result<Target, String> {
        let mut target = Target::of_proposal(types, name, proposal)
            .ok_or_else(|| "the debug information has no place of its declaration".to_owned())?;
        let members = proposal.members();
        // how many declared members are in front of one, and the first byte behind those
        let front = |at: usize| members[..at].iter().filter(|member| is_declared(member)).count();
        let mut placed = target.promised.members.clone().into_iter().enumerate().peekable();
        let mut promised = Vec::with_capacity(placed.len() + 2 * proposal.groups().len());
        let mut marks: Vec<(usize, String)> = Vec::new();
        for (group, range) in proposal.groups() {
            marks.push((front(range.start), format!("__cacheline_group_begin__{group}")));
            marks.push((front(range.end), format!("__cacheline_group_end__{group}")));
        }
        for (behind, marker) in marks {
            while let Some((_, member)) = placed.next_if(|(at, _)| *at < behind) {
                promised.push(member);
            }
            let after = behind.checked_sub(1).and_then(|last| target.order.get(last)).copied();
            let after = after.ok_or("a group would begin in front of the first member")?;
            let end = promised.last().map_or(0, |(_, bit, bits): &(String, u64, u64)| bit + bits);
            promised.push((marker.clone(), end.next_multiple_of(8), 0));
            target.pads.push(Pad { after, name: marker, bytes: 0 });
        }
        promised.extend(placed.map(|(_, member)| member));
        target.promised.members = promised;
        Ok(target)
    }

    /// Creates a target (struct to edit) from a new layout for the struct `record`.
    ///
    /// # Errors
    /// A sentence that says why: the place of the declaration is unknown, or the layout cannot be declared.
    pub(crate) fn of_layout(
        types: &Types,
        name: &str,
        record: RecordId,
        new: &NewLayout,
    ) -> Result<Target, String> {
        let target = Target::of_record(types, name, record)
            .ok_or_else(|| "the debug information has no place of its declaration".to_owned())?;
        let current = &target.current.members;
        let style = AssertionStyle::Language;
        let mut target = Target { align: new.align, style, ..target.clone() };
        if !new.counters.is_empty() {
            let members = types.members(types.record(record));
            let shape = Shape::of(types, record, &declared_as(types.record(record), members))?;
            for name in &new.counters {
                let at = current.iter().position(|(known, ..)| known == name);
                let at = at.ok_or_else(|| format!("it has no member {name}"))?;
                target.replaced.push(shape.counter(at, name.clone())?);
            }
            target.shape = Some(shape);
            target.promise_replaced();
            return Ok(target);
        }
        if target.language == source::Language::Rust
            && let Some(border) = new.members.iter().position(|member| member.align.is_some())
        {
            // no field has an alignment of its own, and rustc orders them: each is on its own lines that is not in the
            // first group
            let members = types.members(types.record(record));
            let shape = Shape::of(types, record, &declared_as(types.record(record), members))?;
            for place in new.members.iter().skip(border) {
                let at = current.iter().position(|(known, ..)| *known == place.name);
                let at = at.ok_or_else(|| format!("it has no member {}", place.name))?;
                target.replaced.push(shape.line(at, place.name.clone())?);
            }
            target.align = None;
            target.shape = Some(shape);
            target.promise_replaced();
            return Ok(target);
        }
        target.promised.size = new.size;
        let members = types.members(types.record(record));
        let first = declared(members).first().and_then(|at| members.get(*at));
        target.extends_first = target.language == source::Language::C
            && first.is_some_and(|member| types.as_record(types.strip(member.ty)).is_some());
        let last = current.len().checked_sub(1).ok_or_else(|| "it has no members".to_owned())?;
        let free = (1..).map(|number| format!("line_pad_{number}"));
        let mut free = free.filter(|name| current.iter().all(|(known, ..)| known != name));
        let mut pad = |after: usize, bytes: u64| Pad { after, name: free.next().unwrap_or_default(), bytes };
        if new.members.is_empty() {
            if new.pad > 0 {
                let (_, bit, bits) = &current[last];
                let end = bit.saturating_add(*bits).div_ceil(8);
                let pad = pad(last, new.pad);
                target.promised.members.push((pad.name.clone(), end * 8, new.pad.saturating_mul(8)));
                target.pads.push(pad);
            }
            return Ok(target);
        }
        target.order.clear();
        target.promised.members.clear();
        let mut end = 0_u64;
        for place in &new.members {
            let is_place = |(name, bit, _): &(String, u64, u64)| *name == place.name && bit / 8 == place.from;
            let mut named = (0..current.len()).filter(|at| is_place(&current[*at]));
            let at = match (named.next(), named.next()) {
                (Some(at), None) => at,
                _ => return Err(format!("it has no single member {}", place.name)),
            };
            if place.pad > 0 {
                let after = target.order.last().copied().ok_or("padding in front of the first member")?;
                let pad = pad(after, place.pad);
                target.promised.members.push((pad.name.clone(), end * 8, place.pad.saturating_mul(8)));
                target.pads.push(pad);
            }
            target.aligned.extend(place.align.map(|align| (at, align)));
            let (_, bit, bits) = &current[at];
            let first = place.offset.saturating_mul(8).saturating_add(bit % 8);
            target.promised.members.push((place.name.clone(), first, *bits));
            end = first.saturating_add(*bits).div_ceil(8);
            target.order.push(at);
        }
        if target.order.len() != current.len() {
            return Err("not all of its members are placed".to_owned());
        }
        if new.pad > 0 {
            let pad = pad(*target.order.last().unwrap_or(&last), new.pad);
            target.promised.members.push((pad.name.clone(), end * 8, new.pad.saturating_mul(8)));
            target.pads.push(pad);
        }
        Ok(target)
    }

    /// Makes a target of which nothing changes.
    fn of_record(types: &Types, name: &str, id: RecordId) -> Option<Target> {
        let record = types.record(id);
        let language = match record.language {
            language if language.is_rust() => source::Language::Rust,
            language if language.is_cpp() => source::Language::Cpp,
            language if language.is_c() => source::Language::C,
            Language(_) => return None,
        };
        let at = record.declared_at;
        // rustc describes types without their places: they are found by name
        if (!at.file.is_some() || at.line == 0) && language != source::Language::Rust {
            return None;
        }
        let members = types.members(record);
        let declared = declared_as(record, members);
        let current = layout_as_declared(types, record);
        let bare = |name: &[u8]| name.split(|byte| *byte == b'<').next().unwrap_or_default().to_vec();
        Some(Target {
            name: name.to_string(),
            tag: bare(types.name(record.name)),
            instance: types.name(record.name).to_vec(),
            scopes: types.name(record.path).to_vec(),
            aliases: lookup::typedefs(types, id).into_iter().map(|name| types.name(name).to_vec()).collect(),
            language,
            declared_in: String::from_utf8_lossy(types.name(at.file)).into_owned(),
            line: at.line,
            promised: current.clone(),
            current,
            path: PathBuf::new(),
            lines: declared.iter().map(|at| members[*at].declared_at.line).collect(),
            order: (0..declared.len()).collect(),
            aligned: Vec::new(),
            pads: Vec::new(),
            align: None,
            extends_first: false,
            replaced: Vec::new(),
            kept_members: Vec::new(),
            uses: BTreeMap::new(),
            shape: None,
            style: AssertionStyle::None,
            is_open: members.iter().all(|member| {
                let is_open = member.kind == MemberKind::Data && member.access == Access::Public;
                // no offset is asked for of a bit-field, or without a name
                is_open && !member.artificial && member.bitfield.is_none() && member.name.is_some()
            }),
        })
    }

    /// Sets the layout that the declaration has with the other types of its members.
    fn promise_replaced(&mut self) {
        if let Some(shape) = &self.shape {
            self.promised = shape.promise(&self.current, &self.replaced, self.language);
        }
    }

    /// Gives up the planned replacement of a member's type (by a striped counter or a value on its own cache lines) for
    /// the reason `why`, and recomputes the layout that the edit of the struct promises.
    pub(crate) fn keep_member(&mut self, at: usize, why: Refused) {
        if let Some(index) = self.replaced.iter().position(|member| member.at == at) {
            let member = self.replaced.remove(index);
            self.kept_members.push((member.name, why));
            self.promise_replaced();
        }
    }

    /// Returns `true` if a layout found in a compiled object is the one that the edit of the struct promises. Of Rust
    /// structs with replaced members only the sizes, and the alignment of those members to cache lines, are compared,
    /// as rustc orders members itself.
    pub(crate) fn is_promised(&self, found: &Layout) -> bool {
        if self.replaced.is_empty() || self.language != source::Language::Rust {
            return *found == self.promised;
        }
        let is_line = |bit: u64| bit.is_multiple_of(8 * super::counter::LINE);
        found.members.len() == self.promised.members.len()
            && found.members.iter().zip(&self.promised.members).enumerate().all(|(at, (found, promised))| {
                let is_counter = self.replaced.iter().any(|counter| counter.at == at);
                found.0 == promised.0 && found.2 == promised.2 && (!is_counter || is_line(found.1))
            })
    }

    /// Returns the edit of the struct's declaration: order, alignment and padding of its members, without replaced
    /// types.
    pub(crate) fn change(&self) -> Change {
        self.change_moved(0)
    }

    /// Returns the edit of the struct's declaration with replaced types and assertions. `distance` is the number of
    /// lines that the declaration has moved by earlier edits; with `is_first`, the definitions of the types that
    /// members get are inserted above it.
    pub(crate) fn whole_change(&self, distance: i64, is_first: bool, text: &[u8]) -> Change {
        let mut change = self.change_moved(distance);
        for counter in &self.replaced {
            change = change.with_member_type(counter.at, &counter.ty);
            if is_first {
                change = super::counter::declare(change, counter, self.language, &self.path, text);
            }
        }
        change.with_text_behind(self.assertions())
    }

    /// Returns the compile-time assertions to write below the edited struct's declaration; empty if there are none.
    pub(crate) fn assertions(&self) -> String {
        assertions(&self.promise(), self.language, self.style)
    }

    /// Returns what is asserted: what the edit adds, and not the places of members that follow from it.
    fn promise(&self) -> Promise {
        let is_template = self.name.contains('<');
        let tag = String::from_utf8_lossy(&self.tag).into_owned();
        let ty = match self.language {
            _ if is_template => String::new(),
            source::Language::C if !tag.is_empty() => format!("struct {tag}"),
            source::Language::C => self
                .aliases
                .first()
                .map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned()),
            _ => tag,
        };
        let name =
            |at: usize| self.current.members.get(at).map_or_else(String::new, |(name, ..)| name.clone());
        let is_order_alone = self.align.is_none() && self.aligned.is_empty() && self.pads.is_empty();
        let is_smaller = self.promised.size < self.current.size;
        let aligned = self.aligned.iter().map(|(at, bytes)| (name(*at), *bytes));
        let placed = &self.promised.members;
        // markers of groups have no bytes
        let apart = self.pads.iter().filter(|pad| pad.bytes > 0).filter_map(|pad| {
            let at = placed.iter().position(|(name, ..)| *name == pad.name)?;
            let (before, ..) = placed.get(at.checked_sub(1)?)?;
            let (next, ..) = placed.get(at + 1)?;
            Some((before.clone(), next.clone(), pad.bytes))
        });
        Promise {
            ty,
            align: self.align,
            most_size: (is_order_alone && self.replaced.is_empty() && is_smaller)
                .then_some(self.promised.size),
            aligned: aligned.filter(|_| self.is_open).collect(),
            apart: apart.filter(|_| self.is_open).collect(),
        }
    }

    fn change_moved(&self, distance: i64) -> Change {
        let moved = |line: u32| match line {
            0 => 0,
            line => u32::try_from(i64::from(line).saturating_add(distance)).unwrap_or(line),
        };
        let lines = self.lines.iter().map(|line| moved(*line));
        let members = self.current.members.iter().zip(lines).map(|((name, ..), line)| (name, line));
        let change = Change::new(self.language, moved(self.line), &self.tag)
            .with_order(members, self.order.iter().copied());
        let change = self
            .aligned
            .iter()
            .fold(change, |change, (member, bytes)| change.with_aligned_member(*member, *bytes));
        let padded = self.pads.iter().fold(change, |change, Pad { after, name, bytes }| {
            change.with_pad_after(*after, format!("char {name}[{bytes}];"))
        });
        self.align.into_iter().fold(padded, Change::with_alignment)
    }

    /// Returns `true` if the edit moves a C struct's first member that is a struct itself, to which pointers may be
    /// cast as to a base class.
    pub(crate) fn moves_base(&self) -> bool {
        self.extends_first && self.order.first().is_some_and(|first| *first != 0)
    }

    /// Returns `true` if it is a tuple struct of Rust, whose members debug information calls `__0`, `__1` and so on.
    pub(crate) fn is_tuple(&self) -> bool {
        let is_of_tuple = |(at, (name, ..)): (usize, &(String, u64, u64))| *name == format!("__{at}");
        let members = &self.current.members;
        let is_rust = self.language == source::Language::Rust;
        is_rust && !members.is_empty() && members.iter().enumerate().all(is_of_tuple)
    }

    /// Returns `true` if the edit changes the order of the struct's members.
    pub(crate) fn moves_members(&self) -> bool {
        !self.order.is_sorted()
    }

    /// Returns `true` if the edit changes the values that an initialiser by position gives to members: by their order, by
    /// padding among them, or by the types of some.
    pub(crate) fn moves_positions(&self) -> bool {
        let last = self.order.last().copied();
        let is_within = |pad: &Pad| Some(pad.after) != last;
        self.moves_members() || self.pads.iter().any(is_within) || !self.replaced.is_empty()
    }

    /// Returns all names of the struct in debug information: with a template's arguments, and its typedefs.
    pub(crate) fn described_names(&self) -> Vec<Vec<u8>> {
        let own = (!self.instance.is_empty()).then(|| self.instance.clone());
        own.into_iter().chain(self.aliases.iter().cloned()).collect()
    }

    /// Returns all names of the struct in the source: its tag and its typedefs.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let own = (!self.tag.is_empty()).then(|| self.tag.clone());
        own.into_iter().chain(self.aliases.iter().cloned()).collect()
    }
}

/// Returns the members that a declaration declares, by their index among all.
fn declared(members: &[Member]) -> Vec<usize> {
    (0..members.len()).filter(|at| is_declared(&members[*at])).collect()
}

/// Returns the members that a declaration declares, by their index among all, in the order in which it declares them:
/// rustc lays them out in another.
fn declared_as(record: &Record, members: &[Member]) -> Vec<usize> {
    let mut all = declared(members);
    if record.language.is_rust() {
        all.sort_by_key(|at| members[*at].declared);
    }
    all
}

/// Returns the layout of a struct with its members in the order of the source, which in Rust is not that of their
/// offsets.
pub(crate) fn layout_as_declared(types: &Types, record: &Record) -> Layout {
    let members = types.members(record);
    let ordered: Vec<Member> = declared_as(record, members).into_iter().map(|at| members[at]).collect();
    layout(types, &ordered, record.size)
}

/// Returns `true` if a member is data that the source declares, and not one that the compiler added.
fn is_declared(member: &Member) -> bool {
    member.kind == MemberKind::Data && !member.artificial
}

/// Returns the layout of a struct of `size` bytes with these members, in the given order.
pub(crate) fn layout(types: &Types, members: &[Member], size: u64) -> Layout {
    let placed = members.iter().filter(|member| is_declared(member)).map(|member| {
        let bits = member.bitfield.map_or(member.size.saturating_mul(8), |field| field.size.into());
        (String::from_utf8_lossy(types.name(member.name)).into_owned(), member.bit_offset, bits)
    });
    Layout { size, members: placed.collect() }
}
