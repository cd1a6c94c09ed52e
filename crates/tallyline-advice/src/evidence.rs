//! Evidence of a run: shared lines, the fields on them, the threads and instructions that access them.

use rustc_hash::{FxHashMap, FxHashSet};

/// The kind of a read-modify-write instruction, by its likely purpose: an addition (with its result used or not),
/// an exchange as for a lock, another one, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Update {
    /// No read-modify-write, or not known.
    #[default]
    None,
    /// An addition whose result is not used.
    Add,
    /// An addition whose old value goes into a register.
    AddReturning,
    /// An addition whose result is tested: a reference count.
    AddTested,
    /// An exchange or a compare-and-exchange: a lock, a flag, a pointer.
    Exchange,
    /// A read-modify-write of any other kind.
    Other,
}

/// An instruction of a traced program that accesses memory: its function, source line and kind of
/// read-modify-write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The instruction, by the trace's index.
    pub instruction: u32,
    /// The function that contains it.
    pub function: String,
    /// The source file; empty where it is not known.
    pub file: String,
    /// The source line; 0 where it is not known.
    pub line: u64,
    /// The kind of read-modify-write.
    pub update: Update,
    /// `true` if it is atomic.
    pub atomic: bool,
    /// `true` if it is code of the C library or of another part of every program.
    pub is_runtime: bool,
}

/// A member of a struct or class, as a layout proposal needs it: name, offset, size, alignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberInfo {
    /// The name of the member; empty where it has none.
    pub name: String,
    /// The offset of the member in the type, in bytes.
    pub offset: u64,
    /// The size of the member in bytes.
    pub size: u64,
    /// The alignment of the member in bytes.
    pub align: u64,
    /// The places that a new order of members may give the member.
    pub mobility: Mobility,
    /// `true` for a part of the object that is not declared as a member: a base class, the pointer to virtual
    /// functions.
    pub is_implicit: bool,
}

impl MemberInfo {
    /// Returns the offset of the first byte behind the member.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    /// Returns the offset behind the bytes at which a part of the member may begin: one without bytes counts as one.
    pub(crate) fn reach(&self) -> u64 {
        self.offset.saturating_add(self.size.max(1))
    }

    /// Returns `true` if a new order of members may put the member anywhere.
    pub(crate) fn is_free(&self) -> bool {
        self.mobility == Mobility::Free
    }
}

/// The places that a new order of members may give one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mobility {
    /// Any place.
    #[default]
    Free,
    /// The front of the object, as of a base class or the pointer to virtual functions.
    Front,
    /// The place behind the member in front of it, as of a bit-field; with the kind of the member.
    Attached(&'static str),
    /// The end of the object, as of a flexible array or a virtual base.
    End,
}

/// The kind of data that advice is about: objects of a type, a variable, or memory of unknown type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubjectKind {
    /// Objects of a struct or class.
    #[default]
    Record,
    /// A variable, or the elements of one that is an array.
    Variable,
    /// Memory of which neither a type nor a variable is known.
    Unknown,
}

/// A type or variable that advice can be about, because the program accessed its memory: name, size, members,
/// declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The kind of memory.
    pub kind: SubjectKind,
    /// The name of the type or variable.
    pub name: String,
    /// The size of an object or element in bytes; 0 where it is not known.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// The members of a struct or class.
    pub members: Vec<MemberInfo>,
    /// The file of its declaration; empty where it is not known.
    pub file: String,
    /// The line of its declaration.
    pub line: u64,
    /// The language of its declaration: `C`, `C++`, `Rust`; empty where it is not known.
    pub language: String,
    /// The program or library whose debug information describes it; empty where it is not known.
    pub program: String,
    /// `true` for a type of the language's library, or of one that is a part of every program: its objects hold the
    /// program's, as a block of `malloc` does.
    pub is_library_type: bool,
}

impl Subject {
    /// Returns `true` if advice can name the data to a user: it is a known type or variable, not memory of unknown
    /// type.
    pub fn is_named(&self) -> bool {
        self.kind != SubjectKind::Unknown && !self.name.is_empty()
    }

    /// Returns the index of the member that contains the byte at an offset; of one without bytes, as a flexible array,
    /// only where no other does.
    pub(crate) fn member_at(&self, offset: u64) -> Option<usize> {
        let holds = |member: &MemberInfo| (member.offset..member.end()).contains(&offset);
        let is_empty = |member: &MemberInfo| member.size == 0 && member.offset == offset;
        let members = &self.members;
        members.iter().position(holds).or_else(|| members.iter().position(is_empty))
    }

    /// Returns `true` if an object of `size` bytes at an offset can be a part of this one: it is in one member. Of what
    /// has no known members, or none to its end, it may be one.
    pub(crate) fn can_hold(&self, offset: u64, size: u64) -> bool {
        let end = offset.saturating_add(size);
        let is_in = |member: &MemberInfo| member.offset <= offset && end <= member.end();
        // a flexible array has no size
        let last = self.members.iter().map(MemberInfo::end).max();
        let is_behind = last.is_none_or(|last| offset >= last);
        is_behind || self.members.iter().any(is_in)
    }
}

/// The numbers of reads and writes by which one instruction, in one thread, accesses one field on a shared cache
/// line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotUse {
    /// The number of the thread.
    pub thread: u32,
    /// The instruction, as an index of [`Evidence::sites`].
    pub site: usize,
    /// The number of loads.
    pub reads: u64,
    /// The number of stores.
    pub writes: u64,
}

/// A field, array element or variable on a shared cache line: the accesses to it by thread and instruction, and the
/// cycles that they waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The subject that the slot is a part of, as an index of [`Evidence::subjects`].
    pub subject: usize,
    /// The address of the object or element.
    pub base: u64,
    /// The offset of the slot in the object or element, in bytes.
    pub offset: u64,
    /// The size of the slot in bytes.
    pub size: u64,
    /// The path of the field; empty where there is none.
    pub field: String,
    /// The variable that the slot is in; empty where it is not known.
    pub variable: String,
    /// The accesses to the slot, by thread and instruction.
    pub uses: Vec<SlotUse>,
    /// Cycles that cores waited for the line to access the slot.
    pub lost: u64,
    /// The number of times that the line came from another core for the slot.
    pub transfers: u64,
}

impl Slot {
    /// Returns the address of the first byte of the field, array element or variable on the shared cache line.
    pub fn address(&self) -> u64 {
        self.base.wrapping_add(self.offset)
    }

    /// Returns the numbers of reads and of writes of the field, array element or variable by each thread, as (thread,
    /// reads, writes), sorted by thread number.
    pub fn by_thread(&self) -> Vec<(u32, u64, u64)> {
        let mut all: Vec<(u32, u64, u64)> = Vec::new();
        for used in &self.uses {
            match all.binary_search_by_key(&used.thread, |(thread, ..)| *thread) {
                Ok(at) => {
                    all[at].1 += used.reads;
                    all[at].2 += used.writes;
                }
                Err(at) => all.insert(at, (used.thread, used.reads, used.writes)),
            }
        }
        all
    }
}

/// A cache line that cores take from each other, with the fields and variables on it that are accessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLine {
    /// The address of its first byte.
    pub address: u64,
    /// The accessed parts of it, by address.
    pub slots: Vec<Slot>,
}

/// The accesses to one field of a type, over all objects: their number, and their cycles and cache misses by the
/// simulation or by samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldUse {
    /// The offset of the field in the object, in bytes.
    pub offset: u64,
    /// The size of the field in bytes.
    pub size: u64,
    /// The path of the field.
    pub field: String,
    /// The number of accesses to the field.
    pub accesses: u64,
    /// Cycles that the accesses took.
    pub cycles: u64,
    /// The field's part of the time that functions spend on the type: of each function's cycles the part that it has
    /// of the function's accesses. It has this part also where the cycles are those of another field on its line.
    pub heat: u64,
    /// Accesses that the closest cache did not answer.
    pub misses: u64,
    /// The instructions, as indices of [`Evidence::sites`], each with its accesses, the most frequent first.
    pub sites: Vec<(usize, u64)>,
}

/// The accesses of a program to all objects of one type, by field, with the number of the objects and the distance
/// between their addresses, if it is regular.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeUse {
    /// The type, as an index of [`Evidence::subjects`].
    pub subject: usize,
    /// The fields, by offset.
    pub fields: Vec<FieldUse>,
    /// The instructions that access it: index in the trace, and offset in the object.
    pub instructions: Vec<(u32, u64)>,
    /// The number of different objects.
    pub objects: u64,
    /// The address of the first object.
    pub first_object: u64,
    /// The distance between neighbours, if all objects lie on one grid; 0 if not.
    pub stride: u64,
}

/// A pointer member that code follows to objects of another type, with the accesses to those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FollowedPointer {
    /// The type with the member, as an index of [`Evidence::subjects`].
    pub(crate) subject: usize,
    /// The offset of the member in the type, in bytes.
    pub(crate) offset: u64,
    /// The path of the member.
    pub(crate) field: String,
    /// The type of the objects behind the pointer, as an index of subjects.
    pub(crate) target: usize,
    /// The number of times that the pointer was followed.
    pub(crate) visits: u64,
    /// The visits in which code without a known type accessed the object, too.
    pub(crate) other_visits: u64,
    /// The number of accesses to another object than the pointer had led to, though no store to it was seen.
    pub(crate) conflicts: u64,
    /// The number of stores to a pointer that had been followed.
    pub(crate) replaced: u64,
    /// The number of different pointers, by their addresses.
    pub(crate) slots: u64,
    /// The number of objects that several pointers lead to, of this member or another.
    pub(crate) shared: u64,
    /// The number of objects that are the start of a larger one, or a part of the pointer's own.
    pub(crate) parts: u64,
    /// The number of loads of the target's type through this pointer, and in other ways.
    pub(crate) target_loads: (u64, u64),
    /// Each object behind the pointer with the address of the pointer that led there first.
    pub(crate) targets: FxHashMap<u64, u64>,
    /// The starts of all objects with the pointer, sorted, also of those whose pointer was not followed.
    pub(crate) holders: Vec<u64>,
    /// The fields of the target that are accessed through the pointer, by offset.
    pub(crate) fields: Vec<FollowedField>,
    /// The instructions that load the pointer, by the trace's index, with their loads.
    pub(crate) loads: Vec<(u32, u64)>,
    /// The loading instructions as indices of [`Evidence::sites`], with their loads.
    pub(crate) load_sites: Vec<(usize, u64)>,
}

/// A field of an object that is reached through a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FollowedField {
    /// The offset of the field in the object, in bytes.
    pub(crate) offset: u64,
    /// The size of the field in bytes.
    pub(crate) size: u64,
    /// The path of the field.
    pub(crate) field: String,
    /// The number of times that the pointer was followed to this field.
    pub(crate) visits: u64,
    /// The number of stores to the field in all objects of the type, through the pointer or not.
    pub(crate) stores: u64,
    /// Simulated cycles of the accesses through the pointer.
    pub(crate) cycles: u64,
    /// The number of simulated accesses through the pointer that the closest cache did not answer.
    pub(crate) misses: u64,
    /// The instructions that access the field, by the trace's index, with their loads and stores.
    pub(crate) instructions: Vec<(u32, u64, u64)>,
    /// The accessing instructions as indices of [`Evidence::sites`], with their loads and stores.
    pub(crate) sites: Vec<(usize, u64, u64)>,
}

/// A thread of a traced program: its number and its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadInfo {
    /// The number of the thread.
    pub thread: u32,
    /// The name of the thread; empty where it is not known.
    pub name: String,
}

/// The input of the advice rules, from a trace or from samples of one run: threads, instructions, types, and the
/// cache lines that cores take from each other, with what accesses to them cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Bytes of a cache line.
    pub line_size: u64,
    /// The threads of the run.
    pub threads: Vec<ThreadInfo>,
    /// The instructions that are named.
    pub sites: Vec<Site>,
    /// The types and variables that are named.
    pub subjects: Vec<Subject>,
    /// The lines that cores take from each other, by address.
    pub lines: Vec<SharedLine>,
    /// The other lines of the objects on [`lines`](Self::lines), by address: no core takes them from another, but a new
    /// order of members can bring what lies there to a line that cores share.
    pub private_lines: Vec<SharedLine>,
    /// The types whose objects are accessed.
    pub types: Vec<TypeUse>,
    /// The pointers that code follows from objects of one type to those of another.
    pub(crate) pointers: Vec<FollowedPointer>,
    /// Cycles of all cores together, by the model.
    pub cycles: u64,
    /// Cycles for which cores waited for lines of others.
    pub cycles_shared: u64,
}

impl Evidence {
    /// Returns the objects with a part on a line that cores take from each other: type or variable, and start.
    pub(crate) fn objects(&self) -> FxHashSet<(usize, u64)> {
        self.lines.iter().flat_map(|line| &line.slots).map(|slot| (slot.subject, slot.base)).collect()
    }

    /// Returns the accessed parts of a type's objects that have a part on a line that cores take from each other, each
    /// with its line: on these lines and on the other ones.
    pub(crate) fn slots_of(&self, subject: usize) -> impl Iterator<Item = (&SharedLine, &Slot)> {
        let lines = self.lines.iter().chain(&self.private_lines);
        let slots = lines.flat_map(|line| line.slots.iter().map(move |slot| (line, slot)));
        slots.filter(move |(_, slot)| slot.subject == subject)
    }
}
