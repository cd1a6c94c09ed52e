//! The types that hold objects of other types among their bytes.

use super::{Scan, code};
use crate::Language;
use crate::declarator::skip_group;

/// A struct or a union, with what it holds by value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Holder {
    /// The tag and the typedefs.
    names: Vec<Vec<u8>>,
    /// The types of its members and the members' names, which are empty for bases.
    held: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Finds the structs and unions that a source defines, with the types of their members, of which pointers and containers
/// are none: the type of each member, the member's name (empty for a base), and a name of the struct or union. Members
/// that macros declare are not found.
pub fn holders(text: &[u8], language: Language) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let of_holder = |holder: Holder| {
        let names = holder.names;
        let held = holder.held.into_iter();
        held.flat_map(move |(ty, member)| {
            names.clone().into_iter().map(move |name| (ty.clone(), member.clone(), name))
        })
    };
    all_holders(text, language).into_iter().flat_map(of_holder).collect()
}

fn all_holders(text: &[u8], language: Language) -> Vec<Holder> {
    let all = code(text, 0, language);
    let scan = Scan::new(text, &all, &[], &[]);
    let is_aggregate = |at: &usize| match language {
        Language::Cpp => matches!(scan.word(*at), b"struct" | b"union" | b"class"),
        _ => matches!(scan.word(*at), b"struct" | b"union"),
    };
    let heads = (0..all.len()).filter(is_aggregate);
    let found = heads.filter_map(|at| match language {
        Language::Rust => scan.holder_of_rust(at),
        _ => scan.holder(at),
    });
    found.filter(|holder| !holder.names.is_empty() && !holder.held.is_empty()).collect()
}

impl Scan<'_> {
    fn holder(&self, keyword: usize) -> Option<Holder> {
        let mut holder = Holder::default();
        let (mut at, mut tag, mut in_bases) = (keyword + 1, &b""[..], false);
        while !self.punct(at, b'{') {
            let word = self.word(at);
            match () {
                () if matches!(word, b"__attribute__" | b"alignas" | b"_Alignas" | b"__declspec")
                    || self.punct(at, b'[') =>
                {
                    at = skip_group(self.tokens, at + usize::from(!word.is_empty()));
                    continue;
                }
                () if in_bases && !word.is_empty() => holder.held.push((word.to_vec(), Vec::new())),
                () if self.punct(at, b':') => in_bases = true,
                () if in_bases && [b',', b'<', b'>'].iter().any(|part| self.punct(at, *part)) => {}
                () if word == b"final" => {}
                // of several names the last is the type's, as macros stand before it
                () if !word.is_empty() => tag = word,
                () => return None,
            }
            at += 1;
        }
        let end = skip_group(self.tokens, at);
        self.members_of(at + 1..end.saturating_sub(1), &mut holder);
        if !tag.is_empty() {
            holder.names.push(tag.to_vec());
        }
        let is_typedef = keyword > 0 && self.word(keyword - 1) == b"typedef";
        let mut next = end;
        while is_typedef && next < self.tokens.len() && !self.punct(next, b';') {
            let is_name = self.punct(next + 1, b';') || self.punct(next + 1, b',');
            // a pointer's typedef is another type
            if is_name && !self.word(next).is_empty() && !self.punct(next - 1, b'*') {
                holder.names.push(self.word(next).to_vec());
            }
            next += 1;
        }
        Some(holder)
    }

    /// Adds the members between two braces: a type's name is followed by a declarator's.
    fn members_of(&self, body: std::ops::Range<usize>, holder: &mut Holder) {
        let (mut at, mut has_body) = (body.start, false);
        while at < body.end {
            let (ty, name) = (self.word(at), self.word(at + 1));
            if self.punct(at, b'(') || self.punct(at, b'[') || self.punct(at, b'{') && !has_body {
                at = skip_group(self.tokens, at);
                continue;
            }
            if self.punct(at, b';') || self.punct(at, b'{') {
                has_body = false;
            } else if matches!(ty, b"struct" | b"union" | b"class") {
                has_body = true;
            } else if !ty.is_empty() && !name.is_empty() && at + 1 < body.end && !self.punct(at + 2, b'(') {
                holder.held.push((ty.to_vec(), name.to_vec()));
            } else if ty == b"array" && self.punct(at + 1, b'<') {
                holder.held.push((self.word(at + 2).to_vec(), Vec::new()));
            }
            at += 1;
        }
    }

    fn holder_of_rust(&self, keyword: usize) -> Option<Holder> {
        let name = self.word(keyword + 1);
        let ends = |at: &usize| [b'{', b'(', b';'].iter().any(|end| self.punct(*at, *end));
        let open = (keyword + 2..self.tokens.len()).find(ends)?;
        if name.is_empty() || self.punct(open, b';') {
            return None;
        }
        let end = skip_group(self.tokens, open);
        let is_tuple = self.punct(open, b'(');
        let is_held = |at: &usize| {
            let is_last = [b',', b';', b'}', b')'].iter().any(|end| self.punct(at + 1, *end));
            let is_first = self.punct(at - 1, b':') || self.punct(at - 1, b'[');
            !self.word(*at).is_empty() && is_last && (is_first || is_tuple && !self.punct(at - 1, b'&'))
        };
        let fields = (open + 1..end).filter(is_held);
        let of = |at: usize| {
            let field = if self.punct(at - 1, b':') { self.word(at - 2) } else { b"" };
            (self.word(at).to_vec(), field.to_vec())
        };
        Some(Holder { names: vec![name.to_vec()], held: fields.map(of).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, language: Language) -> Vec<(String, String)> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let joined = |holder: Holder| {
            let names: Vec<String> = holder.names.iter().map(|name| text_of(name)).collect();
            let held: Vec<String> =
                holder.held.iter().map(|(ty, name)| format!("{} {}", text_of(ty), text_of(name))).collect();
            (names.join(" "), held.join(", "))
        };
        all_holders(text.as_bytes(), language).into_iter().map(joined).collect()
    }

    #[test]
    fn members_by_value_are_held_and_pointers_are_not() {
        let text =
            "typedef struct outer { int n; struct rec first; rec_t more[2], *p; struct rec *next; } outer_t;";
        let expected = ("outer outer_t".to_owned(), "int n, rec first, rec_t more".to_owned());
        assert_eq!(found(text, Language::C), [expected]);
        let text = "union u { struct { rec_t a; } in; char raw[8]; };";
        assert_eq!(found(text, Language::C)[0].1, "rec_t a, char raw");
    }

    #[test]
    fn bases_and_arrays_are_held_and_what_methods_use_is_not() {
        let text = "class EXPORT a final : public base { rec f(rec r) { rec x; } std::array<rec, 2> two; other o{1}; };";
        let expected = ("a".to_owned(), "public , base , rec , other o".to_owned());
        assert_eq!(found(text, Language::Cpp), [expected]);
    }

    #[test]
    fn fields_of_rust_are_held_by_value_alone() {
        let text = "struct A { a: Rec, pub b: [m::Rec; 2], c: &'a Rec, d: Vec<Rec> } struct B(u8, Rec);";
        let expected = [("A".to_owned(), "Rec a, Rec ".to_owned()), ("B".to_owned(), "u8 , Rec ".to_owned())];
        assert_eq!(found(text, Language::Rust), expected);
    }
}
