//! A fixed set of items that belong together: [`Group`], many of a kind: [`GroupArray`], and the
//! macro [`group!`](crate::group!) that declares one.

use crate::counter::impersonate;
use crate::cpu::CpuId;
use crate::error::{Error, Result};
use crate::memory::{CHUNK_WORDS, LatchLayout, LineWords, Lines};
use crate::pieces::Pieces;
use crate::placement::Pool;
use crate::schema::{Event, Item, Schema};
use std::ops::Range;

/// A fixed set of per-CPU counters (*items*) that are allocated, updated and read together, such as a flow's packets
/// and bytes.
///
/// A group lies on whole cache lines of its own, so one fold (read of all items) reads each line of each CPU once. The
/// items of an *event* lie in one line and are added to by one commit (a single store): a reader that sees one of them
/// sees, for pairs, the other one too.
///
/// Arithmetic, ordering, and where updates are allowed: as for [`Counter`](crate::Counter).
#[derive(Debug)]
pub struct Group {
    lines: Lines,
    schema: Schema,
}

impl Group {
    /// Creates a group of counters with this schema (its items and events), all zero, in the process's global pool.
    ///
    /// # Errors
    /// Fails as [`Counter::new`](crate::Counter::new) does, and with [`Error::TooMany`] where it does not
    /// fit into a unit.
    pub fn new(schema: &Schema) -> Result<Group> {
        Group::new_in(Pool::global()?, schema)
    }

    /// Creates a group of counters with this schema (its items and events), all zero, in the counter memory of `pool`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for address space, and [`Error::TooMany`].
    pub fn new_in(pool: &Pool, schema: &Schema) -> Result<Group> {
        let lines = take(pool, schema, 1)?;
        Ok(Group { lines, schema: schema.clone() })
    }

    /// Returns the schema that the group was created with: its items (64-bit statistics) and events (items updated
    /// together).
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }

    pub(crate) fn into_parts(self) -> (Lines, Schema) {
        (self.lines, self.schema)
    }

    pub(crate) fn from_parts(lines: Lines, schema: Schema) -> Group {
        Group { lines, schema }
    }

    /// Adds 1 to one item (64-bit statistic) of the group. Cost as [`Counter::inc`](crate::Counter::inc).
    #[inline(always)]
    pub fn inc(&self, item: Item) {
        self.lines.inc(item.slot());
    }

    /// Adds `value` to one item (64-bit statistic) of the group. Cost as [`Counter::add`](crate::Counter::add).
    #[inline(always)]
    pub fn add(&self, item: Item, value: u64) {
        self.lines.add(item.slot(), value);
    }

    /// Adds `deltas` to the `N` items of an event (statistics updated together), in their order, by one commit: a
    /// single store where counters are updated by rseq.
    ///
    /// Cost: about that of two single updates, whatever the number of items. Another number of
    /// deltas than the event has items does not compile:
    ///
    /// ```compile_fail,E0308
    /// # use statctr::{Event, Group};
    /// fn count(group: &Group, packet: Event<2>) {
    ///     group.commit(packet, [1, 1500, 7]);
    /// }
    /// ```
    #[inline(always)]
    pub fn commit<const N: usize>(&self, event: Event<N>, deltas: [u64; N]) {
        self.lines.commit(event.slot(), &deltas);
    }

    /// Returns the values of all items (64-bit statistics) of the group in the order of declaration, each summed over
    /// the CPUs; reads each cache line once.
    #[must_use]
    pub fn read(&self) -> Vec<u64> {
        let mut values = vec![0; self.schema.len()];
        fold(&self.lines, &self.schema, &mut values);
        values
    }

    /// Reads all items (64-bit statistics) of the group and stores their values, each summed over the CPUs, in
    /// `values`, in the order of declaration; see [`read`](Self::read).
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`]; what lies behind the values is left alone.
    pub fn fold_into(&self, values: &mut [u64]) -> Result<()> {
        let (needed, given) = (self.schema.len(), values.len());
        let values = values.get_mut(..needed).ok_or(Error::BufferTooSmall { needed, given })?;
        fold(&self.lines, &self.schema, values);
        Ok(())
    }

    /// Writes the group's values to `target` in the format of the kernel's MIBs (`IFLA_INET6_STATS`): 64-bit numbers in
    /// the machine's byte order, the first of which is the number of items N in place of item 0, then items 1 to N − 1,
    /// then zeros to the end of `target`.
    ///
    /// `target` may begin at any address. Source: Linux `net/ipv6/addrconf.c`,
    /// `__snmp6_fill_stats64`.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], in bytes; nothing is written then.
    pub fn fill_stats(&self, target: &mut [u8]) -> Result<()> {
        let (needed, given) = (self.schema.len() * 8, target.len());
        if given < needed {
            return Err(Error::BufferTooSmall { needed, given });
        }
        let mut values = self.read();
        values[0] = self.schema.len() as u64;
        let (stats, padding) = target.split_at_mut(needed);
        for (bytes, value) in stats.chunks_exact_mut(8).zip(&values) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
        padding.fill(0);
        Ok(())
    }

    /// Returns the value of one item (64-bit statistic) of the group, summed over the CPUs. Cost: a cache line per CPU
    /// that counts.
    #[must_use]
    pub fn read_item(&self, item: Item) -> u64 {
        self.lines.read(item.slot()).unwrap_or(0)
    }

    /// Returns the part of the value of one item (64-bit statistic) that one CPU counted; see
    /// [`Counter::read_cpu`](crate::Counter::read_cpu).
    #[must_use]
    pub fn read_cpu(&self, cpu: CpuId, item: Item) -> u64 {
        self.lines.read_cpu(cpu.index(), item.slot()).unwrap_or(0)
    }

    /// Sets the value of one item (64-bit statistic) of the group; see [`Counter::set`](crate::Counter::set).
    pub fn set(&self, item: Item, value: u64) {
        self.lines.arena().while_locked(|| self.lines.set_locked(item.slot(), value));
    }

    /// Adds `value` to an item (64-bit statistic) on a synthetic CPU that this kernel cannot have, for measurements;
    /// see [`Counter::add_on_synthetic`](crate::Counter::add_on_synthetic).
    ///
    /// # Errors
    /// Fails as [`Counter::add_on_synthetic`](crate::Counter::add_on_synthetic) does.
    pub fn add_on_synthetic(&self, cpu: CpuId, item: Item, value: u64) -> Result<()> {
        add_on_synthetic(&self.lines, item.slot(), cpu, value)
    }
}

pub(crate) fn take(pool: &Pool, schema: &Schema, groups: usize) -> Result<Lines> {
    // events that no store of this pool can hold need two copies of their line
    let needs_copies = schema.widest_event() > pool.cost().vector_bytes;
    let latch = (needs_copies && groups == 1).then(|| LatchLayout { lines: schema.chunks() });
    Lines::take_group(pool.arena(), schema.chunks() * groups, latch)
}

fn fold(lines: &Lines, schema: &Schema, values: &mut [u64]) {
    crate::memory::fold_piece_tiles(lines, schema.chunks(), |first, sums| {
        schema.scatter(first, sums, values)
    });
}

fn add_on_synthetic(lines: &Lines, slot: usize, cpu: CpuId, value: u64) -> Result<()> {
    impersonate(cpu, || {
        lines.arena().while_locked(|| lines.add_on_synthetic_locked(slot, cpu.index(), value))
    })
}

/// An array of groups of counters with one schema (the same items and events), which lie side by side and are read in
/// one pass over each CPU's memory.
///
/// ```
/// use statctr::{GroupArray, ItemSpec, Schema};
///
/// let schema = Schema::new([ItemSpec::new("hits"), ItemSpec::new("misses")], &[])?;
/// let caches = GroupArray::new(100, &schema)?;
/// let hits = schema.item(0).expect("two items");
/// caches.get(7).expect("a hundred").add(hits, 3);
/// let mut values = [0; 200];
/// caches.fold_into(&mut values)?;
/// assert_eq!(values[14], 3);
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Debug)]
pub struct GroupArray {
    pieces: Pieces,
    /// Words of a group in its piece.
    group_words: usize,
    schema: Schema,
}

/// A reference to one group of counters of a [`GroupArray`], by which it is updated and read.
#[derive(Debug, Clone, Copy)]
pub struct GroupRef<'a> {
    words: LineWords<'a>,
    /// The group's first slot in the piece.
    first: usize,
}

impl GroupArray {
    /// Creates an array of `len` groups of counters with this schema (their items and events), all zero, in the
    /// process's global pool.
    ///
    /// # Errors
    /// Fails as [`Group::new`] does.
    pub fn new(len: usize, schema: &Schema) -> Result<GroupArray> {
        GroupArray::new_in(Pool::global()?, len, schema)
    }

    /// Creates an array of `len` groups of counters with this schema (their items and events), all zero, in the counter
    /// memory of `pool`.
    ///
    /// # Errors
    /// Fails as [`Group::new_in`] does.
    pub fn new_in(pool: &Pool, len: usize, schema: &Schema) -> Result<GroupArray> {
        let in_unit = pool.arena().unit_words() / (schema.chunks() * 8);
        let needs_copies = schema.widest_event() > pool.cost().vector_bytes;
        let most = if needs_copies { 1 } else { in_unit };
        let pieces = Pieces::take(len, most, |groups| take(pool, schema, groups))?;
        Ok(GroupArray { pieces, group_words: schema.chunks() * CHUNK_WORDS, schema: schema.clone() })
    }

    /// Returns the number of groups of counters in the array.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns `true` if the array has no groups of counters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the schema (items, and events of items updated together) that all groups of counters in the array have.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns a reference to the group of counters at `index`, to update and read it; `None` if the array is shorter.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<GroupRef<'_>> {
        // of each piece by itself, as a loop may then load it once
        let (words, index) = self.pieces.find_map(index, |piece, index| Some((piece.words(), index)))?;
        Some(GroupRef { words, first: index * self.group_words })
    }

    /// Reads all items (64-bit statistics) of all groups in the array and stores their values, each summed over the
    /// CPUs, in `values`, group by group, in the order of declaration. One pass over the memory of each CPU that
    /// counts, several CPUs at a time.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`]; what lies behind the values is left alone.
    pub fn fold_into(&self, values: &mut [u64]) -> Result<()> {
        self.fold_range(0..self.len(), values)
    }

    /// Reads all items (64-bit statistics) of the groups with indices in `range` and stores their values, each summed
    /// over the CPUs, in `values`, group by group; see [`fold_into`](Self::fold_into).
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], and [`Error::OutOfRange`] for a range that goes beyond the array; what lies
    /// behind the values is left alone.
    pub fn fold_range(&self, range: Range<usize>, values: &mut [u64]) -> Result<()> {
        fold_pieces(&self.pieces, |piece| (piece, 0), &self.schema, range, values)
    }

    /// Splits a read of all groups of counters in the array into at most `parts` pieces (ranges of groups) of about
    /// equal size, each with its part of `values`, which the caller can run on as many threads.
    ///
    /// ```
    /// use statctr::{GroupArray, ItemSpec, Schema};
    ///
    /// let schema = Schema::new([ItemSpec::new("hits")], &[])?;
    /// let caches = GroupArray::new(1000, &schema)?;
    /// let mut values = vec![0; 1000];
    /// std::thread::scope(|scope| -> statctr::Result<()> {
    ///     for part in caches.fold_parts(2, &mut values)? {
    ///         scope.spawn(move || part.fold());
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), statctr::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`]; what lies behind the values is left alone.
    pub fn fold_parts<'a>(&'a self, parts: usize, values: &'a mut [u64]) -> Result<Vec<FoldPart<'a>>> {
        let items = self.schema.len();
        let (needed, given) = (self.len() * items, values.len());
        let values = values.get_mut(..needed).ok_or(Error::BufferTooSmall { needed, given })?;
        let groups = self.len().div_ceil(parts.max(1)).max(1);
        let of_parts = values.chunks_mut(groups * items).enumerate();
        Ok(of_parts.map(|(part, values)| FoldPart { array: self, first: part * groups, values }).collect())
    }
}

/// One piece (a range of groups of counters) of a [read of a `GroupArray` that is split](GroupArray::fold_parts) among
/// threads.
#[derive(Debug)]
pub struct FoldPart<'a> {
    array: &'a GroupArray,
    first: usize,
    values: &'a mut [u64],
}

impl FoldPart<'_> {
    /// Reads all items (64-bit statistics) of this piece's groups and stores their values, each summed over the CPUs,
    /// in the piece's part of the target, on the calling thread.
    pub fn fold(self) {
        let groups = self.values.len() / self.array.schema.len();
        // as long as its groups, which are the array's
        let _ = self.array.fold_range(self.first..self.first + groups, self.values);
    }
}

impl GroupRef<'_> {
    /// Adds 1 to one item (64-bit statistic) of the group; see [`Group::inc`].
    #[inline(always)]
    pub fn inc(self, item: Item) {
        self.words.inc(self.first + item.slot());
    }

    /// Adds `value` to one item (64-bit statistic) of the group; see [`Group::add`].
    #[inline(always)]
    pub fn add(self, item: Item, value: u64) {
        self.words.add(self.first + item.slot(), value);
    }

    /// Adds `deltas` to the `N` items of an event (statistics updated together) by one commit, a single store where
    /// counters are updated by rseq; see [`Group::commit`].
    #[inline(always)]
    pub fn commit<const N: usize>(self, event: Event<N>, deltas: [u64; N]) {
        self.words.commit(self.first + event.slot(), &deltas);
    }

    /// Returns the value of one item (64-bit statistic) of the group, summed over the CPUs.
    #[must_use]
    pub fn read_item(self, item: Item) -> u64 {
        self.words.lines().read(self.first + item.slot()).unwrap_or(0)
    }

    /// Returns the part of the value of one item (64-bit statistic) that one CPU counted; 0 if it never counted.
    #[must_use]
    pub fn read_cpu(self, cpu: CpuId, item: Item) -> u64 {
        self.words.lines().read_cpu(cpu.index(), self.first + item.slot()).unwrap_or(0)
    }

    /// Sets the value of one item (64-bit statistic) of the group; see [`Counter::set`](crate::Counter::set).
    pub fn set(self, item: Item, value: u64) {
        let lines = self.words.lines();
        lines.arena().while_locked(|| lines.set_locked(self.first + item.slot(), value));
    }

    /// Adds `value` to an item (64-bit statistic) on a synthetic CPU that this kernel cannot have, for measurements;
    /// see [`Counter::add_on_synthetic`](crate::Counter::add_on_synthetic).
    ///
    /// # Errors
    /// Fails as [`Counter::add_on_synthetic`](crate::Counter::add_on_synthetic) does.
    pub fn add_on_synthetic(self, cpu: CpuId, item: Item, value: u64) -> Result<()> {
        add_on_synthetic(self.words.lines(), self.first + item.slot(), cpu, value)
    }
}

/// Reads all items (64-bit statistics) of the groups with indices in `range` of an array that has this schema (items and
/// events) and memory, and stores their values, each summed over the CPUs, in `values`, group by group. `lines_of` returns
/// a piece's cache lines and the number of those in front of the first group.
///
/// # Errors
/// Fails as [`GroupArray::fold_range`] does.
pub(crate) fn fold_pieces<T>(
    pieces: &Pieces<T>,
    lines_of: impl Fn(&T) -> (&Lines, usize),
    schema: &Schema,
    range: Range<usize>,
    values: &mut [u64],
) -> Result<()> {
    if range.end > pieces.len() {
        return Err(Error::OutOfRange { index: range.end - 1, len: pieces.len() });
    }
    let (items, chunks) = (schema.len(), schema.chunks());
    let (needed, given) = (range.len() * items, values.len());
    let values = values.get_mut(..needed).ok_or(Error::BufferTooSmall { needed, given })?;
    pieces.for_each(range, |piece, groups, before| {
        let ((lines, front), first_group) = (lines_of(piece), groups.start);
        crate::memory::fold_rows(lines, front, chunks, groups, |group, first, sums| {
            let row = (before + group - first_group) * items;
            schema.scatter(first, sums, &mut values[row..row + items]);
        });
    });
    Ok(())
}

/// Reads all items (64-bit statistics) of several groups of one schema (with the same items and events) and stores
/// their values, each summed over the CPUs, in `values`, group by group.
///
/// Groups that were created one after the other lie side by side and are read in one pass.
///
/// # Errors
/// [`Error::SchemaMismatch`] where not all are of the same schema, [`Error::BufferTooSmall`].
pub fn fold_groups(groups: &[&Group], values: &mut [u64]) -> Result<()> {
    let Some(first) = groups.first() else { return Ok(()) };
    let schema = first.schema();
    if groups.iter().any(|group| !group.schema().is_same(schema)) {
        return Err(Error::SchemaMismatch);
    }
    let items = schema.len();
    let (needed, given) = (groups.len() * items, values.len());
    let values = values.get_mut(..needed).ok_or(Error::BufferTooSmall { needed, given })?;
    let pieces = groups.iter().map(|group| group.lines());
    crate::memory::fold_runs(pieces, schema.chunks(), |group, first, sums| {
        schema.scatter(first, sums, &mut values[group * items..(group + 1) * items]);
    });
    Ok(())
}

/// Declares a kind of group: a type with its items as constants and a method per event.
///
/// ```
/// use statctr::Unit;
///
/// statctr::group! {
///     /// Traffic of one interface.
///     pub struct Traffic {
///         /// One packet went round the loop-back interface.
///         event looped(rx_packets, rx_bytes, tx_packets, tx_bytes);
///         item rx_packets: Unit::PACKETS, "packets received";
///         item rx_bytes: Unit::BYTES, "bytes received";
///         item tx_packets: Unit::PACKETS, "packets sent";
///         item tx_bytes: Unit::BYTES, "bytes sent";
///         item drops: Unit::PACKETS, "packets dropped";
///     }
/// }
///
/// let lo = Traffic::new()?;
/// lo.looped(1, 1500, 1, 1500); // four items, one commit
/// lo.add(Traffic::drops, 1);
/// let values = lo.read();
/// assert_eq!(values[Traffic::tx_bytes.index()], 1500);
/// assert_eq!(values, [1, 1500, 1, 1500, 1]);
/// # Ok::<(), statctr::Error>(())
/// ```
///
/// An event has one to eight items and an item is in one event at most; both are checked when the
/// program is compiled. The type has `LEN`, `new`, `new_in`, `schema`, `group`, `inc`, `add` and `read` already, which
/// are no names of items or events. `item r#type` is exported as `type`.
#[macro_export]
macro_rules! group {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {
            $( $(#[$event_meta:meta])* event $event:ident ( $($member:ident),+ $(,)? ); )*
            $( item $item:ident : $unit:expr, $help:expr ; )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $Name($crate::Group);

        const _: () = {
            #[allow(non_camel_case_types)]
            enum Index { $($item),+ }
            const COUNT: usize = [$(::core::stringify!($item)),+].len();
            const EVENTS: &[&[usize]] = &[$(&[$(Index::$member as usize),+]),*];
            const SLOTS: [u16; COUNT] = $crate::slots_of::<COUNT>(EVENTS);

            #[allow(non_upper_case_globals)]
            impl $Name {
                $(
                    #[doc = $help]
                    pub const $item: $crate::Item = $crate::Item::at(Index::$item as usize, SLOTS[Index::$item as usize]);
                )+

                /// Number of items of the group.
                pub const LEN: usize = COUNT;

                /// Returns the items with their names, units and help texts.
                ///
                /// # Errors
                /// None in practice: the layout was checked when the program was compiled.
                pub fn schema() -> $crate::Result<&'static $crate::Schema> {
                    static SCHEMA: $crate::OnceBox<$crate::Schema> = $crate::OnceBox::new();
                    if let Some(schema) = SCHEMA.get() {
                        return Ok(schema);
                    }
                    // a raw identifier's name is what is behind its mark
                    let items = [$(
                        $crate::ItemSpec::new(::core::stringify!($item).trim_start_matches("r#")).unit($unit).help($help)
                    ),+];
                    Ok(SCHEMA.get_or($crate::Schema::new(items, EVENTS)?))
                }

                /// Creates a group, all zero, in the process's global pool of counter memory.
                ///
                /// # Errors
                /// Fails as `statctr::Group::new` does.
                pub fn new() -> $crate::Result<Self> {
                    Ok(Self($crate::Group::new(Self::schema()?)?))
                }

                /// Creates a group, all zero, in the counter memory of `pool`.
                ///
                /// # Errors
                /// Fails as `statctr::Group::new_in` does.
                pub fn new_in(pool: &$crate::Pool) -> $crate::Result<Self> {
                    Ok(Self($crate::Group::new_in(pool, Self::schema()?)?))
                }

                /// Returns the group without its type: for folds, registries, single CPUs.
                pub fn group(&self) -> &$crate::Group {
                    &self.0
                }

                /// Adds 1 to one item.
                #[inline(always)]
                pub fn inc(&self, item: $crate::Item) {
                    self.0.inc(item);
                }

                /// Adds `value` to one item.
                #[inline(always)]
                pub fn add(&self, item: $crate::Item, value: u64) {
                    self.0.add(item, value);
                }

                /// Returns the values of all items, in the order of declaration.
                pub fn read(&self) -> [u64; COUNT] {
                    let mut values = [0; COUNT];
                    // as long as the group
                    let _ = self.0.fold_into(&mut values);
                    values
                }

                $(
                    $(#[$event_meta])*
                    #[allow(clippy::too_many_arguments)]
                    #[inline(always)]
                    pub fn $event(&self, $($member: u64),+) {
                        const FIRST: u16 = SLOTS[[$(Index::$member as usize),+][0]];
                        self.0.commit($crate::Event::at(FIRST), [$($member),+]);
                    }
                )*
            }
        };
    };
}
