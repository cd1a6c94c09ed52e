//! Names with scopes, as people write them: `T`, `ns::T`, `::T`, `Tm<int,3>`.

use std::borrow::Cow;

/// Whether a type of this name, declared in the scopes of this path, is what is asked for.
///
/// Scopes that are asked for are the innermost ones; with `::` at the start they are all. Blanks do
/// not count: compilers differ in where they put them between the arguments of a template.
pub fn is_called(asked: &[u8], path: &[u8], name: &[u8]) -> bool {
    if asked == name {
        return true;
    }
    let (asked, name) = (squeezed(asked), squeezed(name));
    let Some(scopes) = asked.strip_suffix(&*name) else { return false };
    if scopes.is_empty() {
        return true;
    }
    let Some((scopes, separator)) = without_separator(scopes) else { return false };
    let path = squeezed(path);
    if scopes.is_empty() {
        return path.is_empty();
    }
    match scopes.strip_prefix(b"::".as_slice()) {
        Some(all) => *path == *all,
        None => path.strip_suffix(scopes).is_some_and(|outer| outer.is_empty() || outer.ends_with(separator)),
    }
}

/// What a name may end with if it is what is asked for: all of it, and what follows each `::` or,
/// as Zig has it, each dot.
pub(crate) fn endings(asked: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = (1..asked.len()).filter(|at| without_separator(&asked[..*at]).is_some());
    std::iter::once(0).chain(starts).map(|start| &asked[start..])
}

/// A name without its blanks.
pub(crate) fn squeezed(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.contains(&b' ') {
        return name.into();
    }
    name.iter().copied().filter(|letter| *letter != b' ').collect::<Vec<_>>().into()
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
    fn blanks_do_not_count() {
        assert!(is_called(b"Tm<int,3>", b"", b"Tm<int, 3>"));
        assert!(is_called(b"V<a::B<int>>::I<1, 2>", b"V<a::B<int> >", b"I<1,2>"));
        assert!(!is_called(b"Tm<int, 4>", b"", b"Tm<int, 3>"));
    }

    #[test]
    fn endings_follow_separators() {
        assert_eq!(endings(b"a::T<b::c>").collect::<Vec<_>>(), [&b"a::T<b::c>"[..], b"T<b::c>", b"c>"]);
        assert_eq!(endings(b"T").count(), 1);
    }
}
