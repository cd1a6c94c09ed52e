//! Declarators that stand around a name on several levels: `int (*(*name)(int))[7]`.
//!
//! pahole's own forms have one level: a pointer to a function, an array. Of more it prints what is no
//! C, or another type. Those are built here from the inside, as C declares them.

use super::{DEPTH_LIMIT, Printer, frame::Frame};
use tallyline_debuginfo::model::{FunctionId, NameId, Pointer, Qualifier, Type, TypeId};

/// The longest declarator in bytes: functions that take functions can unfold without end.
const LENGTH_LIMIT: usize = 16 << 10;

/// The type around which a declarator goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Pointer,
    /// A pointer that is itself qualified in a way that pahole spells otherwise.
    QualifiedPointer,
    Array,
    Function(FunctionId),
    End,
}

impl Printer<'_> {
    /// Returns `true` if the output has to compile to an equal type rather than match pahole's.
    pub(super) fn is_exact(&self) -> bool {
        self.is_header() || self.is_declared
    }

    /// Prints a declaration of several levels; false if it has one, and pahole's forms are right.
    pub(super) fn nested(&mut self, id: TypeId, name: Option<&[u8]>, frame: &Frame<'_>) -> bool {
        if !self.is_nested(id) || !self.enter() {
            return false;
        }
        let is_outermost = self.begin_declarator();
        let (base, declarator) = self.declarator(id, name.unwrap_or_default().to_vec());
        self.end_declarator(is_outermost);
        self.declaration(base, Some(&declarator), frame);
        self.leave();
        true
    }

    /// Prints a type of several levels without a name; false if it has one.
    pub(super) fn nested_name(&mut self, id: TypeId) -> bool {
        if !self.is_nested(id) {
            return false;
        }
        let is_outermost = self.begin_declarator();
        let text = self.declared(id, Vec::new());
        self.end_declarator(is_outermost);
        self.put(&text);
        true
    }

    /// Prints a parameter whose name stands inside of its type; false if it does not.
    pub(super) fn nested_parameter(&mut self, id: TypeId, name: Option<&[u8]>) -> bool {
        let is_inside = name.is_some() && {
            let (parts, _) = self.parts(id);
            parts.first() == Some(&Part::Array) || parts.contains(&Part::Array) && parts.len() > 1
        };
        if !is_inside && !self.is_nested(id) {
            return false;
        }
        let is_outermost = self.begin_declarator();
        let text = self.declared(id, name.unwrap_or_default().to_vec());
        self.end_declarator(is_outermost);
        self.put(&text);
        true
    }

    /// Begins a declarator; returns `true` if no other one encloses it. All declarators in it share its limit of bytes:
    /// with a limit for each, a function that takes and returns itself unfolds exponentially.
    fn begin_declarator(&mut self) -> bool {
        let is_outermost = self.declarator_left.is_none();
        self.declarator_left.get_or_insert(LENGTH_LIMIT);
        is_outermost
    }

    fn end_declarator(&mut self, is_outermost: bool) {
        if is_outermost {
            self.declarator_left = None;
        }
    }

    /// Returns the number of bytes that the declarator being printed may still have.
    fn left(&self) -> usize {
        self.declarator_left.unwrap_or(0)
    }

    fn spend(&mut self, bytes: usize) {
        self.declarator_left = self.declarator_left.map(|left| left.saturating_sub(bytes));
    }

    /// Returns `true` if a declarator of one level is not enough: below the first array or function there is another
    /// that only parentheses reach.
    fn is_nested(&self, id: TypeId) -> bool {
        let (parts, _) = self.parts(id);
        let exact = self.is_exact();
        if exact && parts.contains(&Part::QualifiedPointer) {
            return true;
        }
        let is_pointer = |part: &Part| matches!(part, Part::Pointer | Part::QualifiedPointer);
        let rest: Vec<Part> = parts.iter().copied().skip_while(is_pointer).collect();
        let leads = parts.len() - rest.len();
        match rest.first() {
            Some(Part::Array) => {
                let below: Vec<Part> = rest.into_iter().skip_while(|part| *part == Part::Array).collect();
                let points = below.iter().take_while(|part| is_pointer(part)).count();
                match below.get(points) {
                    // pahole has an array's dimensions behind the parameters of its functions
                    Some(Part::Function(function)) if leads == 0 && points == 1 && !exact => {
                        self.returns_nested(*function) || self.takes_nested(*function)
                    }
                    Some(Part::Array | Part::Function(_)) => points != 0,
                    _ => false,
                }
            }
            Some(Part::Function(function)) => self.returns_nested(*function) || self.takes_nested(*function),
            _ => false,
        }
    }

    fn returns_nested(&self, id: FunctionId) -> bool {
        let (parts, _) = self.parts(self.types.function(id).returns);
        parts.iter().any(|part| matches!(part, Part::Array | Part::Function(_)))
    }

    /// Returns `true` if, in exact output, a parameter leads to a function whose return type has an array or function.
    fn takes_nested(&self, id: FunctionId) -> bool {
        let parameters = self.types.parameters(self.types.function(id));
        parameters.iter().any(|parameter| {
            let (parts, _) = self.parts(parameter.ty);
            let function = parts.iter().find_map(|part| match part {
                Part::Function(inner) => Some(*inner),
                _ => None,
            });
            // one level deep: what is deeper is found when that is printed
            let returns = |inner: FunctionId| {
                let (parts, _) = self.parts(self.types.function(inner).returns);
                parts.iter().any(|part| matches!(part, Part::Array | Part::Function(_)))
            };
            self.is_exact() && function.is_some_and(returns)
        })
    }

    /// Returns the parts of the declarator around a name of this type, and the type that is left.
    fn parts(&self, mut id: TypeId) -> (Vec<Part>, TypeId) {
        let mut parts = Vec::new();
        for _ in 0..DEPTH_LIMIT {
            id = match self.types.get(id) {
                Type::Annotated { of } => of,
                Type::Pointer { to, .. } => {
                    parts.push(Part::Pointer);
                    to
                }
                Type::Qualified { qualifier, of } => match self.qualified(of) {
                    Type::Pointer { to, .. } => {
                        // `restrict` it has behind the star, and `const` behind that of another pointer
                        let is_one = matches!(self.types.get(of), Type::Pointer { .. });
                        let is_right = is_one
                            && (qualifier == Qualifier::Restrict
                                || qualifier == Qualifier::Const && parts.last() == Some(&Part::Pointer));
                        parts.push(if is_right { Part::Pointer } else { Part::QualifiedPointer });
                        to
                    }
                    Type::Array(_) | Type::Function(_) => of,
                    _ => break,
                },
                Type::Array(array) if !self.types.array(array).vector => {
                    parts.push(Part::Array);
                    self.types.array(array).of
                }
                Type::Function(function) => {
                    parts.push(Part::Function(function));
                    self.types.function(function).returns
                }
                _ => break,
            };
            // what a function returns is looked at by those who print it
            if let Some(Part::Function(_)) = parts.last() {
                break;
            }
        }
        if !matches!(parts.last(), Some(Part::Function(_))) {
            parts.push(Part::End);
        }
        (parts, id)
    }

    /// Returns a type and its declarator in one text.
    fn declared(&mut self, id: TypeId, inner: Vec<u8>) -> Vec<u8> {
        if self.left() == 0 || !self.enter() {
            return Vec::new();
        }
        // also what prints nothing takes time
        self.spend(1);
        let (base, declarator) = self.declarator(id, inner);
        let start = self.out.len();
        self.type_name(base);
        let mut text = self.out.split_off(start);
        self.spend(text.len());
        if !declarator.is_empty() {
            if !text.ends_with(b" ") {
                text.push(b' ');
            }
            text.extend_from_slice(&declarator);
        }
        self.leave();
        text
    }

    /// Goes from a name outwards: the type that stands before it, and all that stands around it.
    fn declarator(&mut self, mut id: TypeId, mut inner: Vec<u8>) -> (TypeId, Vec<u8>) {
        for _ in 0..DEPTH_LIMIT {
            if inner.len() >= self.left() {
                break;
            }
            id = match self.types.get(id) {
                Type::Annotated { of } => of,
                Type::Qualified { qualifier, of } => {
                    match self.qualified(of) {
                        Type::Pointer { .. } => {
                            let word: &[u8] = match qualifier {
                                Qualifier::Const => b"const",
                                Qualifier::Volatile => b"volatile",
                                Qualifier::Restrict => b"restrict",
                                Qualifier::Atomic => b"_Atomic",
                            };
                            inner = [word, b" ", inner.trim_ascii_start()].concat();
                            of
                        }
                        // of a function it says that it does not return, or nothing; the elements of
                        // an array have it too
                        Type::Function(_) | Type::Array(_) => of,
                        _ => break,
                    }
                }
                Type::Pointer { kind, to } => {
                    let sign: &[u8] = match kind {
                        Pointer::Pointer => b"*",
                        Pointer::Reference => b"&",
                        Pointer::RvalueReference => b"&&",
                    };
                    inner.splice(0..0, sign.iter().copied());
                    if self.is_bracketed(to) {
                        inner.insert(0, b'(');
                        inner.push(b')');
                    }
                    to
                }
                Type::Array(array) if !self.types.array(array).vector => {
                    let array = self.types.array(array);
                    let dimensions: String =
                        self.types.dimensions(array).iter().map(|count| format!("[{count}]")).collect();
                    inner.extend_from_slice(if dimensions.is_empty() {
                        b"[]"
                    } else {
                        dimensions.as_bytes()
                    });
                    array.of
                }
                Type::Function(function) => {
                    let parameters = self.parameters(function);
                    inner.extend_from_slice(&parameters);
                    self.types.function(function).returns
                }
                _ => break,
            };
        }
        self.spend(inner.len());
        (id, inner)
    }

    /// Returns the type below its qualifiers.
    fn qualified(&self, mut id: TypeId) -> Type {
        for _ in 0..DEPTH_LIMIT {
            match self.types.get(id) {
                Type::Qualified { of, .. } | Type::Annotated { of } => id = of,
                Type::Array(array) if self.types.array(array).vector => return Type::Missing,
                other => return other,
            }
        }
        Type::Missing
    }

    /// Returns `true` if a pointer to this type needs parentheses: to an array, or to a function.
    fn is_bracketed(&self, mut id: TypeId) -> bool {
        for _ in 0..DEPTH_LIMIT {
            id = match self.types.get(id) {
                Type::Annotated { of } => of,
                Type::Qualified { of, .. } if matches!(self.types.get(of), Type::Function(_)) => of,
                Type::Array(array) => return !self.types.array(array).vector,
                Type::Function(_) => return true,
                _ => return false,
            };
        }
        false
    }

    fn parameters(&mut self, id: FunctionId) -> Vec<u8> {
        let function = self.types.function(id);
        let mut text = b"(".to_vec();
        for (index, parameter) in self.types.parameters(function).iter().enumerate() {
            if text.len() >= self.left() {
                break;
            }
            if index != 0 {
                text.extend_from_slice(b", ");
            }
            let name = if parameter.name == NameId::NONE { b"" } else { self.types.name(parameter.name) };
            let one = self.declared(parameter.ty, name.to_vec());
            text.extend_from_slice(one.trim_ascii_end());
        }
        text.extend_from_slice(match (self.types.parameters(function).is_empty(), function.variadic) {
            (true, _) => b"void)".as_slice(),
            (false, true) => b", ...)",
            (false, false) => b")",
        });
        self.spend(text.len());
        text
    }
}
