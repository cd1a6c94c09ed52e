//! Members with other types, and text around a declaration.

use crate::Language;
use crate::body::{Declaration, ElementKind, elements};
use crate::change::{Change, Edit, Refusal};
use crate::declarator::Declarator;
use crate::find::{Found, bytes, find};
use crate::items::display_name;
use crate::lexer::{Kind, Token, tokens};
use std::ops::Range;

/// A member's plain declaration: its name, its type's text, and what stands behind the name.
struct Plain {
    name: Range<usize>,
    ty: Range<usize>,
    behind: Range<usize>,
    /// The names of the other members in the declaration.
    others: Vec<Range<usize>>,
}

/// Returns the byte range of a member's name in a struct's declaration; `member` is the member's index in the present
/// order. `change` says which struct.
pub fn member_name(text: &[u8], change: &Change, member: usize) -> Result<Range<usize>, Refusal> {
    let tokens = tokens(text, change.language);
    Ok(plain(text, &tokens, change, member)?.name)
}

/// Returns the byte range of a member's type in a struct's declaration; `member` is the member's index in the present
/// order. `change` says which struct.
pub fn member_type(text: &[u8], change: &Change, member: usize) -> Result<Range<usize>, Refusal> {
    let tokens = tokens(text, change.language);
    Ok(plain(text, &tokens, change, member)?.ty)
}

/// Returns a copy of a source's text in which members of a struct have other types, as `change` requests. Fails if a
/// member's declaration says more than a type (a pointer, array, bitfield, attribute or nonzero initial value) or is
/// shared with a member that keeps its type.
pub(crate) fn retype(text: &[u8], change: &Change) -> Result<Vec<u8>, Refusal> {
    let tokens = tokens(text, change.language);
    let mut edits: Vec<Edit> = Vec::new();
    for (member, ty) in &change.retyped {
        let found = plain(text, &tokens, change, *member)?;
        let names: Vec<&[u8]> = change
            .retyped
            .iter()
            .filter(|(_, other)| other == ty)
            .filter_map(|(at, _)| Some(change.members.get(*at)?.0.as_slice()))
            .collect();
        // a declaration of several names has one type
        if found.others.iter().any(|other| !text.get(other.clone()).is_some_and(|name| names.contains(&name)))
        {
            let name = text.get(found.name).unwrap_or_default();
            return Err(Refusal::Inseparable(display_name(name)));
        }
        let edit = Edit::new(found.ty, ty.as_bytes());
        if !edits.contains(&edit) {
            edits.push(edit);
        }
        if !found.behind.is_empty() {
            edits.push(Edit::new(found.behind, Vec::new()));
        }
    }
    Ok(Edit::all_applied_to(&edits, text))
}

/// Finds the plain declaration of a member.
fn plain(text: &[u8], tokens: &[Token], change: &Change, member: usize) -> Result<Plain, Refusal> {
    let (name, _) = change.members.get(member).ok_or(Refusal::Order)?;
    let found = find(text, tokens, change.language, change.line, &change.name)?;
    let elements = elements(text, tokens, found.body.clone(), change.language)?;
    let named = |one: &Declarator| {
        one.name.as_ref().and_then(|span| text.get(span.clone())).is_some_and(|own| own == name)
    };
    let declarations = elements.iter().filter_map(|element| match &element.kind {
        ElementKind::Member(declaration) => Some((element, declaration)),
        _ => None,
    });
    let mut fitting = declarations.filter(|(_, declaration)| declaration.declarators.iter().any(named));
    let (element, declaration) = fitting.next().ok_or_else(|| Refusal::Macro(display_name(name)))?;
    // two of one name are in alternatives
    if fitting.next().is_some() || name.is_empty() {
        return Err(Refusal::Conditional(display_name(name)));
    }
    let not_plain = || Refusal::NotPlain(display_name(name));
    match change.language {
        Language::Rust => of_field(text, tokens, &element.core, declaration).ok_or_else(not_plain),
        language => {
            let own = declaration.declarators.iter().find(|one| named(one)).ok_or_else(not_plain)?;
            of_declaration(text, tokens, declaration, own, language).ok_or_else(not_plain)
        }
    }
}

fn of_declaration(
    text: &[u8],
    tokens: &[Token],
    declaration: &Declaration,
    own: &Declarator,
    language: Language,
) -> Option<Plain> {
    let specifiers = inside(tokens, &declaration.specifiers);
    let first = specifiers.iter().find(|token| bytes(text, token) != b"mutable")?;
    let is_more = specifiers.iter().any(|token| {
        token.kind == Kind::Directive
            || token.is(b'{')
            || token.is(b'[')
            || matches!(
                bytes(text, token),
                b"alignas" | b"_Alignas" | b"__attribute__" | b"__attribute" | b"__declspec" | b"const"
            )
    });
    let name = own.name.clone()?;
    let behind = name.end..own.span.end.max(name.end);
    let value = inside(tokens, &behind);
    let has_value = !value.is_empty();
    let is_zero = value.iter().all(|token| {
        matches!(token.kind, Kind::Punct(b'=' | b'{' | b'}' | b'(' | b')'))
            || matches!(bytes(text, token), b"ATOMIC_VAR_INIT")
            || is_zero_literal(bytes(text, token))
    });
    let is_bare = own.span.start == name.start && !own.is_bits;
    if is_more || !is_bare || has_value && !(is_zero && language == Language::Cpp) {
        return None;
    }
    let others = declaration.declarators.iter().filter(|one| *one != own).map(|one| one.name.clone());
    Some(Plain {
        name,
        ty: first.span.start..declaration.specifiers.end,
        behind,
        others: others.collect::<Option<Vec<_>>>()?,
    })
}

fn of_field(text: &[u8], tokens: &[Token], core: &Range<usize>, declaration: &Declaration) -> Option<Plain> {
    let name = declaration.declarators.first()?.name.clone()?;
    let behind = name.end..core.end;
    let mut rest = inside(tokens, &behind).into_iter().skip_while(|token| !token.is(b':'));
    rest.next()?;
    let ty: Vec<&Token> = rest.collect();
    let ty = match ty.split_last() {
        Some((last, before)) if last.is(b',') => before,
        _ => &ty,
    };
    let (first, last) = (ty.first()?, ty.last()?);
    let ty = first.span.start..last.span.end;
    text.get(ty.clone())?;
    Some(Plain { behind: name.end..name.end, name, ty, others: Vec::new() })
}

/// Returns `true` if the compiler lays out the fields of the struct that `change` names in the order of the source:
/// always in C and C++, in Rust only with `repr(C)`.
pub fn is_laid_out_in_order(text: &[u8], change: &Change) -> Result<bool, Refusal> {
    if change.language != Language::Rust {
        return Ok(true);
    }
    let tokens = tokens(text, change.language);
    let found = find(text, &tokens, change.language, change.line, &change.name)?;
    let keyword = tokens.get(found.keyword).map_or(0, |token| token.span.start);
    let head = start(text, &tokens, &found, change.language)..keyword;
    let words: Vec<&[u8]> = inside(&tokens, &head).into_iter().map(|token| bytes(text, token)).collect();
    let is_start = |at: &usize| words.get(*at) == Some(&&b"repr"[..]);
    let of_one = |at: usize| words.iter().skip(at).take_while(|word| **word != b"]");
    Ok((0..words.len()).filter(is_start).any(|at| of_one(at).any(|word| *word == b"C")))
}

/// Returns `true` if a word of a source is the integer literal 0, with or without a type suffix.
pub(crate) fn is_zero_literal(word: &[u8]) -> bool {
    let digits = word.iter().rposition(|byte| !matches!(byte, b'u' | b'U' | b'l' | b'L'));
    digits == Some(0) && word.first() == Some(&b'0')
}

fn inside<'t>(tokens: &'t [Token], range: &Range<usize>) -> Vec<&'t Token> {
    tokens.iter().filter(|token| range.contains(&token.span.start) && !token.is_trivia()).collect()
}

/// Returns a copy of a source's text with the lines that `change` requests above and below the struct's declaration,
/// and the number of lines inserted above.
pub(crate) fn surround(text: &[u8], change: &Change) -> Result<(Vec<u8>, u32), Refusal> {
    let tokens = tokens(text, change.language);
    let found = find(text, &tokens, change.language, change.line, &change.name)?;
    let mut edits = Vec::new();
    let end = if text.windows(2).any(|pair| pair == b"\r\n") { "\r\n" } else { "\n" };
    let whole = |lines: &str| lines.lines().map(|line| format!("{line}{end}")).collect::<String>();
    let above = whole(&change.above);
    if !above.is_empty() {
        let at = start(text, &tokens, &found, change.language);
        edits.push(Edit::new(at..at, above.as_bytes()));
    }
    if !change.behind.is_empty() {
        let at = behind(text, &tokens, &found, change.language).ok_or(Refusal::Unbalanced)?;
        edits.push(Edit::new(at..at, whole(&change.behind)));
    }
    let lines = above.bytes().filter(|byte| *byte == b'\n').count();
    Ok((Edit::all_applied_to(&edits, text), u32::try_from(lines).unwrap_or(u32::MAX)))
}

/// Returns the start of the first line of a declaration, with the comments and attributes that belong to it: those that
/// no blank line and no other code separates from it.
fn start(text: &[u8], tokens: &[Token], found: &Found, language: Language) -> usize {
    let line_start = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    };
    let is_end = |token: &Token| {
        matches!(token.kind, Kind::Punct(b';' | b'}' | b'{') | Kind::Directive)
            || language == Language::Cpp && token.is(b':')
    };
    let (mut first, mut depth, mut line_ends) = (found.keyword, 0_u32, 0);
    for at in (0..found.keyword).rev() {
        let Some(token) = tokens.get(at) else { break };
        match token.kind {
            Kind::Newline => {
                line_ends += 1;
                if line_ends > 1 {
                    break;
                }
                continue;
            }
            Kind::Space => continue,
            Kind::Punct(b')' | b']') => depth += 1,
            Kind::Punct(b'(' | b'[') => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_end(token) => break,
            _ => {}
        }
        line_ends = 0;
        first = at;
    }
    let at = tokens.get(first).map_or(0, |token| token.span.start);
    let line = line_start(at);
    // a comment behind other code of its line is that code's
    let is_first = tokens
        .iter()
        .filter(|token| (line..at).contains(&token.span.start))
        .all(|token| matches!(token.kind, Kind::Space));
    match is_first {
        true => line,
        false => text
            .get(at..)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
            .map_or(at, |end| at + end + 1)
            .min(line_start(tokens.get(found.keyword).map_or(at, |token| token.span.start))),
    }
}

/// Returns the place behind the last line of a declaration.
fn behind(text: &[u8], tokens: &[Token], found: &Found, language: Language) -> Option<usize> {
    let close = tokens.get(found.body.end)?;
    let end = match language {
        Language::Rust => close.span.end,
        _ => tokens.iter().skip(found.body.end + 1).find(|token| token.is(b';'))?.span.end,
    };
    let rest = text.get(end..)?;
    Some(rest.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| end + at + 1))
}

/// Computes the smallest single edit that turns the text `old` into `new`.
pub(crate) fn difference(old: &[u8], new: &[u8]) -> Edit {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    Edit::new(start..old.len() - end, new.get(start..new.len() - end).unwrap_or_default())
}
