//! Uses of a word that becomes a counter: additions and reads as calls of its functions.

use crate::Language;
use crate::change::{Edit, Refusal};
use crate::declarator::skip_group;
use crate::find::bytes;
use crate::lexer::{Kind, Token, tokens};
use crate::retype::is_zero_literal;
use std::ops::Range;

/// Functions that add to a word; the result must not be used, which a function without one proves.
const ADDITIONS: [&[u8]; 6] = [
    b"atomic_fetch_add",
    b"atomic_fetch_add_explicit",
    b"__atomic_fetch_add",
    b"__atomic_add_fetch",
    b"__sync_fetch_and_add",
    b"__sync_add_and_fetch",
];

/// Functions that subtract from a word.
const SUBTRACTIONS: [&[u8]; 6] = [
    b"atomic_fetch_sub",
    b"atomic_fetch_sub_explicit",
    b"__atomic_fetch_sub",
    b"__atomic_sub_fetch",
    b"__sync_fetch_and_sub",
    b"__sync_sub_and_fetch",
];

/// Functions that read a word.
const READS: [&[u8]; 3] = [b"atomic_load", b"atomic_load_explicit", b"__atomic_load_n"];

/// Computes the edits that turn one use of an integer member in C into a call of a counter's functions: `s->n++` into
/// `add(&s->n, 1)`, a read into `read(&s->n)`. `at` is the byte offset of the member's name in the source.
///
/// `add` and `read` name the functions, which take the counter's address first. Every other use is refused with
/// [`Refusal::OtherUse`]. The function that adds must return nothing: then a compiler rejects additions whose result is
/// used.
pub fn counter_use(text: &[u8], at: usize, add: &str, read: &str) -> Result<Vec<Edit>, Refusal> {
    let all: Vec<Token> = tokens(text, Language::C).into_iter().filter(|token| !token.is_trivia()).collect();
    let name = all.iter().position(|token| token.span.start == at && token.kind == Kind::Word);
    let uses = Uses { text, tokens: &all };
    let other = |name: usize| Refusal::OtherUse(uses.line(name));
    let name = name.ok_or_else(|| Refusal::OtherUse("a use within a macro".into()))?;
    uses.edits(name, add, read).ok_or_else(|| other(name))
}

/// Computes the edit that changes the type of a Rust initial value `old::new(…)`, such as `AtomicU64::new(0)`, to
/// `new`; `at` is the byte offset at which the expression starts.
pub fn counter_initialiser(text: &[u8], at: usize, old: &str, new: &str) -> Result<Edit, Refusal> {
    let all: Vec<Token> =
        tokens(text, Language::Rust).into_iter().filter(|token| !token.is_trivia()).collect();
    let uses = Uses { text, tokens: &all };
    let first = all.iter().position(|token| token.span.start == at);
    let first = first.ok_or_else(|| Refusal::OtherUse("a use within a macro".into()))?;
    let other = || Refusal::OtherUse(uses.line(first));
    let mut last = first;
    // the path of the type
    while uses.punct(last + 1, b':') && uses.punct(last + 2, b':') && uses.word(last + 3) != b"new" {
        last += 3;
    }
    let is_new = uses.punct(last + 1, b':')
        && uses.punct(last + 2, b':')
        && uses.word(last + 3) == b"new"
        && uses.punct(last + 4, b'(');
    let name = old.rsplit(':').next().unwrap_or(old);
    if !is_new || uses.word(last) != name.as_bytes() {
        return Err(other());
    }
    let (start, end) = (uses.start(first), uses.end(last));
    Ok(Edit::new(start.unwrap_or(at)..end.ok_or_else(other)?, new))
}

/// Computes the edits that wrap a field's initial value in a Rust struct expression in a tuple struct `ty`: `field:
/// value` becomes `field: ty(value)`, and the shorthand `field` becomes `field: ty(field)`. `at` is the byte offset of
/// the value or the shorthand.
pub fn wrapped_value(text: &[u8], at: usize, ty: &str) -> Result<Vec<Edit>, Refusal> {
    let all: Vec<Token> =
        tokens(text, Language::Rust).into_iter().filter(|token| !token.is_trivia()).collect();
    let uses = Uses { text, tokens: &all };
    let first = all.iter().position(|token| token.span.start == at);
    let first = first.ok_or_else(|| Refusal::OtherUse("a use within a macro".into()))?;
    let before = first.checked_sub(1);
    let is_alone = before.is_some_and(|at| uses.punct(at, b'{') || uses.punct(at, b','));
    let is_value = before.is_some_and(|at| uses.punct(at, b':') && at > 0 && !uses.punct(at - 1, b':'));
    let (start, end) = uses.amount(first).ok_or_else(|| Refusal::OtherUse(uses.line(first)))?;
    let name = String::from_utf8_lossy(uses.word(first)).into_owned();
    let head = match (is_value, is_alone && !name.is_empty()) {
        (true, _) => format!("{ty}("),
        (false, true) => format!("{name}: {ty}("),
        (false, false) => return Err(Refusal::OtherUse(uses.line(first))),
    };
    Ok(vec![Edit::new(start..start, head), Edit::new(end..end, ")")])
}

struct Uses<'t> {
    text: &'t [u8],
    tokens: &'t [Token],
}

impl Uses<'_> {
    fn word(&self, at: usize) -> &[u8] {
        self.tokens
            .get(at)
            .filter(|token| token.kind == Kind::Word)
            .map_or(b"", |token| bytes(self.text, token))
    }

    fn punct(&self, at: usize, byte: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(byte))
    }

    /// Returns `true` if the two characters of `pair` stand at the token `at`, with no space between them.
    fn pair(&self, at: usize, pair: &[u8; 2]) -> bool {
        self.punct(at, pair[0]) && self.punct(at + 1, pair[1]) && self.end(at) == self.start(at + 1)
    }

    fn start(&self, at: usize) -> Option<usize> {
        Some(self.tokens.get(at)?.span.start)
    }

    fn end(&self, at: usize) -> Option<usize> {
        Some(self.tokens.get(at)?.span.end)
    }

    /// Returns the line of a token, trimmed.
    fn line(&self, at: usize) -> String {
        let place = self.start(at).unwrap_or(0);
        let before = self.text.get(..place).unwrap_or_default();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = self.text.get(start..).unwrap_or_default().split(|byte| *byte == b'\n').next();
        format!("`{}`", String::from_utf8_lossy(line.unwrap_or_default().trim_ascii()))
    }

    fn edits(&self, name: usize, add: &str, read: &str) -> Option<Vec<Edit>> {
        if self.is_designator(name) {
            return self.initial_value(name);
        }
        let first = self.operand(name)?;
        let operand = self.start(first)?..self.end(name)?;
        let before = first.checked_sub(1);
        let next = name + 1;
        let put = |at: usize, text: String| Edit::new(at..at, text);
        let is_address = before.is_some_and(|at| self.punct(at, b'&') && self.is_unary(at));
        if is_address {
            return self.call(before?, operand, add, read);
        }
        if matches!(before.map(|at| self.word(at)), Some(b"sizeof" | b"_Alignof" | b"typeof" | b"__typeof__"))
        {
            return None;
        }
        for (sign, amount) in [(b"++", "1"), (b"--", "0UL - 1")] {
            if self.pair(next, sign) {
                return Some(vec![
                    put(operand.start, format!("{add}(&")),
                    Edit::new(operand.end..self.end(next + 1)?, format!(", {amount})")),
                ]);
            }
            let prefix = first.checked_sub(2).filter(|at| self.pair(*at, sign));
            if let Some(prefix) = prefix {
                return Some(vec![
                    Edit::new(self.start(prefix)?..operand.start, format!("{add}(&")),
                    put(operand.end, format!(", {amount})")),
                ]);
            }
        }
        for (sign, open, close) in [(b"+=", "", ""), (b"-=", "0UL - (", ")")] {
            if self.pair(next, sign) {
                let (from, to) = self.amount(next + 2)?;
                return Some(vec![
                    put(operand.start, format!("{add}(&")),
                    Edit::new(operand.end..from, format!(", {open}")),
                    put(to, format!("{close})")),
                ]);
            }
        }
        if self.is_assigned(next) || self.punct(next, b'.') || self.pair(next, b"->") {
            return None;
        }
        if self.punct(next, b'[') || self.punct(next, b'(') {
            return None;
        }
        Some(vec![put(operand.start, format!("{read}(&")), put(operand.end, ")".into())])
    }

    /// Returns `true` if the member's name at the token `name` is the designator of an initial value: `{ .name = 0 }`.
    fn is_designator(&self, name: usize) -> bool {
        let before = name.checked_sub(2);
        name.checked_sub(1).is_some_and(|dot| self.punct(dot, b'.'))
            && before.is_some_and(|at| self.punct(at, b'{') || self.punct(at, b','))
    }

    /// The edit of an initial value that is 0: nothing else is one of a counter.
    fn initial_value(&self, name: usize) -> Option<Vec<Edit>> {
        let value = name + 2;
        let ends = self.punct(value + 1, b',') || self.punct(value + 1, b'}');
        let is_zero = self.punct(name + 1, b'=') && is_zero_literal(self.word(value)) && ends;
        is_zero.then(|| {
            let range = self.start(value)?..self.end(value)?;
            Some(vec![Edit::new(range, "{ .stripes = { { .count = 0 } } }")])
        })?
    }

    /// Returns the first token of the expression whose member a name is: `a->b[i].name`, `f(x)->name`.
    fn operand(&self, name: usize) -> Option<usize> {
        let mut at = name;
        loop {
            at = match at {
                _ if at >= 1 && self.punct(at - 1, b'.') => at.checked_sub(2)?,
                _ if at >= 2 && self.pair(at - 2, b"->") => at.checked_sub(3)?,
                _ if at == name => return None,
                _ => return Some(at),
            };
            while self.punct(at, b']') || self.punct(at, b')') {
                let is_call = self.punct(at, b')');
                at = self.opening(at)?;
                let before = at.checked_sub(1)?;
                let is_operand = self.punct(before, b']')
                    || self.punct(before, b')')
                    || !self.word(before).is_empty() && !is_keyword(self.word(before));
                match is_operand {
                    true => at = before,
                    false if is_call => return Some(at),
                    false => return None,
                }
            }
            if self.word(at).is_empty() {
                return None;
            }
        }
    }

    /// Returns the index of the bracket that opens the group which one at an index closes.
    fn opening(&self, close: usize) -> Option<usize> {
        let mut depth = 0_u32;
        for at in (0..=close).rev() {
            match self.tokens.get(at)?.kind {
                Kind::Punct(b')' | b']' | b'}') => depth += 1,
                Kind::Punct(b'(' | b'[' | b'{') => {
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

    /// Returns `true` if the ampersand at the token `at` takes an address, rather than being a binary operator.
    fn is_unary(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return true };
        let word = self.word(before);
        let is_value = !word.is_empty() && !is_keyword(word)
            || self.punct(before, b')')
            || self.punct(before, b']')
            || self.tokens.get(before).is_some_and(|token| token.kind == Kind::Literal);
        // the second of `&&`
        let is_and = self.punct(before, b'&') && self.end(before) == self.start(at);
        !is_value && !is_and
    }

    /// The edits of a call whose first argument is the word's address.
    fn call(&self, address: usize, operand: Range<usize>, add: &str, read: &str) -> Option<Vec<Edit>> {
        let open = address.checked_sub(1).filter(|at| self.punct(*at, b'('))?;
        let function = open.checked_sub(1)?;
        let name = self.word(function);
        let close = skip_group(self.tokens, open).checked_sub(1)?;
        let end = self.start(close)?;
        let head = self.start(function)?..self.end(open)?;
        let behind = self.tokens.iter().position(|token| token.span.start >= operand.end)?;
        if READS.contains(&name) {
            let ends = behind == close || self.punct(behind, b',');
            return ends
                .then(|| vec![Edit::new(head, format!("{read}(")), Edit::new(operand.end..end, Vec::new())]);
        }
        if !self.punct(behind, b',') {
            return None;
        }
        let (from, to) = self.amount(behind + 1)?;
        let rest = Edit::new(to..end, Vec::new());
        let head = Edit::new(head, format!("{add}("));
        match name {
            name if ADDITIONS.contains(&name) => Some(vec![head, rest]),
            name if SUBTRACTIONS.contains(&name) => {
                let minus = Edit::new(from..from, "0UL - (");
                let rest = Edit::new(to..end, ")");
                Some(vec![head, minus, rest])
            }
            _ => None,
        }
    }

    /// Returns the bytes of an expression from an index up to a comma, a semicolon or a bracket that closes.
    fn amount(&self, from: usize) -> Option<(usize, usize)> {
        let mut at = from;
        loop {
            match self.tokens.get(at)?.kind {
                Kind::Punct(b'(' | b'[' | b'{') => at = skip_group(self.tokens, at),
                Kind::Punct(b',' | b';' | b')' | b']' | b'}') => break,
                Kind::Directive => return None,
                _ => at += 1,
            }
        }
        let last = at.checked_sub(1).filter(|last| *last >= from)?;
        Some((self.start(from)?, self.end(last)?))
    }

    /// Returns `true` if the token at `at` begins an assignment operator other than `+=` and `-=`.
    fn is_assigned(&self, at: usize) -> bool {
        let is_equality = self.pair(at, b"==");
        let is_plain = self.punct(at, b'=') && !is_equality;
        let compound = [b"*=", b"/=", b"%=", b"&=", b"|=", b"^="];
        let shifts = self.pair(at, b"<<") || self.pair(at, b">>");
        is_plain || compound.iter().any(|sign| self.pair(at, sign)) || shifts && self.punct(at + 2, b'=')
    }
}

fn is_keyword(word: &[u8]) -> bool {
    matches!(
        word,
        b"return" | b"if" | b"while" | b"for" | b"switch" | b"case" | b"else" | b"do" | b"sizeof" | b"goto"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with the use of `n` at the last `n` that is a member.
    fn used(text: &str) -> Result<String, Refusal> {
        let at = text.rfind(".n").map(|at| at + 1).or_else(|| text.rfind("->n").map(|at| at + 2));
        let edits = counter_use(text.as_bytes(), at.expect("a use"), "add", "read")?;
        Ok(String::from_utf8(Edit::all_applied_to(&edits, text.as_bytes())).expect("UTF-8"))
    }

    #[test]
    fn additions_become_calls() {
        for (before, after) in [
            ("f() { a.n++; }", "f() { add(&a.n, 1); }"),
            ("f() { ++a[i].p->n; }", "f() { add(&a[i].p->n, 1); }"),
            ("f() { get(x)->n += g(1, 2); }", "f() { add(&get(x)->n, g(1, 2)); }"),
            ("f() { (*a).n -= x + 1; }", "f() { add(&(*a).n, 0UL - (x + 1)); }"),
            ("f() { atomic_fetch_add(&a.n, 1); }", "f() { add(&a.n, 1); }"),
            (
                "f() { atomic_fetch_add_explicit(&a->n, size, memory_order_relaxed); }",
                "f() { add(&a->n, size); }",
            ),
            ("f() { __sync_fetch_and_sub(&a->n, k); }", "f() { add(&a->n, 0UL - (k)); }"),
        ] {
            assert_eq!(used(before).as_deref(), Ok(after));
        }
    }

    #[test]
    fn reads_become_calls() {
        for (before, after) in [
            ("f() { return a.n; }", "f() { return read(&a.n); }"),
            ("f() { return b && a.n == c & d; }", "f() { return b && read(&a.n) == c & d; }"),
            ("f() { return mask & a->n; }", "f() { return mask & read(&a->n); }"),
            ("f() { g(atomic_load(&a.n), 1); }", "f() { g(read(&a.n), 1); }"),
            ("f() { x = __atomic_load_n(&a.n, 0) + 1; }", "f() { x = read(&a.n) + 1; }"),
            (
                "f() { g((struct s){ .n = 0 }); }",
                "f() { g((struct s){ .n = { .stripes = { { .count = 0 } } } }); }",
            ),
        ] {
            assert_eq!(used(before).as_deref(), Ok(after));
        }
    }

    #[test]
    fn other_uses_are_refused() {
        for text in [
            "f() { a.n = 1; }",
            "f() { g(&a.n); }",
            "f() { a.n |= 1; }",
            "f() { a.n <<= 1; }",
            "f() { atomic_exchange(&a.n, 1); }",
            "f() { x = sizeof a.n; }",
            "f() { struct s b = { .n = 7 }; }",
            "f() { return &a.n; }",
        ] {
            assert!(matches!(used(text), Err(Refusal::OtherUse(_))), "{text}: {:?}", used(text));
        }
    }

    #[test]
    fn initial_values_of_rust_have_the_other_type() {
        let text = "let s = S { n: atomic::AtomicU64::new(0) };";
        let at = text.find("atomic::").expect("there");
        let edit = counter_initialiser(text.as_bytes(), at, "AtomicU64", "Striped").expect("good");
        assert_eq!(edit.applied_to(text.as_bytes()), b"let s = S { n: Striped::new(0) };");
        for (text, expected) in [
            ("let s = S { n: f(1, 2), m };", "let s = S { n: Line(f(1, 2)), m };"),
            ("let s = S { n, m };", "let s = S { n: Line(n), m };"),
        ] {
            let at = text.find("f(1").or_else(|| text.find("n, m")).expect("there");
            let edits = wrapped_value(text.as_bytes(), at, "Line").expect("a value");
            assert_eq!(Edit::all_applied_to(&edits, text.as_bytes()), expected.as_bytes());
        }
        assert!(wrapped_value(b"let n = m;", 8, "Line").is_err());
        let other = "let s = S { n: make() };";
        assert!(counter_initialiser(other.as_bytes(), other.find("make").expect("there"), "A", "B").is_err());
    }
}
