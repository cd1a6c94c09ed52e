//! Uses of a type that rely on the order of its members, as far as the text shows them.

mod binding;
mod holder;
mod initialiser;
mod positional;
mod rust;
mod transfer;
mod variable;
mod wrapper;

pub use holder::holders;
pub use variable::size_names;
pub use wrapper::{wrapper_calls, wrappers};

use crate::Language;
use crate::change::Change;
use crate::declarator::skip_group;
use crate::find::bytes;
use crate::lexer::{Kind, LineCounter, Token, tokens};
use initialiser::{Places, places};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use transfer::BYTE_TYPES;
use variable::{Variable, scopes};

/// The most parentheses around an operand.
const NESTING: usize = 8;

/// The most tokens of a call or an operand.
const GROUP: usize = 1000;

/// The wrappers of a search without any.
static NO_WRAPPERS: BTreeMap<Vec<u8>, BTreeSet<usize>> = BTreeMap::new();

/// The kinds of uses of a struct that rely on the order of its members: `offsetof`, static assertions, I/O of its
/// bytes, copies of a range of members, positional initialisers, transmutation, structured bindings, comparisons,
/// initialisers of members that read others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UseKind {
    /// The offset of a member is taken.
    Offset,
    /// An assertion at compile time names the type.
    Assertion,
    /// The bytes of an object are written to a file or a socket, or read from there.
    Transfer,
    /// The bytes from one member to another are set, copied or compared.
    Range,
    /// An object is initialised by position.
    Positional,
    /// The bytes of an object become one of another type, or the other way round.
    Transmute,
    /// The members are given names by position.
    Binding,
    /// Objects are compared member by member, in the order of the members.
    Ordering,
    /// The initialiser of a member reads another member, and the change swaps the order of the two.
    MemberInitialiser,
}

/// A struct that sources are searched for: its names, those of the types that hold it, its number of members, and their
/// places in the present order and in the new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchedType {
    /// The tag and the typedefs.
    names: Vec<Vec<u8>>,
    /// The names of types with an object of the struct among their bytes.
    holders: Vec<Vec<u8>>,
    /// The names of members of other types that are objects of the struct or of a holder.
    held_as: Vec<Vec<u8>>,
    /// The names of macros and constants with the size of an object.
    sizes: Vec<Vec<u8>>,
    /// The number of members, which a structured binding has to have names for.
    members: usize,
    /// The places of the members before and after a change.
    places: Places,
}

impl SearchedType {
    /// Creates a struct to search for by its tag and typedefs, and the change of its declaration; nothing holds it.
    pub fn new(names: Vec<Vec<u8>>, change: &Change) -> Self {
        Self { names, members: change.members.len(), places: places(change), ..Self::default() }
    }

    /// Returns the tag and the typedefs.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Adds a typedef, unless it is there.
    pub fn add_name(&mut self, name: Vec<u8>) {
        if !self.names.contains(&name) {
            self.names.push(name);
        }
    }

    /// Adds a macro or a constant with the size of an object, unless it is there.
    pub fn add_size(&mut self, name: Vec<u8>) {
        if !self.sizes.contains(&name) {
            self.sizes.push(name);
        }
    }

    /// Returns the names of the types with an object of the struct among their bytes.
    pub fn holders(&self) -> &[Vec<u8>] {
        &self.holders
    }

    /// Sets the names of the types with an object of the struct among their bytes, and the names of members of other types
    /// that are objects of the struct or of such a type.
    pub fn set_holders(&mut self, holders: Vec<Vec<u8>>, held_as: Vec<Vec<u8>>) {
        (self.holders, self.held_as) = (holders, held_as);
    }

    /// Returns the same struct with those of its holders and of the members that are objects of it whose names `admits`
    /// accepts.
    pub fn held_by(&self, admits: impl Fn(&[u8]) -> bool) -> Self {
        let admitted = |all: &[Vec<u8>]| all.iter().filter(|name| admits(name)).cloned().collect();
        let (holders, held_as) = (admitted(&self.holders), admitted(&self.held_as));
        let (names, sizes, places) = (self.names.clone(), self.sizes.clone(), self.places.clone());
        Self { names, holders, held_as, sizes, members: self.members, places }
    }
}

/// Finds uses of structs that rely on the order of their members in one source's text, also in the bodies of its macros.
/// The result has, for each struct of `types`, the kinds of its uses with their lines, counted from 1. Uses that only a
/// compiler sees, through other files' macros and through casts, are not found, but for transfers: by the functions and
/// macros of `wrappers`, each with the indices of the arguments that are an object or its size.
pub fn uses(
    text: &[u8],
    language: Language,
    types: &[SearchedType],
    wrappers: &BTreeMap<Vec<u8>, BTreeSet<usize>>,
) -> Vec<Vec<(UseKind, u32)>> {
    let all = code(text, 0, language);
    let mut lines = LineCounter::new(text);
    let (scopes, macros) = match language {
        Language::Rust => (Vec::new(), Vec::new()),
        _ => (scopes(text, &all), macros(text, &all, language)),
    };
    let byte_variables = match language {
        Language::Rust => Vec::new(),
        _ => {
            let mut names = BYTE_TYPES.to_vec();
            names.sort_unstable();
            Scan { names, ..Scan::new(text, &all, &[], &[]) }.with_variables(&scopes).variables
        }
    };
    let is_auto = |at: &usize| all[*at].kind == Kind::Word && bytes(text, &all[*at]) == b"auto";
    let autos: Vec<usize> = (0..all.len()).filter(is_auto).collect();
    let mut found = Vec::with_capacity(types.len());
    for searched in types {
        let of = |names| Scan {
            wrappers,
            byte_variables: &byte_variables,
            is_cpp: language == Language::Cpp,
            ..Scan::new(text, &all, names, &searched.held_as)
        };
        let (own, held) = (of(&searched.names), of(&searched.holders));
        let mut uses = match language {
            // initial values of Rust have names
            Language::Rust => {
                let mut uses = own.uses_of_rust();
                uses.extend(held.uses_of_rust().into_iter().filter(is_transfer));
                uses
            }
            _ => {
                let [own, held] = [own, held].map(|scan| {
                    let mut scan = scan.with_variables(&scopes);
                    scan.add_sizes(&scopes, searched.sizes.iter().map(Vec::as_slice));
                    scan
                });
                let mut uses = own.bindings(&autos, &scopes, searched.members);
                uses.extend(own.uses());
                uses.extend(own.dependent_initialisers(&searched.places));
                uses.extend(held.uses().into_iter().filter(is_transfer));
                uses.extend(held.held_initialisers());
                for body in &macros {
                    let of_macro = own.of_macro(body);
                    uses.extend(of_macro.iter().flat_map(Scan::uses));
                    let initialisers = |scan: &Scan<'_>| scan.dependent_initialisers(&searched.places);
                    uses.extend(of_macro.iter().flat_map(initialisers));
                    let held = held.of_macro(body);
                    uses.extend(held.iter().flat_map(Scan::uses).filter(is_transfer));
                    uses.extend(held.iter().flat_map(Scan::held_initialisers));
                }
                uses
            }
        };
        uses.sort_by_key(|(_, at)| *at);
        let mut of_lines: Vec<(UseKind, u32)> = Vec::with_capacity(uses.len());
        for (kind, at) in uses {
            let use_of_line = (kind, lines.of(at));
            if !of_lines.contains(&use_of_line) {
                of_lines.push(use_of_line);
            }
        }
        found.push(of_lines);
    }
    found
}

/// Returns `true` if a use is of the bytes of a whole object, so also of all that it holds.
fn is_transfer((kind, _): &(UseKind, usize)) -> bool {
    *kind == UseKind::Transfer
}

/// Returns the tokens of a text from a byte on, without blanks and comments.
fn code(text: &[u8], start: usize, language: Language) -> Vec<Token> {
    let all = tokens(text.get(start..).unwrap_or_default(), language).into_iter();
    let moved = |token: Token| Token { span: token.span.start + start..token.span.end + start, ..token };
    all.filter(|token| !token.is_trivia()).map(moved).collect()
}

/// A macro's name, its parameters and the tokens of its body.
struct Macro<'t> {
    name: &'t [u8],
    parameters: Vec<&'t [u8]>,
    body: Vec<Token>,
}

/// Returns the macros that a text defines, but for empty ones.
fn macros<'t>(text: &'t [u8], all: &[Token], language: Language) -> Vec<Macro<'t>> {
    let mut macros = Vec::new();
    for directive in all.iter().filter(|token| token.kind == Kind::Directive) {
        let (start, end) = (directive.span.start + 1, directive.span.end);
        let mut body = code(text.get(..end).unwrap_or_default(), start, language);
        let [define, name, ..] = body.as_slice() else { continue };
        if bytes(text, define) != b"define" {
            continue;
        }
        // only a parenthesis right behind the name begins parameters
        let is_called = body.get(2).is_some_and(|open| open.is(b'(') && open.span.start == name.span.end);
        let first = if is_called { skip_group(&body, 2) } else { 2 };
        let parameters = body[2..first].iter().filter(|token| token.kind == Kind::Word);
        let parameters = parameters.map(|token| bytes(text, token)).collect();
        let name = bytes(text, name);
        body.drain(..first);
        if !body.is_empty() {
            macros.push(Macro { name, parameters, body });
        }
    }
    macros
}

/// Finds the typedefs of C and the aliases of Rust in a source that name one of some structs, given by their tags.
/// Returns pairs of the tag's index and the other name.
pub fn typedefs(text: &[u8], language: Language, tags: &[Vec<u8>]) -> Vec<(usize, Vec<u8>)> {
    let all = code(text, 0, language);
    let scan = Scan::new(text, &all, &[], &[]);
    let mut found = Vec::new();
    if language == Language::Rust {
        for at in (0..all.len()).filter(|at| scan.word(*at) == b"type" && scan.punct(at + 2, b'=')) {
            // the last segment of the path; a pointer's alias is another type
            let end = (at + 3..all.len()).find(|at| scan.word(*at).is_empty() && !scan.punct(*at, b':'));
            let Some(end) = end.filter(|end| scan.punct(*end, b';')) else { continue };
            let index = tags.iter().position(|tag| !tag.is_empty() && *tag == scan.word(end - 1));
            found.extend(index.map(|index| (index, scan.word(at + 1).to_vec())));
        }
        return found;
    }
    for at in (0..all.len()).filter(|at| scan.word(*at) == b"typedef" && scan.word(at + 1) == b"struct") {
        let tag = scan.word(at + 2);
        let Some(index) = tags.iter().position(|known| known == tag && !tag.is_empty()) else { continue };
        let mut next = at + 3;
        if scan.punct(next, b'{') {
            next = skip_group(&all, next);
        }
        // a pointer's typedef is another type
        while scan.word(next) == b"__attribute__" {
            next = skip_group(&all, next + 1);
        }
        let name = scan.word(next);
        if !name.is_empty() && (scan.punct(next + 1, b';') || scan.punct(next + 1, b',')) {
            found.push((index, name.to_vec()));
        }
    }
    found
}

#[derive(Clone)]
struct Scan<'t> {
    text: &'t [u8],
    tokens: &'t [Token],
    // sorted, as many types may hold one
    names: Vec<&'t [u8]>,
    held_as: &'t [Vec<u8>],
    // the variables, parameters and members declared with the type, and the tokens where each is known
    variables: Vec<Variable<'t>>,
    // those with the size of an object
    sizes: Vec<Variable<'t>>,
    // those that are bytes, or point to some
    byte_variables: &'t [Variable<'t>],
    wrappers: &'t BTreeMap<Vec<u8>, BTreeSet<usize>>,
    is_cpp: bool,
}

impl<'t> Scan<'t> {
    fn new(text: &'t [u8], tokens: &'t [Token], names: &'t [Vec<u8>], held_as: &'t [Vec<u8>]) -> Scan<'t> {
        let mut names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        names.sort_unstable();
        let (variables, sizes, byte_variables) = (Vec::new(), Vec::new(), &[][..]);
        let wrappers = &NO_WRAPPERS;
        Scan { text, tokens, names, held_as, variables, sizes, byte_variables, wrappers, is_cpp: false }
    }

    /// Returns the search of a macro's body, where the variables of the whole file are known; `None` if the body names
    /// neither the type nor one of those.
    fn of_macro(&self, body: &'t Macro<'t>) -> Option<Scan<'t>> {
        if self.names.is_empty() {
            return None;
        }
        let everywhere = 0..self.tokens.len();
        let is_known =
            |known: &&Variable<'t>| known.scope == everywhere && !body.parameters.contains(&known.name);
        let is_named = |token: &Token| {
            let word = bytes(self.text, token);
            let mut variables = self.variables.iter().chain(&self.sizes);
            token.kind == Kind::Word
                && (self.names.binary_search(&word).is_ok()
                    || variables.any(|known| known.name == word && is_known(&known)))
        };
        if !body.body.iter().any(is_named) {
            return None;
        }
        let known = |all: &[Variable<'t>]| -> Vec<Variable<'t>> {
            let known = all.iter().filter(is_known);
            known.map(|known| Variable { scope: 0..body.body.len(), ..known.clone() }).collect()
        };
        let (variables, sizes) = (known(&self.variables), known(&self.sizes));
        let mut scan = Scan { tokens: &body.body, byte_variables: &[], ..self.clone() }.with_variables(&[]);
        scan.variables.extend(variables);
        scan.sizes.extend(sizes);
        Some(scan)
    }

    fn word(&self, at: usize) -> &'t [u8] {
        self.tokens
            .get(at)
            .filter(|token| token.kind == Kind::Word)
            .map_or(b"", |token| bytes(self.text, token))
    }

    fn is_type(&self, at: usize) -> bool {
        let word = self.word(at);
        !word.is_empty() && self.names.binary_search(&word).is_ok()
    }

    fn punct(&self, at: usize, byte: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(byte))
    }

    /// Finds the uses of a struct of C or C++, with the byte offset of each.
    fn uses(&self) -> Vec<(UseKind, usize)> {
        if self.names.is_empty() {
            return Vec::new();
        }
        // a variable is declared with the type, but in a macro's body
        let is_unknown = self.variables.is_empty() && self.held_as.is_empty();
        if is_unknown && !(0..self.tokens.len()).any(|at| self.is_type(at)) {
            return Vec::new();
        }
        let kinds = (0..self.tokens.len()).filter_map(|at| Some((self.kind(at)?, at)));
        kinds.map(|(kind, at)| (kind, self.tokens[at].span.start)).collect()
    }

    fn kind(&self, at: usize) -> Option<UseKind> {
        let kind = self.call(at).or_else(|| self.io_vector(at)).or_else(|| self.overlay(at));
        let is_positional = || self.is_initialiser(at).then_some(UseKind::Positional);
        kind.or_else(is_positional).or_else(|| self.ordering(at))
    }

    /// The use that a call is.
    fn call(&self, at: usize) -> Option<UseKind> {
        let name = self.word(at);
        let open = at + 1 + usize::from(self.punct(at + 1, b'!'));
        if name.is_empty() || !self.punct(open, b'(') {
            return None;
        }
        let inside = open + 1..self.group_end(open).saturating_sub(1);
        let names_type = || inside.clone().any(|at| self.is_type(at));
        match name {
            b"offsetof" | b"__builtin_offsetof" | b"offset_of" | b"memset_after" | b"memset_startat" => {
                let mut first = inside.clone().take_while(|at| !self.punct(*at, b','));
                first.any(|at| self.is_type(at) || self.is_variable(at)).then_some(UseKind::Offset)
            }
            b"static_assert" | b"_Static_assert" | b"BUILD_BUG_ON" | b"G_STATIC_ASSERT"
            | b"STATIC_ASSERT" | b"StaticAssertStmt" | b"const_assert" | b"assert_eq_size" => {
                names_type().then_some(UseKind::Assertion)
            }
            b"memset" | b"memcpy" | b"memmove" | b"memcmp" | b"bzero" if self.is_range(inside.clone()) => {
                Some(UseKind::Range)
            }
            _ => self.is_transfer(name, open).then_some(UseKind::Transfer),
        }
    }

    /// Returns the token behind a group of a call or an operand, as far as those are looked at.
    fn group_end(&self, open: usize) -> usize {
        skip_group(&self.tokens[..self.tokens.len().min(open.saturating_add(GROUP))], open)
    }

    /// Returns the token behind the operand of a `sizeof`.
    fn operand_end(&self, mut at: usize) -> usize {
        while self.punct(at, b'*') || self.punct(at, b'&') {
            at += 1;
        }
        at = if self.punct(at, b'(') { self.group_end(at) } else { at + 1 };
        loop {
            at = match () {
                () if self.punct(at, b'[') => self.group_end(at),
                () if self.punct(at, b'.') => at + 2,
                () if self.punct(at, b'-') && self.punct(at + 1, b'>') => at + 3,
                () => return at,
            };
        }
    }

    /// Returns `true` if an operand is the type, or an object of it: a variable, what one points to, an element, a
    /// member.
    fn names_object(&self, operand: Range<usize>) -> bool {
        let (mut at, mut end) = (operand.start, operand.end);
        for _ in 0..NESTING {
            if !self.punct(at, b'(') || self.group_end(at) != end {
                break;
            }
            at += 1;
            end = end.saturating_sub(1).max(at);
        }
        let operand = at..end;
        // as in struct rec, const rec_t and db::rec
        let is_spelled = operand.clone().all(|at| !self.word(at).is_empty() || self.punct(at, b':'));
        if is_spelled && end > at {
            return self.is_type(end - 1) || end - at == 1 && self.is_variable(at);
        }
        while self.punct(at, b'*') || self.punct(at, b'&') {
            at += 1;
        }
        let is_group = self.punct(at, b'(');
        let mut name = at;
        at = if is_group { self.group_end(at) } else { at + 1 };
        while at < end {
            at = match () {
                () if self.punct(at, b'[') => self.group_end(at),
                () if self.punct(at, b'.') => at + 1,
                () if self.punct(at, b'-') && self.punct(at + 1, b'>') => at + 2,
                // a sum, or a cast
                () if self.word(at).is_empty() => return false,
                () => {
                    name = at;
                    at + 1
                }
            };
        }
        let is_member = name > operand.start && (self.punct(name - 1, b'.') || self.punct(name - 1, b'>'));
        self.is_variable(name) || is_member && self.held_as.iter().any(|held| held == self.word(name))
    }

    /// The use that a comparison is which C++ derives from the order of the members.
    fn ordering(&self, at: usize) -> Option<UseKind> {
        if self.word(at) != b"operator" || !(self.punct(at + 1, b'<') || self.punct(at + 1, b'>')) {
            return None;
        }
        let open = (at + 2..at + 5).find(|open| self.punct(*open, b'('))?;
        let end = skip_group(self.tokens, open);
        if !(open..end).any(|at| self.is_type(at)) {
            return None;
        }
        // const and noexcept may stand between
        let assigned = (end..self.tokens.len()).find(|at| self.word(*at).is_empty())?;
        let is_default = self.punct(assigned, b'=') && self.word(assigned + 1) == b"default";
        is_default.then_some(UseKind::Ordering)
    }

    /// Returns `true` if a call's arguments have the address of a member, and a difference as the size.
    fn is_range(&self, inside: Range<usize>) -> bool {
        let member = inside.clone().any(|at| {
            self.punct(at, b'&')
                && self.is_variable(at + 1)
                && (self.punct(at + 2, b'.') || self.punct(at + 2, b'-') && self.punct(at + 3, b'>'))
        });
        let difference = inside.clone().any(|at| self.punct(at, b'-') && !self.punct(at + 1, b'>'));
        member && difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds_of(text: &str, language: Language) -> Vec<(UseKind, u32)> {
        let names = vec![b"rec".to_vec(), b"rec_t".to_vec()];
        let mut searched = SearchedType { names, ..SearchedType::default() };
        for (_, size) in size_names(text.as_bytes(), language, std::slice::from_ref(&searched)) {
            searched.add_size(size);
        }
        let wrappers = wrappers(&wrapper_calls(text.as_bytes(), language));
        uses(text.as_bytes(), language, &[searched], &wrappers).remove(0)
    }

    /// Returns the uses of a struct `rec`, also called `rec_t`, in a text of C, with their lines.
    pub(super) fn kinds(text: &str) -> Vec<(UseKind, u32)> {
        kinds_of(text, Language::C)
    }

    /// Checks that each of some texts of C++ has one transfer of `rec`, and no use of another kind, and that each of
    /// `others` has no use of it.
    pub(super) fn assert_transfers(texts: &[&str], others: &[&str]) {
        for text in texts {
            let found: Vec<UseKind> = kinds_of_cpp(text).into_iter().map(|(kind, _)| kind).collect();
            assert_eq!(found, [UseKind::Transfer], "{text}");
        }
        for text in others {
            assert_eq!(kinds_of_cpp(text), [], "{text}");
        }
    }

    /// Returns the uses of a struct `rec`, also called `rec_t`, in a text of C++, with their lines.
    pub(super) fn kinds_of_cpp(text: &str) -> Vec<(UseKind, u32)> {
        kinds_of(text, Language::Cpp)
    }

    fn kinds_of_rust(text: &str) -> Vec<(UseKind, u32)> {
        let searched = SearchedType {
            names: vec![b"Rec".to_vec()],
            holders: vec![b"Outer".to_vec()],
            ..SearchedType::default()
        };
        uses(text.as_bytes(), Language::Rust, &[searched], &NO_WRAPPERS).remove(0)
    }

    #[test]
    fn offsets_assertions_and_transfers_are_found() {
        assert_eq!(kinds("int x = offsetof(struct rec, a);"), [(UseKind::Offset, 1)]);
        assert_eq!(kinds("rec_t *p;\n_Static_assert(sizeof(rec_t) == 8, \"\");"), [(UseKind::Assertion, 2)]);
        assert_eq!(
            kinds("void f(struct rec *r)\n{ fwrite(r, sizeof(*r), 1, out); }"),
            [(UseKind::Transfer, 2)]
        );
        assert_eq!(kinds("void f(rec_t r)\n{ safe_read(fd, &r, sizeof r); }"), [(UseKind::Transfer, 2)]);
        assert_eq!(
            kinds("void f(rec_t *r) { memset(&r->a, 0, (char *)&r->b - (char *)&r->a); }"),
            [(UseKind::Range, 1)]
        );
    }

    #[test]
    fn the_size_of_a_member_and_of_another_functions_variable_are_no_transfer() {
        assert_eq!(kinds("void f(rec_t *r) { proc_send(1, &r->a, sizeof r->a); }"), []);
        assert_eq!(
            kinds(
                "void f(rec_t *r) { }\nvoid g(struct other *r) { write(1, r, sizeof(*r)); }\nrec_t *h(rec_t *r);"
            ),
            []
        );
        assert_eq!(
            kinds("static rec_t r;\nvoid g(void) { write(1, &r, sizeof r); }"),
            [(UseKind::Transfer, 2)]
        );
        let member = "struct outer { rec_t r; };\nvoid g(struct outer *o) { write(1, &o->r, sizeof(o->r)); }";
        assert_eq!(kinds(member), [(UseKind::Transfer, 2)]);
    }

    #[test]
    fn transfers_of_members_elements_and_vectors_are_found() {
        assert_eq!(
            kinds("struct o { int n; rec_t r; } o;\nvoid f(void) { fread(&o.r, sizeof o.r, 1, in); }"),
            [(UseKind::Transfer, 2)]
        );
        assert_eq!(
            kinds("rec_t p[4]; void f(void) { fwrite(p, sizeof p[0], 4, out); }"),
            [(UseKind::Transfer, 1)]
        );
        assert_eq!(
            kinds("rec_t x; void f(void) { struct iovec v = { &x, sizeof x }; }"),
            [(UseKind::Transfer, 1)]
        );
        assert_eq!(kinds("void f(rec_t *r) { v[0].iov_len = sizeof *r; }"), [(UseKind::Transfer, 1)]);
        assert_eq!(kinds("int n = _IOR('x', 1, struct rec);"), [(UseKind::Transfer, 1)]);
        assert_eq!(
            kinds("struct { int n; rec_t r; } o; void f(void) { fread(&o, sizeof o, 1, in); }"),
            [(UseKind::Transfer, 1)]
        );
        assert_eq!(
            kinds("struct rec { int n; } o; void f(void) { fread(&o, sizeof(o), 1, in); }"),
            [(UseKind::Transfer, 1)]
        );
        assert_eq!(kinds("struct { rec_t *r; } o; void f(void) { fread(&o, sizeof o, 1, in); }"), []);
        let others = "void f(rec_t *r) { v.iov_len = sizeof r->a; v.iov_len = n; }";
        assert_eq!(kinds(others), []);
    }

    #[test]
    fn transfers_of_what_holds_the_type_are_found_and_other_uses_of_that_are_not() {
        let kinds = |text: &str| {
            let searched = SearchedType {
                names: vec![b"rec".to_vec()],
                holders: vec![b"header".to_vec(), b"Header".to_vec()],
                held_as: vec![b"first".to_vec()],
                ..SearchedType::default()
            };
            uses(text.as_bytes(), Language::C, &[searched], &NO_WRAPPERS).remove(0)
        };
        assert_eq!(
            kinds("void f(struct header *h) { fwrite(h, sizeof *h, 1, out); }"),
            [(UseKind::Transfer, 1)]
        );
        assert_eq!(
            kinds("void f(struct header *h) { fread(&h->first, sizeof h->first, 1, in); }"),
            [(UseKind::Transfer, 1)]
        );
        assert_eq!(kinds("struct header h = { 1, { .a = 1 } }; int x = offsetof(struct header, first);"), []);
    }

    #[test]
    fn bodies_of_macros_are_searched() {
        let text = "rec_t *r;\n#define RESET(p) memset(&(p)->b, 0, sizeof(rec_t) - \\\n  offsetof(rec_t, b))\n\
                    #define SAVE write(1, r, sizeof *r)\n#define NEW (rec_t){ 1, 2 }";
        let expected = [(UseKind::Offset, 3), (UseKind::Transfer, 4), (UseKind::Positional, 5)];
        assert_eq!(kinds(text), expected);
    }

    #[test]
    fn a_macros_parameter_is_no_variable_of_its_name() {
        assert_eq!(kinds("rec_t *r;\n#define SAVE(r) write(1, r, sizeof *r)\n#define rec_t (other)"), []);
        assert_eq!(kinds("void f(rec_t *r) { }\n#define SAVE write(1, r, sizeof *r)"), []);
    }

    #[test]
    fn comparisons_by_the_order_of_members_are_found() {
        assert_eq!(
            kinds("struct rec {\n auto operator<=>(const rec &) const = default; };"),
            [(UseKind::Ordering, 2)]
        );
        assert_eq!(
            kinds("struct rec { friend bool operator<(const rec&, const rec&) noexcept = default; };"),
            [(UseKind::Ordering, 1)]
        );
        let others = "struct rec { bool operator==(const rec &) const = default; bool operator<(const rec &r) const; \
                      rec &operator=(const rec &) = default; };";
        assert_eq!(kinds(others), []);
    }

    #[test]
    fn transmutations_of_rust_are_found_and_initial_values_with_names_are_not() {
        let uses = kinds_of_rust;
        assert_eq!(uses("fn f(a: u8) -> Rec { Rec { a, b: 1 } }\nfn g() { transmute(x) }"), []);
        assert_eq!(
            uses(
                "impl Rec {\n fn f(&mut self) -> &mut Other {\n  let o = core::mem::transmute(self);\n  o\n }\n}"
            ),
            [(UseKind::Transmute, 3)]
        );
        assert_eq!(uses("const A: usize = core::mem::offset_of!(Rec, a);"), [(UseKind::Offset, 1)]);
    }

    #[test]
    fn typedefs_are_found_by_their_tags() {
        let text = "typedef struct rec rec_t, *rec_p; typedef struct rec *p; typedef struct other { int a; } other_t;";
        let found = typedefs(text.as_bytes(), Language::C, &[b"rec".to_vec(), b"other".to_vec()]);
        assert_eq!(found, [(0, b"rec_t".to_vec()), (1, b"other_t".to_vec())]);
    }

    #[test]
    fn aliases_of_rust_are_found_and_those_of_pointers_are_not() {
        let text = "pub type rec_t = Rec; type list::other = *mut Rec; type Same = crate::a::Rec; type V = Vec<Rec>;";
        let found = typedefs(text.as_bytes(), Language::Rust, &[b"Rec".to_vec()]);
        assert_eq!(found, [(0, b"rec_t".to_vec()), (0, b"Same".to_vec())]);
    }

    #[test]
    fn what_relies_on_no_order_is_not_found() {
        assert_eq!(
            kinds("void f(rec_t *r) { memset(r, 0, sizeof(*r)); memcpy(&r->a, b, sizeof r->a); }"),
            []
        );
        assert_eq!(kinds("write(fd, r, sizeof(struct other)); struct rec r;"), []);
    }
}
