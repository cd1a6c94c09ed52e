//! Initialisers of C++ that read other members, which are initialised in the order of their declarations.

use super::{Scan, UseKind};
use crate::Language;
use crate::change::Change;
use crate::items::positions;
use crate::lexer::{Kind, Token};
use std::collections::BTreeMap;
use std::ops::Range;

/// The most tokens of a class's head, of a base's name with its scopes, and between a constructor's parameters and `:`.
const HEAD: usize = 64;

/// The operators whose operands are not evaluated.
const UNEVALUATED: [&[u8]; 5] = [b"sizeof", b"alignof", b"decltype", b"noexcept", b"offsetof"];

/// The members of a class by name, each with its index in the present order and in the new one; empty if none moves.
pub(super) type Places = BTreeMap<Vec<u8>, (usize, usize)>;

/// Returns the places of a class's members of C++ before and after a change; none for structs of other languages, which
/// have no constructors.
pub(super) fn places(change: &Change) -> Places {
    if change.language != Language::Cpp || change.order.is_sorted() {
        return Places::new();
    }
    let Ok(position) = positions(&change.order) else { return Places::new() };
    let members = change.members.iter().zip(position).enumerate();
    let named = members.filter(|(_, ((name, _), _))| !name.is_empty());
    named.map(|(at, ((name, _), new))| (name.clone(), (at, new))).collect()
}

/// A constructor's definition, by the indices of its tokens.
struct Constructor {
    /// The parameters, without the parentheses.
    parameters: Range<usize>,
    /// The names of the initialised members and bases, with the values.
    values: Vec<(usize, Range<usize>)>,
    /// The brace that opens the body.
    body: usize,
}

/// A search for initialisers that depend on the order of the members.
struct Initialisers<'s, 't> {
    scan: &'s Scan<'t>,
    places: &'s Places,
    /// The bracket that belongs to each bracket; the number of tokens for all else.
    partners: Vec<usize>,
}

impl Scan<'_> {
    /// Finds initialisers, in constructors and in definitions of the class, that read a member which the change moves to
    /// the other side of their own, with the byte offset of each such read.
    pub(super) fn dependent_initialisers(&self, places: &Places) -> Vec<(UseKind, usize)> {
        if places.is_empty() || !(0..self.tokens.len()).any(|at| self.is_type(at)) {
            return Vec::new();
        }
        let search = Initialisers { scan: self, places, partners: partners(self.tokens) };
        let mut reads = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            if let Some(constructor) = search.constructor(at) {
                reads.extend(search.of_constructor(&constructor));
                at = constructor.body;
                continue;
            }
            if let Some(body) = search.class_body(at) {
                reads.extend(search.of_class(body));
            }
            at += 1;
        }
        reads.into_iter().map(|at| (UseKind::MemberInitialiser, self.tokens[at].span.start)).collect()
    }
}

/// Returns the bracket that belongs to each bracket; the number of tokens for all else.
fn partners(tokens: &[Token]) -> Vec<usize> {
    let mut partners = vec![tokens.len(); tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => open.push(at),
            Kind::Punct(b')' | b']' | b'}') => {
                if let Some(opened) = open.pop() {
                    (partners[opened], partners[at]) = (at, opened);
                }
            }
            _ => {}
        }
    }
    partners
}

impl<'t> Initialisers<'_, 't> {
    /// Reads a constructor with initialisers whose name, behind its scopes, is a token.
    fn constructor(&self, name: usize) -> Option<Constructor> {
        let scan = self.scan;
        if !scan.is_type(name) || !scan.punct(name + 1, b'(') || self.is_tilde(name) {
            return None;
        }
        let close = self.close(name + 1)?;
        let mut at = close + 1;
        // noexcept(…), attributes, try
        while !scan.punct(at, b':') {
            let is_specifier = !scan.word(at).is_empty() && at < close + HEAD;
            let is_group = scan.punct(at, b'(') || scan.punct(at, b'[');
            at = match () {
                () if is_group => self.close(at)? + 1,
                () if is_specifier => at + 1,
                () => return None,
            };
        }
        if self.is_path(at) {
            return None;
        }
        at += 1;
        let mut values = Vec::new();
        loop {
            at = self.behind_directives(at);
            let open = (at..at + HEAD).find(|at| scan.punct(*at, b'(') || scan.punct(*at, b'{'))?;
            let is_name = |at: usize| {
                !scan.word(at).is_empty() || [b':', b'<', b'>', b','].iter().any(|byte| scan.punct(at, *byte))
            };
            if open == at || !(at..open).all(is_name) {
                return None;
            }
            let end = self.close(open)?;
            // a base has scopes or template arguments
            if open == at + 1 {
                values.push((at, open + 1..end));
            }
            at = end + 1;
            while scan.punct(at, b'.') {
                at += 1;
            }
            at = self.behind_directives(at);
            match scan.punct(at, b',') {
                true => at += 1,
                false if scan.punct(at, b'{') => break,
                false => return None,
            }
        }
        Some(Constructor { parameters: name + 2..close, values, body: at })
    }

    /// Returns the reads of a constructor's initialisers that the change affects.
    fn of_constructor(&self, constructor: &Constructor) -> Vec<usize> {
        let parameters = self.parameters(constructor.parameters.clone());
        let values = constructor.values.iter();
        values.filter_map(|(name, value)| self.affected_read(*name, value.clone(), &parameters)).collect()
    }

    /// Returns the names of parameters.
    fn parameters(&self, inside: Range<usize>) -> Vec<&'t [u8]> {
        let scan = self.scan;
        let is_declarator =
            |at: usize| [b'*', b'&', b'>', b'.', b']'].iter().any(|byte| scan.punct(at, *byte));
        let is_parameter = |at: &usize| {
            let before = at - 1;
            let is_inner =
                scan.punct(*at + 1, b')') && (scan.punct(before, b'*') || scan.punct(before, b'&'));
            let is_last =
                *at + 1 == inside.end || [b',', b'=', b'['].iter().any(|byte| scan.punct(*at + 1, *byte));
            !scan.word(*at).is_empty()
                && (is_inner || is_last && (!scan.word(before).is_empty() || is_declarator(before)))
        };
        // a first word alone is a type
        let mut names: Vec<&[u8]> =
            (inside.start + 1..inside.end).filter(is_parameter).map(|at| scan.word(at)).collect();
        names.sort_unstable();
        names
    }

    /// Returns the body of a class's definition whose name is a token, with its braces.
    fn class_body(&self, name: usize) -> Option<Range<usize>> {
        let scan = self.scan;
        if !scan.is_type(name) {
            return None;
        }
        let is_keyword = |at: usize| matches!(scan.word(at), b"struct" | b"class");
        // a typedef of a class without a name
        if name > 0 && scan.punct(name - 1, b'}') {
            let open = Some(self.partners[name - 1]).filter(|open| *open < name)?;
            return (open > 0 && is_keyword(open - 1)).then_some(open..name - 1);
        }
        let mut head = (name.saturating_sub(HEAD)..name).rev();
        let is_end = |at: usize| [b';', b'{', b'}'].iter().any(|byte| scan.punct(at, *byte));
        head.find(|at| is_keyword(*at) || is_end(*at)).filter(|at| is_keyword(*at))?;
        let mut next = name + 1;
        if scan.word(next) == b"final" {
            next += 1;
        }
        let is_head =
            scan.punct(next, b'{') || scan.punct(next, b'<') || scan.punct(next, b':') && !self.is_path(next);
        let is_end = |at: usize| [b';', b')', b'}', b'='].iter().any(|byte| scan.punct(at, *byte));
        let open = (next..next + HEAD).find(|at| scan.punct(*at, b'{') || is_end(*at));
        let open = open.filter(|open| is_head && scan.punct(*open, b'{'))?;
        Some(open..self.partners[open])
    }

    /// Returns the reads of a class's default member initialisers that the change affects.
    fn of_class(&self, body: Range<usize>) -> Vec<usize> {
        let mut reads = Vec::new();
        let mut at = body.start + 1;
        while at < body.end {
            if let Some(constructor) = self.constructor(at) {
                at = constructor.body;
            } else if let Some(value) = self.default_value(at, body.end) {
                reads.extend(self.affected_read(at, value.clone(), &[]));
                at = value.end.max(at + 1);
            } else {
                at = self.next(at);
            }
        }
        reads
    }

    /// Returns the default member initialiser of the member whose name is a token of a class's body.
    fn default_value(&self, name: usize, end: usize) -> Option<Range<usize>> {
        let scan = self.scan;
        self.places.get(scan.word(name))?;
        let mut next = name + 1;
        while scan.punct(next, b'[') {
            next = self.close(next)? + 1;
        }
        if scan.punct(next, b':') && !self.is_path(next) {
            let ends = |at: &usize| [b'=', b'{', b',', b';'].iter().any(|byte| scan.punct(*at, *byte));
            next = (next..next + HEAD).find(ends)?;
        }
        if scan.punct(next, b'{') {
            return Some(next + 1..self.close(next)?);
        }
        if !scan.punct(next, b'=') {
            return None;
        }
        let mut at = next + 1;
        while at < end && !scan.punct(at, b';') && !self.begins_declarator(at) {
            at = self.next(at);
        }
        Some(next + 1..at.min(end))
    }

    /// Returns `true` if a comma is in front of another member's name, and not within template arguments.
    fn begins_declarator(&self, comma: usize) -> bool {
        if !self.scan.punct(comma, b',') {
            return false;
        }
        let is_pointer = |at: usize| self.scan.punct(at, b'*') || self.scan.punct(at, b'&');
        let Some(name) = (comma + 1..comma + HEAD).find(|at| !is_pointer(*at)) else { return false };
        let ends = [b'=', b'{', b'[', b',', b';', b':'].iter().any(|byte| self.scan.punct(name + 1, *byte));
        ends && self.places.contains_key(self.scan.word(name))
    }

    /// Returns the first read in a member's initialiser of another member, if the change swaps the order of the two.
    fn affected_read(&self, member: usize, value: Range<usize>, parameters: &[&[u8]]) -> Option<usize> {
        let own = self.places.get(self.scan.word(member))?;
        let mut at = value.start;
        while at < value.end {
            let word = self.scan.word(at);
            if UNEVALUATED.contains(&word) {
                at = self.next(at + 1);
                continue;
            }
            if let Some(other) = self.places.get(word)
                && (own.0 < other.0) != (own.1 < other.1)
                && self.is_own_member(at, parameters)
            {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// Returns `true` if a member's name is not that of a parameter, of a scope or of another object's member.
    fn is_own_member(&self, at: usize, parameters: &[&[u8]]) -> bool {
        let scan = self.scan;
        let before = |count: usize| at.checked_sub(count);
        let is = |count: usize, byte: u8| before(count).is_some_and(|at| scan.punct(at, byte));
        let is_this = |count: usize| before(count).is_some_and(|at| scan.word(at) == b"this");
        match () {
            () if self.is_path(at + 1) => false,
            () if is(1, b'.') => is(2, b')') && is_this(3),
            () if is(1, b'>') && is(2, b'-') => is_this(3),
            () if before(2).is_some_and(|at| self.is_path(at)) => {
                before(3).is_some_and(|at| scan.is_type(at))
            }
            () => parameters.binary_search(&scan.word(at)).is_err(),
        }
    }

    /// Returns `true` if a token begins `::`.
    fn is_path(&self, at: usize) -> bool {
        let scan = self.scan;
        scan.punct(at, b':')
            && scan.punct(at + 1, b':')
            && scan.tokens[at].span.end == scan.tokens[at + 1].span.start
    }

    fn is_tilde(&self, name: usize) -> bool {
        name > 0 && self.scan.punct(name - 1, b'~')
    }

    /// Returns the bracket that closes the one at a token.
    fn close(&self, open: usize) -> Option<usize> {
        self.partners.get(open).copied().filter(|close| *close < self.scan.tokens.len() && *close > open)
    }

    /// Returns the token behind another, or behind the brackets that it opens.
    fn next(&self, at: usize) -> usize {
        let opens = [b'(', b'[', b'{'].iter().any(|byte| self.scan.punct(at, *byte));
        if opens { self.partners[at].saturating_add(1) } else { at + 1 }
    }

    fn behind_directives(&self, at: usize) -> usize {
        let is_directive =
            |at: &usize| self.scan.tokens.get(*at).is_some_and(|token| token.kind == Kind::Directive);
        (at..).find(|at| !is_directive(at)).unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Change, Language, SearchedType, UseKind, uses};

    /// Returns the lines of the affected initialisers of a class `S`, whose members `a`, `small` and `b` get the order
    /// `b`, `a`, `small`.
    fn lines(text: &str) -> Vec<u32> {
        let members = [("a", 0), ("small", 0), ("b", 0)];
        let change = Change::new(Language::Cpp, 1, "S").with_order(members, [2, 0, 1]);
        let searched = SearchedType::new(vec![b"S".to_vec()], &change);
        let found = uses(text.as_bytes(), Language::Cpp, &[searched], &Default::default()).remove(0);
        let affected = found.into_iter().filter(|(kind, _)| *kind == UseKind::MemberInitialiser);
        affected.map(|(_, line)| line).collect()
    }

    #[test]
    fn constructors_that_read_a_member_across_which_theirs_moves_are_found() {
        for list in [
            "S(int n) : a(n), b(a + 1) {}",
            "explicit S(int n) noexcept(true) : a{n}, b{this->a} {}",
            "S() : a(1), b((*this).a) {}",
            "S() try : Base<int, 2>(1), x::Other{3}, b(f(S::a)) {} catch (...) {}",
            "S::S(const other::type *n) : a(n->a), b(a) {}",
            "template<class T> S<T>::S(T n) : small(n), b(n ? a : 0) {}",
            "S() : b(other.a + a) {}",
            "S(const S &o) : a(o.a), b(sizeof(a) + a) {}",
            "S(int n) : a(b) {}",
            "S(int a) : a(a), b(this->a) {}",
        ] {
            assert_eq!(lines(&format!("struct S;\n{list}")), [2], "{list}");
        }
        assert_eq!(lines("S::S(int n) :\n#ifdef X\n a(n),\n#endif\n b(a)\n{}"), [5]);
    }

    #[test]
    fn constructors_whose_reads_stay_in_order_are_not_found() {
        for list in [
            "S(int n) : a(n), small(a + 1) {}",
            "S(int a, int b) : a(b), b(a) {}",
            "S(std::map<int, long> &a, int (*b)(int), int c[3] = {}) : a(b), b(a) {}",
            "S(const S &o) : a(o.b), b(o.a) {}",
            "S(S *o) : a(o->b), b(sizeof(a) + sizeof a + ns::a + a::n) {}",
            "S() : b(this->c.a), S2(b) {}",
            "Other() : a(b) {}",
            "~S() {} int x = c ? S(a) : b(a);",
            "void f() { switch (x) { case S(1): b(a); } }",
        ] {
            assert_eq!(lines(&format!("struct S;\n{list}")), [], "{list}");
        }
    }

    #[test]
    fn default_member_initialisers_are_found() {
        assert_eq!(lines("struct S {\n int a = 1;\n char small;\n int b = a + 1;\n};"), [4]);
        assert_eq!(lines("class API S final : public Base<int> {\n int a, *b{&a};\n};"), [2]);
        assert_eq!(
            lines("template<> struct S<int> {\n S() : a(1) {}\n int a; int b : 3 = (a & 1);\n};"),
            [3]
        );
        assert_eq!(lines("typedef struct {\n int a = b; char small = 2; int b;\n} S;"), [2]);
        assert_eq!(lines("struct S {\n int a = f<int, 2>(b); };"), [2]);
    }

    #[test]
    fn default_member_initialisers_that_read_no_moved_member_are_not_found() {
        for body in [
            "int a = 1, b = 0; char small = a;",
            "int a = 1; int f() { int b = a; return b; } int b;",
            "int a = 1; int b = other.a; static int of(int b = a);",
            "struct Inner { int a = 1; int b = a; } inner;",
            "S(int a) : b{a} {} int b;",
        ] {
            assert_eq!(lines(&format!("struct S {{ {body} }};")), [], "{body}");
        }
        assert_eq!(lines("struct S; struct T { int a = 1; int b = a; };"), []);
    }

    #[test]
    fn an_order_that_stays_and_a_struct_of_c_have_none() {
        let text = b"struct S { int a = 1; int b = a; };";
        for (language, order) in [(Language::Cpp, [0, 1]), (Language::C, [1, 0])] {
            let change = Change::new(language, 1, "S").with_order([("a", 1), ("b", 1)], order);
            let searched = SearchedType::new(vec![b"S".to_vec()], &change);
            assert_eq!(uses(text, language, &[searched], &Default::default()), [[]]);
        }
    }

    #[test]
    fn bodies_of_macros_have_constructors() {
        assert_eq!(lines("struct S;\n#define MAKE S(int n) : a(n), b(a) {}\n"), [2]);
    }

    #[test]
    fn long_and_unbalanced_text_takes_little_time() {
        for part in ["S(", "S() : a(", "S() : a(b), ", "struct S { ", "struct S : ", "S() S ", "a = ", "S(a,"]
        {
            let text = format!("struct S {{ {}", part.repeat(20_000));
            let places =
                super::places(&Change::new(Language::Cpp, 1, "S").with_order([("a", 1), ("b", 1)], [1, 0]));
            let all = super::super::code(text.as_bytes(), 0, Language::Cpp);
            let names = [b"S".to_vec()];
            let found = super::Scan::new(text.as_bytes(), &all, &names, &[]).dependent_initialisers(&places);
            assert!(found.is_empty(), "{part}");
        }
    }
}
