//! Declarations of types in a text: their names, and their members' names and bytes.
//!
//! A text may be newer than the debug information, so members are found by their names, and not by the lines that
//! were compiled. Nothing here decides what a type is made of: names that debug information does not have are dropped.

use super::document::Language;
use std::ops::Range;

/// The most declarations of a text.
const LIMIT: usize = 10_000;

/// The declaration of a type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declaration {
    pub(super) name: String,
    /// The bytes of the name.
    pub(super) at: Range<usize>,
    /// The bytes between the braces.
    pub(super) body: Range<usize>,
    pub(super) members: Vec<Declarator>,
    /// `true` if Rust's compiler keeps the order of the members.
    pub(super) is_repr_c: bool,
}

/// Names with the offset of each.
type Names = Vec<(String, usize)>;

/// A part of a body that ends with a semicolon, a comma or a line, and declares members.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declarator {
    /// The bytes, with comments in front and behind on the same line.
    pub(super) bytes: Range<usize>,
    /// The names that may be those of members, with the offset of each.
    pub(super) names: Names,
}

/// Finds the declarations of a text in their order.
pub(super) fn find(language: Language, text: &str) -> Vec<Declaration> {
    let code = blanked(language, text);
    let mut found = Vec::new();
    let words: Vec<(usize, &str)> = words(&code).collect();
    for (index, (at, word)) in words.iter().enumerate() {
        let declaration = match (language, *word) {
            (Language::C, "struct" | "class" | "union") => in_c(&code, &words, index),
            (Language::Rust, "struct") => in_rust(&code, *at + word.len()),
            (Language::Go, "struct") => in_go(&code, &words, index),
            _ => None,
        };
        found.extend(declaration);
        if found.len() >= LIMIT {
            break;
        }
    }
    found
}

/// Returns the text with blanks for comments, literals and preprocessor lines, and for line ends within them: each byte
/// stays where it is.
fn blanked(language: Language, text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    let mut is_line_start = true;
    let starts = |at: usize, what: &str| bytes[at..].starts_with(what.as_bytes());
    let until = |at: usize, what: &str| {
        text.as_bytes()[at..]
            .windows(what.len())
            .position(|part| part == what.as_bytes())
            .map_or(bytes.len(), |found| at + found + what.len())
    };
    while at < bytes.len() {
        let byte = bytes[at];
        let end = match byte {
            b'/' if starts(at, "//") && language == Language::C => spliced_line_end(bytes, at),
            b'/' if starts(at, "//") => line_end(bytes, at),
            b'/' if starts(at, "/*") => until(at + 2, "*/"),
            b'"' => literal(bytes, at, b'"'),
            b'`' if language == Language::Go => until(at + 1, "`"),
            // in Rust it may be a lifetime
            b'\'' if language != Language::Rust || is_character(bytes, at) => literal(bytes, at, b'\''),
            b'#' if language == Language::C && is_line_start => spliced_line_end(bytes, at),
            _ => at,
        };
        is_line_start = byte == b'\n' || is_line_start && byte.is_ascii_whitespace();
        let end = end.min(bytes.len());
        if end > at {
            code[at..end].fill(b' ');
            is_line_start = false;
        }
        at = end.max(at + 1);
    }
    String::from_utf8(code).unwrap_or_default()
}

fn literal(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            byte if *byte == quote => return at + 1,
            // of an apostrophe in a place that is not code
            b'\n' if quote == b'\'' => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn is_character(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1) == Some(&b'\\') || bytes[at..].iter().take(6).skip(2).any(|byte| *byte == b'\'')
}

fn line_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| start + end)
}

/// Returns the end of a line of C that goes on behind backslashes: a directive, or a comment.
fn spliced_line_end(bytes: &[u8], start: usize) -> usize {
    let mut end = line_end(bytes, start);
    while end < bytes.len() && bytes[start..end].trim_ascii_end().ends_with(b"\\") {
        end = line_end(bytes, end + 1);
    }
    end
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// Returns the identifiers of some code with their offsets.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = code;
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(is_part)?;
            let word = &rest[start..];
            let end = word.find(|letter| !is_part(letter)).unwrap_or(word.len());
            let found = (at + start, &word[..end]);
            rest = &word[end..];
            at += start + end;
            if !found.1.starts_with(|first: char| first.is_ascii_digit()) {
                return Some(found);
            }
        }
    })
}

/// Returns the closing brace of an opening one.
fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// `struct NAME … {…}`, or `typedef struct … {…} NAME`.
fn in_c(code: &str, words: &[(usize, &str)], index: usize) -> Option<Declaration> {
    let (at, keyword) = words[index];
    let start = at + keyword.len();
    let open = start + head_end(&code[start..])?;
    let close = closing(code, open)?;
    // the name is the first word that is no attribute; a colon begins the bases
    let head = &code[start..open];
    let head = head.find(':').filter(|at| !head[at + 1..].starts_with(':')).map_or(head, |at| &head[..at]);
    let head = without_parentheses(head);
    let name = self::words(&head)
        .map(|(at, word)| (start + at, word))
        .filter(|(_, word)| !matches!(*word, "final" | "alignas" | "_Alignas") && !word.starts_with("__"));
    let (name_at, name) = match name.last() {
        Some((at, name)) => (at, name.to_owned()),
        // typedef struct {…} NAME;
        None => {
            let after = code.get(close + 1..)?;
            let end = after.find(';')?;
            let is_typedef = index.checked_sub(1).is_some_and(|before| words[before].1 == "typedef");
            let (at, word) = self::words(&after[..end])
                .filter(|(_, word)| !word.starts_with("__"))
                .last()
                .filter(|_| is_typedef)?;
            (close + 1 + at, word.to_owned())
        }
    };
    let body = open + 1..close;
    let members = declarators(code, &body, b";", &|part| names_in_c(part));
    let end = name_at + name.len();
    Some(Declaration { name, at: name_at..end, body, members, is_repr_c: true })
}

/// Returns the opening brace behind the head of a declaration; none where it is something else, such as a parameter.
fn head_end(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            // a function has them, too
            b'(' if depth == 0 && !is_attribute(words(&code[..at]).last()?.1) => return None,
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(at),
            b';' | b'=' | b'}' | b'{' => return None,
            _ => {}
        }
    }
    None
}

/// Returns `true` if a word with arguments is an attribute: a keyword, or a macro by its spelling.
fn is_attribute(word: &str) -> bool {
    let is_macro =
        word.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_');
    is_macro || word.starts_with("__") || matches!(word, "alignas" | "_Alignas")
}

fn in_rust(code: &str, start: usize) -> Option<Declaration> {
    let (at, name) = words(&code[start..]).next()?;
    let at = start + at;
    let open = at + code[at..].find(['{', ';', '('])?;
    if code.as_bytes()[open] != b'{' {
        return None;
    }
    let body = open + 1..closing(code, open)?;
    let members = declarators(code, &body, b",", &|part| {
        let part = without_attributes(part);
        let colon = part.find(':')?;
        let name = words(&part[..colon]).last()?;
        Some(vec![(name.1.to_owned(), name.0)])
    });
    // the attributes are between the item before and this one
    let before = &code[..start];
    let attributes = &before[before.rfind(['}', ';']).map_or(0, |at| at + 1)..];
    let is_repr_c = attributes.split("repr").skip(1).any(|rest| {
        rest.trim_start()
            .strip_prefix('(')
            .and_then(|rest| rest.split(')').next())
            .is_some_and(|list| list.split(',').any(|word| word.trim() == "C"))
    });
    Some(Declaration { name: name.to_owned(), at: at..at + name.len(), body, members, is_repr_c })
}

/// `NAME struct {…}`, behind `type` or in its parentheses.
fn in_go(code: &str, words: &[(usize, &str)], index: usize) -> Option<Declaration> {
    let (at, keyword) = words[index];
    let (name_at, name) = words[index.checked_sub(1)?];
    let open = at + keyword.len();
    let open = open + code[open..].find(|letter: char| !letter.is_whitespace())?;
    let is_own_line =
        code[..name_at].rsplit('\n').next().is_some_and(|line| matches!(line.trim(), "type" | ""));
    if code.as_bytes()[open] != b'{' || name == "type" || !is_own_line {
        return None;
    }
    let body = open + 1..closing(code, open)?;
    let members = declarators(code, &body, b"\n;", &|part| {
        let mut names = Vec::new();
        let mut rest = part;
        let mut at = 0;
        // a, b int
        loop {
            let (start, word) = self::words(rest).next()?;
            names.push((word.to_owned(), at + start));
            let after = &rest[start + word.len()..];
            match after.trim_start().strip_prefix(',') {
                Some(next) => {
                    at += rest.len() - next.len();
                    rest = next;
                }
                None => return Some(names),
            }
        }
    });
    Some(Declaration {
        name: name.to_owned(),
        at: name_at..name_at + name.len(),
        body,
        members,
        is_repr_c: true,
    })
}

/// Cuts a body at the separators that are in no brackets.
fn declarators(
    code: &str,
    body: &Range<usize>,
    separators: &[u8],
    names: &dyn Fn(&str) -> Option<Names>,
) -> Vec<Declarator> {
    let mut found: Vec<Declarator> = Vec::new();
    let (mut start, mut depth) = (body.start, 0_usize);
    let cut = |start: usize, end: usize, found: &mut Vec<Declarator>| {
        let named = names(&code[start..end]).unwrap_or_default();
        let names = named.into_iter().map(|(name, at)| (name, start + at)).collect();
        found.push(Declarator { bytes: start..end, names });
    };
    for at in body.clone() {
        match code.as_bytes()[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b'<' if separators == b"," => depth += 1,
            b'>' if separators == b"," && code.as_bytes()[at - 1] != b'-' => depth = depth.saturating_sub(1),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            byte if depth == 0 && separators.contains(&byte) => {
                // with the comment behind it on the line
                let line_end = code[at..body.end].find('\n').map_or(body.end, |end| at + end);
                let is_last_of_line = code[at + 1..line_end.max(at + 1)].trim().is_empty();
                let end = if is_last_of_line { line_end.max(at + 1) } else { at + 1 };
                // of Go, comments on lines of their own go with the member below
                let is_above =
                    byte == b'\n' && start != body.start && code[start.min(at)..at].trim().is_empty();
                if start <= at && !is_above {
                    cut(start, end, &mut found);
                    start = end;
                }
            }
            _ => {}
        }
    }
    if !code[start.min(body.end)..body.end].trim().is_empty() {
        cut(start, body.end, &mut found);
    }
    found.retain(|one| !code[one.bytes.clone()].trim().is_empty());
    found
}

/// Returns the names that a declaration of C may declare, those of its own level: `int a, *b[3]; int (*c)(int); struct {…} d;`.
fn names_in_c(part: &str) -> Option<Names> {
    let mut names = Vec::new();
    // (*name)(…) is a name in parentheses
    let flat: String = {
        let mut flat = part.to_owned();
        for (at, _) in part.match_indices("(*") {
            if let Some(end) = part[at..].find(')') {
                let inner = &part[at + 2..at + end];
                if inner.trim().chars().all(is_part) {
                    flat.replace_range(at..at + 2, "  ");
                    flat.replace_range(at + end..at + end + 1, " ");
                }
            }
        }
        flat
    };
    let mut flat = without_parentheses(&flat);
    for label in ["public:", "private:", "protected:"] {
        flat = flat.replace(label, &" ".repeat(label.len()));
    }
    let mut start = 0;
    for piece in flat.split_inclusive([',', ';']) {
        let declarator = piece.split(['=', ':']).next().unwrap_or_default();
        let name = words(declarator).filter(|(_, word)| !word.starts_with("__")).last();
        names.extend(name.map(|(at, word)| (word.to_owned(), start + at)));
        start += piece.len();
    }
    Some(names)
}

/// Blanks for everything in brackets.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    let mut flat = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        let is_open = matches!(byte, b'(' | b'[' | b'{');
        let is_close = matches!(byte, b')' | b']' | b'}');
        depth += usize::from(is_open);
        flat.push(if depth > 0 || is_close { b' ' } else { byte });
        depth = depth.saturating_sub(usize::from(is_close));
    }
    String::from_utf8(flat).unwrap_or_default()
}

/// Blanks for attributes of Rust.
fn without_attributes(text: &str) -> String {
    let mut flat = text.to_owned();
    while let Some(start) = flat.find("#[") {
        let mut depth = 0_usize;
        let end = flat[start..].char_indices().find_map(|(at, letter)| {
            match letter {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (letter == ']' && depth == 0).then_some(start + at + 1)
        });
        let end = end.unwrap_or(flat.len());
        let blanks = " ".repeat(end - start);
        flat.replace_range(start..end, &blanks);
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(language: Language, text: &str) -> Vec<(String, Vec<Vec<String>>)> {
        let members = |declaration: &Declaration| {
            declaration
                .members
                .iter()
                .map(|member| member.names.iter().map(|(name, _)| name.clone()).collect())
                .collect()
        };
        find(language, text).iter().map(|one| (one.name.clone(), members(one))).collect()
    }

    fn owned(name: &str, members: &[&[&str]]) -> (String, Vec<Vec<String>>) {
        (
            name.to_owned(),
            members.iter().map(|part| part.iter().map(|name| (*name).to_owned()).collect()).collect(),
        )
    }

    #[test]
    fn structs_of_c_and_their_declarators() {
        let text = "#define X struct no { int y; }\n/* struct never { int x; }; */\nstruct __attribute__((packed)) a {\n\
                    \tint b, *c[3]; // d;\n\tint (*call)(struct x *, int e);\n\tunsigned f : 3;\n\tstruct { int g; } in;\n};\n\
                    struct a use(struct a *p) { return *p; }\ntypedef struct { long t; } named;\n\
                    class k final : public base { public: char h = 3; };";
        let expected = [owned("a", &[&["b", "c"], &["call"], &["f"], &["in"]]), owned("named", &[&["t"]])];
        let found = names(Language::C, text);
        assert_eq!(found[..2], expected);
        assert_eq!(found[2].0, "k");
        assert!(text[find(Language::C, text)[0].members[0].bytes.clone()].ends_with("// d;"));
    }

    #[test]
    fn structs_of_rust_and_whether_their_order_is_kept() {
        let text = "#[repr(C, align(64))]\npub struct A<'a, T> {\n    #[serde(rename = \"x:y\")]\n    pub a: HashMap<u8, T>,\n    \
                    pub(crate) b: &'a [u8; 3],\n}\nstruct Unit;\nstruct Tuple(u8);\nstruct B { c: char }";
        assert_eq!(names(Language::Rust, text), [owned("A", &[&["a"], &["b"]]), owned("B", &[&["c"]])]);
        let order: Vec<bool> = find(Language::Rust, text).iter().map(|one| one.is_repr_c).collect();
        assert_eq!(order, [true, false]);
    }

    #[test]
    fn structs_of_go_alone_and_in_groups() {
        let text = "type Order struct {\n\tPrice, Size float64 // x y\n\tName string `json:\"struct { x }\"`\n}\n\
                    type (\n\tPair struct {\n\t\tLeft int\n\t}\n)\nvar x = struct{ a int }{1}\n";
        let expected = [owned("Order", &[&["Price", "Size"], &["Name"]]), owned("Pair", &[&["Left"]])];
        assert_eq!(names(Language::Go, text), expected);
    }

    #[test]
    fn no_text_is_too_broken() {
        let text = "struct a { int x; struct b { 'c \" /* ) } class { # [ ; struct \u{e9} {int \u{e9};";
        for language in [Language::C, Language::Rust, Language::Go] {
            for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                find(language, &text[..end]);
                find(language, &text[end..]);
            }
        }
    }
}
