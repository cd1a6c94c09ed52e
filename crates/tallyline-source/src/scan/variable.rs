//! Variables and members that are objects of a type, and names with its size.

use super::{Scan, SearchedType, code, macros};
use crate::Language;
use crate::declarator::skip_group;
use crate::find::bytes;
use crate::lexer::{Kind, Token};
use std::collections::HashSet;
use std::ops::Range;

/// The most tokens of a value that is looked at for a size.
const VALUE: usize = 64;

/// A variable, a parameter or a member: its name, and the tokens in which it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable<'t> {
    pub(super) name: &'t [u8],
    pub(super) scope: Range<usize>,
    /// The number of `*` in front of the name.
    pub(super) stars: usize,
    /// `true` if it is an array, or what it points to is constant.
    pub(super) is_fixed: bool,
}

impl<'t> Variable<'t> {
    /// Creates an object, of which nothing but its name is known.
    pub(super) fn new(name: &'t [u8], scope: Range<usize>) -> Variable<'t> {
        Variable { name, scope, stars: 0, is_fixed: false }
    }
}

/// Finds the macros and constants of a source whose value has the size of a struct. Returns pairs of the index in `types`
/// and the name.
pub fn size_names(text: &[u8], language: Language, types: &[SearchedType]) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    if language == Language::Rust {
        return found;
    }
    let all = code(text, 0, language);
    let (scopes, macros) = (scopes(text, &all), macros(text, &all, language));
    let mut words = HashSet::new();
    for tokens in macros.iter().map(|body| &body.body).chain([&all]) {
        let scan = Scan::new(text, tokens, &[], &[]);
        let operands = (0..tokens.len()).filter(|at| scan.word(*at) == b"sizeof");
        words.extend(operands.flat_map(|at| at + 1..scan.operand_end(at + 1)).map(|at| scan.word(at)));
    }
    for (index, searched) in types.iter().enumerate() {
        for names in [&searched.names, &searched.holders] {
            if !names.iter().any(|name| words.contains(name.as_slice())) {
                continue;
            }
            let mut scan = Scan::new(text, &all, names, &[]);
            scan.add_sizes(&scopes, [].into_iter());
            let known = scan.sizes.iter().filter(|size| size.scope == (0..all.len()));
            found.extend(known.map(|size| (index, size.name.to_vec())));
            for body in macros.iter().filter(|body| body.parameters.is_empty() && body.body.len() < VALUE) {
                if Scan::new(text, &body.body, names, &[]).is_sized(0..body.body.len()) {
                    found.push((index, body.name.to_vec()));
                }
            }
        }
    }
    found
}

/// Returns the tokens in which parameters and local variables are known: each definition of a function with its
/// parameters, and the parameters of each declaration. All else is known everywhere, as members are.
pub(super) fn scopes(text: &[u8], tokens: &[Token]) -> Vec<Range<usize>> {
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

impl<'t> Scan<'t> {
    pub(super) fn is_variable(&self, at: usize) -> bool {
        is_one_of(&self.variables, self.word(at), at)
    }

    /// Returns `true` if a token is a name with the size of an object, and no member.
    pub(super) fn is_size(&self, at: usize) -> bool {
        let is_member = at > 0 && (self.punct(at - 1, b'.') || self.punct(at - 1, b'>'));
        !is_member && is_one_of(&self.sizes, self.word(at), at)
    }

    /// Returns the search that knows the variables which are declared with the type.
    pub(super) fn with_variables(mut self, scopes: &[Range<usize>]) -> Scan<'t> {
        let mut variables: Vec<Variable<'t>> = Vec::new();
        if self.names.is_empty() {
            return self;
        }
        for at in (0..self.tokens.len()).filter(|at| self.is_type(*at) || self.holds_type(*at)) {
            let mut next = at + 1;
            // the variables of a definition stand behind its body
            if self.punct(next, b'{') {
                next = skip_group(self.tokens, next);
            }
            let scope = self.scope_of(at, scopes);
            let mut before =
                (0..at).rev().map(|at| self.word(at)).take(3).take_while(|word| !word.is_empty());
            let is_const = before.any(|word| word == b"const");
            let mut is_first = true;
            loop {
                let first = next;
                while self.punct(next, b'*')
                    || self.punct(next, b'&')
                    || matches!(self.word(next), b"const" | b"restrict")
                {
                    next += 1;
                }
                let name = self.word(next);
                let end = self.declarator_end(next + 1);
                // behind a comma may be another parameter's type
                if name.is_empty() || !(is_first || self.punct(end, b',') || self.punct(end, b';')) {
                    break;
                }
                let stars = (first..next).filter(|at| self.punct(*at, b'*')).count();
                let is_fixed =
                    self.punct(next + 1, b'[') || stars > 0 && (is_const || self.word(first) == b"const");
                let variable = Variable { name, scope: scope.clone(), stars, is_fixed };
                if !variables.contains(&variable) {
                    variables.push(variable);
                }
                if !self.punct(end, b',') {
                    break;
                }
                (next, is_first) = (end + 1, false);
            }
        }
        self.variables = variables;
        self
    }

    /// Adds the names with the size of an object: some that are known everywhere, and those that are given one.
    pub(super) fn add_sizes<'n>(
        &mut self,
        scopes: &[Range<usize>],
        everywhere: impl Iterator<Item = &'n [u8]>,
    ) where
        'n: 't,
    {
        let known = everywhere.map(|name| Variable::new(name, 0..self.tokens.len()));
        let mut sizes: Vec<Variable<'t>> = known.collect();
        if self.names.is_empty() {
            return;
        }
        for at in (0..self.tokens.len()).filter(|at| self.word(*at) == b"sizeof") {
            let Some(name) = self.name_given(at).filter(|_| self.is_sized(at..at + 1)) else { continue };
            let size = Variable::new(self.word(name), self.scope_of(at, scopes));
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
        self.sizes = sizes;
    }

    /// Returns the token of the variable or constant whose value has a token; none if it is no variable's.
    fn name_given(&self, inside: usize) -> Option<usize> {
        let ends = |at: &usize| [b';', b'{', b'}', b',', b'<', b'?'].iter().any(|end| self.punct(*at, *end));
        let mut before = (inside.saturating_sub(VALUE)..inside).rev().take_while(|at| !ends(at));
        let assigned = before.find(|at| self.punct(*at, b'='))?;
        // += adds one
        let mut name = assigned.checked_sub(1)?;
        if self.punct(name, b'+') {
            name = name.checked_sub(1)?;
        }
        let is_member = name > 0 && (self.punct(name - 1, b'.') || self.punct(name - 1, b'>'));
        // an argument of a call is no value
        let is_alone = (assigned..inside).all(|at| !self.punct(at, b'(') || self.word(at - 1).is_empty());
        (!self.word(name).is_empty() && !is_member && is_alone).then_some(name)
    }

    /// Returns the tokens in which a variable is known that is declared at a token.
    fn scope_of(&self, at: usize, scopes: &[Range<usize>]) -> Range<usize> {
        let index = scopes.partition_point(|scope| scope.end <= at);
        let scope = scopes.get(index).filter(|scope| scope.contains(&at));
        scope.cloned().unwrap_or(0..self.tokens.len())
    }

    /// Returns the token behind an array's size and an initial value that a declarator has after its name.
    pub(super) fn declarator_end(&self, mut at: usize) -> usize {
        while self.punct(at, b'[') {
            at = skip_group(self.tokens, at);
        }
        if self.punct(at, b'=') {
            while at < self.tokens.len() && ![b',', b';', b')', b'}'].iter().any(|end| self.punct(at, *end)) {
                let is_group = [b'(', b'[', b'{'].iter().any(|open| self.punct(at, *open));
                at = if is_group { skip_group(self.tokens, at) } else { at + 1 };
            }
        }
        at
    }

    /// Returns `true` if a `struct` or a `union` without a name begins at a token, with an object of the type in it.
    fn holds_type(&self, at: usize) -> bool {
        let is_unnamed = matches!(self.word(at), b"struct" | b"union") && self.punct(at + 1, b'{');
        is_unnamed
            && (at + 2..skip_group(self.tokens, at + 1))
                .any(|at| self.is_type(at) && !self.word(at + 1).is_empty())
    }
}

/// Returns `true` if a word is the name of one of some variables where a token is.
pub(super) fn is_one_of(variables: &[Variable<'_>], word: &[u8], at: usize) -> bool {
    !word.is_empty() && variables.iter().any(|known| known.name == word && known.scope.contains(&at))
}

#[cfg(test)]
mod tests {
    use crate::scan::tests::{assert_transfers, kinds};
    use crate::{Language, SearchedType, UseKind, size_names};

    #[test]
    fn all_variables_of_a_declaration_are_known_and_the_next_parameters_are_not() {
        let write =
            |declared: &str| kinds(&format!("{declared}\nvoid f(void) {{ write(1, &x, sizeof x); }}"));
        for declared in ["rec_t a, x;", "static struct rec a[2] = {{}}, *b = &a[1], x;", "rec_t x, b;"] {
            assert_eq!(write(declared), [(UseKind::Transfer, 2)], "{declared}");
        }
        for declared in ["void g(rec_t a, other x);", "rec_t a; other x;", "void g(rec_t a, long x, int n);"]
        {
            assert_eq!(write(declared), [], "{declared}");
        }
    }

    #[test]
    fn names_with_the_size_of_an_object_are_sizes_where_they_are_known() {
        assert_transfers(
            &[
                "void f(rec_t r) { size_t n = sizeof r; write(1, &r, n); }",
                "void f(rec_t *r) { int n; n = 4; n += sizeof(*r); send(1, buffer, n, 0); }",
                "#define SIZE (sizeof(rec_t) + 4)\nvoid f(rec_t *r) { fwrite(r, 1, SIZE, out); }",
                "enum { SIZE = sizeof(struct rec) }; void f(rec_t *r) { fread(r, SIZE, 1, in); }",
            ],
            &[
                "void f(rec_t *r) { size_t n = sizeof r; write(1, &r, n); }",
                "void f(rec_t r) { size_t n = sizeof r; } void g(rec_t *r, size_t n) { write(1, r->name, n); }",
                "void f(rec_t *r) { char *p = new(sizeof *r); write(1, p, 4); o.n = sizeof *r; write(1, r->name, n); }",
            ],
        );
    }

    #[test]
    fn sizes_of_a_source_are_known_in_others() {
        let types = [SearchedType { names: vec![b"rec".to_vec()], ..SearchedType::default() }];
        let text = "#define HEAD sizeof(struct rec)\nconst int SIZE = sizeof(struct rec); #define TWO(x) sizeof(struct rec)\n\
                    void f(void) { int n = sizeof(struct rec); }";
        let found = size_names(text.as_bytes(), Language::C, &types);
        assert_eq!(found, [(0, b"SIZE".to_vec()), (0, b"HEAD".to_vec())]);
    }
}
