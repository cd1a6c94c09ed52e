//! Names as people type them, and the names of a recording that they stand for.
//!
//! One matcher for types, functions, files, threads and events. The ways are tried in this order, and the
//! first that finds something counts: the exact name (also without `struct`, scopes in front, or folders),
//! a glob (`*`, `?`, `[…]`) or a regular expression (`/…/`), a C++ name without its template arguments, and
//! at last a part of the name, if only one name has it.

use regex::{Regex, RegexBuilder};
use std::collections::BTreeSet;
use std::fmt;
use tallyline_debuginfo::lookup::is_called;

/// The most memory of a compiled pattern, in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// The number of names that are suggested.
const NEAREST: usize = 3;

/// Longer names are not compared letter by letter.
const COMPARED_LIMIT: usize = 256;

/// The kind of name that a pattern is matched with (types, functions, files, threads, events); it decides which
/// parts, such as scopes or folders, a pattern may omit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// Data types: `struct`, scopes and template arguments may be left out.
    Type,
    /// Functions: scopes and template arguments may be left out.
    Function,
    /// Files: folders may be left out.
    File,
    /// Threads: nothing may be left out.
    Thread,
    /// Events: nothing may be left out.
    Event,
}

/// A pattern for names in a filter: a name, a glob, or a regular expression between slashes.
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: String,
    // the whole name for a glob, any part of it for a regular expression
    regex: Option<Regex>,
}

/// The way in which a filter's pattern matched names (of types, functions, files, …): exactly, as a glob or regular
/// expression, without template arguments, or as a substring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The name itself, perhaps without scopes, folders or a keyword such as `struct`.
    Name,
    /// A glob or a regular expression.
    Pattern,
    /// The name without its template arguments.
    Template,
    /// A part that only one name has.
    Part,
}

/// The result of matching a filter's pattern with the names in a recording (types, functions, files, …): those that
/// match and how, several candidates, or the nearest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternMatch<'n> {
    /// The names that match, at least one, and the way in which they were found.
    Names(BTreeSet<&'n str>, FoundBy),
    /// No match; the names that have the pattern as a part, if there are several.
    Ambiguous(BTreeSet<&'n str>),
    /// No match; the names nearest to the pattern, if any.
    Nothing(Vec<&'n str>),
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl NamePattern {
    /// Parses a filter's pattern for names: a name, a glob (`*`, `?`, `[…]`), or a regular expression between slashes.
    ///
    /// # Errors
    /// A regular expression that is invalid or would take too much memory.
    pub fn parse(text: &str) -> Result<NamePattern, String> {
        let expression = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let regex = match expression.filter(|expression| !expression.is_empty()) {
            Some(expression) => Some(compiled(expression).map_err(|error| {
                let error = error.to_string();
                let last = error.lines().last().unwrap_or_default();
                format!("`{expression}` is not a regular expression: {}", last.trim_start_matches("error: "))
            })?),
            // brackets may also be those of an array
            None => glob(text).and_then(|glob| compiled(&glob).ok()),
        };
        Ok(NamePattern { text: text.to_owned(), regex })
    }

    /// Parses a comma-separated list of patterns for names in a filter. Commas inside brackets and slashes do not
    /// separate.
    ///
    /// # Errors
    /// See [`NamePattern::parse`].
    pub fn parse_list(text: &str) -> Result<Vec<NamePattern>, String> {
        split(text).into_iter().map(NamePattern::parse).collect()
    }

    /// Matches the pattern with names of one kind (types, functions, files, …) and returns those that match, trying
    /// exact names first, substrings last.
    pub fn find<'n>(&self, kind: NameKind, names: &BTreeSet<&'n str>) -> PatternMatch<'n> {
        let select = |matches: &dyn Fn(&str) -> bool| -> BTreeSet<&'n str> {
            names.iter().copied().filter(|name| matches(name)).collect()
        };
        if let Some(name) = names.get(self.text.as_str()) {
            return PatternMatch::Names([*name].into(), FoundBy::Name);
        }
        let named = select(&|name| is_name(kind, name, &self.text));
        if !named.is_empty() {
            return PatternMatch::Names(named, FoundBy::Name);
        }
        if let Some(regex) = &self.regex {
            let found = select(&|name| regex.is_match(name) || regex.is_match(short(kind, name)));
            return match found.is_empty() {
                true => PatternMatch::Nothing(Vec::new()),
                false => PatternMatch::Names(found, FoundBy::Pattern),
            };
        }
        let templates = select(&|name| {
            let stem = without_arguments(short(kind, name));
            stem.len() < name.len() && is_name(kind, &stem, &self.text)
        });
        if matches!(kind, NameKind::Type | NameKind::Function) && !templates.is_empty() {
            return PatternMatch::Names(templates, FoundBy::Template);
        }
        let parts =
            if self.text.is_empty() { BTreeSet::new() } else { select(&|name| name.contains(&self.text)) };
        match parts.len() {
            0 => PatternMatch::Nothing(nearest(kind, &self.text, names)),
            1 => PatternMatch::Names(parts, FoundBy::Part),
            _ => PatternMatch::Ambiguous(parts),
        }
    }
}

/// Returns `true` if a name is the one that was typed, where parts of its qualification (scopes, folders) may be left
/// out.
fn is_name(kind: NameKind, name: &str, typed: &str) -> bool {
    match kind {
        NameKind::Thread | NameKind::Event => name == typed,
        NameKind::File => short(kind, name) == typed,
        NameKind::Type | NameKind::Function => {
            let name = short(kind, name);
            let typed = if kind == NameKind::Type { without_keyword(typed) } else { typed };
            let (path, last) = name.split_at(scope_end(name));
            let path = path.strip_suffix("::").unwrap_or(path);
            !typed.is_empty() && is_called(typed.as_bytes(), path.as_bytes(), last.as_bytes())
        }
    }
}

/// Returns a name without what may always be left out: the keyword of a type, the folders of a file.
fn short(kind: NameKind, name: &str) -> &str {
    match kind {
        NameKind::Type => without_keyword(name),
        NameKind::File => name.rsplit('/').next().unwrap_or(name),
        _ => name,
    }
}

fn without_keyword(name: &str) -> &str {
    match name.split_once(' ') {
        Some(("struct" | "union" | "class" | "enum", rest)) => rest,
        _ => name,
    }
}

/// Returns the end of the scopes in front of a name, which may have template arguments with scopes
/// themselves.
fn scope_end(name: &str) -> usize {
    let (mut depth, mut end) = (0_usize, 0);
    let bytes = name.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes.get(index + 1) == Some(&b':') => end = index + 2,
            _ => {}
        }
    }
    end
}

/// Returns a name without all that is in angle brackets.
fn without_arguments(name: &str) -> String {
    let mut depth = 0_usize;
    let mut stem = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => stem.push(letter),
            _ => {}
        }
    }
    // `operator<` and the like have none
    if depth == 0 { stem } else { name.to_owned() }
}

/// Returns the regular expression of a glob; `None` for a text without wildcards.
fn glob(text: &str) -> Option<String> {
    if !text.contains(['*', '?', '[']) {
        return None;
    }
    let mut expression = "^(?s:".to_owned();
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            // a bracket that comes first in a class is one of its letters
            '[' => match rest.as_str().char_indices().skip(1).find(|(_, letter)| *letter == ']') {
                Some((end, _)) => {
                    let class = &rest.as_str()[..end];
                    let (not, class) = match class.strip_prefix(['!', '^']) {
                        Some(class) => ("^", class),
                        None => ("", class),
                    };
                    let class = class.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
                    expression.push_str(&format!("[{not}{}]", class.replace("&&", "&").replace("~~", "~")));
                    rest = rest.as_str()[end + 1..].chars();
                }
                None => expression.push_str("\\["),
            },
            letter => expression.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    Some(expression + ")$")
}

fn compiled(expression: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(expression).size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build()
}

/// Splits at commas that are not inside of brackets or of a regular expression.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut is_expression = text.starts_with('/') && text[1..].contains('/');
    for (index, letter) in text.char_indices() {
        let is_start = index == start;
        match letter {
            '/' if is_start => is_expression = closes(&text[index + 1..]),
            '/' if is_expression && matches!(text.as_bytes().get(index + 1), None | Some(b',')) => {
                is_expression = false;
            }
            _ if is_expression => {}
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if depth != 0 || is_expression {
        // `operator<` opens no bracket
        return text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns `true` if a slash in the rest of a list stands before a comma or at the end and so ends a regular
/// expression: the path of a file has none there.
fn closes(rest: &str) -> bool {
    rest.ends_with('/') || rest.contains("/,")
}

/// Returns the names that differ by few letters, as a whole or without what may be left out.
fn nearest<'n>(kind: NameKind, typed: &str, names: &BTreeSet<&'n str>) -> Vec<&'n str> {
    let limit = typed.len() / 3 + 1;
    if typed.len() > COMPARED_LIMIT {
        return Vec::new();
    }
    let typed = typed.to_lowercase();
    let distance = |name: &str| {
        let stem = without_arguments(short(kind, name));
        let last = stem[scope_end(&stem)..].to_owned();
        [name, &stem, &last]
            .iter()
            .filter(|name| name.len().abs_diff(typed.len()) <= limit)
            .map(|name| strsim::levenshtein(&name.to_lowercase(), &typed))
            .min()
    };
    let mut near: Vec<(usize, &str)> = names
        .iter()
        .filter_map(|name| Some((distance(name)?, *name)))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    near.sort_unstable();
    near.into_iter().take(NEAREST).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [&str; 9] = [
        "(no memory)",
        "char[64]",
        "int",
        "struct order",
        "struct order_book",
        "struct std::_Rb_tree_node<std::pair<int const, long> >",
        "struct std::_Rb_tree_node<int>",
        "struct std::_Rb_tree_node_base",
        "union a::b::order",
    ];

    fn find(kind: NameKind, typed: &str, names: &[&'static str]) -> PatternMatch<'static> {
        NamePattern::parse(typed).expect("a pattern").find(kind, &names.iter().copied().collect())
    }

    fn found(typed: &str) -> (Vec<&'static str>, FoundBy) {
        match find(NameKind::Type, typed, &TYPES) {
            PatternMatch::Names(names, by) => (names.into_iter().collect(), by),
            other => panic!("{typed}: {other:?}"),
        }
    }

    #[test]
    fn an_exact_name_wins_over_every_other_reading_of_it() {
        assert_eq!(found("struct order"), (vec!["struct order"], FoundBy::Name));
        assert_eq!(found("char[64]"), (vec!["char[64]"], FoundBy::Name));
        assert_eq!(found("(no memory)"), (vec!["(no memory)"], FoundBy::Name));
        assert_eq!(found("b::order"), (vec!["union a::b::order"], FoundBy::Name));
        // two records have that name
        assert_eq!(found("order"), (vec!["struct order", "union a::b::order"], FoundBy::Name));
    }

    #[test]
    fn template_arguments_may_be_left_out_and_blanks_do_not_matter() {
        let nodes = vec![TYPES[6], TYPES[5]];
        assert_eq!(found("_Rb_tree_node"), (nodes.clone(), FoundBy::Template));
        assert_eq!(found("std::_Rb_tree_node"), (nodes, FoundBy::Template));
        assert_eq!(found("_Rb_tree_node<std::pair<int const,long>>"), (vec![TYPES[5]], FoundBy::Name));
    }

    #[test]
    fn globs_are_of_the_whole_name_and_expressions_of_any_part() {
        assert_eq!(found("order*"), (vec!["struct order", "struct order_book"], FoundBy::Pattern));
        assert_eq!(found("struct o?der"), (vec!["struct order"], FoundBy::Pattern));
        assert_eq!(found("[hi]n[!a-s]"), (vec!["int"], FoundBy::Pattern));
        assert_eq!(found("/tree_node(_base|<int>)$/"), (vec![TYPES[6], TYPES[7]], FoundBy::Pattern));
        assert_eq!(find(NameKind::Type, "x*", &TYPES), PatternMatch::Nothing(vec![]));
        let wrong = NamePattern::parse("/a(b/").expect_err("a bracket is open");
        assert!(wrong.contains("a(b") && !wrong.contains('\n'), "{wrong}");
        assert!(NamePattern::parse("/a{1000}{1000}{1000}/").is_err(), "too large");
    }

    #[test]
    fn a_part_counts_if_one_name_has_it_and_else_the_names_are_told() {
        assert_eq!(found("node_ba"), (vec![TYPES[7]], FoundBy::Part));
        match find(NameKind::Type, "rde", &TYPES) {
            PatternMatch::Ambiguous(names) => assert_eq!(names.len(), 3),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            find(NameKind::Type, "ordre", &TYPES),
            PatternMatch::Nothing(vec!["struct order", "union a::b::order"])
        );
        assert_eq!(find(NameKind::Type, "", &TYPES), PatternMatch::Nothing(vec![]));
    }

    #[test]
    fn files_are_found_with_and_without_folders() {
        let files = ["/usr/lib/libc.so.6", "/opt/libc.so.6", "[kernel.kallsyms]"];
        let names = |typed| match find(NameKind::File, typed, &files) {
            PatternMatch::Names(names, _) => names.into_iter().collect::<Vec<_>>(),
            other => panic!("{typed}: {other:?}"),
        };
        assert_eq!(names("libc.so.6"), ["/opt/libc.so.6", "/usr/lib/libc.so.6"]);
        assert_eq!(names("/opt/libc.so.6"), ["/opt/libc.so.6"]);
        assert_eq!(names("libc*"), ["/opt/libc.so.6", "/usr/lib/libc.so.6"]);
        assert_eq!(names("[kernel.kallsyms]"), ["[kernel.kallsyms]"]);
        assert_eq!(names("kernel"), ["[kernel.kallsyms]"]);
    }

    #[test]
    fn commas_in_brackets_and_expressions_part_no_names() {
        assert_eq!(split("a,b"), ["a", "b"]);
        assert_eq!(split("map<int, long>,b"), ["map<int, long>", "b"]);
        assert_eq!(split("/a{1,2}/,b,/c,d/"), ["/a{1,2}/", "b", "/c,d/"]);
        assert_eq!(split("/usr/lib/a.so,/usr/lib/b.so"), ["/usr/lib/a.so", "/usr/lib/b.so"]);
        assert_eq!(split("operator<,b"), ["operator<", "b"]);
        assert_eq!(split(" ,"), [""; 0]);
    }
}
