//! Assertions that a compiler checks: that a group's members lie in it, and how large it may get.

use super::{Group, Named};
use std::fmt::Write;
use tallyline_debuginfo::model::{NameId, Record, RecordKind, Types};

/// The form in which static assertions about layouts are written: C11, C++, Rust, or the kernel's macros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The kernel's `CACHELINE_ASSERT_GROUP_MEMBER` and `_SIZE`, in an `__init` function.
    Kernel,
    /// C11, with `_Static_assert`.
    C11,
    /// C++, with `static_assert`.
    Cpp,
    /// Rust, with `const _: () = assert!(…)`.
    Rust,
}

/// The writer of a struct's assertions.
struct Asserts<'a> {
    dialect: Dialect,
    /// The type of the struct as the language spells it, such as `struct NAME` in C.
    ty: String,
    name: &'a str,
    line: u64,
    text: String,
}

/// Returns source text with static assertions that cache-line groups of a struct keep their layout: the same members,
/// no more bytes and, for groups without markers, no more cache lines of `line` bytes. `name` is the struct's name, or that
/// of its typedef if it has none. Bitfields, and names that are no
/// identifiers in the language, get a comment instead.
pub fn asserts(
    types: &Types,
    record: &Record,
    name: NameId,
    groups: &[Group],
    dialect: Dialect,
    line: u64,
) -> String {
    let has_tag = record.name.is_some();
    let name = String::from_utf8_lossy(types.name(name)).into_owned();
    let tag = match (dialect, record.kind) {
        (Dialect::Rust, _) => "",
        _ if !has_tag => "",
        (_, RecordKind::Union) => "union ",
        _ => "struct ",
    };
    let ty = format!("{tag}{name}");
    let mut asserts = Asserts { dialect, ty, name: &name, line: line.max(1), text: String::new() };
    if !is_path(&name) {
        asserts.comment("the struct's name is not one that can be written");
        return asserts.text;
    }
    if dialect == Dialect::Kernel {
        let _ = write!(asserts.text, "static void __init {name}_struct_check(void)\n{{\n");
    }
    for (index, group) in groups.iter().enumerate() {
        if index != 0 {
            asserts.text.push('\n');
        }
        asserts.group(group);
    }
    if dialect == Dialect::Kernel {
        asserts.text.push_str("}\n");
    }
    asserts.text
}

impl Asserts<'_> {
    fn group(&mut self, group: &Group) {
        if !is_path(&group.name) {
            return self.comment("a group's name is not one that can be written");
        }
        self.comment(&format!("{}: {} bytes", group.name, group.bytes()));
        let (usable, other): (Vec<_>, Vec<_>) =
            group.members.iter().partition(|named| !named.field.bitfield && self.can_name(&named.path));
        for named in &usable {
            match (group.marked, self.dialect) {
                (true, Dialect::Kernel) => {
                    let call = "CACHELINE_ASSERT_GROUP_MEMBER";
                    let _ = writeln!(self.text, "\t{call}({}, {}, {});", self.ty, group.name, named.path);
                }
                (true, _) => self.marked_member(group, named),
                (false, _) => {}
            }
        }
        for named in other {
            let name = if is_path(&named.path) { &named.path } else { "a name that cannot be written" };
            self.comment(&format!("{name}: has no offset that can be asked for"));
        }
        match group.marked {
            true => self.marked_size(group),
            false => self.listed(group, &usable),
        }
    }

    fn marked_member(&mut self, group: &Group, named: &Named) {
        let (path, size) = (&named.path, named.field.bytes());
        let condition = format!(
            "{} >= {} && {} <= {}",
            self.offset(path),
            self.offset(&format!("__cacheline_group_begin__{}", group.name)),
            self.end(path, size),
            self.offset(&format!("__cacheline_group_end__{}", group.name)),
        );
        self.assert(&condition, &format!("{}.{path} is in group {}", self.name, group.name));
    }

    fn marked_size(&mut self, group: &Group) {
        let (name, bytes) = (&group.name, group.bytes());
        if self.dialect == Dialect::Kernel {
            let ty = &self.ty;
            let _ = writeln!(self.text, "\tCACHELINE_ASSERT_GROUP_SIZE({ty}, {name}, {bytes});");
            return;
        }
        let condition = format!(
            "{} - {} <= {bytes}",
            self.offset(&format!("__cacheline_group_end__{name}")),
            self.offset(&format!("__cacheline_group_begin__{name}")),
        );
        self.assert(&condition, &format!("group {name} of {} has at most {bytes} bytes", self.name));
    }

    /// Writes the assertions of a group without markers: from its first member to the end of its last.
    fn listed(&mut self, group: &Group, members: &[&Named]) {
        let first = members.iter().min_by_key(|named| named.field.start());
        let last = members.iter().max_by_key(|named| named.field.end());
        let (Some(first), Some(last)) = (first, last) else { return };
        let from = self.offset(&first.path);
        let bytes = last.field.end() - first.field.start();
        for named in members {
            let end = self.end(&named.path, named.field.bytes());
            let condition = format!("{} >= {from} && {end} - {from} <= {bytes}", self.offset(&named.path));
            let holds = format!("{}.{} is in group {}", self.name, named.path, group.name);
            self.assert(&condition, &holds);
        }
        if !group.straddles(self.line) {
            let lines = group.line_count(self.line);
            let line = self.line;
            let condition = format!(
                "({} - 1) / {line} - {from} / {line} < {lines}",
                self.end(&last.path, last.field.bytes())
            );
            let holds = format!("group {} of {} lies on {lines} lines", group.name, self.name);
            self.assert(&condition, &holds);
        }
    }

    /// Returns `true` if the language can take the offset of a path; Rust cannot take that of an array element.
    fn can_name(&self, path: &str) -> bool {
        is_path(path) && !(self.dialect == Dialect::Rust && path.contains('['))
    }

    fn offset(&self, path: &str) -> String {
        match self.dialect {
            Dialect::Rust => format!("core::mem::offset_of!({}, {path})", self.ty),
            _ => format!("offsetof({}, {path})", self.ty),
        }
    }

    /// Formats the end of a member; Rust cannot ask for the size of a member, so it is written as a number.
    fn end(&self, path: &str, size: u64) -> String {
        match self.dialect {
            Dialect::Rust => format!("{} + {size}", self.offset(path)),
            Dialect::Cpp => format!("{} + sizeof({}::{path})", self.offset(path), self.name),
            _ => format!("{} + sizeof((({} *)0)->{path})", self.offset(path), self.ty),
        }
    }

    fn assert(&mut self, condition: &str, holds: &str) {
        let _ = match self.dialect {
            Dialect::Kernel => writeln!(self.text, "\tstatic_assert({condition}, \"{holds}\");"),
            Dialect::C11 => writeln!(self.text, "_Static_assert({condition}, \"{holds}\");"),
            Dialect::Cpp => writeln!(self.text, "static_assert({condition}, \"{holds}\");"),
            Dialect::Rust => writeln!(self.text, "const _: () = assert!({condition}, \"{holds}\");"),
        };
    }

    fn comment(&mut self, text: &str) {
        let _ = match self.dialect {
            Dialect::Kernel => writeln!(self.text, "\t/* {text} */"),
            Dialect::C11 => writeln!(self.text, "/* {text} */"),
            Dialect::Cpp | Dialect::Rust => writeln!(self.text, "// {text}"),
        };
    }
}

/// Returns `true` if a name is safe in source code: names come from a file, and must not become code.
fn is_path(name: &str) -> bool {
    let is_word = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let is_part = |part: &str| {
        let (word, rest) = part.split_once('[').unwrap_or((part, ""));
        let index = rest.is_empty()
            || rest.strip_suffix(']').is_some_and(|digits| {
                digits
                    .split("][")
                    .all(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
            });
        is_word(word) && index
    };
    name.split("::").all(|scope| scope.split('.').all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_can_be_written() {
        for name in ["tcp_sock", "stats.rx[2]", "a::b::C", "größe"] {
            assert!(is_path(name), "{name}");
        }
        for name in ["", "a b", "x);system(\"", "v<int>", "a.", "1st", "a[x]", "a[]b"] {
            assert!(!is_path(name), "{name}");
        }
    }
}
