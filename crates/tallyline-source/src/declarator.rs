//! The names that a declaration of members declares.

use crate::Language;
use crate::find::bytes;
use crate::lexer::{Kind, Token};
use std::ops::Range;

/// One declarator of a member declaration (such as `*b` in `int a, *b;`): the byte ranges of its name and of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declarator {
    /// The bytes of the declarator's name; none for an anonymous member or a bitfield without a name.
    pub(crate) name: Option<Range<usize>>,
    /// The bytes from the declarator's first token to its last.
    pub(crate) span: Range<usize>,
    /// `true` if the declarator declares a bitfield.
    pub(crate) is_bits: bool,
}

/// The form of a declaration in a struct's body: data members with their declarators, a macro, or something that
/// declares no data (a function, a type, a friend).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Data members: the bytes of the specifiers, and the declarators.
    Data { specifiers: Range<usize>, declarators: Vec<Declarator> },
    /// Text that may declare any members: a macro.
    Macro,
    /// No data member: a function, a type, a friend.
    Other,
}

/// Classifies a declaration in a C or C++ struct's body by its tokens, which must not include comments, blanks and the
/// final semicolon.
pub(crate) fn form(text: &[u8], tokens: &[Token], language: Language) -> Form {
    let Some(first) = tokens.first() else { return Form::Other };
    let word =
        |at: usize| tokens.get(at).filter(|token| token.kind == Kind::Word).map(|token| bytes(text, token));
    match word(0) {
        Some(
            b"typedef" | b"using" | b"friend" | b"template" | b"static_assert" | b"_Static_assert"
            | b"static" | b"extern",
        ) => {
            return Form::Other;
        }
        Some(b"enum") if !declares_after_body(tokens) => return Form::Other,
        _ => {}
    }
    if language == Language::Cpp
        && tokens.iter().any(|token| {
            matches!(bytes(text, token), b"static" | b"operator" | b"constexpr" | b"virtual" | b"explicit")
        })
        && outer_word(text, tokens)
    {
        return Form::Other;
    }
    let is_record =
        (0..tokens.len()).map_while(word).any(|word| matches!(word, b"struct" | b"class" | b"union"));
    let segments = split(tokens, language);
    let Some(head) = segments.first().cloned() else { return Form::Other };
    if is_record && !declares_after_body(tokens) {
        let has_body = tokens.iter().any(|token| token.is(b'{'));
        let tagged = !matches!(tokens.get(1), Some(token) if token.is(b'{'));
        // a named class within a class declares no member, nor does a declaration of one
        if tagged
            && (language == Language::Cpp || !has_body)
            && segments.len() == 1
            && name_of(text, tokens, head.clone(), true, language).is_none_or(|_| has_body)
        {
            return if has_body || tokens.len() <= 2 { Form::Other } else { Form::Macro };
        }
        if has_body {
            let span = first.span.start..tokens.last().map_or(first.span.end, |last| last.span.end);
            let declarator = Declarator { name: None, span: span.clone(), is_bits: false };
            return Form::Data { specifiers: span.start..span.start, declarators: vec![declarator] };
        }
    }
    let mut declarators = Vec::with_capacity(segments.len());
    let mut specifiers = first.span.start..first.span.start;
    for (index, segment) in segments.into_iter().enumerate() {
        let Some(read) = name_of(text, tokens, segment.clone(), index == 0, language) else {
            return Form::Macro;
        };
        let Some(last) = tokens.get(segment.end.saturating_sub(1)) else { return Form::Macro };
        let is_function = language == Language::Cpp && read.is_function;
        if is_function {
            return Form::Other;
        }
        if read.is_function {
            return Form::Macro;
        }
        // all that is behind a comma is the declarator's: attributes, qualifiers
        let first = if index == 0 { read.start } else { segment.start };
        let start = tokens.get(first).map_or(last.span.start, |token| token.span.start);
        if index == 0 {
            specifiers.end =
                tokens.get(..read.start).and_then(<[Token]>::last).map_or(start, |token| token.span.end);
            if read.start == 0 && !read.is_bits {
                return Form::Macro;
            }
        }
        let name = read.name.and_then(|at| tokens.get(at)).map(|token| token.span.clone());
        declarators.push(Declarator { name, span: start..last.span.end, is_bits: read.is_bits });
    }
    Form::Data { specifiers, declarators }
}

/// Returns `true` if a word outside of all brackets, such as `static` or `operator`, rules out a data member.
fn outer_word(text: &[u8], tokens: &[Token]) -> bool {
    let mut depth = 0_i32;
    tokens.iter().any(|token| {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => depth += 1,
            Kind::Punct(b')' | b']' | b'}') => depth -= 1,
            _ => {}
        }
        depth == 0
            && matches!(bytes(text, token), b"static" | b"operator" | b"constexpr" | b"virtual" | b"explicit")
    })
}

/// Returns `true` if a declaration that begins with a type also declares a name: after the body, or after the tag.
fn declares_after_body(tokens: &[Token]) -> bool {
    let mut depth = 0_u32;
    let mut after = None;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Punct(b'{') => depth += 1,
            Kind::Punct(b'}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    after = Some(index + 1);
                }
            }
            _ => {}
        }
    }
    let Some(after) = after else {
        // `struct tag *name`: more than the tag
        let words = tokens.iter().filter(|token| token.kind == Kind::Word).count();
        return words > 2 || tokens.iter().any(|token| matches!(token.kind, Kind::Punct(b'*' | b':')));
    };
    let rest = tokens.get(after..).unwrap_or_default();
    let mut at = 0;
    while let Some(token) = rest.get(at) {
        let is_attribute = token.kind == Kind::Word && rest.get(at + 1).is_some_and(|next| next.is(b'('));
        if is_attribute {
            at = skip_group(rest, at + 1);
            continue;
        }
        if matches!(token.kind, Kind::Word | Kind::Punct(b'*' | b'(')) {
            return true;
        }
        at += 1;
    }
    false
}

/// Cuts at the commas outside of brackets.
fn split(tokens: &[Token], language: Language) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut has_value = false;
    while let Some(token) = tokens.get(at) {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => {
                at = skip_group(tokens, at);
                continue;
            }
            Kind::Punct(b'<') if language == Language::Cpp && !has_value => {
                if let Some(end) = skip_angles(tokens, at) {
                    at = end;
                    continue;
                }
            }
            Kind::Punct(b'=') => has_value = true,
            Kind::Punct(b',') => {
                segments.push(start..at);
                (start, has_value) = (at + 1, false);
            }
            _ => {}
        }
        at += 1;
    }
    segments.push(start..tokens.len());
    segments
}

/// Returns the index of the token after the bracket (round, square or curly) that closes the one at token `open` of a
/// source; the number of tokens if none closes it.
pub(crate) fn skip_group(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_u32;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => depth += 1,
            Kind::Punct(b')' | b']' | b'}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the index behind a list of template arguments; none if it is a comparison.
fn skip_angles(tokens: &[Token], open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_u32, open);
    while let Some(token) = tokens.get(at) {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => {
                at = skip_group(tokens, at);
                continue;
            }
            Kind::Punct(b'<') => depth += 1,
            Kind::Punct(b'>') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

struct Read {
    name: Option<usize>,
    // the declarator's first token
    start: usize,
    is_bits: bool,
    is_function: bool,
}

/// Reads one declarator of a declaration. The first has the specifiers in front.
fn name_of(
    text: &[u8],
    tokens: &[Token],
    segment: Range<usize>,
    is_first: bool,
    language: Language,
) -> Option<Read> {
    let mut end = segment.end;
    let mut is_bits = false;
    let mut at = segment.start;
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut last_word = None;
    let mut words = 0;
    while at < end {
        let token = tokens.get(at)?;
        let next_opens = tokens.get(at + 1).is_some_and(|next| next.is(b'('));
        match token.kind {
            Kind::Word if next_opens && is_attribute(bytes(text, token)) => {
                at = skip_group(tokens, at + 1);
                continue;
            }
            Kind::Word if next_opens && is_type_operator(bytes(text, token)) => {
                at = skip_group(tokens, at + 1);
                words += 1;
                continue;
            }
            // an attribute's macro behind the name: `int x __cacheline_aligned;`, `int x __aligned(8);`
            Kind::Word if words >= 2 && last_word.is_some() && looks_like_attribute(bytes(text, token)) => {
                at = if next_opens { skip_group(tokens, at + 1) } else { at + 1 };
                continue;
            }
            Kind::Word => {
                words += 1;
                last_word = Some(at);
            }
            Kind::Punct(b'(') => {
                let behind = skip_group(tokens, at);
                groups.push(at..behind);
                at = behind;
                continue;
            }
            Kind::Punct(b'[') => {
                let behind = skip_group(tokens, at);
                at = behind;
                continue;
            }
            Kind::Punct(b'{') => {
                let behind = skip_group(tokens, at);
                let is_body = is_first && is_body_of_type(text, tokens, segment.start, at);
                if !is_body {
                    // an initialiser
                    end = at;
                    break;
                }
                last_word = None;
                words = words.max(1);
                at = behind;
                continue;
            }
            Kind::Punct(b'<') if language == Language::Cpp => {
                if let Some(behind) = skip_angles(tokens, at) {
                    at = behind;
                    last_word = None;
                    continue;
                }
            }
            Kind::Punct(b'=') => {
                end = at;
                break;
            }
            Kind::Punct(b':') => {
                if tokens.get(at + 1).is_some_and(|next| next.is(b':') && next.span.start == token.span.end) {
                    at += 2;
                    continue;
                }
                is_bits = true;
                end = at;
                break;
            }
            _ => {}
        }
        at += 1;
    }
    // a pointer to a function or an array: the name is inside the brackets that begin with a star
    for group in &groups {
        let inside = group.start + 1..group.end.saturating_sub(1);
        let opens = tokens.get(inside.start)?;
        let starred = tokens
            .get(inside.clone())?
            .iter()
            .take(6)
            .any(|token| matches!(token.kind, Kind::Punct(b'*' | b'^' | b'&')));
        // `(API *f)(int)`; of `f(char *a)` nothing is called or counted
        let is_called = || match tokens.get(group.end).map(|token| &token.kind) {
            Some(Kind::Punct(b'(')) => true,
            Some(Kind::Punct(b'[')) => !tokens.get(group.end + 1).is_some_and(|token| token.is(b'[')),
            _ => false,
        };
        if starred
            && (matches!(opens.kind, Kind::Punct(b'*' | b'^' | b'&'))
                || opens.kind == Kind::Word
                    && tokens.get(inside.start + 1)?.kind != Kind::Word
                    && is_called())
        {
            let mut name = None;
            for at in inside.clone() {
                match tokens.get(at)?.kind {
                    Kind::Word if !is_qualifier(bytes(text, tokens.get(at)?)) => name = Some(at),
                    // the parameters or the bounds of what it points to
                    Kind::Punct(b'(') if name.is_some() => break,
                    Kind::Punct(b'[') => break,
                    _ => {}
                }
            }
            let name = name?;
            return Some(Read {
                name: Some(name),
                start: back(text, tokens, group.start, segment.start),
                is_bits,
                is_function: false,
            });
        }
    }
    if !groups.is_empty() {
        // a function, or a macro; or a name behind a macro with arguments: `LIST_ENTRY(x) link`
        let behind = groups.last()?.end;
        let is_function = language == Language::Cpp
            && groups.iter().any(|group| is_function_by_suffix(text, tokens, segment.start..end, group));
        if is_function || last_word.is_none_or(|word| word < behind) {
            return Some(Read { name: None, start: segment.start, is_bits, is_function: true });
        }
        words += 1;
    }
    if is_bits && (last_word.is_none() || is_first && words < 2 || end == segment.start) {
        return Some(Read {
            name: None,
            start: if is_first { end } else { segment.start },
            is_bits,
            is_function: false,
        });
    }
    let name = last_word?;
    if is_first
        && words < 2
        && !tokens
            .get(segment.start..name)?
            .iter()
            .any(|token| token.is(b'}') || token.is(b'>') || token.is(b'*'))
    {
        return None;
    }
    if is_bits && is_type_word(bytes(text, tokens.get(name)?)) {
        return Some(Read { name: None, start: end, is_bits, is_function: false });
    }
    Some(Read {
        name: Some(name),
        start: back(text, tokens, name, segment.start),
        is_bits,
        is_function: false,
    })
}

/// Returns `true` if what follows `parameters` in a declaration is a function's in C++: `const`, `override`, a type
/// behind an arrow, or a macro for them.
fn is_function_by_suffix(
    text: &[u8],
    tokens: &[Token],
    segment: Range<usize>,
    parameters: &Range<usize>,
) -> bool {
    let Some([first, rest @ ..]) = tokens.get(parameters.end..segment.end) else { return false };
    let word = bytes(text, first);
    match first.kind {
        Kind::Word => {
            matches!(word, b"const" | b"volatile" | b"noexcept" | b"override" | b"final" | b"throw")
                // not the name in `LIST_ENTRY(x) LINK`
                || parameters.start > segment.start + 1
                    && rest.is_empty()
                    && word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
        }
        Kind::Punct(b'-') => rest.first().is_some_and(|token| token.is(b'>')),
        Kind::Punct(b'&') => true,
        _ => false,
    }
}

/// Goes back from a name over stars and their qualifiers.
fn back(text: &[u8], tokens: &[Token], from: usize, least: usize) -> usize {
    let mut start = from;
    let mut at = from;
    while at > least {
        at -= 1;
        let Some(token) = tokens.get(at) else { break };
        match token.kind {
            Kind::Punct(b'*' | b'&' | b'^') => start = at,
            Kind::Word if is_qualifier(bytes(text, token)) => {}
            _ => break,
        }
    }
    start
}

/// Returns `true` if the brace at `open` opens the body of the type that the declaration at `start` begins with.
fn is_body_of_type(text: &[u8], tokens: &[Token], start: usize, open: usize) -> bool {
    let before = tokens.get(start..open).unwrap_or_default();
    before.iter().any(|token| matches!(bytes(text, token), b"struct" | b"union" | b"class" | b"enum"))
        && !tokens.get(start..open).unwrap_or_default().iter().any(|token| token.is(b'}') || token.is(b'='))
}

fn is_attribute(word: &[u8]) -> bool {
    matches!(
        word,
        b"__attribute__" | b"__attribute" | b"alignas" | b"_Alignas" | b"__declspec" | b"__aligned"
    )
}

/// Returns `true` if a word is, by convention, the name of a macro for an attribute.
fn looks_like_attribute(word: &[u8]) -> bool {
    let known: [&[u8]; 12] = [
        b"__aligned",
        b"____cacheline_aligned",
        b"____cacheline_aligned_in_smp",
        b"__cacheline_aligned",
        b"__rcu",
        b"__packed",
        b"__percpu",
        b"__user",
        b"__iomem",
        b"__counted_by",
        b"__randomize_layout",
        b"__guarded_by",
    ];
    known.contains(&word)
        || [
            b"GUARDED_BY".as_slice(),
            b"ABSL_GUARDED_BY",
            b"PT_GUARDED_BY",
            b"ATTRIBUTE_ALIGNED",
            b"_GUARDED_BY",
        ]
        .iter()
        .any(|end| word.ends_with(end))
}

fn is_type_operator(word: &[u8]) -> bool {
    matches!(word, b"typeof" | b"__typeof__" | b"__typeof" | b"decltype" | b"_Atomic" | b"_BitInt")
}

fn is_qualifier(word: &[u8]) -> bool {
    matches!(
        word,
        b"const"
            | b"volatile"
            | b"restrict"
            | b"__restrict"
            | b"__restrict__"
            | b"__volatile__"
            | b"_Nonnull"
            | b"_Nullable"
    )
}

fn is_type_word(word: &[u8]) -> bool {
    matches!(word, b"int" | b"unsigned" | b"signed" | b"char" | b"short" | b"long" | b"bool" | b"_Bool")
}
