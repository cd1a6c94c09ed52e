//! JSON: what is known of types, for programs.
//!
//! A [`Document`] writes one type after another, each on a line of its own, and keeps none of them:
//! memory is that of the largest type. Schema 1; what is added later keeps the number, what changes
//! or goes away raises it.
//!
//! ```json
//! {"schema":1,"origin":"dwarf","pointer_size":8,"cacheline":64,"types":[
//! {"id":7,"name":"packet","kind":"struct","size":24,"align":8, …},
//! …
//! ]}
//! ```
//!
//! | of a type | |
//! |---|---|
//! | `id` | a number that no other type of the document has; names repeat, ids do not |
//! | `name` | null for an anonymous type |
//! | `scope` | the namespaces and classes that it is declared in, `::` between; left out where there are none |
//! | `kind` | `struct`, `class`, `interface`, `union`, `enum`, `typedef`, `other` |
//! | `size`, `align` | in bytes; the alignment is that in effect, in BTF (`"origin":"btf"`) as inferred |
//! | `cachelines` | how many lines it takes, if it starts on one |
//! | `dynamic` | true where the contents decide about the size, as in Ada: `size` is the least; else left out |
//! | `packed` | whether it shows that it was declared packed |
//! | `bases` | of C++: `type`, `type_id`, `offset`, `size`, `virtual`; `offset` is null where it is known at run time only |
//! | `members` | in the order of the file, see below |
//! | `variants` | of Rust: `name`, `tag` (null for the one that takes every other value), `members` |
//! | `statics` | names of static members, which take no place |
//! | `holes` | `offset`, `size` in bytes, `after`: the name of the member before, null for none or an anonymous one |
//! | `bit_holes` | `bit_offset` from the start of the type, `bits`, `after` |
//! | `padding`, `bit_padding` | bytes behind the last member, bits behind the last bitfield |
//! | `flexible` | whether it ends with an array of no given length |
//! | `declared_at` | `file` and `line`, or null |
//! | `enumerators` | of an enumeration: `name`, `value` |
//! | `of`, `of_id`, `inner` | of a typedef: the type it stands for; what an anonymous one has, as of a member |
//!
//! | of a member | |
//! |---|---|
//! | `name` | null for an anonymous one |
//! | `type`, `type_id` | the type, of an array that of its element, as C writes it; an id |
//! | `dims` | the dimensions of an array, outermost first, 0 for one of no given length, and of Fortran the last one outermost; `[]` for what is no array |
//! | `offset` | the byte it starts at; of a bitfield, where the unit that holds it starts; null where that is known at run time only |
//! | `bit_offset`, `bit_size` | of a bitfield: its first bit, counted from `offset`, and how many; else null |
//! | `size` | in bytes; of a bitfield, that of the unit |
//! | `align` | the alignment that was asked for; left out where none was |
//! | `declared_at` | `file` and `line`, or null |
//! | `inner` | of an anonymous struct or union: its own `kind`, `size`, `members`, `holes`, …, offsets counted from its own start; null where they nest too deep |

mod view;

use std::io::{self, Write};
use tallyline_debuginfo::model::{TypeId, Types};
use view::Views;

/// Writer of a JSON document with the layouts of types.
pub struct Document<'t, W: Write> {
    lines: Lines<'t>,
    out: W,
    any: bool,
}

impl<'t, W: Write> Document<'t, W> {
    /// Creates a writer of a JSON document of layouts and writes the document's beginning to `out`. `cacheline` is the
    /// size of a cache line in bytes.
    pub fn start(types: &'t Types, cacheline: u64, mut out: W) -> io::Result<Document<'t, W>> {
        let lines = Lines { views: Views::new(types, cacheline), line: Vec::new() };
        let head = serde_json::to_string(&lines.views.head())?;
        // the head is an object that is left open
        write!(out, "{},\"types\":[", head.strip_suffix('}').unwrap_or(&head))?;
        Ok(Document { lines, out, any: false })
    }

    /// Writes the layout of one type to the JSON document.
    pub fn add(&mut self, id: TypeId) -> io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        self.out.write_all(self.lines.of(id)?)
    }

    /// Writes the end of the JSON document, after the layouts of all types were added.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")
    }
}

/// Lines of a document, each made whole in one buffer: a line has hundreds of pieces, too many to write one by one.
struct Lines<'t> {
    views: Views<'t>,
    line: Vec<u8>,
}

impl Lines<'_> {
    fn of(&mut self, id: TypeId) -> io::Result<&[u8]> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &self.views.of(id))?;
        Ok(&self.line)
    }
}
