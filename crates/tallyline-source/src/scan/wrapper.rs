//! Functions and macros of a project that pass their callers' objects on as bytes.

use super::transfer::{BYTE_TYPES, transfers};
use super::{Scan, code, macros, skip_group};
use crate::Language;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The words in front of a parenthesis that call nothing, and define nothing.
const NO_FUNCTIONS: [&[u8]; 12] = [
    b"if",
    b"while",
    b"for",
    b"switch",
    b"return",
    b"sizeof",
    b"catch",
    b"defined",
    b"alignas",
    b"_Alignas",
    b"__attribute__",
    b"decltype",
];

/// The most parameters of a function, and arguments of a call, that are looked at.
const ARGUMENTS: usize = 16;

/// The most tokens of a call that is looked at.
const CALL: usize = 128;

/// The most tokens of a value that a variable is given.
const VALUE: usize = 16;

/// The most tokens of each of the parts of a generic function's head.
const HEAD: usize = 500;

/// A parameter of a function or a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parameter<'t> {
    /// The name, then those of variables that are given its value.
    names: Vec<&'t [u8]>,
    /// The name of the template's parameter that the type is, or refers to.
    generic: &'t [u8],
    /// `true` if it may point to bytes.
    is_pointer: bool,
    /// `true` if it may be a number.
    is_number: bool,
    /// `true` if it has no type, as a macro's.
    is_untyped: bool,
}

impl<'t> Parameter<'t> {
    fn of_macro(name: &'t [u8]) -> Parameter<'t> {
        Parameter { names: vec![name], generic: b"", is_pointer: true, is_number: true, is_untyped: true }
    }
}

/// Finds the calls in the bodies of a source's functions and macros that pass a parameter on: as a size together with one
/// that points to bytes, or one of any type, or its size; in Rust, one of any type as a slice of bytes. Returns of each the
/// function's name and the parameter's index, then the callee's name and the argument's index.
pub fn wrapper_calls(text: &[u8], language: Language) -> Vec<(Vec<u8>, usize, Vec<u8>, usize)> {
    let mut calls = Vec::new();
    let all = code(text, 0, language);
    let scan = Scan::new(text, &all, &[], &[]);
    if language == Language::Rust {
        for at in (0..all.len()).filter(|at| scan.word(*at) == b"fn") {
            scan.passed_on_in_rust(at + 1, &mut calls);
        }
        return calls;
    }
    let mut at = 0;
    while at < all.len() {
        let Some(body) = scan.body_of_function(at) else {
            // nothing is defined between parentheses
            at = if scan.punct(at, b'(') { skip_group(&all, at) } else { at + 1 };
            continue;
        };
        let mut parameters = scan.parameters(at);
        scan.add_aliases(body.clone(), &mut parameters);
        scan.passed_on(scan.word(at), &parameters, body.clone(), &mut calls);
        at = body.end;
    }
    for body in macros(text, &all, language) {
        let parameters: Vec<Parameter<'_>> =
            body.parameters.iter().take(ARGUMENTS).map(|name| Parameter::of_macro(name)).collect();
        if !parameters.is_empty() {
            let scan = Scan::new(text, &body.body, &[], &[]);
            scan.passed_on(body.name, &parameters, 0..body.body.len(), &mut calls);
        }
    }
    calls
}

/// Returns the functions and macros that pass an object on to a function that transfers bytes, also by way of each
/// other, with the indices of the arguments that are the object or its size. `calls` are those of all sources, as
/// `wrapper_calls` returns them.
pub fn wrappers(calls: &[(Vec<u8>, usize, Vec<u8>, usize)]) -> BTreeMap<Vec<u8>, BTreeSet<usize>> {
    // a function's name and the index of an argument
    type Passed<'c> = (&'c [u8], usize);
    let mut by_callee: HashMap<Passed<'_>, Vec<Passed<'_>>> = HashMap::new();
    let mut open: Vec<Passed<'_>> = Vec::new();
    for (name, parameter, callee, argument) in calls {
        if transfers(callee) || matches!(callee.as_slice(), b"from_raw_parts" | b"writev") {
            open.push((name, *parameter));
        } else {
            by_callee.entry((callee, *argument)).or_default().push((name, *parameter));
        }
    }
    let mut found: BTreeMap<Vec<u8>, BTreeSet<usize>> = BTreeMap::new();
    while let Some(passed) = open.pop() {
        if found.entry(passed.0.to_vec()).or_default().insert(passed.1) {
            open.extend(by_callee.get(&passed).into_iter().flatten());
        }
    }
    found
}

impl<'t> Scan<'t> {
    /// Returns the body of the function that is defined by the name at a token, with its braces; none if it is no such
    /// name.
    fn body_of_function(&self, at: usize) -> Option<Range<usize>> {
        if self.word(at).is_empty() || !self.punct(at + 1, b'(') || NO_FUNCTIONS.contains(&self.word(at)) {
            return None;
        }
        let mut open = skip_group(self.tokens, at + 1);
        loop {
            match self.word(open) {
                b"const" | b"override" | b"final" | b"noexcept" => open += 1,
                b"__attribute__" => open = skip_group(self.tokens, open + 1),
                _ => break,
            }
        }
        self.punct(open, b'{').then(|| open..skip_group(self.tokens, open))
    }

    /// Returns the parameters of the function that is defined by the name at a token.
    fn parameters(&self, at: usize) -> Vec<Parameter<'t>> {
        let generics = self.template_parameters(at);
        let of = |tokens: Range<usize>| {
            let end = tokens
                .clone()
                .find(|at| self.punct(*at, b'=') || self.punct(*at, b'['))
                .unwrap_or(tokens.end);
            let named = tokens.start..end;
            let name =
                named.clone().rev().map(|at| self.word(at)).find(|word| !word.is_empty()).unwrap_or_default();
            let words = || named.clone().map(|at| self.word(at));
            let points = tokens.clone().any(|at| self.punct(at, b'*') || self.punct(at, b'['));
            // bytes, as an index may be written beside another pointer, too
            let is_any = |word: &[u8]| BYTE_TYPES.contains(&word) || word == b"void";
            let is_pointer = points && words().any(is_any)
                || words().any(|word| matches!(word, b"gpointer" | b"gconstpointer" | b"caddr_t"));
            let is_number = !points && !tokens.clone().any(|at| self.punct(at, b'&'));
            let generic = words().find(|word| generics.contains(word)).unwrap_or_default();
            Parameter { names: vec![name], generic, is_pointer, is_number, is_untyped: false }
        };
        self.arguments_of(at).into_iter().map(of).collect()
    }

    /// Returns the first arguments of the call by the name at a token.
    fn arguments_of(&self, at: usize) -> Vec<Range<usize>> {
        let tokens = &self.tokens[..self.tokens.len().min(at.saturating_add(CALL))];
        let inside = at + 2..skip_group(tokens, at + 1).saturating_sub(1).max(at + 2);
        let mut arguments = self.arguments(inside);
        arguments.truncate(ARGUMENTS);
        arguments
    }

    /// Adds to each parameter the variables that are given its value, as a loop of `write` has them.
    fn add_aliases(&self, body: Range<usize>, parameters: &mut [Parameter<'t>]) {
        for at in body.filter(|at| self.punct(*at, b'=') && !self.punct(at + 1, b'=')) {
            let name = self.word(at.saturating_sub(1));
            let ends = |at: &usize| self.punct(*at, b';') || self.punct(*at, b',');
            let Some(end) = (at + 1..at + VALUE).find(ends).filter(|_| !name.is_empty()) else { continue };
            let given = |known: &&mut Parameter<'t>| {
                !known.names.contains(&name) && self.is_alone(at + 1..end, &known.names)
            };
            let mut open = parameters.iter_mut().filter(|known| known.names.len() < ARGUMENTS);
            if let Some(known) = open.find(given) {
                known.names.push(name);
            }
        }
    }

    /// Returns the names of the parameters of the template whose definition has a token; none if it is of no template.
    fn template_parameters(&self, at: usize) -> Vec<&'t [u8]> {
        let ends = |at: &usize| [b';', b'{', b'}'].iter().any(|end| self.punct(*at, *end));
        let start = (0..at).rev().find(ends).map_or(0, |end| end + 1);
        let Some(template) = (start..at).find(|at| self.word(*at) == b"template") else { return Vec::new() };
        let is_parameter = |at: &usize| matches!(self.word(*at), b"class" | b"typename");
        (template..at)
            .filter(is_parameter)
            .map(|at| self.word(at + 1))
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// Adds those of the calls in a body that pass a parameter on: as a size beside a pointer, as it is, or its size.
    fn passed_on(
        &self,
        name: &[u8],
        parameters: &[Parameter<'t>],
        body: Range<usize>,
        calls: &mut Vec<(Vec<u8>, usize, Vec<u8>, usize)>,
    ) {
        // what passes a size to an allocator transfers nothing
        if name.windows(5).any(|part| part.eq_ignore_ascii_case(b"alloc")) {
            return;
        }
        for at in body {
            let callee = self.word(at);
            // an element of writev and sendmsg
            if callee == b"iov_len" && self.punct(at + 1, b'=') && self.punct(at + 3, b';') {
                let is_length =
                    |known: &Parameter<'_>| known.is_number && known.names.contains(&self.word(at + 2));
                let of = parameters.iter().position(is_length);
                calls.extend(of.map(|of| (name.to_vec(), of, b"writev".to_vec(), 0)));
            }
            if callee.is_empty() || !self.punct(at + 1, b'(') || NO_FUNCTIONS.contains(&callee) {
                continue;
            }
            let arguments = self.arguments_of(at);
            let pointers = |argument: &Range<usize>| {
                let is_in =
                    |known: &Parameter<'_>| known.is_pointer && self.has_word(argument.clone(), &known.names);
                parameters.iter().position(is_in)
            };
            let pointers: Vec<Option<usize>> = arguments.iter().map(pointers).collect();
            for (index, argument) in arguments.iter().enumerate() {
                // system calls have a file's number before the bytes
                let others = if transfers(callee) { 0..index } else { 0..arguments.len() };
                for (of, parameter) in parameters.iter().enumerate() {
                    let is_beside =
                        |at: usize| at != index && pointers[at].is_some_and(|pointer| pointer != of);
                    let is_any = parameter.is_untyped || !parameter.generic.is_empty();
                    let is_passed = match () {
                        () if self.has_size_of(argument.clone(), parameter) => true,
                        () if !self.is_alone(argument.clone(), &parameter.names) => false,
                        () => {
                            is_any && !transfers(callee)
                                || parameter.is_number && others.clone().any(is_beside)
                        }
                    };
                    if is_passed {
                        calls.push((name.to_vec(), of, callee.to_vec(), index));
                    }
                }
            }
        }
    }

    /// Adds those of the calls in a generic function of Rust, whose name is at a token, that pass a parameter on: its bytes,
    /// or itself.
    fn passed_on_in_rust(&self, at: usize, calls: &mut Vec<(Vec<u8>, usize, Vec<u8>, usize)>) {
        let name = self.word(at);
        let mut head = at + 1..at.saturating_add(HEAD).min(self.tokens.len());
        let open = if self.punct(at + 1, b'<') { head.find(|at| self.punct(*at, b'(')) } else { None };
        let Some(open) = open else { return };
        let is_first = |at: &usize| self.punct(at - 1, b'<') || self.punct(at - 1, b',');
        let generics: Vec<&[u8]> =
            (at + 2..open).filter(is_first).map(|at| self.word(at)).filter(|word| !word.is_empty()).collect();
        let end = skip_group(self.tokens, open);
        let ends = |at: &usize| self.punct(*at, b'{') || self.punct(*at, b';');
        let mut bounds = end..end.saturating_add(HEAD).min(self.tokens.len());
        let Some(start) = bounds.find(ends).filter(|at| self.punct(*at, b'{')) else {
            return;
        };
        let body = start..skip_group(self.tokens, start);
        let makes_bytes =
            body.clone().any(|at| matches!(self.word(at), b"from_raw_parts" | b"from_raw_parts_mut"))
                && body.clone().any(|at| self.word(at) == b"u8");
        let parameters =
            self.arguments(open + 1..end.saturating_sub(1).max(open + 1)).into_iter().take(ARGUMENTS);
        // in a call of a method its object is none of the arguments
        let parameters = parameters.filter(|tokens| !tokens.clone().any(|at| self.word(at) == b"self"));
        for (of, tokens) in parameters.enumerate() {
            let Some(colon) = tokens.clone().find(|at| self.punct(*at, b':')) else { continue };
            let known = self.word(colon.saturating_sub(1));
            let Some(ty) = (colon..tokens.end).map(|at| self.word(at)).find(|word| generics.contains(word))
            else {
                continue;
            };
            let is_size = |at: usize| {
                let words = || (at + 1..at + 9).map(|at| self.word(at));
                matches!(self.word(at), b"size_of" | b"size_of_val")
                    && words().any(|word| word == ty || word == known)
            };
            if makes_bytes && body.clone().any(is_size) {
                calls.push((name.to_vec(), of, b"from_raw_parts".to_vec(), 0));
            }
            for at in body.clone().filter(|at| self.punct(at + 1, b'(') && !self.word(*at).is_empty()) {
                let arguments = self.arguments_of(at).into_iter().enumerate();
                let passed = arguments.filter(|(_, argument)| self.is_alone(argument.clone(), &[known]));
                let callee = self.word(at);
                if !transfers(callee) && !callee.starts_with(b"from_raw_parts") {
                    calls.extend(passed.map(|(index, _)| (name.to_vec(), of, callee.to_vec(), index)));
                }
            }
        }
    }

    /// Returns `true` if some tokens have one of some words, and not as a member's name.
    fn has_word(&self, mut inside: Range<usize>, words: &[&[u8]]) -> bool {
        inside.any(|at| {
            let is_member = at > 0 && (self.punct(at - 1, b'.') || self.punct(at - 1, b'>'));
            !self.word(at).is_empty() && words.contains(&self.word(at)) && !is_member
        })
    }

    /// Returns `true` if an argument is made of a parameter, given by its names, and none of its members.
    fn is_alone(&self, argument: Range<usize>, parameter: &[&[u8]]) -> bool {
        let is_plain = argument.clone().all(|at| {
            let is_arrow = self.punct(at, b'>') && at > 0 && self.punct(at - 1, b'-');
            !self.punct(at, b'.') && !is_arrow && self.word(at) != b"sizeof"
        });
        is_plain && self.has_word(argument, parameter)
    }

    /// Returns `true` if some tokens have the size of what a parameter is or points to.
    fn has_size_of(&self, mut inside: Range<usize>, parameter: &Parameter<'t>) -> bool {
        if !parameter.is_untyped && parameter.generic.is_empty() {
            return false;
        }
        inside.any(|at| {
            let operand = at + 1..self.operand_end(at + 1);
            self.word(at) == b"sizeof"
                && (self.has_word(operand.clone(), &parameter.names)
                    || self.has_word(operand, &[parameter.generic]))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::scan::tests::{kinds, kinds_of_cpp};
    use crate::{Language, SearchedType, UseKind, wrapper_calls, wrappers};

    fn wrappers_of(text: &str) -> Vec<(String, Vec<usize>)> {
        let found = wrappers(&wrapper_calls(text.as_bytes(), Language::Cpp)).into_iter();
        let of = |(name, at): (Vec<u8>, std::collections::BTreeSet<usize>)| {
            (String::from_utf8_lossy(&name).into_owned(), at.into_iter().collect())
        };
        found.map(of).collect()
    }

    #[test]
    fn functions_that_pass_a_pointer_and_its_size_on_are_wrappers_also_of_each_other() {
        let text = "static int put(int fd, const void *p, size_t n) { while (n > 0) { long k = write(fd, p, n); } }\n\
                    int store(const char *bytes, int count) { if (put(1, bytes, count)) return 1; }\n\
                    bool file::add(void const *p, size_t n) const { return fwrite(p, 1, n, out) == n; }\n\
                    void queue(struct iovec *v, record *p, size_t n) { v[0].iov_base = p; v[0].iov_len = n; }";
        let expected = [
            ("add".to_owned(), vec![1]),
            ("put".to_owned(), vec![2]),
            ("queue".to_owned(), vec![2]),
            ("store".to_owned(), vec![1]),
        ];
        assert_eq!(wrappers_of(text), expected);
    }

    #[test]
    fn a_loop_of_writes_by_variables_of_its_own_is_a_wrapper() {
        let text = "ssize_t all(int fd, const void *vptr, size_t n) {\n\
                    size_t nleft; const char *ptr = (const char *)vptr;\nnleft = n;\n\
                    while (nleft > 0) { nwritten = write(fd, ptr, nleft); nleft -= nwritten; ptr += nwritten; } }";
        assert_eq!(wrappers_of(text), [("all".to_owned(), vec![2])]);
    }

    #[test]
    fn many_parameters_and_open_parentheses_take_little_time() {
        let parameters = "void *p, ".repeat(3000);
        for many in ["a(", "x = ", "sizeof((", "(rec_t *)("] {
            let text =
                format!("void f({parameters}int n, rec_t *r) {{ write({parameters}); {}", many.repeat(1_500));
            assert_eq!(wrappers_of(&text), []);
            assert_eq!(kinds(&text), []);
        }
        assert_eq!(wrapper_calls("fn a<T(".repeat(10_000).as_bytes(), Language::Rust), []);
    }

    #[test]
    fn functions_that_write_what_is_theirs_are_no_wrappers() {
        let text = "void note(const char *fmt, int n) { char line[80]; int k = format(line, fmt, n); write(2, line, k); }\n\
                    void save(struct file *f, int fd) { write(fd, f->bytes, f->count); }\n\
                    void sum(const void *p, size_t n) { hash(p, n); }\n\
                    void text(const char *s) { write(1, s, strlen(s)); }";
        assert_eq!(wrappers_of(text), []);
    }

    #[test]
    fn objects_that_are_passed_to_wrappers_with_their_size_are_transferred() {
        let put = "int put(int fd, const void *p, size_t n) { return write(fd, p, n); }\n";
        let uses = |text: &str| kinds(&format!("{put}{text}"));
        assert_eq!(uses("void f(rec_t *r) { put(1, r, sizeof *r); }"), [(UseKind::Transfer, 2)]);
        assert_eq!(
            uses("void f(rec_t *r) { put(1, r->name, sizeof r->name); put(sizeof *r, r->a, 4); }"),
            []
        );
    }

    #[test]
    fn objects_that_are_passed_to_macros_are_transferred() {
        let text = "#define PUT(fd, x) \\\n  do { write(fd, &(x), sizeof(x)); } while (0)\n\
                    #define PUT_ALL(x) PUT(1, x)\n#define KEEP(p) hash(p, sizeof *(p))\n\
                    void f(rec_t *r) {\n PUT_ALL(*r);\n PUT(2, r->name); KEEP(r);\n}";
        assert_eq!(kinds(text), [(UseKind::Transfer, 6)]);
    }

    #[test]
    fn objects_that_are_passed_to_templates_are_transferred() {
        let text = "template <typename T> void put(std::ostream &to, const T &v) {\n\
                    to.write(reinterpret_cast<const char *>(&v), sizeof(T)); }\n\
                    template <class T> void all(const T *v) { put(out, *v); }\n\
                    void f(rec_t &r) {\n put(out, r); put(out, r.name);\n all(&r); }\n";
        assert_eq!(kinds_of_cpp(text), [(UseKind::Transfer, 5), (UseKind::Transfer, 6)]);
    }
    #[test]
    fn objects_that_generic_functions_of_rust_make_bytes_of_are_transferred() {
        let bytes = "pub fn bytes_of<T: Copy>(value: &T) -> &[u8] {\n\
                     unsafe{ from_raw_parts(value as *const T as *const u8, size_of::<T>()) } }\n\
                     fn put<W: Write, T>(to: &mut W, value: &T) { to.write_all(bytes_of(value)); }\n\
                     fn view<T>(first: *const T, count: usize) -> &[T] { from_raw_parts(first, count) }\n";
        let uses = |text: &str| {
            let text = format!("{bytes}{text}");
            let wrappers = wrappers(&wrapper_calls(text.as_bytes(), Language::Rust));
            let searched = SearchedType { names: vec![b"Rec".to_vec()], ..SearchedType::default() };
            crate::uses(text.as_bytes(), Language::Rust, &[searched], &wrappers).remove(0)
        };
        assert_eq!(uses("fn f(rec: &Rec) { put(out, rec); }"), [(UseKind::Transfer, 5)]);
        assert_eq!(
            uses("fn f() { let rec = Rec::default();\n out.write_all(bytes_of(&rec)); }"),
            [(UseKind::Transfer, 6)]
        );
        assert_eq!(uses("fn f(rec: &Rec) { put(out, &rec.name); view(rec, 2); bytes_of(&rec.name); }"), []);
    }
}
