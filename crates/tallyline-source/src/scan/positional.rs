//! Initialisers by position.

use super::{Scan, UseKind};
use std::ops::Range;

/// The words by which a declaration has the type of an operand.
const TYPE_OF: [&[u8]; 4] = [b"typeof", b"__typeof__", b"__typeof", b"decltype"];

/// The words in front of a type's name that are followed by no value of it.
const HEADS: [&[u8]; 9] =
    [b"struct", b"class", b"union", b"enum", b"namespace", b"public", b"private", b"protected", b"virtual"];

impl Scan<'_> {
    /// Returns `true` if an initialiser by position is behind the type that a token names.
    pub(super) fn is_initialiser(&self, at: usize) -> bool {
        let open =
            if self.is_type(at) { self.initialiser(at + 1, at) } else { self.initialiser_of_operand(at) };
        open.is_some_and(|open| self.is_positional(open))
    }

    /// Returns the initialisers by position of the struct within those of types that hold it, for which this search is.
    pub(super) fn held_initialisers(&self) -> Vec<(UseKind, usize)> {
        let is_found = |at: &usize| {
            let open = self.initialiser(at + 1, *at).filter(|_| self.is_type(*at));
            open.is_some_and(|open| self.holds_positional(open))
        };
        let found = (0..self.tokens.len()).filter(is_found);
        found.map(|at| (UseKind::Positional, self.tokens[at].span.start)).collect()
    }

    /// Returns the brace of an initialiser behind a type whose name is token `name` and ends in front of `next`: of a
    /// declared variable, of a cast, in C++ also of a value.
    fn initialiser(&self, mut next: usize, name: usize) -> Option<usize> {
        if self.punct(next, b')') {
            next += 1;
        } else if self.is_cpp && self.punct(next, b'{') {
            return self.is_value(name).then_some(next);
        } else {
            let declared = self.word(next);
            if declared.is_empty() || declared == b"final" {
                return None;
            }
            next += 1;
            while self.punct(next, b'[') {
                next = self.group_end(next);
            }
            match self.punct(next, b'=') {
                true => next += 1,
                false if self.is_cpp => {}
                false => return None,
            }
        }
        self.punct(next, b'{').then_some(next)
    }

    /// Returns the brace of an initialiser behind a type that is that of an object.
    fn initialiser_of_operand(&self, at: usize) -> Option<usize> {
        if !TYPE_OF.contains(&self.word(at)) || !self.punct(at + 1, b'(') {
            return None;
        }
        let end = self.group_end(at + 1);
        let is_object = self.names_object(at + 2..end.saturating_sub(1));
        self.initialiser(end, at).filter(|_| is_object)
    }

    /// Returns `true` if braces behind a type's name in C++ are a value, and no body: that of a class with this name or
    /// base, or of a function that returns it.
    fn is_value(&self, name: usize) -> bool {
        let mut first = name;
        while first >= 3
            && self.punct(first - 1, b':')
            && self.punct(first - 2, b':')
            && !self.word(first - 3).is_empty()
        {
            first -= 3;
        }
        let Some(before) = first.checked_sub(1) else { return false };
        let is_base = self.punct(before, b':') || self.punct(before, b',') && !self.is_argument(name + 1);
        let is_arrow = self.punct(before, b'>') && before > 0 && self.punct(before - 1, b'-');
        !(is_base || is_arrow || HEADS.contains(&self.word(before)))
    }

    /// Returns `true` if a group in braces is followed by another value, or by the end of a list of values.
    fn is_argument(&self, open: usize) -> bool {
        let end = self.group_end(open);
        [b',', b')', b'}'].iter().any(|byte| self.punct(end, *byte))
    }

    /// Returns `true` if a value in braces, or the first in it, gives members values by position; in C++ also if it
    /// names several members, which it has to do in their order.
    fn is_positional(&self, open: usize) -> bool {
        let mut next = open;
        // elements of an array
        while self.punct(next, b'{') {
            next += 1;
        }
        let Some(first) = self.tokens.get(next) else { return false };
        let inside = self.values(next - 1);
        // a function's or a class's body has statements
        if inside.iter().any(|at| self.punct(*at, b';')) {
            return false;
        }
        let is_zero = self.word(next) == b"0"
            && (self.punct(next + 1, b'}') || self.punct(next + 1, b',') && self.punct(next + 2, b'}'));
        if first.is(b'.') && self.is_cpp {
            let is_designator = |at: &&usize| {
                self.punct(**at, b'.') && (self.punct(**at - 1, b',') || self.punct(**at - 1, b'{'))
            };
            return inside.iter().filter(is_designator).count() > 1;
        }
        // as in `x: 1` of old C, and not a scope
        let is_label = self.punct(next + 1, b':') && !self.is_path(next + 1);
        let is_named = first.is(b'.') || first.is(b'[') && !self.is_cpp || is_label;
        !(first.is(b'}') || is_zero || is_named)
    }

    /// Returns `true` if a value of a type that holds the struct gives one of its members values by position.
    fn holds_positional(&self, open: usize) -> bool {
        let end = self.group_end(open);
        let is_inner = |at: &usize| {
            let before = |byte: u8| self.punct(*at - 1, byte);
            self.punct(*at, b'{') && (before(b'{') || before(b',') || before(b'=') || before(b')'))
        };
        let mut inner = (open + 1..end).filter(is_inner).peekable();
        match inner.peek() {
            // constructors of C++ have arguments in braces, too
            None => !self.is_cpp && self.is_positional(open),
            Some(_) => inner.any(|at| self.is_positional(at)),
        }
    }

    /// Returns the tokens of a group that are in no group within it.
    fn values(&self, open: usize) -> Vec<usize> {
        let range: Range<usize> = open + 1..self.group_end(open).saturating_sub(1);
        let (mut at, mut found) = (range.start, Vec::new());
        while at < range.end {
            found.push(at);
            let opens = [b'(', b'[', b'{'].iter().any(|byte| self.punct(at, *byte));
            at = if opens { self.group_end(at).max(at + 1) } else { at + 1 };
        }
        found
    }

    /// Returns `true` if a token begins `::`.
    fn is_path(&self, at: usize) -> bool {
        self.punct(at, b':') && self.punct(at + 1, b':')
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, kinds_of_cpp};
    use crate::{Language, SearchedType, UseKind, uses};

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

    #[test]
    fn values_of_cpp_by_position_are_told_from_bodies() {
        for text in [
            "rec a{1, 2};",
            "f(rec{1, 2});",
            "f(0, rec{x, 2});",
            "auto *p = new ns::rec{1, 2};",
            "auto a = rec{ns::x, 2};",
            "struct rec a[2]{{1, 2}, {3}};",
            "rec a = {.x = 1, .y = 2};",
            "rec a = {[] { return 1; }(), 2};",
            "rec a; decltype(a) b = {1, 2};",
        ] {
            assert_eq!(kinds_of_cpp(text), [(UseKind::Positional, 1)], "{text}");
        }
        for text in [
            "rec a{}; rec b{0}; f(rec{}); rec c{.x = 1};",
            "struct rec { int a; }; class rec final { int a; };",
            "struct other : rec { int a; }; struct other : base, public rec { int a; };",
            "struct other : base, rec { void f() {} };",
            "struct rec PACKED { int a; };",
            "auto f() -> rec { return g(); }",
            "int f(rec) { return 1; }",
            "namespace rec { int a; }",
            "rec f() { return g(); }",
        ] {
            assert_eq!(kinds_of_cpp(text), [], "{text}");
        }
    }

    #[test]
    fn initialisers_by_position_within_those_of_holders_are_found() {
        let kinds = |text: &str, language| {
            let searched = SearchedType {
                names: vec![b"rec".to_vec()],
                holders: vec![b"header".to_vec()],
                held_as: vec![b"first".to_vec()],
                ..SearchedType::default()
            };
            uses(text.as_bytes(), language, &[searched], &Default::default()).remove(0)
        };
        for text in [
            "struct header h = {{1, 2}, 4};",
            "struct header h = {1, 2, 4};",
            "struct header h = {.n = 1, .first = {1, 2}};",
            "static __typeof__(h.first) t = {1, 2};",
        ] {
            assert_eq!(kinds(text, Language::C), [(UseKind::Positional, 1)], "{text}");
        }
        assert_eq!(kinds("header h{{1, 2}, 4};", Language::Cpp), [(UseKind::Positional, 1)]);
        for text in
            ["struct header h = {0};", "struct header h = {4, {.a = 1}, {}};", "struct header *h = f(1);"]
        {
            assert_eq!(kinds(text, Language::C), [], "{text}");
        }
        assert_eq!(kinds("header h{1, 2};", Language::Cpp), []);
    }

    #[test]
    fn long_and_unbalanced_text_takes_little_time() {
        for part in ["rec a = {", "rec{", "{rec a = {1,", "typeof(", "rec a[", "ns::"] {
            let text = part.repeat(3000);
            assert!(kinds_of_cpp(&text).len() <= 3000);
        }
    }
}
