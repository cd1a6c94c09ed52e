//! A type in one line, as C declares it without a name: `const char *(*)(int)`.

use crate::model::{Pointer, Qualifier, Record, RecordKind, Type, TypeId, Types};
use std::borrow::Cow;

/// The depth of nested types at which the rest is cut; real programs stay below twenty.
const DEPTH_LIMIT: usize = 64;

/// The longest text in bytes: functions that take functions can unfold without end.
const LENGTH_LIMIT: usize = 16 << 10;

/// Formats a type in C's syntax, such as `const char *`. Too deep or long types are cut with `…`; bytes that are not
/// UTF-8 become the replacement character.
pub fn type_text(types: &Types, id: TypeId) -> String {
    let mut budget = LENGTH_LIMIT;
    declare(Naming { types, is_qualified: false }, id, String::new(), 0, &mut budget)
}

/// Formats a type as [`type_text`] does, with the scopes of names as far as they are known: `struct ns::T *`.
pub fn qualified_type_text(types: &Types, id: TypeId) -> String {
    let mut budget = LENGTH_LIMIT;
    declare(Naming { types, is_qualified: true }, id, String::new(), 0, &mut budget)
}

/// Types, and the form in which their names are written.
#[derive(Clone, Copy)]
struct Naming<'t> {
    types: &'t Types,
    /// `true` if names have their scopes.
    is_qualified: bool,
}

impl<'t> Naming<'t> {
    /// Returns the name of a type; empty for anonymous ones.
    fn name(self, id: TypeId) -> Cow<'t, str> {
        let name = self.types.type_name(id);
        if self.is_qualified && name.is_some() {
            return String::from_utf8_lossy(&self.types.qualified_name(id)).into_owned().into();
        }
        String::from_utf8_lossy(self.types.name(name))
    }
}

/// Formats an array's element type in C's syntax and returns it with the dimensions, outermost first; for other types,
/// the type itself and no dimensions. SIMD vectors and typedefs of arrays count as elements.
pub fn element_text(types: &Types, id: TypeId) -> (String, Vec<u64>) {
    let mut element = id;
    let mut dimensions = Vec::new();
    for _ in 0..DEPTH_LIMIT {
        match types.get(element) {
            Type::Array(array) if !types.array(array).vector => {
                let array = types.array(array);
                dimensions.extend_from_slice(types.dimensions(array));
                element = array.of;
            }
            Type::Annotated { of } => element = of,
            _ => break,
        }
    }
    (type_text(types, element), dimensions)
}

/// Returns the keyword that declares the record: `struct`, `class`, `interface` or `union`.
pub fn keyword(record: &Record) -> &'static str {
    match record.kind {
        RecordKind::Struct => "struct",
        RecordKind::Class => "class",
        RecordKind::Interface => "interface",
        RecordKind::Union => "union",
    }
}

/// Builds a declaration from the inside: `inner` is what stands where the name would be.
fn declare(naming: Naming<'_>, id: TypeId, inner: String, depth: usize, budget: &mut usize) -> String {
    let types = naming.types;
    if depth > DEPTH_LIMIT || inner.len() >= *budget {
        return "…".into();
    }
    *budget -= 1;
    let next = depth + 1;
    let named = |name: &str| join(name, &inner);
    match types.get(id) {
        Type::Void => named("void"),
        Type::Missing => named("(missing)"),
        Type::Base { .. } | Type::Typedef { .. } | Type::Opaque { .. } => named(&naming.name(id)),
        Type::Text { length } => named(&format!("string({length})")),
        Type::Annotated { of } => declare(naming, of, inner, next, budget),
        Type::Descriptor { of, rank, .. } => {
            declare(naming, of, inner + &"[:]".repeat(rank.into()), next, budget)
        }
        Type::Record(record) => named(&tagged(keyword(types.record(record)), &naming.name(id))),
        Type::Enum(_) => named(&tagged("enum", &naming.name(id))),
        Type::Pointer { kind, to } => {
            let sign = match kind {
                Pointer::Pointer => "*",
                Pointer::Reference => "&",
                Pointer::RvalueReference => "&&",
            };
            point(naming, to, format!("{sign}{inner}"), next, budget)
        }
        Type::MemberPointer { class, to } => {
            let class = naming.name(class);
            point(naming, to, format!("{class}::*{inner}"), next, budget)
        }
        Type::Qualified { qualifier, of } => qualify(naming, qualifier, of, inner, next, budget),
        Type::Array(array) => {
            let array = types.array(array);
            let dimensions = types.dimensions(array).iter();
            let dimensions: String = dimensions.map(|n| format!("[{n}]")).collect();
            let outer =
                if array.vector { format!("{inner} vector{dimensions}") } else { inner + &dimensions };
            declare(naming, array.of, outer, next, budget)
        }
        Type::Function(function) => {
            let function = types.function(function);
            let mut parameters: Vec<String> = Vec::new();
            for parameter in types.parameters(function) {
                let text = declare(naming, parameter.ty, String::new(), next, budget);
                *budget = budget.saturating_sub(text.len());
                parameters.push(text);
            }
            match (parameters.is_empty(), function.variadic) {
                (true, _) => parameters.push("void".into()),
                (false, true) => parameters.push("...".into()),
                (false, false) => {}
            }
            declare(naming, function.returns, format!("{inner}({})", parameters.join(", ")), next, budget)
        }
    }
}

/// Parenthesises a pointer's declarator, which binds weaker than what is called or indexed.
fn point(naming: Naming<'_>, to: TypeId, inner: String, depth: usize, budget: &mut usize) -> String {
    let mut target = to;
    for _ in 0..DEPTH_LIMIT {
        let Type::Annotated { of } = naming.types.get(target) else { break };
        target = of;
    }
    let bracketed = matches!(naming.types.get(target), Type::Array(_) | Type::Function(_));
    let inner = if bracketed { format!("({inner})") } else { inner };
    declare(naming, target, inner, depth, budget)
}

/// Adds a qualifier: of a pointer behind the star, of anything else before the type.
fn qualify(
    naming: Naming<'_>,
    qualifier: Qualifier,
    of: TypeId,
    inner: String,
    depth: usize,
    budget: &mut usize,
) -> String {
    let word = match qualifier {
        Qualifier::Const => "const",
        Qualifier::Volatile => "volatile",
        Qualifier::Restrict => "restrict",
        Qualifier::Atomic => "_Atomic",
    };
    if matches!(naming.types.get(of), Type::Pointer { .. } | Type::MemberPointer { .. }) {
        let inner = if inner.is_empty() { word.into() } else { format!("{word} {inner}") };
        return declare(naming, of, inner, depth, budget);
    }
    format!("{word} {}", declare(naming, of, inner, depth, budget))
}

fn tagged(keyword: &str, name: &str) -> String {
    if name.is_empty() { keyword.into() } else { format!("{keyword} {name}") }
}

fn join(name: &str, inner: &str) -> String {
    // brackets of arrays stand close
    match inner.as_bytes().first() {
        None => name.into(),
        Some(b'[') => format!("{name}{inner}"),
        Some(_) => format!("{name} {}", inner.trim_start()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NameId, Origin, Parameter};

    #[test]
    fn declarations_are_those_of_c() {
        let mut types = Types::new(Origin::Dwarf, 8);
        let name = types.intern(b"char").expect("room");
        let plain = types.push(Type::Base { name, bits: 8 }).expect("room");
        let constant = types.push(Type::Qualified { qualifier: Qualifier::Const, of: plain }).expect("room");
        let mut point = |to| types.push(Type::Pointer { kind: Pointer::Pointer, to }).expect("room");
        let (text, deep) = (point(constant), point(plain));
        let fixed = types.push(Type::Qualified { qualifier: Qualifier::Const, of: deep }).expect("room");
        let array = types.push_array(text, &[2, 3], false).expect("room");
        let array = types.push(Type::Array(array)).expect("room");
        let to_array = types.push(Type::Pointer { kind: Pointer::Pointer, to: array }).expect("room");
        let parameter = Parameter { name, ty: to_array };
        let function = types.push_function(text, &[parameter], true).expect("room");
        let function = types.push(Type::Function(function)).expect("room");
        let callback = types.push(Type::Pointer { kind: Pointer::Pointer, to: function }).expect("room");
        assert_eq!(type_text(&types, text), "const char *");
        assert_eq!(type_text(&types, fixed), "char *const");
        assert_eq!(type_text(&types, array), "const char *[2][3]");
        assert_eq!(type_text(&types, to_array), "const char *(*)[2][3]");
        assert_eq!(type_text(&types, callback), "const char *(*)(const char *(*)[2][3], ...)");
        assert_eq!(element_text(&types, array), ("const char *".to_string(), vec![2, 3]));
    }

    #[test]
    fn a_function_that_takes_itself_twice_is_cut() {
        let mut types = Types::new(Origin::Dwarf, 8);
        let own = TypeId(types.len() as u32);
        let parameter = Parameter { name: crate::model::NameId::NONE, ty: own };
        let function = types.push_function(own, &[parameter, parameter], false).expect("room");
        types.push(Type::Function(function)).expect("room");
        let text = type_text(&types, own);
        assert!(text.contains('…') && text.len() < 20 * LENGTH_LIMIT, "{}", text.len());
    }

    #[test]
    fn scopes_stand_before_names_wherever_those_are() {
        let mut types = Types::new(Origin::Dwarf, 8);
        let name = types.intern(b"Node").expect("room");
        let record = types.push_record(Record::new(RecordKind::Struct, name, 8)).expect("room");
        let record = types.push(Type::Record(record)).expect("room");
        let path = types.intern(b"a::b").expect("room");
        types.set_path(record, path);
        let array = types.push_array(record, &[4], false).expect("room");
        let array = types.push(Type::Array(array)).expect("room");
        let pointer = types.push(Type::Pointer { kind: Pointer::Pointer, to: array }).expect("room");
        assert_eq!(type_text(&types, pointer), "struct Node (*)[4]");
        assert_eq!(qualified_type_text(&types, pointer), "struct a::b::Node (*)[4]");
        let nameless = types.push_record(Record::new(RecordKind::Union, NameId::NONE, 8)).expect("room");
        let nameless = types.push(Type::Record(nameless)).expect("room");
        types.set_path(nameless, path);
        assert_eq!(qualified_type_text(&types, nameless), "union");
    }
}
