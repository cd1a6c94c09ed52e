//! Functions and variables of other languages, and the types that Rust shares with them.

use crate::Language;
use crate::declarator::skip_group;
use crate::find::bytes;
use crate::lexer::{Kind, LineCounter, Token, tokens};
use std::ops::Range;

/// Finds the declarations in `extern` blocks of a Rust source that name one of some types. Returns for each the type's
/// index in `types`, the symbol of the declared function or variable, and the line, counted from 1. Whatever defines the
/// symbol relies on the layout of the type, unless that is Rust of the same project, see [`defined_symbols`].
pub fn foreign_uses(text: &[u8], types: &[Vec<Vec<u8>>]) -> Vec<(usize, Vec<u8>, u32)> {
    let source = Source::new(text);
    let mut lines = LineCounter::new(text);
    let mut found = Vec::new();
    for block in source.extern_blocks() {
        let mut start = block.start;
        for end in block.filter(|at| source.tokens[*at].is(b';')) {
            let item = std::mem::replace(&mut start, end + 1)..end;
            let named = source.value_of(b"link_name", item.clone());
            let Some(name) = named.or_else(|| source.declared(item.clone())) else { continue };
            let line = lines.of(source.tokens[item.start].span.start);
            let is_named = |names: &[Vec<u8>]| {
                item.clone().any(|at| names.iter().any(|name| !name.is_empty() && name == source.word(at)))
            };
            let of_item = types.iter().enumerate().filter(|(_, names)| is_named(names));
            found.extend(of_item.map(|(index, _)| (index, name.to_vec(), line)));
        }
    }
    found
}

/// Returns the symbols of functions and variables that a Rust source defines for other languages: those with
/// `#[no_mangle]` by their names, those with `#[export_name]` by that; sorted.
pub fn defined_symbols(text: &[u8]) -> Vec<Vec<u8>> {
    let source = Source::new(text);
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut is_exported = false;
    let mut at = 0;
    while let Some(token) = source.tokens.get(at) {
        if token.is(b'#') && source.is(at + 1, b'[') {
            let end = skip_group(&source.tokens, at + 1);
            is_exported |= (at..end).any(|at| source.word(at) == b"no_mangle");
            found.extend(source.value_of(b"export_name", at..end).map(<[u8]>::to_vec));
            at = end;
            continue;
        }
        if is_exported && matches!(source.word(at), b"fn" | b"static") {
            found.extend(source.declared(at..at + 4).map(<[u8]>::to_vec));
            is_exported = false;
        }
        at += 1;
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A Rust source without blanks and comments.
struct Source<'t> {
    text: &'t [u8],
    tokens: Vec<Token>,
}

impl<'t> Source<'t> {
    fn new(text: &'t [u8]) -> Self {
        let tokens = tokens(text, Language::Rust).into_iter().filter(|token| !token.is_trivia()).collect();
        Self { text, tokens }
    }

    fn word(&self, at: usize) -> &'t [u8] {
        let token = self.tokens.get(at).filter(|token| token.kind == Kind::Word);
        token.map_or(b"", |token| bytes(self.text, token))
    }

    fn is(&self, at: usize, byte: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(byte))
    }

    /// Returns the tokens within each `extern` block; there are none within another.
    fn extern_blocks(&self) -> Vec<Range<usize>> {
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let is_literal = self.tokens.get(at + 1).is_some_and(|token| token.kind == Kind::Literal);
            let open = at + 1 + usize::from(is_literal);
            at += 1;
            if self.word(at - 1) == b"extern" && self.is(open, b'{') {
                at = skip_group(&self.tokens, open).max(open + 1);
                blocks.push(open + 1..at - 1);
            }
        }
        blocks
    }

    /// Returns the text that some tokens assign to an attribute of a name.
    fn value_of(&self, attribute: &[u8], mut item: Range<usize>) -> Option<&'t [u8]> {
        let at = item.find(|at| self.word(*at) == attribute && self.is(at + 1, b'='))?;
        let literal = self.tokens.get(at + 2).filter(|token| token.kind == Kind::Literal)?;
        bytes(self.text, literal).strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// Returns the name of the function or variable that some tokens declare.
    fn declared(&self, item: Range<usize>) -> Option<&'t [u8]> {
        let mut words = item.skip_while(|at| !matches!(self.word(*at), b"fn" | b"static")).skip(1);
        let name = words.find(|at| self.word(*at) != b"mut").map(|at| self.word(at))?;
        (!name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_foreign_items_are_found_by_the_types_that_they_name() {
        let text = b"pub struct Rec { a: u8 }\n\
            extern \"C\" {\n    fn take(rec: *mut Rec, other: &Other);\n    static mut first: Rec;\n    fn none();\n}\n\
            pub extern \"C\" fn own(rec: &Rec) { other(rec) }\n\
            extern { #[link_name = \"given\"] pub fn give() -> *const Alias; }\n";
        let types = [vec![b"Rec".to_vec(), b"Alias".to_vec()], vec![b"Other".to_vec()]];
        let found = foreign_uses(text, &types);
        let found: Vec<(usize, &str, u32)> = found
            .iter()
            .map(|(index, name, line)| (*index, std::str::from_utf8(name).expect("text"), *line))
            .collect();
        assert_eq!(found, [(0, "take", 3), (1, "take", 3), (0, "first", 4), (0, "given", 8)]);
    }

    #[test]
    fn exported_items_are_found_and_others_are_not() {
        let text = b"#[no_mangle]\npub extern \"C\" fn take(rec: *mut Rec) {}\nfn inner() {}\n\
            #[unsafe(no_mangle)]\n#[inline]\npub static mut FIRST: Rec = Rec { a: 0 };\n#[inline]\nfn last() {}\n\
            #[export_name = \"other\"]\npub extern \"C\" fn renamed() {}\n";
        assert_eq!(defined_symbols(text), [b"FIRST".to_vec(), b"other".to_vec(), b"take".to_vec()]);
    }

    #[test]
    fn any_text_is_read_to_its_end() {
        for text in [
            "extern",
            "extern \"C\" {",
            "extern \"C\" { fn",
            "#[no_mangle] fn",
            "#[no_mangle",
            "extern { static mut ; }",
        ] {
            assert!(foreign_uses(text.as_bytes(), &[vec![Vec::new()]]).is_empty(), "{text}");
            assert!(defined_symbols(text.as_bytes()).is_empty(), "{text}");
        }
    }
}
