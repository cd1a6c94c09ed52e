//! Declarations by which a compiler tells where objects are initialised by position.

use crate::Language;
use crate::change::{Change, Edit, Refusal};
use crate::find::{bytes, find};
use crate::lexer::{Kind, Token, tokens};
use std::ops::Range;

/// Returns an edit that makes the compiler report every positional initialiser of a struct without changing its layout:
/// by GCC's `designated_init` attribute in C, by a constructor in C++, after which the class is no aggregate. `None`
/// where there can be no such initialiser or no such edit: Rust, classes with constructors, unnamed C++ structs.
pub fn probe(text: &[u8], change: &Change) -> Result<Option<Edit>, Refusal> {
    let tokens = tokens(text, change.language);
    let found = find(text, &tokens, change.language, change.line, &change.name)?;
    let close = tokens.get(found.body.end).ok_or(Refusal::Unbalanced)?.span.end;
    match change.language {
        Language::Rust => Ok(None),
        Language::C => {
            Ok(Some(Edit { range: close..close, text: b" __attribute__((designated_init))".to_vec() }))
        }
        Language::Cpp => {
            if change.name.is_empty() || has_constructor(text, &tokens, &found.body, &change.name) {
                return Ok(None);
            }
            let open = tokens.get(found.body.start.saturating_sub(1)).ok_or(Refusal::Unbalanced)?.span.end;
            let name = String::from_utf8_lossy(&change.name);
            let is_class = tokens.get(found.keyword).is_some_and(|token| bytes(text, token) == b"class");
            let end = if is_class { " private:" } else { "" };
            let text = format!(
                " public: struct tallyline_probe; {name}() = default; explicit {name}(tallyline_probe &&);{end}"
            );
            Ok(Some(Edit { range: open..open, text: text.into_bytes() }))
        }
    }
}

/// Returns `true` if a class declares a constructor: its name and a parenthesis, outside of inner braces.
fn has_constructor(text: &[u8], tokens: &[Token], body: &Range<usize>, name: &[u8]) -> bool {
    let mut depth = 0_i32;
    let mut before: Option<&Token> = None;
    for token in tokens.get(body.clone()).unwrap_or_default().iter().filter(|token| !token.is_trivia()) {
        match token.kind {
            Kind::Punct(b'{') => depth += 1,
            Kind::Punct(b'}') => depth -= 1,
            Kind::Punct(b'(')
                if depth == 0
                    && before
                        .is_some_and(|before| before.kind == Kind::Word && bytes(text, before) == name) =>
            {
                return true;
            }
            _ => {}
        }
        before = Some(token);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(language: Language, text: &str) -> Option<String> {
        let edit = probe(text.as_bytes(), &Change::new(language, 1, "s")).expect("found");
        edit.map(|edit| String::from_utf8(edit.applied_to(text.as_bytes())).expect("UTF-8"))
    }

    #[test]
    fn structs_get_an_attribute_and_classes_a_constructor() {
        let c = probed(Language::C, "struct s { int a; } x;");
        assert_eq!(c.as_deref(), Some("struct s { int a; } __attribute__((designated_init)) x;"));
        let class = probed(Language::Cpp, "class s { int a; };").expect("probed");
        assert!(
            class.starts_with("class s { public: struct tallyline_probe; s() = default; explicit s(")
                && class.ends_with("; private: int a; };")
        );
        assert_eq!(probed(Language::Cpp, "struct s { s(int); int a; };"), None);
    }
}
