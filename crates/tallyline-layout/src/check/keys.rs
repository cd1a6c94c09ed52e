//! The tables and keys of a policy: the parser knows these and no others, and the reference is made of them.

use super::catalogue::RULES;
use std::fmt::Write;

/// A key of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyInfo {
    /// The name of the key.
    pub(super) name: &'static str,
    /// The kind of the key's value, as the reference writes it.
    pub(super) value: &'static str,
    /// A one-sentence description of the key.
    pub(super) about: &'static str,
}

const fn key(name: &'static str, value: &'static str, about: &'static str) -> KeyInfo {
    KeyInfo { name, value, about }
}

const LEVEL: KeyInfo =
    key("level", "`deny`, `warn`", "`deny` (the default) fails the check, `warn` is only shown");
const REASON: KeyInfo = key("reason", "text", "Why there is this rule; findings show it");
const PATTERN: KeyInfo =
    key("type", "text", "**Needed.** The name of the type, or a pattern with `*` and `?`");
const PLACEMENT: KeyInfo = key(
    "placement",
    "`line`, `array`, `any`",
    "The possible starts of the type: on a cache line (the default), behind the element before, or at any multiple of its alignment",
);

pub(super) const TOP: &[KeyInfo] = &[
    key("cacheline", "1 to 65536", "The size of a cache line in bytes; 64 if it is not said"),
    key(
        "unknown",
        "`deny`, `warn`, `ignore`",
        "What is made of types, groups and members that are not there; `deny` if it is not said",
    ),
    key("type", "tables", "Rules about a type as a whole"),
    key("group", "tables", "Rules about a group of members"),
    key("apart", "tables", "Members that may not share a cache line"),
    key("together", "tables", "Members that have to share a cache line"),
    key("allow", "tables", "Exceptions, with their reasons"),
];

pub(super) const TYPE: &[KeyInfo] = &[
    key("name", "text", "**Needed.** The name of the type, or a pattern with `*` and `?`"),
    key("max-size", "bytes", "The largest size"),
    key("max-lines", "number", "The most cache lines that it takes, started on one"),
    key("max-holes", "number", "The most holes of whole bytes"),
    key("max-hole-bytes", "bytes", "The most bytes in holes"),
    key("max-padding", "bytes", "The most bytes behind the last member"),
    key("instances", "number", "The number of objects that a program has of it, for `max-total-size`"),
    key("max-total-size", "bytes", "The budget of all instances together: size times `instances`"),
    key("align", "bytes", "The least alignment"),
    key(
        "per-cpu",
        "`true`, `false`",
        "It starts on a cache line and fills its last one: no other CPU's data is there",
    ),
    LEVEL,
    REASON,
];

pub(super) const GROUP: &[KeyInfo] = &[
    PATTERN,
    key("name", "text", "**Needed.** The name of the group: that of its markers, or one for `members`"),
    key(
        "members",
        "list of texts",
        "The members of the group; of a marked group, those that have to be in it",
    ),
    key("max-size", "bytes", "The largest size, from its first member to its last"),
    key("line", "number", "The cache line that it starts on, counted from 0"),
    key("max-lines", "number", "The most cache lines that it lies on"),
    key("max-hole-bytes", "bytes", "The most bytes in its holes"),
    key("straddle", "`true`, `false`", "`false`: it lies on no more cache lines than its bytes need"),
    key("exclusive", "`true`, `false`", "`true`: nothing else lies on its cache lines"),
    LEVEL,
    REASON,
];

pub(super) const APART: &[KeyInfo] = &[
    PATTERN,
    key(
        "members",
        "list of texts, or of such lists",
        "**Needed.** Every two of the members; of several lists, each member of one and each of another",
    ),
    PLACEMENT,
    LEVEL,
    REASON,
];

pub(super) const TOGETHER: &[KeyInfo] =
    &[PATTERN, key("members", "list of texts", "**Needed.** Two or more members"), PLACEMENT, LEVEL, REASON];

pub(super) const ALLOW: &[KeyInfo] = &[
    PATTERN,
    key("rule", "text", "The rule that findings name; every rule if it is not said"),
    key("member", "text", "The member or group, or a pattern; every one if it is not said"),
    key("reason", "text", "**Needed.** Why it may stay; the check warns of exceptions that except nothing"),
];

/// A kind of table of a policy, as it is written, with its keys.
const TABLES: &[(&str, &[KeyInfo])] = &[
    ("the policy", TOP),
    ("[[type]]", TYPE),
    ("[[group]]", GROUP),
    ("[[apart]]", APART),
    ("[[together]]", TOGETHER),
    ("[[allow]]", ALLOW),
];

/// Returns the reference manual of layout policies, all keys and rules, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Policies: keys and rules\n\n\
         The reference of the policies that `tallyline check` reads. It is made of the table that parses them, by \
         `tallyline check --reference`.\n",
    );
    for (table, keys) in TABLES {
        let title = if table.starts_with('[') { format!("`{table}`") } else { "The file".into() };
        let _ = write!(text, "\n## {title}\n| key | value | |\n|---|---|---|\n");
        for key in *keys {
            let _ = writeln!(text, "| `{}` | {} | {} |", key.name, key.value, key.about);
        }
    }
    text.push_str("\n## Rules that findings name\n| rule | finding |\n|---|---|\n");
    for (rule, about) in RULES {
        let _ = writeln!(text, "| `{rule}` | {about} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Policy;

    /// Returns a value of the kind that a key takes.
    fn sample(table: &str, key: &KeyInfo) -> String {
        match (table, key.name, key.value) {
            (.., "text") => "\"max-size\"".into(),
            (_, "members", _) => "[\"a\", \"b\"]".into(),
            (.., "bytes" | "number" | "1 to 65536") => "64".into(),
            (.., "`true`, `false`") => "true".into(),
            (.., value) => value.split('`').nth(1).map(|word| format!("\"{word}\"")).expect("a word"),
        }
    }

    #[test]
    fn every_key_of_the_reference_is_read() {
        for (table, keys) in &TABLES[1..] {
            let mut text = format!("{table}\n");
            for key in *keys {
                text.push_str(&format!("{} = {}\n", key.name, sample(table, key)));
            }
            Policy::parse(&text).unwrap_or_else(|error| panic!("{text}{error}"));
            let error = Policy::parse(&format!("{text}nonesuch = 1\n")).expect_err("an unknown key");
            assert!(error.message.contains("unknown key `nonesuch`"), "{error}");
        }
        let tables: Vec<String> = TOP[2..].iter().map(|key| format!("[[{}]]", key.name)).collect();
        assert_eq!(tables, TABLES[1..].iter().map(|(table, _)| (*table).to_string()).collect::<Vec<_>>());
        assert!(reference().contains("| `max-total-size` | bytes |"));
    }
}
