//! Declarations by which a compiler tells where objects are initialised by position.

use crate::Language;
use crate::change::{Change, Edit, Refusal};
use crate::find::{Found, bytes, find};
use crate::lexer::{Kind, Token, tokens};
use std::ops::Range;

/// The column behind which the initialiser of a guarded probe itself stands.
pub const PROBE_COLUMN: usize = 400;

/// Returns an edit that makes the compiler report every positional initialiser of a struct without changing its layout:
/// by GCC's `designated_init` attribute in C, by a constructor in C++, after which the class is no aggregate. `None` for
/// Rust.
pub fn probe(text: &[u8], change: &Change) -> Result<Option<Edit>, Refusal> {
    let tokens = tokens(text, change.language);
    let found = find(text, &tokens, change.language, change.line, &change.name)?;
    let close = tokens.get(found.body.end).ok_or(Refusal::Unbalanced)?.span.end;
    match change.language {
        Language::Rust => Ok(None),
        Language::C => Ok(Some(Edit::new(close..close, " __attribute__((designated_init))"))),
        Language::Cpp => {
            let open = opening_brace(&tokens, &found)?;
            let Constructor { class, members } = Constructor::of(text, &tokens, &found, change);
            Ok(Some(Edit::new(open, format!("{class}{{ {members}"))))
        }
    }
}

/// Returns the edits of [`probe`] in a form that C and C++ compile, and compilers other than GCC: the lines around keep
/// their numbers. In C the struct gets an initialiser by position within its body, behind [`PROBE_COLUMN`]: where the
/// compiler does not tell of that, it tells of none. `id` tells the probe from others in the same unit. Nothing for
/// Rust.
pub fn guarded_probe(text: &[u8], change: &Change, id: usize) -> Result<Vec<Edit>, Refusal> {
    if change.language == Language::Rust {
        return Ok(Vec::new());
    }
    let tokens = tokens(text, change.language);
    let found = find(text, &tokens, change.language, change.line, &change.name)?;
    let Constructor { class, members } = Constructor::of(text, &tokens, &found, change);
    let open = opening_brace(&tokens, &found)?;
    let close = tokens.get(found.body.end).ok_or(Refusal::Unbalanced)?.span.end;
    let line = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let (first, last) = (line(open.start), line(close));
    let blanks = " ".repeat(PROBE_COLUMN);
    let gcc = "defined __GNUC__ && !defined __clang__ && !defined __cplusplus";
    let name = if class.is_empty() {
        String::new()
    } else {
        format!("\n#ifdef __cplusplus\n{class}\n#endif\n#line {first}\n")
    };
    // a warning, also where the build makes errors of them: all units are to be compiled
    let is_told = "#pragma GCC diagnostic warning \"-Wdesignated-init\"";
    // glibc has a macro of that name before C11
    let (push, pop) = ("#pragma push_macro(\"_Static_assert\")", "#pragma pop_macro(\"_Static_assert\")");
    let own = format!("tallyline_probe_{first}_{id} {{ int a; }} __attribute__((designated_init))");
    let body = format!(
        "\n#ifdef __cplusplus\n{members}\n#elif {gcc}\n{is_told}\n{push}\n#undef _Static_assert\n#line {first}\n\
         __extension__ _Static_assert(sizeof((struct {own}){{{blanks}1 }}) > 0, \"\");\n{pop}\n#endif\n#line {first}\n"
    );
    let attribute = format!("\n#if {gcc}\n__attribute__((designated_init))\n#endif\n#line {last}\n");
    Ok(vec![
        Edit::new(open.start..open.start, name),
        Edit::new(open.end..open.end, body),
        Edit::new(close..close, attribute),
    ])
}

fn opening_brace(tokens: &[Token], found: &Found) -> Result<Range<usize>, Refusal> {
    let open = tokens.get(found.body.start.saturating_sub(1)).ok_or(Refusal::Unbalanced)?;
    Ok(open.span.clone())
}

/// A constructor that makes a class of C++ no aggregate.
#[derive(Clone, Debug, Default)]
struct Constructor {
    /// The name for a class without one, in front of its brace.
    class: String,
    /// The declarations behind the brace.
    members: String,
}

impl Constructor {
    /// Returns the constructor for a class, with one without parameters beside it if the class would lose its own.
    fn of(text: &[u8], tokens: &[Token], found: &Found, change: &Change) -> Constructor {
        // `find` takes an unnamed class for one that its typedef names
        let head = tokens.get(found.keyword..found.body.start.saturating_sub(1)).unwrap_or_default();
        let is_named = !change.name.is_empty()
            && head.iter().any(|token| token.kind == Kind::Word && bytes(text, token) == change.name);
        let name = match is_named {
            true => String::from_utf8_lossy(&change.name).into_owned(),
            false => format!("tallyline_unnamed_{}_{}", change.line, text.len()),
        };
        let own = constructors(text, tokens, &found.body, name.as_bytes());
        let is_own = |own: &Declared| own.is_empty || own.is_provided && own.is_certain;
        let has_default = own.iter().any(is_own);
        // parameters of a template have keywords, too
        let own = head.iter().position(|token| is_named && bytes(text, token) == change.name);
        let own = head.get(..own.unwrap_or(head.len())).unwrap_or_default();
        let keyword = own.iter().rev().map(|token| bytes(text, token));
        let is_class =
            keyword.into_iter().find(|word| matches!(*word, b"struct" | b"class")) == Some(b"class");
        let end = if is_class { " private:" } else { "" };
        let default = if has_default { String::new() } else { format!("{name}() = default; ") };
        Constructor {
            class: if is_named { String::new() } else { format!("{name} ") },
            members: format!(
                "public: struct tallyline_probe; {default}explicit {name}(tallyline_probe &&);{end}"
            ),
        }
    }
}

/// Returns `true` if a class of C++ is no aggregate for certain: all that compile it see a constructor that its user
/// provides. What only may be a constructor, as under `#if`, does not count.
pub fn has_constructor(text: &[u8], change: &Change) -> bool {
    let tokens = tokens(text, change.language);
    let Ok(found) = find(text, &tokens, change.language, change.line, &change.name) else { return false };
    let own = constructors(text, &tokens, &found.body, &change.name);
    change.language == Language::Cpp && own.iter().any(|own| own.is_provided && own.is_certain)
}

/// The declaration of a constructor.
#[derive(Clone, Copy, Debug)]
struct Declared {
    /// `true` for one that is neither defaulted nor deleted: the class is no aggregate.
    is_provided: bool,
    /// `true` for one that may be called without arguments.
    is_empty: bool,
    /// `true` where no preprocessor directive may hide it.
    is_certain: bool,
}

/// Returns the constructors that a class declares outside of inner braces and parentheses, in order.
fn constructors(text: &[u8], tokens: &[Token], body: &Range<usize>, name: &[u8]) -> Vec<Declared> {
    let mut found = Vec::new();
    let mut depth = 0_i32;
    let inside: Vec<&Token> =
        tokens.get(body.clone()).unwrap_or_default().iter().filter(|token| !token.is_trivia()).collect();
    let is = |at: usize, byte: u8| inside.get(at).is_some_and(|token| token.is(byte));
    let word = |at: usize| {
        let token = inside.get(at).filter(|token| token.kind == Kind::Word);
        token.map_or(&b""[..], |token| bytes(text, token))
    };
    // another compiler may not see what is under a directive, which may also define macros
    let is_certain = inside.iter().all(|token| token.kind != Kind::Directive);
    for at in 0..inside.len() {
        match inside[at].kind {
            Kind::Punct(b'{' | b'(') => depth += 1,
            Kind::Punct(b'}' | b')') => depth -= 1,
            Kind::Word if depth == 0 && word(at) == name && is(at + 1, b'(') => {
                // the type of a function or of what it returns, a destructor, a conversion, a value
                let before = at.checked_sub(1);
                let is_other = before.is_some_and(|before| {
                    [b'~', b'=', b',', b'(', b'*', b'&', b'<', b'.'].iter().any(|byte| is(before, *byte))
                        || matches!(
                            word(before),
                            b"operator"
                                | b"new"
                                | b"sizeof"
                                | b"return"
                                | b"typedef"
                                | b"friend"
                                | b"const"
                                | b"volatile"
                                | b"static"
                                | b"mutable"
                                | b"virtual"
                                | b"struct"
                                | b"class"
                        )
                });
                let Some(close) = closing(&inside, at + 1).filter(|_| !is_other) else { continue };
                // a pointer to a function or a member, a function whose name is in parentheses
                if is(at + 2, b'*') || is(at + 2, b'&') || is(close + 1, b'(') {
                    continue;
                }
                let ends = |at: &usize| is(*at, b';') || is(*at, b'{') || is(*at, b':');
                let end = (close..inside.len()).find(ends).unwrap_or(inside.len());
                let is_defaulted = is(end, b';')
                    && is(end.saturating_sub(2), b'=')
                    && matches!(word(end.saturating_sub(1)), b"default" | b"delete");
                let is_empty = is(at + 2, b')')
                    || word(at + 2) == b"void" && is(at + 3, b')')
                    || (at + 2..close).any(|at| is(at, b'='));
                found.push(Declared { is_provided: !is_defaulted, is_empty, is_certain });
            }
            _ => {}
        }
    }
    found
}

/// Returns the index of the parenthesis that closes the one at an index.
fn closing(tokens: &[&Token], open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    (open..tokens.len()).find(|at| {
        match tokens[*at].kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(language: Language, text: &str) -> Option<String> {
        let edit = probe(text.as_bytes(), &Change::new(language, 1, "s")).expect("found");
        edit.map(|edit| String::from_utf8(edit.applied_to(text.as_bytes())).expect("UTF-8"))
    }

    #[test]
    fn structs_get_an_attribute_and_classes_a_constructor() {
        let c = probed(Language::C, "struct s { int a; } x;");
        assert_eq!(c.as_deref(), Some("struct s { int a; } __attribute__((designated_init)) x;"));
        let class = probed(Language::Cpp, "class s { int a; };").expect("probed");
        assert!(
            class.starts_with("class s { public: struct tallyline_probe; s() = default; explicit s(")
                && class.ends_with("; private: int a; };")
        );
    }

    #[test]
    fn a_class_with_a_constructor_of_its_own_gets_no_other_without_parameters() {
        let has = |body: &str| {
            let text = format!("struct s {{ {body} }};");
            let probed = probed(Language::Cpp, &text).expect(body);
            assert_eq!(probed.matches("explicit s(tallyline_probe &&);").count(), 1, "{probed}");
            let own = has_constructor(text.as_bytes(), &Change::new(Language::Cpp, 1, "s"));
            (probed.matches("s() = default;").count() > body.matches("s() = default;").count(), own)
        };
        for body in
            ["s(int); int a;", "explicit s(int b) : a(b) {} int a;", "API s(); int a;", "s(int b = 1);"]
        {
            assert_eq!(has(body), (false, true), "{body}");
        }
        for body in ["s() = default; int a;", "int a;\n#ifdef __cplusplus\n s() : a(0) {}\n#endif\n"] {
            assert_eq!(has(body), (false, false), "{body}");
        }
        for body in [
            "~s(); int a;",
            "s(const s &) = delete; int a;",
            "s *(*make)(int); s (*copy)(int); int a;",
            "operator s(); int a;",
            "void on(std::function<s(int)>); std::function<s(int)> f;",
            "typedef s(make)(int); make *f;",
            "friend s(make)(int); s(make)(int);",
            "s (F::*make)(int);",
            "int a;\n#ifdef OLD_COMPILER\n s(int b, long c);\n#endif\n",
        ] {
            assert_eq!(has(body), (true, false), "{body}");
        }
    }

    #[test]
    fn the_parameters_of_a_template_do_not_make_a_struct_a_class() {
        let probed = |text| probed(Language::Cpp, text).expect("probed");
        assert!(!probed("template<class T> struct s { T a; };").contains("private:"));
        assert!(probed("template<struct t T> class s : t { T a; };").contains("private:"));
    }

    #[test]
    fn an_unnamed_class_gets_a_name() {
        let probed = probed(Language::Cpp, "typedef struct { int a; } s;").expect("probed");
        let name = "tallyline_unnamed_1_28";
        assert!(probed.starts_with(&format!("typedef struct {name} {{ public: ")), "{probed}");
        assert!(probed.contains(&format!("{name}() = default; explicit {name}(")), "{probed}");
    }

    #[test]
    fn lines_around_a_guarded_probe_keep_their_numbers() {
        let text = b"\nstruct s {\n int a;\n} x;\n";
        let edits = guarded_probe(text, &Change::new(Language::C, 2, "s"), 0).expect("found");
        let probed = Edit::all_applied_to(&edits, text);
        let probed = String::from_utf8(probed).expect("UTF-8");
        assert!(probed.contains("#endif\n#line 2\n\n int a;\n}\n#if "), "{probed}");
        assert!(probed.ends_with("#endif\n#line 4\n x;\n"), "{probed}");
        assert_eq!(
            guarded_probe(b"struct s { a: u8 }", &Change::new(Language::Rust, 1, "s"), 0),
            Ok(Vec::new())
        );
    }
}
