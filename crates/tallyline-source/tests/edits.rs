//! Edits of declarations: what moves with a member, what stays, and what is refused.

use tallyline_source::{Change, Language, Refusal, edit};

/// Edits the struct `s` on the first line that defines it. Members are given in today's order.
fn reorder(language: Language, text: &str, members: &[&str], order: &[&str]) -> Result<String, Refusal> {
    change(language, text, members, order, |change| change)
}

fn change(
    language: Language,
    text: &str,
    members: &[&str],
    order: &[&str],
    more: impl Fn(Change) -> Change,
) -> Result<String, Refusal> {
    let line = text.lines().position(|line| line.contains("struct s")).expect("struct s") + 1;
    let line_of = |name: &str| {
        let is_word = |line: &&str| {
            let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            words.any(|word| word == name)
        };
        let at = text.lines().skip(line - 1).position(|line| is_word(&line));
        at.map_or(0, |at| u32::try_from(at + line).expect("small"))
    };
    let new: Vec<usize> =
        order.iter().map(|name| members.iter().position(|m| m == name).expect("a member")).collect();
    let members: Vec<(&str, u32)> =
        members.iter().map(|name| (*name, if name.is_empty() { 0 } else { line_of(name) })).collect();
    let change = Change::new(language, u32::try_from(line).expect("small"), "s").with_order(members, new);
    let edited = edit(text.as_bytes(), &more(change))?.applied_to(text.as_bytes());
    Ok(String::from_utf8(edited).expect("UTF-8"))
}

fn c(text: &str, members: &[&str], order: &[&str]) -> String {
    reorder(Language::C, text, members, order).expect("edited")
}

#[test]
fn a_member_moves_with_its_comments_and_attributes() {
    let text = "\
struct s {
	char a;		/* the first */
	/* above b,
	 * in two lines */
	long b __attribute__((aligned(8)));	// behind b
	                                	// goes on
	short c; /**< documents c */

	/* detached */

	int d;
};
";
    let expected = "\
struct s {
	/* above b,
	 * in two lines */
	long b __attribute__((aligned(8)));	// behind b
	                                	// goes on
	char a;		/* the first */

	/* detached */

	int d;
	short c; /**< documents c */
};
";
    assert_eq!(c(text, &["a", "b", "c", "d"], &["b", "a", "d", "c"]), expected);
}

#[test]
fn a_comment_below_a_member_moves_with_it_if_a_blank_line_follows() {
    let text = "\
struct s {
	char a;
	/* about a,
	 * in two lines */

	long b;
	/* above c */
	char c;

	/* apart */
	short d;
	// about d
};
";
    let expected = "\
struct s {
	long b;
	char a;
	/* about a,
	 * in two lines */

	/* above c */
	char c;

	/* apart */
	short d;
	// about d
};
";
    assert_eq!(c(text, &["a", "b", "c", "d"], &["b", "a", "c", "d"]), expected);
}

#[test]
fn the_same_order_changes_nothing() {
    let text = "struct s { int a, b; /* x */\n#ifdef A\n int c;\n#endif\n\n};";
    assert_eq!(c(text, &["a", "b", "c"], &["a", "b", "c"]), text);
    assert_eq!(c(text, &["a", "b"], &["a", "b"]), text);
}

#[test]
fn a_conditional_moves_with_its_member() {
    let text = "\
struct s {
	char a;
#ifdef LONG
	long b; /* b */
#endif
	char c;
	int d;
};
";
    let expected = "\
struct s {
	char a;
	char c;
#ifdef LONG
	long b; /* b */
#endif
	int d;
};
";
    assert_eq!(c(text, &["a", "b", "c", "d"], &["a", "c", "b", "d"]), expected);
    // in the configuration without it
    let moved = c(text, &["a", "c", "d"], &["c", "a", "d"]);
    assert_eq!(moved, text.replace("\tchar c;\n", "").replace("\tchar a;\n", "\tchar c;\n\tchar a;\n"));
}

#[test]
fn members_of_one_conditional_can_part() {
    let text = "\
struct s {
	char a;
#ifdef X
	long b;
	char c;
#endif
	int d;
};
";
    let expected = "\
struct s {
	char a;
#ifdef X
	char c;
#endif
	int d;
#ifdef X
	long b;
#endif
};
";
    assert_eq!(c(text, &["a", "b", "c", "d"], &["a", "c", "d", "b"]), expected);
}

#[test]
fn a_member_that_is_put_between_two_of_a_conditional_is_outside_of_it() {
    let text = "\
struct s {
	char a;
#ifdef X
	char b;
	long c;
#endif
	char d;
	int e;
};
";
    let edited = c(text, &["a", "b", "c", "d", "e"], &["a", "b", "d", "c", "e"]);
    let expected = "\
struct s {
	char a;
#ifdef X
	char b;
#endif
	char d;
#ifdef X
	long c;
#endif
	int e;
};
";
    // either of the two may move; the conditional has to be around both and not around d
    let alternative = "\
struct s {
	char a;
#ifdef X
	char b;
#endif
	char d;
#ifdef X
#endif
#ifdef X
	long c;
#endif
	int e;
};
";
    assert!(edited == expected || edited == alternative, "{edited}");
}

#[test]
fn alternatives_move_whole_or_not_at_all() {
    let text = "\
struct s {
	char a;
#ifdef WIDE
	long b;
#else
	short b;
#endif
	char c;
};
";
    let expected = "\
struct s {
	char a;
	char c;
#ifdef WIDE
	long b;
#else
	short b;
#endif
};
";
    assert_eq!(c(text, &["a", "b", "c"], &["a", "c", "b"]), expected);
    let text = text.replace("\tlong b;\n", "\tlong b; int x;\n");
    let refused = reorder(Language::C, &text, &["a", "b", "x", "c"], &["a", "b", "c", "x"]);
    assert_eq!(refused, Err(Refusal::Conditional("b".into())));
}

#[test]
fn names_of_one_declaration_part_with_their_comments() {
    let text = "\
struct s {
	unsigned int	a,	/* first */
			*b[3],	/* second */
			c;	/* third */
	char d;
};
";
    let expected = "\
struct s {
	unsigned int	a; /* first */
	unsigned int	c;	/* third */
	unsigned int	*b[3]; /* second */
	char d;
};
";
    assert_eq!(c(text, &["a", "b", "c", "d"], &["a", "c", "b", "d"]), expected);
    let text = "struct s {\n\tstruct { int q; } a, b;\n\tint c;\n};\n";
    let refused = reorder(Language::C, text, &["a", "b", "c"], &["a", "c", "b"]);
    assert_eq!(refused, Err(Refusal::Inseparable("a".into())));
}

#[test]
fn a_struct_on_one_line_stays_on_it() {
    assert_eq!(
        c("struct s { char a; long b; short c; } x;", &["a", "b", "c"], &["a", "c", "b"]),
        "struct s { char a; short c; long b; } x;"
    );
    assert_eq!(
        c("struct s { char a; // why\n long b; short c; };\n", &["a", "b", "c"], &["b", "c", "a"]),
        "struct s { long b; short c; char a; // why\n};\n"
    );
}

#[test]
fn declarators_of_every_form_are_read() {
    let text = "\
struct s {
	int (*call)(int a, void *b);
	void *(*table[4])(void);
	struct inner { int x, y; } inner;
	union { int i; float f; };
	unsigned bits : 3, : 5, more : 2;
	TAILQ_HEAD(, other) head;
	const char *const name;
	enum { A, B = 2 } kind;
	DECLARE_BITMAP(map, 64);
	char buffer[sizeof(struct other) * 2] __aligned(8);
	typeof(int) last;
};
";
    let names =
        ["call", "table", "inner", "", "bits", "more", "head", "name", "kind", "map", "buffer", "last"];
    let mut order = names.to_vec();
    let last = order.remove(0);
    order.insert(10, last);
    let edited = c(text, &names, &order);
    let line = "\tint (*call)(int a, void *b);\n";
    let expected =
        text.replace(line, "").replace("\ttypeof(int) last;\n", &format!("{line}\ttypeof(int) last;\n"));
    assert_eq!(edited, expected);
}

#[test]
fn what_the_debug_information_does_not_know_is_refused() {
    let text = "struct s {\n\tint a;\n\tint x;\n\tint b;\n};\n";
    let refused = reorder(Language::C, text, &["a", "b"], &["b", "a"]);
    assert_eq!(refused, Err(Refusal::Members("b".into(), "x".into())));
    let refused = reorder(Language::C, text, &["a", "x", "b", "q"], &["b", "a", "x", "q"]);
    assert!(matches!(refused, Err(Refusal::Members(..))), "{refused:?}");
    let change = Change::new(Language::C, 1, "t").with_order([("a", 2)], [0]);
    assert_eq!(edit(text.as_bytes(), &change), Err(Refusal::NotFound));
    let change = Change::new(Language::C, 1, "s").with_order([("a", 2), ("x", 3), ("b", 4)], [0, 0, 1]);
    assert_eq!(edit(text.as_bytes(), &change), Err(Refusal::Order));
}

#[test]
fn members_of_a_macro_stay_together() {
    let text = "struct s {\n\tchar a;\n\tHEADER_FIELDS\n\tchar b;\n};\n";
    let change = |order: [usize; 4]| {
        let members = [("a", 2), ("next", 3), ("flags", 3), ("b", 4)];
        edit(text.as_bytes(), &Change::new(Language::C, 1, "s").with_order(members, order))
    };
    let edited = change([0, 3, 1, 2]).expect("edited").applied_to(text.as_bytes());
    assert_eq!(String::from_utf8_lossy(&edited), "struct s {\n\tchar a;\n\tchar b;\n\tHEADER_FIELDS\n};\n");
    assert!(matches!(change([0, 1, 3, 2]), Err(Refusal::Macro(_))));
}

#[test]
fn values_defined_below_a_member_go_with_it() {
    let text = "struct s {\n\tchar a;\n#define A_ON 1\n#define A_OFF 0\n\tlong b;\n\tchar c;\n};\n";
    let expected = "struct s {\n\tlong b;\n\tchar c;\n\tchar a;\n#define A_ON 1\n#define A_OFF 0\n};\n";
    assert_eq!(c(text, &["a", "b", "c"], &["b", "c", "a"]), expected);
}

#[test]
fn a_blank_line_is_not_doubled() {
    let text = "struct s {\n\tint a;\n\n\tchar b;\n\n\tint c;\n\tchar d;\n};\n";
    let expected = "struct s {\n\tint a;\n\n\tint c;\n\tchar d;\n\tchar b;\n};\n";
    assert_eq!(c(text, &["a", "b", "c", "d"], &["a", "c", "d", "b"]), expected);
}

#[test]
fn line_ends_of_windows_are_kept() {
    let text = "struct s {\r\n\tint a, b;\r\n\tchar c; // c\r\n};\r\n";
    let edited = c(text, &["a", "b", "c"], &["a", "c", "b"]);
    assert_eq!(edited, "struct s {\r\n\tint a;\r\n\tchar c; // c\r\n\tint b;\r\n};\r\n");
}

#[test]
fn alignment_and_padding_are_added_where_they_are_wanted() {
    let text = "struct s {\n\tint a;\n\tlong b[2], c;\t/* b, c */\n};\n";
    let edited = change(Language::C, text, &["a", "b", "c"], &["a", "b", "c"], |change| {
        change.with_aligned_member(1, 64).with_pad_after(0, "char pad[60];").with_alignment(64)
    });
    let expected = "struct s {\n\tint a;\n\tchar pad[60];\n\tlong b[2] __attribute__((aligned(64))), c;\t/* b, c */\n} __attribute__((aligned(64)));\n";
    assert_eq!(edited.as_deref(), Ok(expected));
    let edited = change(
        Language::Cpp,
        "struct s {\n  int a = 3;\n  long b{4};\n};\n",
        &["a", "b"],
        &["b", "a"],
        |change| change.with_aligned_member(0, 64),
    );
    assert_eq!(edited.as_deref(), Ok("struct s {\n  long b{4};\n  int a alignas(64) = 3;\n};\n"));
}

#[test]
fn padding_comes_between_members_that_were_declared_together() {
    let text = "struct s {\n\tlong a, b;\t/* both */\n};\n";
    let edited = change(Language::C, text, &["a", "b"], &["a", "b"], |change| {
        change.with_pad_after(0, "char pad[64];").with_pad_after(1, "char end[64];")
    });
    let edited = edited.expect("edited");
    let at = |part: &str| edited.find(part).unwrap_or_else(|| panic!("{part} in {edited}"));
    assert!(at("long a;") < at("char pad[64];") && at("char pad[64];") < at("long b;"), "{edited}");
    assert!(at("long b;") < at("char end[64];"), "{edited}");
}

#[test]
fn a_struct_of_rust_gets_its_alignment_as_an_attribute() {
    let aligned = |text: &str, order: &[&str]| {
        change(Language::Rust, text, &["a", "b"], order, |change| change.with_alignment(64))
    };
    let body = "{\n        a: u64,\n        b: u8,\n    }\n";
    let text = format!("mod m {{\n    #[derive(Clone)]\n    pub(crate) struct s {body}}}\n");
    let expected =
        format!("mod m {{\n    #[derive(Clone)]\n    #[repr(align(64))]\n    pub(crate) struct s {body}}}\n");
    assert_eq!(aligned(&text, &["a", "b"]), Ok(expected));
    assert_eq!(aligned(&text, &["b", "a"]), Err(Refusal::Order));
    let crowded = format!("mod m {{ struct s {body}}}\n");
    assert_eq!(aligned(&crowded, &["a", "b"]), Err(Refusal::Inseparable("s".into())));
}

#[test]
fn functions_and_labels_of_a_class_stay() {
    let text = "\
class struct_user;
struct s : public base<int> {
 public:
  s() : a(1), b(2) {}
  static int count;
  std::map<int, long> a;  // map
  void f() const { if (a.empty()) return; }
  bool operator<(const s& other) const;

 private:
  enum Kind { X, Y };
  class inner { int q; };
  std::function<void(int, long)> b = nullptr;
  char c{'x'};
  friend class other;
  using base::base;
  int d : 3;
};
";
    let expected = text
        .replace("  std::map<int, long> a;  // map\n", "")
        .replace("  char c{'x'};\n", "  char c{'x'};\n  std::map<int, long> a;  // map\n");
    let edited = reorder(Language::Cpp, text, &["a", "b", "c", "d"], &["b", "c", "a", "d"]);
    assert_eq!(edited.as_deref(), Ok(expected.as_str()));
}

#[test]
fn functions_that_a_class_only_declares_stay() {
    let text = "\
struct s {
 public:
  s(s&&);
  s(const s &) = delete;
  s(char *name) noexcept;
  ~s() override;
  s &operator=(s &&other) noexcept;
  void free(void* p);
  void take(T& one, T &&other) [[deprecated]];
  int get() const;
  int size() const noexcept(true) override;
  int first(int *at) const&;
  virtual int next(int* at) final;
  int last(int) volatile throw();
  auto begin() -> iterator;
  auto end() const -> const char *;
  int locked(int *at) REQUIRES(lock);
  int ready() Q_DECL_OVERRIDE;
  char a;
  void (*callback)(void *data);
  void (WINAPI *called)(void *data);
  int s::*pointer;
  int (s::*method)(int *at) const;
  LIST_ENTRY(s) LINK;
  char b;
};
";
    let members = ["a", "callback", "called", "pointer", "method", "LINK", "b"];
    let order = ["a", "b", "callback", "called", "pointer", "method", "LINK"];
    let expected = text.replace("  char b;\n", "").replace("  char a;\n", "  char a;\n  char b;\n");
    assert_eq!(reorder(Language::Cpp, text, &members, &order).as_deref(), Ok(expected.as_str()));
}

#[test]
fn fields_of_rust_move_with_their_attributes_and_commas() {
    let text = "\
#[repr(C)]
pub struct s<'a, T: Fn(u8) -> u8> {
    /// documents a
    #[allow(dead_code)]
    pub(crate) a: u8,
    #[cfg(unix)]
    b: Option<Box<dyn Fn(&'a str, u32) -> T>>, // b
    c: [u16; 3]
}
";
    let expected = "\
#[repr(C)]
pub struct s<'a, T: Fn(u8) -> u8> {
    #[cfg(unix)]
    b: Option<Box<dyn Fn(&'a str, u32) -> T>>, // b
    c: [u16; 3],
    /// documents a
    #[allow(dead_code)]
    pub(crate) a: u8,
}
";
    let edited = reorder(Language::Rust, text, &["a", "b", "c"], &["b", "c", "a"]);
    assert_eq!(edited.as_deref(), Ok(expected));
}

#[test]
fn alternatives_of_a_field_of_rust_move_together() {
    let text = "\
#[repr(C)]
struct s {
    /// The value.
    #[cfg(doc)]
    pub a: u8,
    #[cfg(not(doc))]
    pub(crate) a: u8,
    b: u64,
    d: u64,
    #[cfg(not(doc))]
    c: u8,
}
";
    let expected = "\
#[repr(C)]
struct s {
    /// The value.
    #[cfg(doc)]
    pub a: u8,
    #[cfg(not(doc))]
    pub(crate) a: u8,
    #[cfg(not(doc))]
    c: u8,
    b: u64,
    d: u64,
}
";
    let edited = reorder(Language::Rust, text, &["a", "b", "d", "c"], &["a", "c", "b", "d"]);
    assert_eq!(edited.as_deref(), Ok(expected));
}

#[test]
fn alternatives_of_fields_of_rust_with_others_between_are_refused() {
    let text = "struct s {\n #[cfg(x)] a: u8,\n #[cfg(x)] b: u64,\n #[cfg(not(x))] a: u16,\n #[cfg(not(x))] b: u64,\n}\n";
    let edited = reorder(Language::Rust, text, &["a", "b"], &["b", "a"]);
    assert_eq!(edited, Err(Refusal::Conditional("a".into())));
}

#[test]
fn braces_that_do_not_close_are_refused() {
    for text in ["struct s { int a;", "struct s {\n#if X\n int a;\n};", "struct s {\n#endif\n int a; };"] {
        let refused = reorder(Language::C, text, &["a"], &["a"]);
        assert_eq!(refused, Err(Refusal::Unbalanced), "{text}");
    }
}

/// Asks the text for its members until they fit.
fn members_of(language: Language, text: &[u8]) -> Option<Vec<String>> {
    let mut members: Vec<String> = Vec::new();
    for _ in 0..24 {
        let named = members.iter().map(|name| (if name == "an unnamed member" { "" } else { name }, 0));
        match edit(text, &Change::new(language, 1, "s").with_order(named, 0..members.len())) {
            Ok(same) => {
                assert_eq!(same.applied_to(text), text, "{}", String::from_utf8_lossy(text));
                return Some(members);
            }
            Err(Refusal::Members(_, found)) => members.push(found),
            Err(_) => return None,
        }
    }
    None
}

#[test]
fn damaged_text_is_refused_or_edited_without_loss() {
    let seeds: [(Language, &[u8]); 3] = [
        (Language::C, include_bytes!("data/s.c.txt")),
        (Language::Cpp, include_bytes!("data/s.cpp.txt")),
        (Language::Rust, include_bytes!("data/s.rs.txt")),
    ];
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below.max(1) as u64).expect("small")
    };
    let mut edited = 0;
    for round in 0..6_000 {
        let (language, seed) = seeds[round % 3];
        let mut text = seed.to_vec();
        for _ in 0..next(4) {
            let (from, count, to) = (next(text.len()), next(12), next(text.len()));
            let piece: Vec<u8> = text.iter().skip(from).take(count).copied().collect();
            match next(3) {
                0 => drop(text.drain(from..(from + count).min(text.len()))),
                1 => drop(text.splice(to..to, piece)),
                _ => text[to] = b"\n{}()/*\"'#,;<\\"[next(14)],
            }
        }
        let Some(members) = members_of(language, &text) else { continue };
        let named = members.iter().map(|name| (if name == "an unnamed member" { "" } else { name }, 0));
        let turned = Change::new(language, 1, "s").with_order(named, (0..members.len()).rev());
        if let Ok(turned) = edit(&text, &turned) {
            let turned = turned.applied_to(&text);
            let words = |text: &[u8]| text.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
            // a declaration that is cut is repeated, and a comma may be added: nothing is lost
            assert!(words(&turned) >= words(&text), "{}", String::from_utf8_lossy(&text));
            edited += 1;
        }
    }
    assert!(edited > 500, "{edited}");
}

#[test]
fn a_member_gets_another_type_with_text_around_its_declaration() {
    let text = "int a;\n\n/* About s. */\nstruct s {\n\tlong limit;\n\tatomic_ulong hits, misses; /* counts */\n};\nint b;\n";
    let edited =
        change(Language::C, text, &["limit", "hits", "misses"], &["limit", "hits", "misses"], |change| {
            let change = change.with_member_type(1, "struct counter").with_member_type(2, "struct counter");
            change.with_text_above("struct counter;\n").with_text_behind("_Static_assert(1, \"\");\n")
        });
    assert_eq!(
        edited.as_deref(),
        Ok(
            "int a;\n\nstruct counter;\n/* About s. */\nstruct s {\n\tlong limit;\n\tstruct counter hits, misses; /* counts */\n};\n\
            _Static_assert(1, \"\");\nint b;\n"
        )
    );
}

#[test]
fn another_type_and_another_order_go_together() {
    let text = "struct s {\n\tlong limit;\n\tatomic_ulong hits;\n};\n";
    let edited = change(Language::C, text, &["limit", "hits"], &["hits", "limit"], |change| {
        change.with_member_type(1, "struct counter").with_text_above("struct counter;\n")
    });
    let expected = "struct counter;\nstruct s {\n\tstruct counter hits;\n\tlong limit;\n};\n";
    assert_eq!(edited.as_deref(), Ok(expected));
}

#[test]
fn initial_values_of_0_go_with_the_type_of_a_class() {
    let of = |member: &str| {
        let text = format!("struct s {{\n  mutable std::atomic<long> n{member};\n}};\n");
        change(Language::Cpp, &text, &["n"], &["n"], |change| change.with_member_type(0, "Counter<long>"))
    };
    for zero in ["", "{0}", "{}", " = 0", " = {0UL}"] {
        assert_eq!(of(zero).as_deref(), Ok("struct s {\n  mutable Counter<long> n;\n};\n"), "{zero}");
    }
    for other in ["{1}", " = start()", "[4]", " : 3"] {
        assert!(of(other).is_err(), "{other}");
    }
}

#[test]
fn a_field_of_rust_gets_another_type_below_its_attributes() {
    let text = "use a::B;\n/// About s.\n#[derive(Debug)]\npub struct s {\n    #[x]\n    pub n: a::B,\n    m: Vec<B>\n}\n";
    let edited = change(Language::Rust, text, &["n", "m"], &["n", "m"], |change| {
        change.with_member_type(0, "C").with_text_above("struct C;\n")
    });
    let expected = "struct C;\n/// About s.\n#[derive(Debug)]\npub struct s {\n    #[x]\n    pub n: C,\n    m: Vec<B>\n}\n";
    assert_eq!(edited.map(|text| text.replace("use a::B;\n", "")).as_deref(), Ok(expected));
    let whole =
        change(Language::Rust, text, &["n", "m"], &["n", "m"], |change| change.with_member_type(1, "C"));
    assert_eq!(whole.map(|text| text.ends_with("    m: C\n}\n")), Ok(true));
}

#[test]
fn an_order_of_rust_is_one_with_an_attribute() {
    use tallyline_source::is_laid_out_in_order;
    let of = |attributes: &str| {
        let text = format!("#[repr(C)]\nstruct other;\n\n{attributes}pub struct s {{\n    n: u8,\n}}\n");
        let line = text.lines().position(|line| line.contains("struct s")).expect("there") + 1;
        let change = Change::new(Language::Rust, u32::try_from(line).expect("small"), "s");
        is_laid_out_in_order(text.as_bytes(), &change)
    };
    assert_eq!(of(""), Ok(false));
    assert_eq!(of("#[repr(align(64))]\n#[derive(C)]\n"), Ok(false));
    assert_eq!(of("/// About.\n#[derive(Debug)]\n#[repr(align(8))]\n#[repr(C)]\n"), Ok(true));
}

#[test]
fn places_behind_edits_lead_back() {
    use tallyline_source::Edit;
    let edits = [Edit::new(2..4, "xyz"), Edit::new(6..6, "ab")];
    assert_eq!(Edit::all_applied_to(&edits, b"01234567"), b"01xyz45ab67");
    let back: Vec<Option<usize>> = (0..11).map(|at| Edit::place_before(&edits, at)).collect();
    assert_eq!(back, [Some(0), Some(1), None, None, None, Some(4), Some(5), None, None, Some(6), Some(7)]);
}
