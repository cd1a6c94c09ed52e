//! Structured bindings of C++, which name members by their position.

use super::{Scan, UseKind, skip_group};
use std::ops::Range;

/// The words in front of a name with which nothing is declared.
const NO_TYPES: [&[u8]; 9] =
    [b"return", b"else", b"new", b"delete", b"case", b"goto", b"throw", b"co_return", b"co_yield"];

/// The functions of the standard library that pass an object through.
const PASSES_THROUGH: [&[u8]; 9] =
    [b"as_const", b"exchange", b"forward", b"get", b"move", b"ranges", b"ref", b"span", b"views"];

/// The type of a value, as far as the text tells it where it does not name the struct.
enum ValueType {
    Unknown,
    Struct,
    Other,
}

impl Scan<'_> {
    /// Finds those of the structured bindings at some tokens `auto` that have as many names as the struct has `members`,
    /// with the byte offset of each. The type is seldom spelled there: those of values count whose type is not known to
    /// be another.
    pub(super) fn bindings(
        &self,
        autos: &[usize],
        scopes: &[Range<usize>],
        members: usize,
    ) -> Vec<(UseKind, usize)> {
        let bindings = autos.iter().filter(|at| members > 0 && self.is_binding(**at, scopes, members));
        bindings.map(|at| (UseKind::Binding, self.tokens[*at].span.start)).collect()
    }

    fn is_binding(&self, at: usize, scopes: &[Range<usize>], members: usize) -> bool {
        let mut open = at + 1;
        while self.punct(open, b'&') || self.word(open) == b"const" {
            open += 1;
        }
        if !self.punct(open, b'[') {
            return false;
        }
        let end = skip_group(self.tokens, open);
        let names = (open..end).filter(|at| !self.word(*at).is_empty()).count();
        if names != members {
            return false;
        }
        let is_loop = self.punct(end, b':');
        let value = match () {
            () if is_loop || self.punct(end, b'=') => end + 1..self.value_end(end + 1),
            () if self.punct(end, b'(') || self.punct(end, b'{') => {
                end + 1..skip_group(self.tokens, end).saturating_sub(1)
            }
            () => return false,
        };
        !matches!(self.type_of_value(value, scopes, is_loop), ValueType::Other)
    }

    /// Returns the token behind a value: the end of its statement, or of the parentheses around it.
    fn value_end(&self, mut at: usize) -> usize {
        while at < self.tokens.len() {
            if self.punct(at, b'(') || self.punct(at, b'[') || self.punct(at, b'{') {
                at = skip_group(self.tokens, at);
            } else if self.punct(at, b';') || self.punct(at, b')') || self.punct(at, b'}') {
                break;
            } else {
                at += 1;
            }
        }
        at
    }

    fn type_of_value(&self, value: Range<usize>, scopes: &[Range<usize>], is_loop: bool) -> ValueType {
        if value.clone().any(|at| self.is_type(at)) {
            return ValueType::Struct;
        }
        let is_pointer = |at: &usize| self.punct(*at, b'*') || self.punct(*at, b'&') || self.punct(*at, b'(');
        let Some(first) = value.clone().find(|at| !is_pointer(at)) else { return ValueType::Unknown };
        if self.word(first) == b"std" && self.punct(first + 1, b':') {
            return match PASSES_THROUGH.contains(&self.word(first + 3)) {
                true => ValueType::Unknown,
                false => ValueType::Other,
            };
        }
        let next = first + 1;
        // an object of the type that is named, as in other{1, 2}
        if self.punct(next, b'{') && next < value.end {
            return self.type_of_name(first, is_loop);
        }
        let mut end = next;
        let is_call = self.punct(next, b'(') && next < value.end;
        while end < value.end && (self.punct(end, b'[') || is_call && end == next) {
            end = skip_group(self.tokens, end);
        }
        while end < value.end && self.punct(end, b')') {
            end += 1;
        }
        if end != value.end || self.word(first).is_empty() {
            return ValueType::Unknown;
        }
        match self.declaration(first, scopes, is_call) {
            // an element of an array, or of a container of one type
            Some(declared) => self.declared_type(declared, is_loop && !self.is_array(first, scopes)),
            None => ValueType::Unknown,
        }
    }

    /// Returns the tokens of the type in the declaration of a variable or of a function, the last one in front of a use
    /// in its function, or any one outside of functions.
    fn declaration(&self, used: usize, scopes: &[Range<usize>], is_call: bool) -> Option<Range<usize>> {
        let name = self.declared_name(used, scopes, is_call)?;
        let (mut start, mut depth) = (name, 0_u32);
        while let Some(before) = start.checked_sub(1) {
            let is_separator = [b';', b'{', b'}', b'('].iter().any(|end| self.punct(before, *end))
                || depth == 0 && (self.punct(before, b',') || self.punct(before, b')'));
            if self.punct(before, b'>') {
                depth += 1;
            } else if self.punct(before, b'<') {
                let Some(less) = depth.checked_sub(1) else { break };
                depth = less;
            } else if is_separator {
                break;
            }
            start = before;
        }
        Some(start..name)
    }

    fn declared_name(&self, used: usize, scopes: &[Range<usize>], is_call: bool) -> Option<usize> {
        let name = self.word(used);
        let is_declared = |at: &usize| {
            let before = at.saturating_sub(1);
            let is_typed = |at: usize| {
                let word = self.word(at);
                !word.is_empty() && !NO_TYPES.contains(&word) || self.punct(at, b'>')
            };
            let is_pointer =
                (self.punct(before, b'*') || self.punct(before, b'&')) && before > 0 && is_typed(before - 1);
            let ends = [b';', b'=', b',', b')', b':', b'{', b'['].iter().any(|end| self.punct(at + 1, *end));
            let is_kind = if is_call { self.punct(at + 1, b'(') } else { ends || self.punct(at + 1, b'(') };
            self.word(*at) == name && *at != used && is_kind && (is_typed(before) || is_pointer)
        };
        let scope = scopes.iter().find(|scope| scope.contains(&used));
        let local = scope.and_then(|scope| (scope.start..used).rev().find(is_declared));
        let outside = |at: &usize| {
            let index = scopes.partition_point(|scope| scope.end <= *at);
            // a function's name is in the scope of its body
            is_call || !scopes.get(index).is_some_and(|scope| scope.contains(at))
        };
        local.or_else(|| (0..self.tokens.len()).filter(outside).find(is_declared))
    }

    fn is_array(&self, used: usize, scopes: &[Range<usize>]) -> bool {
        self.declared_name(used, scopes, false).is_some_and(|name| self.punct(name + 1, b'['))
    }

    fn declared_type(&self, declared: Range<usize>, is_loop: bool) -> ValueType {
        if declared.clone().any(|at| self.is_type(at)) {
            return ValueType::Struct;
        }
        let words = declared.clone().filter(|at| !self.word(*at).is_empty());
        let mut types = words.map(|at| self.type_of_name(at, false));
        let has_arguments = declared.clone().any(|at| self.punct(at, b'<'));
        match types.any(|known| matches!(known, ValueType::Unknown)) || is_loop && !has_arguments {
            true => ValueType::Unknown,
            false => ValueType::Other,
        }
    }

    /// Returns what a type's name tells: nothing for `auto`, an alias of C++, and a parameter of a template.
    fn type_of_name(&self, at: usize, is_loop: bool) -> ValueType {
        let name = self.word(at);
        let is_named = |at: usize| self.word(at + 1) == name;
        let is_open = |at: usize| match self.word(at) {
            b"using" => is_named(at) && self.punct(at + 2, b'='),
            b"typename" | b"class" => {
                is_named(at) && [b',', b'>', b'='].iter().any(|end| self.punct(at + 2, *end))
            }
            _ => false,
        };
        let is_unknown = is_loop || matches!(name, b"" | b"auto" | b"decltype");
        match is_unknown || (0..self.tokens.len()).any(is_open) {
            true => ValueType::Unknown,
            false => ValueType::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Language, SearchedType, UseKind, uses};

    /// The lines of the bindings to a struct `rec` of three members.
    fn lines(text: &str) -> Vec<u32> {
        let searched = SearchedType { names: vec![b"rec".to_vec()], members: 3, ..SearchedType::default() };
        let found = uses(text.as_bytes(), Language::Cpp, &[searched], &Default::default()).remove(0);
        found.into_iter().filter(|(kind, _)| *kind == UseKind::Binding).map(|(_, line)| line).collect()
    }

    #[test]
    fn bindings_to_objects_of_the_type_are_found() {
        assert_eq!(lines("long f(const rec &x) {\n auto [a, b, c] = x;\n return b; }"), [2]);
        assert_eq!(lines("void f(std::vector<rec> &v) { for (auto &[a, b, c] : v) a = 0; }"), [1]);
        assert_eq!(lines("rec f();\nvoid g() {\n const auto &[a, b, c] = f(); }"), [3]);
        assert_eq!(
            lines("rec all[3];\nvoid g() { for (auto [a, b, c] : all) {} auto [x, y, z]{all[1]}; }"),
            [2]
        );
        assert_eq!(lines("void g() { auto [a, b, c] = rec{1, 2, 3}; }"), [1]);
    }

    #[test]
    fn bindings_to_values_of_unknown_types_are_found() {
        assert_eq!(lines("void g() { if (auto [a, b, c] = elsewhere(); a) {} }"), [1]);
        assert_eq!(lines("void g(const records &v) { for (auto&& [a, b, c] : v) {} }"), [1]);
        assert_eq!(lines("template<class T> void g(const T &v) { auto [a, b, c] = v; }"), [1]);
        assert_eq!(lines("void g(owner *o) { auto x = o->rec_of(); auto [a, b, c] = x; }"), [1]);
        assert_eq!(lines("void g() { auto [a, b, c] = std::move(x.y); }"), [1]);
    }

    #[test]
    fn bindings_with_another_number_of_names_are_none() {
        let text =
            "rec r; void g() { for (auto &[key, value] : map) {} auto [a] = r; auto f = [a, b, c] {}; }";
        assert_eq!(lines(text), []);
    }

    #[test]
    fn bindings_to_values_of_other_types_are_none() {
        assert_eq!(lines("void g() { auto [a, b, c] = std::make_tuple(1, 2, 3); }"), []);
        assert_eq!(lines("void g(const other &x) { auto [a, b, c] = x; }"), []);
        assert_eq!(lines("void g() { std::array<int, 3> x; auto [a, b, c] = x; }"), []);
        assert_eq!(lines("std::tuple<int, int, int> f(int);\nvoid g() { auto [a, b, c] = f(1); }"), []);
        assert_eq!(
            lines("void g(std::vector<std::tuple<int, int, int>> &v) { for (auto &[a, b, c] : v) {} }"),
            []
        );
        assert_eq!(lines("void g() { auto [a, b, c] = other{1, 2, 3}; }"), []);
        assert_eq!(lines("rec x; void g() { other x; auto [a, b, c] = x; }"), []);
    }
}
