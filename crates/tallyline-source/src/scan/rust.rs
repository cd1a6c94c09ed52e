//! Uses of structs of Rust.

use super::transfer::transfers;
use super::variable::Variable;
use super::{Scan, UseKind, skip_group};
use std::ops::Range;

/// The traits by which crates make a struct's objects bytes, or the other way round: bytemuck, zerocopy, plain,
/// vm-memory.
const BYTE_TRAITS: [&[u8]; 10] = [
    b"AnyBitPattern",
    b"AsBytes",
    b"ByteValued",
    b"CheckedBitPattern",
    b"FromBytes",
    b"IntoBytes",
    b"NoUninit",
    b"Plain",
    b"Pod",
    b"TryFromBytes",
];

/// An item of a Rust source: its tokens, and if it is an `impl` of the type.
struct Item {
    tokens: Range<usize>,
    is_impl: bool,
}

impl<'t> Scan<'t> {
    /// Finds the uses of a struct of Rust, with the byte offset of each: by the items that name it.
    pub(super) fn uses_of_rust(self) -> Vec<(UseKind, usize)> {
        let mut uses: Vec<(UseKind, usize)> = Vec::new();
        let (mut start, mut at) = (0, 0);
        let mut scan = self;
        if scan.names.is_empty() {
            return uses;
        }
        while let Some(token) = scan.tokens.get(at) {
            let open = at;
            let is_body = token.is(b'{');
            // the length of an array stands behind a semicolon, too
            let is_group = is_body || token.is(b'(') || token.is(b'[');
            at = if is_group { skip_group(scan.tokens, at) } else { at + 1 };
            if !(is_body || token.is(b';')) {
                continue;
            }
            if (start..at).any(|at| scan.is_type(at)) {
                let mut head = start..open;
                let is_impl = head.any(|at| scan.word(at) == b"impl") && head.any(|at| scan.is_type(at));
                let item = Item { tokens: start..at, is_impl };
                scan.variables = scan.variables_of(&item.tokens);
                let kinds = item.tokens.clone().filter_map(|at| Some((scan.kind_of_rust(at, &item)?, at)));
                uses.extend(kinds.map(|(kind, at)| (kind, scan.tokens[at].span.start)));
            }
            start = at;
        }
        uses
    }

    fn kind_of_rust(&self, at: usize, item: &Item) -> Option<UseKind> {
        match self.word(at) {
            b"" => None,
            b"transmute" | b"transmute_copy" => Some(UseKind::Transmute),
            b"struct" if self.is_type(at + 1) => self.derived(at),
            // the traits of bytes are unsafe, so that another of such a name is told from them
            b"impl" if at > 0 && self.word(at - 1) == b"unsafe" => {
                let mut head = (at + 1..item.tokens.end).take_while(|at| !self.punct(*at, b'{'));
                let is_bytes = head
                    .by_ref()
                    .take_while(|at| self.word(*at) != b"for")
                    .any(|at| BYTE_TRAITS.contains(&self.word(at)));
                // the rest of the head up to `for`
                let is_bytes = is_bytes && head.any(|at| self.is_type(at));
                is_bytes.then_some(UseKind::Transfer)
            }
            b"const" => self.const_assertion(at, item),
            _ => self.raw_bytes(at, item).or_else(|| self.call(at)),
        }
    }

    /// Returns the parameters and variables of an item that are objects of the type, or pointers to some.
    fn variables_of(&self, item: &Range<usize>) -> Vec<Variable<'t>> {
        let mut variables = Vec::new();
        for at in item.clone().filter(|at| self.is_type(*at)) {
            let mut before = at;
            // the path in front of the name, then what makes it a pointer
            while before >= 3 && self.punct(before - 1, b':') && self.punct(before - 2, b':') {
                before -= 3;
            }
            while before > item.start
                && (self.punct(before - 1, b'&')
                    || self.punct(before - 1, b'*')
                    || self.punct(before - 1, b'[')
                    || matches!(self.word(before - 1), b"mut" | b"const" | [b'\'', ..]))
            {
                before -= 1;
            }
            if before < item.start + 2 || !(self.punct(before - 1, b':') || self.punct(before - 1, b'=')) {
                continue;
            }
            let name = self.word(before - 2);
            if !name.is_empty() {
                variables.push(Variable::new(name, item.clone()));
            }
        }
        variables
    }

    /// The use that an attribute of a struct's definition is.
    fn derived(&self, at: usize) -> Option<UseKind> {
        let mut end = at;
        loop {
            end = match end.checked_sub(1)? {
                before if self.word(before) == b"pub" => before,
                before if self.punct(before, b')') => self.open_of(before)?,
                before if self.punct(before, b']') => {
                    let open = self.open_of(before)?;
                    let mut inside = open..before;
                    if inside.clone().any(|at| self.word(at) == b"derive") {
                        if inside.clone().any(|at| matches!(self.word(at), b"PartialOrd" | b"Ord")) {
                            return Some(UseKind::Ordering);
                        }
                        if inside.any(|at| BYTE_TRAITS.contains(&self.word(at))) {
                            return Some(UseKind::Transfer);
                        }
                    }
                    open.checked_sub(1).filter(|hash| self.punct(*hash, b'#'))?
                }
                _ => return None,
            };
        }
    }

    /// Returns the token that opens the group which ends at a token.
    fn open_of(&self, close: usize) -> Option<usize> {
        let mut depth = 0_u32;
        for at in (0..=close).rev() {
            if self.punct(at, b')') || self.punct(at, b']') || self.punct(at, b'}') {
                depth += 1;
            } else if self.punct(at, b'(') || self.punct(at, b'[') || self.punct(at, b'{') {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        None
    }

    /// The use that a constant is which is evaluated for its assertion alone. An upper bound of the size is none, as
    /// no edit makes a struct larger.
    fn const_assertion(&self, at: usize, item: &Item) -> Option<UseKind> {
        let end = match () {
            () if self.punct(at + 1, b'{') => skip_group(self.tokens, at + 1),
            () if self.punct(at + 2, b':') && !self.word(at + 1).is_empty() => {
                let mut end = at + 2;
                while end < item.tokens.end && !self.punct(end, b';') {
                    let is_group = [b'(', b'[', b'{'].iter().any(|open| self.punct(end, *open));
                    end = if is_group { skip_group(self.tokens, end) } else { end + 1 };
                }
                end
            }
            () => return None,
        };
        let is_asserted =
            |at: usize| matches!(self.word(at), b"assert" | b"assert_eq" | b"assert_ne" | b"panic");
        if self.word(at + 1) != b"_" && !(at..end).any(is_asserted) {
            return None;
        }
        let is_exact = |size: usize| {
            let close = (size..end).find(|at| self.punct(*at, b')')).unwrap_or(end);
            let is_named = (size..close).any(|at| self.is_type(at) || self.is_self(at, item));
            is_named && !self.punct(close + 1, b'<')
        };
        let mut sizes = (at..end).filter(|at| matches!(self.word(*at), b"size_of" | b"size_of_val"));
        sizes.any(is_exact).then_some(UseKind::Assertion)
    }

    /// The use that a call is by which bytes of an object are read or written.
    fn raw_bytes(&self, at: usize, item: &Item) -> Option<UseKind> {
        let name = self.word(at);
        let is_slice = matches!(name, b"from_raw_parts" | b"from_raw_parts_mut");
        if !is_slice && !transfers(name) {
            return None;
        }
        // of a generic function, as cast::<u8>()
        let mut open = at + 1;
        if self.punct(open, b':') && self.punct(open + 1, b':') && self.punct(open + 2, b'<') {
            open = (open..item.tokens.end).find(|at| self.punct(*at, b'('))?;
        }
        if !self.punct(open, b'(') {
            return None;
        }
        let mut inside = open..skip_group(self.tokens, open);
        let is_named = |at: usize| self.is_type(at);
        let is_object = |at: usize| is_named(at) || self.is_variable(at) || self.is_self(at, item);
        // as size_of::<Rec>() and size_of_val(&rec): what else a call has may be of a member
        let is_sized =
            inside.clone().filter(|at| matches!(self.word(*at), b"size_of" | b"size_of_val")).any(|at| {
                let open = (at..inside.end).find(|at| self.punct(*at, b'(')).unwrap_or(inside.end);
                (at + 1..skip_group(self.tokens, open)).any(|at| is_object(at) && !self.punct(at + 1, b'.'))
            });
        let is_of_bytes = is_slice && inside.clone().any(|at| self.word(at) == b"u8");
        let is_use = is_sized || is_of_bytes && inside.any(is_named);
        is_use.then_some(UseKind::Transfer)
    }

    fn is_self(&self, at: usize, item: &Item) -> bool {
        item.is_impl && matches!(self.word(at), b"self" | b"Self") && !self.punct(at + 1, b'.')
    }
}

#[cfg(test)]
mod tests {
    use crate::{Language, SearchedType, UseKind, uses};

    fn kinds(text: &str) -> Vec<(UseKind, u32)> {
        let names = vec![b"Rec".to_vec()];
        let searched = SearchedType { names, holders: vec![b"Outer".to_vec()], ..SearchedType::default() };
        uses(text.as_bytes(), Language::Rust, &[searched], &Default::default()).remove(0)
    }

    #[test]
    fn bytes_of_objects_are_transfers() {
        for text in [
            "fn f(t: &Rec) { w.write_all(from_raw_parts(t as *const Rec as *const u8, 40)); }",
            "fn f() { let t = Rec::default(); slice::from_raw_parts((&raw const t).cast::<u8>(), size_of_val(&t)); }",
            "impl Rec { fn f(&self) { from_raw_parts(self as *const _ as *const u8, size_of::<Self>()); } }",
            "fn f(t: *mut crate::Rec) { libc::read(0, t as *mut c_void, mem::size_of::<Rec>()); }",
            "fn f(o: &Outer) { libc::write(0, o as *const _ as *const c_void, size_of::<Outer>()); }",
            "#[repr(C)]\n#[derive(Clone, FromBytes)] pub(crate) struct Rec { a: u8 }",
            "unsafe\nimpl bytemuck::Pod for Rec {}",
        ] {
            let found = kinds(text);
            assert_eq!(
                found.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
                [UseKind::Transfer],
                "{text}"
            );
        }
    }

    #[test]
    fn typed_slices_and_other_bytes_are_no_transfers() {
        for text in [
            "fn f(p: *const Rec, n: usize) -> &[Rec] { from_raw_parts(p, n) }",
            "fn f(r: &Rec) { write!(out, \"{}\", size_of::<Rec>()); from_raw_parts(r.data as *const u8, r.len); }",
            "impl Pod for Rec {} impl Rec { fn f(&self) { out.write_all(self.bytes()); ptr::write(p, Rec::new()); } }",
            "fn f(rec: &Rec) { libc::write(rec.fd.as_raw_fd(), events.as_ptr().cast(), size_of_val(&events)); }",
            "fn f(c: *mut Rec) { proc_send((*c).peer, &raw mut msg, size_of::<Message>()); g(size_of_val(&rec.name)); }",
            "#[derive(FromBytes)] struct Other { rec: Rec } #[derive(Clone, Debug, Hash)] struct Rec { a: u8 }",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn derived_orders_are_found() {
        let text = "#[derive(PartialEq, PartialOrd)]\n#[repr(C)]\n/// A record.\npub struct Rec { a: u8 }";
        assert_eq!(kinds(text), [(UseKind::Ordering, 4)]);
        assert_eq!(kinds("#[derive(Ord)] struct A { r: Rec }\nimpl PartialOrd for Rec { }"), []);
    }

    #[test]
    fn assertions_of_a_size_are_found_but_for_upper_bounds() {
        assert_eq!(kinds("const _: () = assert!(size_of::<Rec>() == 40);"), [(UseKind::Assertion, 1)]);
        assert_eq!(kinds("const _: [(); 40] = [(); mem::size_of::<Rec>()];"), [(UseKind::Assertion, 1)]);
        assert_eq!(
            kinds("impl Rec {\n const OK: () = { assert!(40 == size_of::<Self>()); }; }"),
            [(UseKind::Assertion, 2)]
        );
        assert_eq!(kinds("const _: () = assert!(offset_of!(Rec, a) == 8);"), [(UseKind::Offset, 1)]);
        assert_eq!(kinds("const _: () = assert!(size_of::<Rec>() <= 40);"), []);
        assert_eq!(kinds("const N: usize = size_of::<Rec>(); fn f(p: *const Rec) { }"), []);
        assert_eq!(kinds("const _: fn() = || { is_send::<Rec>(); };"), []);
    }
}
