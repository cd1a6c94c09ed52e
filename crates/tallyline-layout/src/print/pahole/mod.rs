//! pahole's format: what people paste into mails and reviews.
//!
//! Members in columns with offset and size, notes on holes and cache line boundaries between them,
//! and the sums at the end. Byte-identical to pahole 1.32 for C, where pahole is right.
//!
//! Text is made in a buffer that the caller takes; the widths of columns follow from what was
//! appended. How much one type may print is bounded by [`Style::budget`]: a damaged file can nest
//! anonymous types so that they unfold without end.

mod atomic;
mod compile;
mod declarator;
mod enumeration;
mod frame;
mod function;
mod member;
mod name;
mod order;
mod record;
mod style;
mod trailer;
mod ty;
mod union;
mod variant;

pub use order::{Order, Start};
pub use style::Style;

use crate::explain::{Declaration, Declarations};
use crate::query::{Flexible, Packed, Summary, summary};
use frame::Frame;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tallyline_debuginfo::model::{NameId, Origin, Position, RecordId, Type, TypeId, TypeSource, Types};

/// The nesting depth at which printing is cut; real programs stay below twenty.
const DEPTH_LIMIT: usize = 64;

/// Printer of type definitions in pahole's text format, into a buffer.
pub struct Printer<'t> {
    types: &'t Types,
    style: Style,
    out: Vec<u8>,
    packed: Packed,
    flexible: Flexible,
    summaries: Vec<Option<Summary>>,
    // the line that the last member printed lies in
    line: u64,
    depth: usize,
    // where pointers unfold: what is being printed
    pointed_to: Vec<TypeId>,
    // where the current type may print up to
    stop: usize,
    emitted: compile::Emitted,
    // how records are declared, where that is known or has to be right
    declared: FxHashMap<RecordId, Option<Rc<Declaration>>>,
    declarations: Option<Declarations<'t>>,
    is_declared: bool,
    // the bytes that the declarator being printed may still have; none outside of one
    declarator_left: Option<usize>,
}

impl<'t> Printer<'t> {
    /// Creates a printer of these types in pahole's format. The output for a type may depend on which were printed
    /// before: that a struct is packed may only show in another that contains it.
    pub fn new(types: &'t Types, style: Style) -> Printer<'t> {
        Printer {
            types,
            style,
            out: Vec::new(),
            packed: Packed::new(types),
            flexible: Flexible::new(types),
            summaries: vec![None; types.record_count()],
            line: 0,
            depth: 0,
            pointed_to: Vec::new(),
            stop: 0,
            emitted: compile::Emitted::default(),
            declared: FxHashMap::default(),
            declarations: None,
            is_declared: false,
            declarator_left: None,
        }
    }

    /// Makes the printer print these records (structs, classes, unions) with these attributes (`packed`, `aligned`, …),
    /// and valid C where pahole's format is none.
    pub(crate) fn declare_as(&mut self, declared: FxHashMap<RecordId, Declaration>) {
        self.is_declared = true;
        self.declared = declared.into_iter().map(|(id, one)| (id, Some(Rc::new(one)))).collect();
    }

    /// Returns how a record is declared, where what is printed has to be laid out as it is.
    fn declaration_of(&mut self, id: RecordId) -> Option<Rc<Declaration>> {
        if !self.is_exact() {
            return None;
        }
        if let Some(known) = self.declared.get(&id) {
            return known.clone();
        }
        let declared = self.declarations.as_ref().and_then(|all| all.of(id));
        // of BTF, whose alignments are inferred, pahole's attributes do where there are such
        let declared = declared.filter(|one| self.types.origin() == Origin::Dwarf || one.is_beyond_pahole());
        let declared = declared.map(Rc::new);
        self.declared.insert(id, declared.clone());
        declared
    }

    /// Sets the printer's decisions about packed structs to those at a position in the printing order, as if all types
    /// before it had been printed.
    pub fn start_from(&mut self, start: &Start) {
        self.packed.copy_from(start.decided());
    }

    /// Returns the text printed since the last [`clear`](Printer::clear).
    pub fn text(&self) -> &[u8] {
        &self.out
    }

    /// Returns the text printed so far and empties the buffer; inferences about packed structs are kept.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Empties the buffer of printed text; inferences about packed structs are kept.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Returns the printer's inferences so far about which structs are packed, for a filter of packed structs to use
    /// and extend.
    pub fn packed(&mut self) -> &mut Packed {
        &mut self.packed
    }

    /// Prints the definition of a type in pahole's format, followed by `;` and a newline.
    pub fn print(&mut self, id: TypeId) {
        self.stop = self.out.len().saturating_add(self.style.budget);
        self.depth = 0;
        self.line = 0;
        self.pointed_to.clear();
        if self.style.expand_types {
            self.pointed_to.push(id);
        }
        let frame = Frame::top(&self.style, self.types, id);
        let limit = self.open_limit(id);
        match self.types.get(id) {
            Type::Record(record) if self.types.record(record).is_union() => self.union_body(record, &frame),
            Type::Record(record) => self.record_body(record, &frame),
            Type::Enum(item) => self.enumeration(item, &frame),
            Type::Typedef { name, of } => {
                self.typedef(name, of, &frame);
                let align = self.types.declared_alignment(id).filter(|_| self.is_exact());
                if let Some(align) = align {
                    self.aligned(align);
                }
            }
            Type::Base { name, bits } => {
                self.put(self.types.name(name));
                self.put(b" /* size: ");
                self.number(u64::from(bits / 8), 0);
                self.put(b" */");
            }
            _ => self.declaration(id, None, &frame),
        }
        self.put(b";\n");
        self.close_limit(limit);
    }

    /// Prints an anonymous record as `typedef struct { … } name;`.
    pub fn print_typedef_of(&mut self, id: TypeId, name: NameId) {
        self.stop = self.out.len().saturating_add(self.style.budget);
        self.depth = 0;
        self.line = 0;
        let top = Frame::top(&self.style, self.types, id);
        let frame = Frame { prefix: Some(b"typedef"), suffix: Some(self.types.name(name)), ..top };
        let limit = self.open_limit(id);
        match self.types.get(id) {
            Type::Record(record) if self.types.record(record).is_union() => self.union_body(record, &frame),
            Type::Record(record) => self.record_body(record, &frame),
            _ => {}
        }
        self.put(b";\n");
        self.close_limit(limit);
    }

    /// Opens the `#pragma pack` that a record was declared under; whether there is one.
    fn open_limit(&mut self, id: TypeId) -> bool {
        let record = match self.types.get(id) {
            Type::Typedef { of, .. } => self.types.get(of),
            other => other,
        };
        let Type::Record(record) = record else { return false };
        let limit = self.declaration_of(record).and_then(|declared| declared.limit);
        if let Some(limit) = limit {
            self.fmt(format_args!("#pragma pack(push, {limit})\n"));
        }
        limit.is_some()
    }

    fn close_limit(&mut self, is_open: bool) {
        if is_open {
            self.put(b"#pragma pack(pop)\n");
        }
    }

    /// Prints pahole's comment on where a type is defined: compilation unit, DIE, file and line.
    pub fn print_source(&mut self, unit: &[u8], source: &TypeSource) {
        let Position { file, line } = source.declared_at;
        self.put(b"/* Used at: ");
        self.put(unit);
        self.fmt(format_args!(" */\n/* <{:x}> ", source.entry));
        self.put(if file.is_some() { self.types.name(file) } else { b"(null)" });
        self.fmt(format_args!(":{line} */\n"));
    }

    /// Prints the definition of an enumeration without `;` and newline after it.
    pub fn print_bare(&mut self, id: TypeId) {
        self.print(id);
        if self.out.ends_with(b";\n") {
            self.out.truncate(self.out.len() - 2);
            self.put(b"\n");
        }
    }

    /// Appends the caller's own text to the buffer of printed text.
    pub fn append(&mut self, text: &[u8]) {
        self.put(text);
    }

    /// Goes one level deeper, unless the type unfolds too deep or too far.
    fn enter(&mut self) -> bool {
        if self.depth >= DEPTH_LIMIT || self.out.len() >= self.stop {
            return false;
        }
        self.depth += 1;
        true
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn tabs(&mut self, count: usize) {
        // deeper than this pahole stops indenting
        self.out.resize(self.out.len() + count.min(16), b'\t');
    }

    fn spaces(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, b' ');
    }

    /// Appends a number, right-aligned in a column. Two of these are in every line of a member, and
    /// `fmt` would take a sixth of the time that printing takes.
    fn number(&mut self, mut value: u64, width: usize) {
        let mut digits = [b' '; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        let start = start.min(digits.len().saturating_sub(width));
        self.put(&digits[start..]);
    }

    /// Appends a formatted text. Writing to memory does not fail.
    fn fmt(&mut self, text: std::fmt::Arguments<'_>) {
        use std::io::Write;
        self.out.write_fmt(text).unwrap_or_default();
    }

    /// Appends blanks until what was written from `start` on is as wide as a column. Deep inside,
    /// where columns would be narrower than nothing, they grow again, as C's `%*s` has it.
    fn pad_from(&mut self, start: usize, width: i64) {
        let width = usize::try_from(width.unsigned_abs()).unwrap_or(0);
        let written = self.out.len() - start;
        self.spaces(width.saturating_sub(written));
    }

    /// Returns the holes of a record in numbers, each record's computed once.
    fn summary(&mut self, id: RecordId) -> Summary {
        *self.summaries[id.index()].get_or_insert_with(|| summary(self.types, self.types.record(id)))
    }
}
