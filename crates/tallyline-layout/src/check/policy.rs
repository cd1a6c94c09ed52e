//! The rules of a policy and their exceptions.

use super::Finding;
use tallyline_debuginfo::Wanted;
use tallyline_debuginfo::lookup::{fits, is_pattern};

/// The severity of a finding of `tallyline check`: `deny` fails the check, `warn` is only shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// The severity of findings that are only shown.
    Warn,
    /// The severity of findings that fail the check.
    #[default]
    Deny,
}

/// A layout policy for `tallyline check`: rules about the layouts of types, and exceptions from them.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) cacheline: u64,
    pub(crate) unknown: Option<Level>,
    pub(crate) rules: Vec<Rule>,
    /// The exceptions from the rules.
    pub(crate) allows: Vec<Allow>,
}

impl Policy {
    /// Returns the size of a cache line in bytes that the layout policy sets; 64 by default.
    pub fn cacheline(&self) -> u64 {
        self.cacheline
    }

    /// Returns the highest severity of a finding that the type or member of one of the layout policy's rules does not
    /// exist; `None` if such rules are ignored.
    pub fn unknown(&self) -> Option<Level> {
        self.unknown
    }

    /// Returns `true` if the layout policy has no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the layout policy's rules that apply to a type of this name, as pairs of the rule's line in the policy
    /// and its TOML table: `type`, `group`, `apart` or `together`.
    pub fn rules_about(&self, name: &str) -> Vec<(u32, &'static str)> {
        let about = self.rules.iter().filter(|rule| fits(rule.pattern.as_bytes(), name.as_bytes()));
        let table = |kind: &RuleKind| match kind {
            RuleKind::Type(_) => "type",
            RuleKind::Group(_) => "group",
            RuleKind::Apart(_) => "apart",
            RuleKind::Together(_) => "together",
        };
        about.map(|rule| (rule.line, table(&rule.kind))).collect()
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { cacheline: 64, unknown: Some(Level::Deny), rules: Vec::new(), allows: Vec::new() }
    }
}

/// A rule of a layout policy about one type, or about all types whose names match a pattern, with its severity and
/// reason.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The name of the type, or a pattern.
    pub(crate) pattern: String,
    pub(crate) level: Level,
    pub(crate) reason: Option<String>,
    pub(crate) line: u32,
    pub(crate) kind: RuleKind,
}

/// The kinds of rules of a layout policy: limits for a type, limits for a cache-line group (members meant to share
/// cache lines), members apart, members together.
#[derive(Clone, Debug)]
pub(crate) enum RuleKind {
    /// About a type as a whole.
    Type(TypeRule),
    /// About a group of members.
    Group(GroupRule),
    /// Members that are never on one line.
    Apart(PairRule),
    /// Members that are on one line.
    Together(PairRule),
}

/// The limits that a layout policy sets for a type, such as a largest size or number of holes; absent limits do not
/// apply.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeRule {
    pub(crate) max_size: Option<u64>,
    /// The largest number of cache lines that the type may take if it starts on one.
    pub(crate) max_lines: Option<u64>,
    /// The largest number of holes of whole bytes.
    pub(crate) max_holes: Option<u64>,
    /// The largest number of bytes in all holes.
    pub(crate) max_hole_bytes: Option<u64>,
    /// The largest number of bytes behind the last member.
    pub(crate) max_padding: Option<u64>,
    /// The expected number of objects; 1 if the policy does not say it.
    pub(super) instances: u64,
    /// The largest size in bytes of all instances together.
    pub(super) max_total_size: Option<u64>,
    pub(crate) align: Option<u64>,
    /// `true` if the type has to start on a cache line and fill its last one.
    pub(crate) per_cpu: bool,
}

/// The limits that a layout policy sets for a cache-line group (members meant to share cache lines) of a struct, such
/// as a largest size; absent limits do not apply.
#[derive(Clone, Debug, Default)]
pub struct GroupRule {
    pub(crate) name: String,
    pub(crate) members: Vec<String>,
    pub(crate) max_size: Option<u64>,
    /// The index, in the struct, of the cache line on which the group has to start.
    pub(crate) starts_on: Option<u64>,
    /// The largest number of cache lines that the group may lie on.
    pub(crate) max_lines: Option<u64>,
    /// The largest number of bytes in the group's holes.
    pub(crate) max_hole_bytes: Option<u64>,
    /// `true` if the group may lie on more cache lines than its size requires.
    pub(crate) may_straddle: bool,
    /// `true` if nothing else may lie on the group's cache lines.
    pub(crate) exclusive: bool,
}

impl GroupRule {
    /// Returns the name of the cache-line group (members meant to share cache lines) that the rule is about.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the members that make up the cache-line group (members meant to share cache lines), if the
    /// rule lists them; else empty, and marker members in the struct bound the group.
    pub fn members(&self) -> &[String] {
        &self.members
    }

    /// Returns the largest size in bytes that the rule allows for the cache-line group (members meant to share cache
    /// lines); `None` for no limit.
    pub fn max_size(&self) -> Option<u64> {
        self.max_size
    }
}

/// Members of a struct that a layout policy wants on one cache line (`together`) or on different ones (`apart`), and
/// the offsets in a line at which objects may start.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairRule {
    /// The lists of members: one, of which every two are a pair, or several, where a pair is of two lists.
    pub(crate) sets: Vec<Vec<String>>,
    /// The possible start offsets of the type.
    pub(crate) placement: Placement,
}

/// The offsets in a cache line at which objects of a type may start: `line` (0 only), `array` (as elements of an
/// array), or `any` (multiples of the type's alignment).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Placement {
    /// Objects that start on a cache line.
    #[default]
    Line,
    /// Objects that are elements of an array, each directly behind the one before.
    Array,
    /// Objects that start at any multiple of the type's alignment.
    Any,
}

/// An exception in a layout policy: a type, rule and member whose findings are allowed, with the reason.
#[derive(Clone, Debug)]
pub(crate) struct Allow {
    /// The name of the type, or a pattern.
    pub(crate) pattern: String,
    pub(crate) rule: Option<String>,
    pub(crate) member: Option<String>,
    pub(crate) reason: String,
    pub(crate) line: u32,
}

impl Allow {
    /// Returns `true` if this exception in a layout policy allows the finding: its type, rule and member match the
    /// finding's.
    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        let member = |wanted: &String| {
            finding.member.as_ref().is_some_and(|member| fits(wanted.as_bytes(), member.as_bytes()))
        };
        fits(self.pattern.as_bytes(), finding.ty.as_bytes())
            && self.rule.as_ref().is_none_or(|rule| rule == finding.rule)
            && self.member.as_ref().is_none_or(member)
    }
}

/// Returns the types that rules about these names or patterns have to be held against.
pub(super) fn wanted_for<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Wanted {
    if names.clone().any(is_pattern) { Wanted::Records } else { Wanted::named(names) }
}

impl Rule {
    /// Returns `true` if this rule of a layout policy names its types by a pattern with `*` or `?`.
    pub(crate) fn is_about_a_pattern(&self) -> bool {
        is_pattern(&self.pattern)
    }
}
