//! The elements of a declaration's body: members, directives and what else stands there.

use crate::declarator::{Declarator, Form, form, skip_group};
use crate::find::bytes;
use crate::lexer::{Kind, Token};
use crate::{Language, Refusal};
use std::ops::Range;

/// An element of a C, C++ or Rust struct's body (a member declaration, macro, directive or other text), as a range of
/// bytes without the blanks and comments around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// The bytes from the element's first token to its last.
    pub(crate) core: Range<usize>,
    /// The kind of the element.
    pub(crate) kind: ElementKind,
    /// `true` if a compiler may leave the element out, as under `#if` or `cfg`.
    pub(crate) optional: bool,
}

/// The kinds of elements of a struct's body in a source: member declarations, macros, `#if`/`#else`/`#endif`,
/// `#define`, and other text that an edit leaves where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElementKind {
    /// A declaration of members.
    Member(Declaration),
    /// A macro, which may declare members under other names than those that are seen.
    Macro,
    /// The start of a conditional: `#if`, `#ifdef`, `#ifndef`.
    If,
    /// An alternative of a conditional: `#else`, `#elif`, `#elifdef`, `#elifndef`.
    Else,
    /// The end of a conditional: `#endif`.
    EndIf,
    /// A definition of a macro (`#define`, `#undef`), which stays with the member in front of it.
    Define,
    /// A function, a type, an access label or another directive, which stays where it is.
    Other,
}

/// A declaration of one or more members in a struct's body: the byte ranges of its specifiers and declarators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    /// The bytes of the specifiers, which all declarators share.
    pub(crate) specifiers: Range<usize>,
    /// The declarators of the declaration, in the order of the source.
    pub(crate) declarators: Vec<Declarator>,
    /// `true` if the declaration may be cut into one for each declarator.
    pub(crate) splittable: bool,
}

/// Splits the body of a C, C++ or Rust struct (`body`: a range of indices of tokens) into member declarations,
/// directives and other elements. Fails with [`Refusal::Unbalanced`] if conditionals do not close within the body.
pub(crate) fn elements(
    text: &[u8],
    tokens: &[Token],
    body: Range<usize>,
    language: Language,
) -> Result<Vec<Element>, Refusal> {
    let Some(inside) = tokens.get(..body.end) else { return Err(Refusal::Unbalanced) };
    let mut elements: Vec<Element> = Vec::new();
    let mut depth = 0_u32;
    let mut at = body.start;
    while let Some(token) = inside.get(at) {
        if token.is_trivia() || token.is(b';') {
            at += 1;
            continue;
        }
        if token.kind == Kind::Directive {
            let kind = directive(bytes(text, token));
            match kind {
                ElementKind::If => depth += 1,
                ElementKind::Else if depth == 0 => return Err(Refusal::Unbalanced),
                ElementKind::EndIf => depth = depth.checked_sub(1).ok_or(Refusal::Unbalanced)?,
                _ => {}
            }
            elements.push(Element { core: token.span.clone(), kind, optional: depth > 0 });
            at += 1;
            continue;
        }
        let (element, next) = match language {
            Language::Rust => field(text, inside, at),
            Language::C | Language::Cpp => declaration(text, inside, at, language)?,
        };
        at = next.max(at + 1);
        elements.push(Element { optional: element.optional || depth > 0, ..element });
    }
    if depth == 0 { Ok(elements) } else { Err(Refusal::Unbalanced) }
}

fn directive(text: &[u8]) -> ElementKind {
    let word = text.iter().skip(1).skip_while(|byte| byte.is_ascii_whitespace());
    let word: Vec<u8> = word.copied().take_while(|byte| byte.is_ascii_alphabetic()).collect();
    match word.as_slice() {
        b"if" | b"ifdef" | b"ifndef" => ElementKind::If,
        b"else" | b"elif" | b"elifdef" | b"elifndef" => ElementKind::Else,
        b"endif" => ElementKind::EndIf,
        b"define" | b"undef" => ElementKind::Define,
        _ => ElementKind::Other,
    }
}

/// Reads one declaration; also the index behind it.
fn declaration(
    text: &[u8],
    tokens: &[Token],
    start: usize,
    language: Language,
) -> Result<(Element, usize), Refusal> {
    if let Some(end) = label(text, tokens, start, language) {
        return Ok((element(tokens, start, end, ElementKind::Other), end));
    }
    if let Some(end) = macro_line(text, tokens, start) {
        return Ok((element(tokens, start, end, ElementKind::Macro), end));
    }
    let mut significant: Vec<Token> = Vec::new();
    let mut has_directive = false;
    let mut at = start;
    let mut end = start;
    while let Some(token) = tokens.get(at) {
        match token.kind {
            _ if token.is_trivia() => at += 1,
            Kind::Directive => {
                has_directive = true;
                // one that opens here has to close here
                if !matches!(
                    directive(bytes(text, token)),
                    ElementKind::If | ElementKind::Else | ElementKind::EndIf
                ) {
                    return Err(Refusal::Unbalanced);
                }
                at += 1;
            }
            Kind::Punct(b';') => {
                end = at + 1;
                break;
            }
            Kind::Punct(b'(' | b'[' | b'{') => {
                let behind = skip_group(tokens, at);
                let is_function = token.is(b'{') && is_function_body(text, &significant, language);
                significant.extend(
                    tokens
                        .get(at..behind)
                        .unwrap_or_default()
                        .iter()
                        .filter(|t| !t.is_trivia() && t.kind != Kind::Directive)
                        .cloned(),
                );
                at = behind;
                end = at;
                if is_function {
                    return Ok((element(tokens, start, end, ElementKind::Other), end));
                }
            }
            _ => {
                significant.push(token.clone());
                at += 1;
                end = at;
            }
        }
    }
    let kind = match form(text, &significant, language) {
        Form::Other => ElementKind::Other,
        Form::Macro => ElementKind::Macro,
        Form::Data { specifiers, declarators } => {
            let has_body = tokens
                .get(start..end)
                .unwrap_or_default()
                .iter()
                .any(|token| token.is(b'{') && specifiers.contains(&token.span.start));
            ElementKind::Member(Declaration {
                specifiers,
                declarators,
                splittable: !has_directive && !has_body,
            })
        }
    };
    let is_balanced = !has_directive || conditionals_close(text, tokens.get(start..end).unwrap_or_default());
    if is_balanced { Ok((element(tokens, start, end, kind), end)) } else { Err(Refusal::Unbalanced) }
}

fn conditionals_close(text: &[u8], tokens: &[Token]) -> bool {
    let mut depth = 0_i32;
    for token in tokens.iter().filter(|token| token.kind == Kind::Directive) {
        match directive(bytes(text, token)) {
            ElementKind::If => depth += 1,
            ElementKind::EndIf => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

fn element(tokens: &[Token], start: usize, end: usize, kind: ElementKind) -> Element {
    let from = tokens.get(start).map_or(0, |token| token.span.start);
    let to = tokens.get(end.saturating_sub(1)).map_or(from, |token| token.span.end);
    Element { core: from..to.max(from), kind, optional: false }
}

/// Returns the index behind an access label.
fn label(text: &[u8], tokens: &[Token], start: usize, language: Language) -> Option<usize> {
    if language != Language::Cpp {
        return None;
    }
    let word = bytes(text, tokens.get(start)?);
    let is_label =
        matches!(word, b"public" | b"private" | b"protected" | b"signals" | b"Q_SIGNALS" | b"slots");
    if !is_label {
        return None;
    }
    let rest = tokens.iter().enumerate().skip(start + 1).filter(|(_, token)| !token.is_trivia()).take(2);
    rest.take_while(|(_, token)| token.kind == Kind::Word || token.is(b':'))
        .find(|(_, token)| token.is(b':'))
        .map(|(at, _)| at + 1)
}

/// Returns the index behind a macro that stands on a line alone, without a semicolon.
fn macro_line(text: &[u8], tokens: &[Token], start: usize) -> Option<usize> {
    let word = bytes(text, tokens.get(start)?);
    let is_upper = word.len() > 1
        && word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_');
    if !is_upper {
        return None;
    }
    let mut end = start + 1;
    let skip_blanks = |mut at: usize| {
        while tokens.get(at).is_some_and(|token| matches!(token.kind, Kind::Space | Kind::BlockComment)) {
            at += 1;
        }
        at
    };
    let next = skip_blanks(end);
    if tokens.get(next).is_some_and(|token| token.is(b'(')) {
        end = skip_group(tokens, next);
    }
    let behind = skip_blanks(end);
    let ends = tokens.get(behind).is_none_or(|token| matches!(token.kind, Kind::Newline | Kind::LineComment));
    // a type in capitals whose declarator is on the next line is indented further, or begins with a star
    let next_word = tokens.iter().skip(behind).find(|token| !token.is_trivia());
    let goes_on = next_word.is_some_and(|token| matches!(token.kind, Kind::Punct(_)) && !token.is(b'#'));
    (ends
        && !goes_on
        && next_word.is_none_or(|token| {
            column(text, token.span.start) <= column(text, tokens.get(start).map_or(0, |t| t.span.start))
        }))
    .then_some(end)
}

/// Returns `true` if a brace after the tokens `before` opens a function's body.
fn is_function_body(text: &[u8], before: &[Token], language: Language) -> bool {
    if language != Language::Cpp {
        return false;
    }
    let mut at = 0;
    let mut has_parameters = false;
    while let Some(token) = before.get(at) {
        let word = bytes(text, token);
        if token.is(b'=') {
            return false;
        }
        let opens = before.get(at + 1).is_some_and(|next| next.is(b'('));
        let is_attribute = matches!(
            word,
            b"__attribute__"
                | b"alignas"
                | b"decltype"
                | b"__declspec"
                | b"noexcept"
                | b"typeof"
                | b"explicit"
        );
        if token.kind == Kind::Word && opens && is_attribute {
            at = skip_group(before, at + 1);
            continue;
        }
        if token.is(b'(') {
            has_parameters = true;
            at = skip_group(before, at);
            continue;
        }
        if token.is(b'[') {
            at = skip_group(before, at);
            continue;
        }
        at += 1;
    }
    has_parameters
}

/// Reads a field of a Rust struct: attributes, visibility, name, type, and the comma.
fn field(text: &[u8], tokens: &[Token], start: usize) -> (Element, usize) {
    let mut at = start;
    let (mut name, mut optional) = (None, false);
    let mut angles = 0_u32;
    let mut end = start;
    while let Some(token) = tokens.get(at) {
        match token.kind {
            _ if token.is_trivia() => {
                at += 1;
                continue;
            }
            Kind::Punct(b'#') => {
                let open = (at + 1..tokens.len()).find(|at| !tokens[*at].is_trivia());
                let word =
                    open.and_then(|open| tokens.iter().skip(open + 1).find(|token| !token.is_trivia()));
                optional |= word.is_some_and(|word| matches!(bytes(text, word), b"cfg" | b"cfg_attr"));
                at = open.map_or(at + 1, |open| skip_group(tokens, open));
                end = at;
                continue;
            }
            Kind::Punct(b'(' | b'[' | b'{') => {
                at = skip_group(tokens, at);
                end = at;
                continue;
            }
            Kind::Punct(b'<') => angles += 1,
            // `->` of a function's type closes nothing
            Kind::Punct(b'>') if !at.checked_sub(1).is_some_and(|before| tokens[before].is(b'-')) => {
                angles = angles.saturating_sub(1);
            }
            Kind::Punct(b',') if angles == 0 => {
                end = at + 1;
                break;
            }
            Kind::Word if name.is_none() && bytes(text, token) != b"pub" => name = Some(token.span.clone()),
            _ => {}
        }
        at += 1;
        end = at;
    }
    let whole = element(tokens, start, end, ElementKind::Other);
    let kind = match name {
        Some(mut name) => {
            if text.get(name.clone()).is_some_and(|word| word == b"r") {
                // a raw name: `r#type`
                name = raw_name(tokens, name);
            }
            let declarator = Declarator { name: Some(name), span: whole.core.clone(), is_bits: false };
            ElementKind::Member(Declaration {
                specifiers: whole.core.start..whole.core.start,
                declarators: vec![declarator],
                splittable: false,
            })
        }
        None => ElementKind::Other,
    };
    (Element { kind, optional, ..whole }, end)
}

fn raw_name(tokens: &[Token], word: Range<usize>) -> Range<usize> {
    let at = tokens.iter().position(|token| token.span == word);
    let next = at.and_then(|at| tokens.get(at + 2)).filter(|token| token.kind == Kind::Word);
    next.map_or(word, |token| token.span.clone())
}

/// Returns the column, counted from 0, of the byte at offset `at` on its line of a source; tabs advance to multiples of
/// eight.
pub(crate) fn column(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    before.get(start..).unwrap_or_default().iter().fold(0, |column, byte| match byte {
        b'\t' => (column / 8 + 1) * 8,
        _ => column + 1,
    })
}
