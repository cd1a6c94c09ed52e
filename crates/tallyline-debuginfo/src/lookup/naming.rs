//! Names with scopes, as people write them: `T`, `ns::T`, `::T`, `Tm<int,3>`, `struct T`, `P<long>`.

use std::borrow::Cow;

/// Returns `true` if the type with this name, declared in the scopes `path`, is one that the user's text `asked` names
/// (`T`, `ns::T`, `::T`, `struct T`).
///
/// The scopes in `asked` are matched with the innermost ones of the type; with a leading `::` they must be all. Version
/// scopes of libraries (inline namespaces) and Go's package may be left out. Ignored are a keyword before the name and
/// differences in spelling within template arguments, such as `long` and `long int`.
pub fn is_called(asked: &[u8], path: &[u8], name: &[u8]) -> bool {
    if asked == name {
        return true;
    }
    let (asked, raw, name) = (canonical(asked), name, canonical(name));
    if packaged(raw).any(|name| asked == canonical(name)) {
        return true;
    }
    let Some(scopes) = asked.strip_suffix(&*name) else { return false };
    if scopes.is_empty() {
        return true;
    }
    let Some((scopes, separator)) = without_separator(scopes) else { return false };
    let path = canonical(path);
    let (scopes, are_all) = match scopes.strip_prefix(b"::".as_slice()) {
        Some(all) => (all, true),
        None => (scopes, scopes.is_empty()),
    };
    ends_with_scopes(&path, scopes, separator, are_all)
}

/// Returns `true` if a path without its versions ends with some scopes, or consists of them if `are_all`.
fn ends_with_scopes(mut path: &[u8], mut scopes: &[u8], separator: &[u8], are_all: bool) -> bool {
    loop {
        if scopes.is_empty() && (!are_all || path.is_empty()) {
            return true;
        }
        if path.is_empty() {
            return false;
        }
        let start = last_scope(path, separator);
        let outer = path[..start].strip_suffix(separator).unwrap_or_default();
        let last = &path[start..];
        match scopes.strip_suffix(last) {
            Some(rest) if rest.is_empty() => scopes = rest,
            Some(rest) if !last.is_empty() && rest.ends_with(separator) => {
                scopes = &rest[..rest.len() - separator.len()];
            }
            _ if is_version(last) => {}
            _ => return false,
        }
        path = outer;
    }
}

/// Returns the start of the innermost scope of a path; separators between the arguments of a template are none of
/// the path's.
fn last_scope(path: &[u8], separator: &[u8]) -> usize {
    let mut depth = 0_usize;
    for at in (1..=path.len()).rev() {
        if depth == 0 && path[..at].ends_with(separator) {
            return at;
        }
        match path[at - 1] {
            b'>' | b')' => depth += 1,
            b'<' | b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    0
}

/// Returns `true` if a scope is one by which libraries tell the versions of their types apart: `std::__cxx11`,
/// `std::__1`, `std::chrono::_V2`, `fmt::v9`, `absl::lts_20220623`. DWARF says of a namespace that it is inline,
/// but a name in a recording does not.
fn is_version(scope: &[u8]) -> bool {
    let number = |prefix: &[u8]| {
        let rest = scope.strip_prefix(prefix).unwrap_or_default();
        !rest.is_empty() && rest.iter().all(|letter| letter.is_ascii_digit() || *letter == b'_')
    };
    scope.starts_with(b"__") || number(b"_V") || number(b"v") || number(b"lts_")
}

/// Returns the shorter forms of a Go name with its package, such as `http.Server` and `Server` for `net/http.Server`.
pub(crate) fn packaged(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let has_package = memchr::memchr(b'.', name).is_some();
    let is_path =
        |letter: &u8| letter.is_ascii_alphanumeric() || b"_./-~%".contains(letter) || *letter >= 0x80;
    let path = name.iter().take_while(|letter| has_package && is_path(letter)).count();
    let ends = move |at: &usize| matches!(name[*at - 1], b'.' | b'/') && *at < name.len();
    (2..=path).filter(ends).map(|at| &name[at..])
}

/// Returns the names that a requested type may have without its scopes: the whole text, and what follows each `::` or,
/// for Zig, each dot.
pub(crate) fn endings(asked: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = (1..asked.len()).filter(|at| without_separator(&asked[..*at]).is_some());
    std::iter::once(0).chain(starts).map(|start| &asked[start..])
}

/// The keywords that may stand before a name.
const KEYWORDS: [&[u8]; 4] = [b"struct ", b"union ", b"class ", b"enum "];

/// Returns the canonical spelling of a type name: without keyword and blanks, C's integer types in one form (`long` for
/// `long int`), constants without suffix (`3` for `3ul`). gcc, clang and people spell template arguments differently.
pub(crate) fn canonical(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.iter().any(|letter| matches!(letter, b' ' | b'<')) {
        return name.into();
    }
    let keyword = KEYWORDS.iter().find_map(|keyword| name.strip_prefix(*keyword));
    let name = keyword.map_or(name, <[u8]>::trim_ascii_start);
    let mut out = Vec::with_capacity(name.len());
    let mut number = SpelledNumber::default();
    let mut rest = name;
    while let Some(letter) = rest.first() {
        let is_word = |letter: &u8| letter.is_ascii_alphanumeric() || *letter == b'_' || *letter >= 0x80;
        if *letter == b' ' {
            rest = &rest[1..];
        } else if is_word(letter) {
            let end = rest.iter().position(|letter| !is_word(letter)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            rest = behind;
            if !number.take(word) {
                number.write(&mut out);
                out.extend_from_slice(without_suffix(word));
            }
        } else {
            number.write(&mut out);
            out.push(*letter);
            rest = &rest[1..];
        }
    }
    number.write(&mut out);
    out.into()
}

/// The words of a number's type in C, in whatever order they come.
#[derive(Default)]
struct SpelledNumber {
    signed: bool,
    unsigned: bool,
    short: bool,
    long: u8,
    // the type itself, which `int` may stand for
    base: &'static [u8],
}

impl SpelledNumber {
    fn take(&mut self, word: &[u8]) -> bool {
        match word {
            b"signed" => self.signed = true,
            b"unsigned" => self.unsigned = true,
            b"short" => self.short = true,
            b"long" => self.long = self.long.saturating_add(1),
            b"int" => self.base = b"int",
            b"char" => self.base = b"char",
            b"double" => self.base = b"double",
            _ => return false,
        }
        true
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        let SpelledNumber { signed, unsigned, short, long, base } = std::mem::take(self);
        // a char has three kinds
        let signed = signed && base == b"char";
        let has_length = short || long != 0;
        if unsigned {
            out.extend_from_slice(b"unsigned");
        }
        if signed {
            out.extend_from_slice(b"signed");
        }
        if short {
            out.extend_from_slice(b"short");
        }
        (0..long).for_each(|_| out.extend_from_slice(b"long"));
        if !(base == b"int" && (has_length || unsigned)) {
            out.extend_from_slice(base);
        }
    }
}

/// Returns a constant without what says its type.
fn without_suffix(word: &[u8]) -> &[u8] {
    let digits = word.iter().take_while(|letter| letter.is_ascii_digit()).count();
    let is_suffix = |letter: &u8| matches!(letter, b'u' | b'U' | b'l' | b'L');
    if digits != 0 && word[digits..].iter().all(is_suffix) { &word[..digits] } else { word }
}

/// Returns a type name without its template arguments.
pub(crate) fn stem(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|letter| *letter == b'<').unwrap_or(name.len());
    name[..end].trim_ascii_end()
}

fn without_separator(scopes: &[u8]) -> Option<(&[u8], &'static [u8])> {
    let with = |separator: &'static [u8]| Some((scopes.strip_suffix(separator)?, separator));
    with(b"::").or_else(|| with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_compared_from_the_innermost() {
        assert!(is_called(b"T", b"a::b", b"T"));
        assert!(is_called(b"b::T", b"a::b", b"T"));
        assert!(is_called(b"a::b::T", b"a::b", b"T"));
        assert!(is_called(b"::a::b::T", b"a::b", b"T"));
        assert!(is_called(b"file.T", b"file", b"T"));
        assert!(!is_called(b"b::T", b"ab", b"T"));
        assert!(!is_called(b"::b::T", b"a::b", b"T"));
        assert!(!is_called(b"::T", b"a", b"T"));
        assert!(is_called(b"::T", b"", b"T"));
        assert!(!is_called(b"xT", b"", b"T"));
    }

    #[test]
    fn versions_of_libraries_need_not_be_spelled() {
        assert!(is_called(b"std::string_view", b"std::__1", b"string_view"));
        assert!(is_called(b"std::basic_string<char>", b"std::__cxx11", b"basic_string<char>"));
        assert!(is_called(b"::std::list<int>::I", b"std::__cxx11::list<int>", b"I"));
        assert!(is_called(b"std::__cxx11::T", b"std::__cxx11", b"T"));
        assert!(is_called(b"chrono::steady_clock", b"std::chrono::_V2", b"steady_clock"));
        assert!(is_called(b"fmt::context", b"fmt::v9", b"context"));
        assert!(is_called(b"absl::Cord", b"absl::lts_20220623", b"Cord"));
        assert!(is_called(b"a<b::c>::T", b"x::a<b::c>::v1", b"T"));
        assert!(is_called(b"::T", b"v1", b"T"));
        for path in [&b"std::pmr"[..], b"std::video", b"std::v", b"std::_Vx", b"other::__1", b"__1"] {
            assert!(!is_called(b"std::T", path, b"T"), "{}", String::from_utf8_lossy(path));
        }
        assert!(!is_called(b"c>::T", b"x::a<b::c>", b"T"));
    }

    #[test]
    fn packages_of_go_need_not_be_spelled() {
        for asked in [&b"Server"[..], b"http.Server", b"net/http.Server", b"struct Server"] {
            assert!(is_called(asked, b"", b"net/http.Server"), "{}", String::from_utf8_lossy(asked));
        }
        assert!(is_called(b"Pair[int,a/b.T]", b"", b"main.Pair[int,a/b.T]"));
        for other in [&b"*main.Server"[..], b"[]main.Server", b"map[string]main.Server", b"chan main.Server"]
        {
            assert!(!is_called(b"Server", b"", other), "{}", String::from_utf8_lossy(other));
        }
        assert!(!is_called(b"T]", b"", b"main.Pair[int,a/b.T]"));
        assert!(!is_called(b"erver", b"", b"main.Server"));
        assert!(!is_called(b"", b"", b"main."));
    }

    #[test]
    fn blanks_do_not_count() {
        assert!(is_called(b"Tm<int,3>", b"", b"Tm<int, 3>"));
        assert!(is_called(b"V<a::B<int>>::I<1, 2>", b"V<a::B<int> >", b"I<1,2>"));
        assert!(!is_called(b"Tm<int, 4>", b"", b"Tm<int, 3>"));
    }

    #[test]
    fn keywords_and_spellings_of_numbers_do_not_count() {
        assert!(is_called(b"struct T", b"", b"T"));
        assert!(is_called(b"union  a::T", b"a", b"T"));
        assert!(is_called(b"class T<class U>", b"", b"T<class U>"));
        assert!(is_called(b"P<long>", b"", b"P<long int>"));
        assert!(is_called(b"P<long int>", b"", b"P<long>"));
        assert!(is_called(b"P<unsigned>", b"", b"P<unsigned int>"));
        assert!(is_called(b"P<unsigned long long>", b"", b"P<long long unsigned int>"));
        assert!(is_called(b"P<short,signed int>", b"", b"P<short int, int>"));
        assert!(is_called(b"A<int,3>", b"", b"A<int, 3UL>"));
        assert!(is_called(b"A<A<unsigned long>>", b"", b"A<A<unsigned long> >"));
        assert!(is_called(b"P<long double>", b"", b"P<long double>"));
        for (one, other) in [
            (&b"P<long>"[..], &b"P<int>"[..]),
            (b"P<signed char>", b"P<char>"),
            (b"P<unsigned char>", b"P<char>"),
            (b"P<unsigned>", b"P<int>"),
            (b"P<long double>", b"P<double>"),
            (b"P<longer>", b"P<long>"),
            (b"P<3>", b"P<33>"),
        ] {
            assert!(!is_called(one, b"", other), "{}", String::from_utf8_lossy(one));
        }
        assert!(!is_called(b"struct", b"", b""));
        assert!(is_called(b"structure", b"", b"structure"));
    }

    #[test]
    fn endings_follow_separators() {
        assert_eq!(endings(b"a::T<b::c>").collect::<Vec<_>>(), [&b"a::T<b::c>"[..], b"T<b::c>", b"c>"]);
        assert_eq!(endings(b"T").count(), 1);
    }
}
