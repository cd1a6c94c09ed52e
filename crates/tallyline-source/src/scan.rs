//! Uses of a type that rely on the order of its members, as far as the text shows them.

use crate::Language;
use crate::declarator::skip_group;
use crate::find::bytes;
use crate::lexer::{Kind, LineCounter, Token, tokens};
use std::ops::Range;

/// The kinds of uses of a struct that rely on the order of its members: `offsetof`, static assertions, I/O of its
/// bytes, copies of a range of members, positional initialisers, transmutation.
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
}

/// Finds uses of structs that rely on the order of their members in one source's text. Each element of `types` is one
/// struct, given by its names (the tag and its typedefs); the result has, for each struct, the kinds of its uses with
/// their lines, counted from 1. Uses that only a compiler sees, through macros and casts, are not found.
pub fn uses(text: &[u8], language: Language, types: &[Vec<Vec<u8>>]) -> Vec<Vec<(UseKind, u32)>> {
    let all: Vec<Token> = tokens(text, language).into_iter().filter(|token| !token.is_trivia()).collect();
    let mut lines = LineCounter::new(text);
    let scopes = scopes(text, &all);
    let mut found = Vec::with_capacity(types.len());
    for names in types {
        lines.rewind();
        let scan = Scan { text, tokens: &all, names, variables: Vec::new() };
        found.push(match language {
            // initial values of Rust have names
            Language::Rust => scan.uses_of_rust(&mut lines),
            _ => scan.with_variables(&scopes).uses(&mut lines),
        });
    }
    found
}

/// Finds the typedefs of C and the aliases of Rust in a source that name one of some structs, given by their tags.
/// Returns pairs of the tag's index and the other name.
pub fn typedefs(text: &[u8], language: Language, tags: &[Vec<u8>]) -> Vec<(usize, Vec<u8>)> {
    let all: Vec<Token> = tokens(text, language).into_iter().filter(|token| !token.is_trivia()).collect();
    let scan = Scan { text, tokens: &all, names: &[], variables: Vec::new() };
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

/// Returns the tokens in which parameters and local variables are known: each definition of a function with its
/// parameters, and the parameters of each declaration. All else is known everywhere, as members are.
fn scopes(text: &[u8], tokens: &[Token]) -> Vec<Range<usize>> {
    let mut scopes = Vec::new();
    let mut groups: Vec<Range<usize>> = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut is_function = false;
    while let Some(token) = tokens.get(at) {
        if token.is(b'(') {
            let end = skip_group(tokens, at);
            let word =
                at.checked_sub(1).and_then(|before| tokens.get(before)).map(|token| bytes(text, token));
            // a struct may have attributes in front of its body
            let is_attribute = matches!(
                word,
                Some(b"__attribute__" | b"__attribute" | b"alignas" | b"_Alignas" | b"__declspec")
            );
            is_function = !is_attribute;
            groups.push(at..end);
            at = end;
            continue;
        }
        if token.is(b'{') {
            at = skip_group(tokens, at);
            if is_function {
                scopes.push(start..at);
                groups.clear();
            }
            (start, is_function) = (at, false);
            continue;
        }
        is_function = false;
        at += 1;
        if token.is(b';') || token.kind == Kind::Directive {
            scopes.append(&mut groups);
            start = at;
        }
    }
    scopes
}

struct Scan<'t> {
    text: &'t [u8],
    tokens: &'t [Token],
    names: &'t [Vec<u8>],
    // the variables, parameters and members declared with the type, and the tokens where each is known
    variables: Vec<(&'t [u8], Range<usize>)>,
}

impl<'t> Scan<'t> {
    fn word(&self, at: usize) -> &'t [u8] {
        self.tokens
            .get(at)
            .filter(|token| token.kind == Kind::Word)
            .map_or(b"", |token| bytes(self.text, token))
    }

    fn is_type(&self, at: usize) -> bool {
        let word = self.word(at);
        !word.is_empty() && self.names.iter().any(|name| name == word)
    }

    fn is_variable(&self, at: usize) -> bool {
        let word = self.word(at);
        !word.is_empty() && self.variables.iter().any(|(name, scope)| *name == word && scope.contains(&at))
    }

    fn punct(&self, at: usize, byte: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(byte))
    }

    fn with_variables(mut self, scopes: &[Range<usize>]) -> Scan<'t> {
        let mut variables: Vec<(&[u8], Range<usize>)> = Vec::new();
        for at in (0..self.tokens.len()).filter(|at| self.is_type(*at)) {
            let mut next = at + 1;
            while self.punct(next, b'*')
                || self.punct(next, b'&')
                || matches!(self.word(next), b"const" | b"restrict")
            {
                next += 1;
            }
            let name = self.word(next);
            let index = scopes.partition_point(|scope| scope.end <= at);
            let scope = scopes.get(index).filter(|scope| scope.contains(&at));
            let known = (name, scope.cloned().unwrap_or(0..self.tokens.len()));
            if !name.is_empty() && !variables.contains(&known) {
                variables.push(known);
            }
        }
        self.variables = variables;
        self
    }

    fn uses(&self, lines: &mut LineCounter<'_>) -> Vec<(UseKind, u32)> {
        let mut uses = Vec::new();
        if !(0..self.tokens.len()).any(|at| self.is_type(at)) {
            return uses;
        }
        for at in 0..self.tokens.len() {
            if let Some(kind) = self.call(at).or_else(|| self.initialiser(at)) {
                let found = (kind, lines.of(self.tokens[at].span.start));
                if !uses.contains(&found) {
                    uses.push(found);
                }
            }
        }
        uses
    }

    /// Finds the uses of a struct of Rust: by calls, and by transmutations in the items that name it.
    fn uses_of_rust(&self, lines: &mut LineCounter<'_>) -> Vec<(UseKind, u32)> {
        let mut uses = Vec::new();
        let (mut start, mut at) = (0, 0);
        while let Some(token) = self.tokens.get(at) {
            let is_body = token.is(b'{');
            at = if is_body { skip_group(self.tokens, at) } else { at + 1 };
            if !(is_body || token.is(b';')) {
                continue;
            }
            if (start..at).any(|at| self.is_type(at)) {
                for index in start..at {
                    let is_transmute = matches!(self.word(index), b"transmute" | b"transmute_copy");
                    let kind = is_transmute.then_some(UseKind::Transmute).or_else(|| self.call(index));
                    uses.extend(kind.map(|kind| (kind, lines.of(self.tokens[index].span.start))));
                }
            }
            start = at;
        }
        uses.dedup();
        uses
    }

    /// The use that a call is.
    fn call(&self, at: usize) -> Option<UseKind> {
        let name = self.word(at);
        let open = at + 1 + usize::from(self.punct(at + 1, b'!'));
        if name.is_empty() || !self.punct(open, b'(') {
            return None;
        }
        let end = skip_group(self.tokens, open);
        let mut inside = open + 1..end.saturating_sub(1);
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
            b"memset" | b"memcpy" | b"memmove" | b"memcmp" | b"bzero" => {
                self.is_range(inside).then_some(UseKind::Range)
            }
            _ if transfers(name) => {
                let sized = inside.any(|at| self.word(at) == b"sizeof" && self.size_of_type(at));
                sized.then_some(UseKind::Transfer)
            }
            _ => None,
        }
    }

    /// Returns `true` if the `sizeof` at the token `at` is of the type or of an object of it.
    fn size_of_type(&self, at: usize) -> bool {
        if !self.punct(at + 1, b'(') {
            let name = at + 1 + usize::from(self.punct(at + 1, b'*'));
            // the size of a member is none of the object
            let is_member =
                self.punct(name + 1, b'.') || self.punct(name + 1, b'-') && self.punct(name + 2, b'>');
            return self.is_variable(name) && !is_member;
        }
        let end = skip_group(self.tokens, at + 1);
        let inside: Vec<usize> = (at + 2..end.saturating_sub(1)).collect();
        match inside.as_slice() {
            [one] => self.is_type(*one) || self.is_variable(*one),
            [first, second] => {
                self.word(*first) == b"struct" && self.is_type(*second)
                    || self.punct(*first, b'*') && self.is_variable(*second)
            }
            // a member that is an object of the type
            [.., before, last] => {
                (self.punct(*before, b'.') || self.punct(*before, b'>')) && self.is_variable(*last)
            }
            _ => false,
        }
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

    /// The use that an initialiser behind a declaration or a cast is.
    fn initialiser(&self, at: usize) -> Option<UseKind> {
        if !self.is_type(at) {
            return None;
        }
        let mut next = at + 1;
        let is_literal = self.punct(next, b')');
        if is_literal {
            next += 1;
        } else {
            if self.word(next).is_empty() {
                return None;
            }
            next += 1;
            while self.punct(next, b'[') {
                next = skip_group(self.tokens, next);
            }
            if !self.punct(next, b'=') {
                return None;
            }
            next += 1;
        }
        if !self.punct(next, b'{') {
            return None;
        }
        // elements of an array
        while self.punct(next, b'{') {
            next += 1;
        }
        let first = self.tokens.get(next)?;
        let is_zero = self.word(next) == b"0"
            && (self.punct(next + 1, b'}') || self.punct(next + 1, b',') && self.punct(next + 2, b'}'));
        let is_named = first.is(b'.') || first.is(b'[') || self.punct(next + 1, b':');
        (!first.is(b'}') && !is_zero && !is_named).then_some(UseKind::Positional)
    }
}

/// Returns `true` if a function, by its name, passes bytes to or from a file or a socket.
fn transfers(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [
        b"write".as_slice(),
        b"read",
        b"send",
        b"recv",
        b"sendto",
        b"recvfrom",
        b"write_all",
        b"read_all",
        b"writen",
        b"readn",
        b"msgsnd",
        b"msgrcv",
    ];
    ends.iter().any(|end| name.ends_with(end)) && !name.ends_with(b"thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(UseKind, u32)> {
        let names = vec![vec![b"rec".to_vec(), b"rec_t".to_vec()]];
        uses(text.as_bytes(), Language::C, &names).remove(0)
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
    fn transmutations_of_rust_are_found_and_initial_values_with_names_are_not() {
        let uses = |text: &str| uses(text.as_bytes(), Language::Rust, &[vec![b"Rec".to_vec()]]).remove(0);
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

    #[test]
    fn initialisers_by_position_are_told_from_those_by_name() {
        assert_eq!(kinds("struct rec a = { 1, 2 };"), [(UseKind::Positional, 1)]);
        assert_eq!(kinds("static const rec_t all[] = {\n { 1, 2 } };"), [(UseKind::Positional, 1)]);
        assert_eq!(kinds("f((struct rec){ x });"), [(UseKind::Positional, 1)]);
        assert_eq!(
            kinds(
                "rec_t a = { .x = 1 }, b; struct rec c = {0}; struct rec d = {}; struct rec e[] = {[1] = {.x = 2}};"
            ),
            []
        );
    }
}
