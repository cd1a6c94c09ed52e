//! Rules that layouts have to keep, from a policy in TOML.
//!
//! ```toml
//! cacheline = 64                  # bytes; 64 if it is left out
//! unknown = "deny"                # a type, group or member that is not there: deny, warn or ignore
//!
//! [[type]]
//! name = "conn_*"                 # or a pattern with * and ?
//! max-size = 256                  # bytes
//! max-lines = 4
//! max-holes = 1                   # holes of whole bytes
//! max-hole-bytes = 8              # in all
//! max-padding = 4                 # bytes behind the last member
//! instances = 1000                # objects of it, for
//! max-total-size = 100_000        # bytes of all of them
//! align = 64                      # at least
//! per-cpu = true                  # starts on a line and fills its last one: no neighbour shares a line
//!
//! [[group]]                       # of the kernel's markers, or what `members` names
//! type = "conn"
//! name = "rx"
//! members = ["packets", "stats.bytes"]
//! max-size = 64
//! line = 0                        # it starts on this line of the type
//! max-lines = 1
//! straddle = false                # on no more lines than its bytes need
//! max-hole-bytes = 0
//! exclusive = true                # nothing else lies on its lines
//!
//! [[apart]]                       # never on one line: every two of them,
//! type = "conn"
//! members = ["tx_count", "rx_count"]
//!
//! [[apart]]                       # or any of one list and any of another
//! type = "conn"
//! members = [["tx_count", "tx_bytes"], ["rx_count"]]
//! placement = "array"
//!
//! [[together]]                    # all on one line
//! type = "conn"
//! members = ["lock", "state"]
//!
//! [[allow]]                       # findings that are known, and why they may stay
//! type = "conn_legacy"
//! rule = "max-holes"              # left out: every rule
//! member = "stats"                # left out: every member and group
//! reason = "on the wire like this"
//! ```
//! Every rule may have `level = "warn"` and a `reason`, which is shown with what it finds.
//!
//! # Where a type lies
//! Two members are on one line only with respect to where the type starts. `placement` says so for
//! `apart` and `together`; what is asked for has to hold wherever the type can be:
//!
//! | | the type starts |
//! |---|---|
//! | `"line"` (default) | on a line: the allocator or its alignment sees to it |
//! | `"array"` | on a line if it is the first of an array, behind the one before if not. If its size is no multiple of the line, elements start anywhere, and *neighbours* count for `apart`: what one element writes another one reads |
//! | `"any"` | at any multiple of its alignment |

mod catalogue;
mod group_rules;
mod keys;
mod net_cachelines;
mod pair_rules;
mod parse;
mod policy;
mod subjects;
mod suggest;
mod type_rules;

pub use catalogue::RULES;
pub use keys::reference;
pub(crate) use net_cachelines::TableEntry;
pub use net_cachelines::{Table, check_table};
pub use parse::PolicyError;
pub use policy::{GroupRule, Level, Policy};
use policy::{Rule, RuleKind};
pub use suggest::{SuggestedNames, suggest};

use subjects::{Subject, Subjects};
use tallyline_debuginfo::Wanted;
use tallyline_debuginfo::model::{Position, TypeId, Types};

/// A violation of a layout policy's rule by a type: rule, severity, type, message, source position.
#[derive(Clone, Debug)]
pub struct Finding {
    pub(crate) rule: &'static str,
    pub(crate) level: Level,
    pub(crate) ty: String,
    pub(crate) member: Option<String>,
    /// The observed and the required value, in one line.
    pub message: String,
    /// The observed value of a rule with a limit, where less is better.
    measured: Option<u64>,
    pub(crate) declared_at: Position,
    pub(crate) unit: Option<String>,
    pub(crate) line: u32,
    pub(crate) reason: Option<String>,
    pub(crate) allowed: Option<String>,
}

impl Finding {
    /// Returns the name of the layout policy's rule that the type violates, such as `max-size`.
    pub fn rule(&self) -> &'static str {
        self.rule
    }

    /// Returns the severity of the violation: `deny`, which fails the check, or a warning.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the name of the type that violates the layout policy's rule.
    pub fn ty(&self) -> &str {
        &self.ty
    }

    /// Returns the name of the member or cache-line group (members meant to share cache lines) that violates the rule;
    /// `None` if the finding is about the whole type.
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Returns the source position of the type, member or cache-line group that violates the rule; its line is 0 if it
    /// is unknown.
    pub fn declared_at(&self) -> Position {
        self.declared_at
    }

    /// Returns the name of the compilation unit that defines the type that violates the rule, if other units define
    /// another type of this name; else `None`.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// Returns the line of the violated rule in the policy file, counted from 1; 0 if there is no such line.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the text that the layout policy gives as the reason for the violated rule, if any.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the reason for which an exception in the layout policy allows this violation of a rule; `None` if no
    /// exception allows it.
    pub fn allowed(&self) -> Option<&str> {
        self.allowed.as_deref()
    }

    /// Marks this violation of a layout policy's rule as allowed for a reason, unless it already is; an allowed one
    /// does not fail the check.
    pub fn allow(&mut self, reason: &str) {
        self.allowed.get_or_insert_with(|| reason.to_string());
    }

    /// Returns the value, such as the type's size in bytes, that exceeds the violated rule's limit; `None` for rules
    /// without a limit. Less is better.
    pub fn measured(&self) -> Option<u64> {
        self.measured
    }
}

/// The result of checking types against a layout policy: the findings, and the number of types checked.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order of the rules.
    pub findings: Vec<Finding>,
    pub(crate) types: usize,
}

impl Report {
    /// Returns the number of types that were checked against the layout policy; a type counts once for each rule about
    /// it.
    pub fn checked_types(&self) -> usize {
        self.types
    }

    /// Returns `true` if the check of types against the layout policy fails: a finding is of severity deny and no
    /// exception allows it.
    pub fn fails(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Deny && finding.allowed.is_none())
    }
}

impl Policy {
    /// Returns the types that the reader of debug information has to read for a check of this layout policy: those that
    /// the rules name, or all records if a rule is about a pattern.
    pub fn wanted(&self) -> Wanted {
        policy::wanted_for(self.rules.iter().map(|rule| rule.pattern.as_str()))
    }

    /// Splits the layout policy into one with its rules about type names and one with its rules about patterns, as the
    /// types for them have to be read differently: of a name all types, also typedefs and types in functions; of
    /// patterns all records. The parts have no exceptions; [`allow_in_parts`] applies those.
    pub fn parts(&self) -> Vec<Policy> {
        let (patterns, names): (Vec<Rule>, Vec<Rule>) =
            self.rules.iter().cloned().partition(Rule::is_about_a_pattern);
        let parts = [names, patterns].into_iter().filter(|rules| !rules.is_empty());
        let parts: Vec<Policy> =
            parts.map(|rules| Policy { rules, allows: Vec::new(), ..self.clone() }).collect();
        if parts.is_empty() { vec![Policy { allows: Vec::new(), ..self.clone() }] } else { parts }
    }
}

impl Policy {
    /// Returns the policy's rules that define a cache-line group by a list of members, each with the struct that it
    /// applies to.
    pub fn listed_groups(&self, types: &Types) -> Vec<(TypeId, &GroupRule)> {
        let mut subjects = Subjects::new(types);
        let mut listed = Vec::new();
        for rule in &self.rules {
            if let RuleKind::Group(group) = &rule.kind
                && !group.members.is_empty()
            {
                listed.extend(subjects.matching(&rule.pattern).into_iter().map(|of| (of.id, group)));
            }
        }
        listed
    }
}

/// Checks types against a layout policy and returns all violations.
pub fn check(types: &Types, policy: &Policy) -> Report {
    let mut report = Report::default();
    let mut subjects = Subjects::new(types);
    for rule in &policy.rules {
        let found = subjects.matching(&rule.pattern);
        report.types += found.len();
        let mut notes = Notes::new(rule, policy, &mut report.findings);
        if found.is_empty() {
            let what = if tallyline_debuginfo::lookup::is_pattern(&rule.pattern) {
                "no type fits"
            } else {
                "no type named"
            };
            notes.unknown("unknown-type", None, format!("{what} {}", rule.pattern));
        }
        for subject in &found {
            notes.about(types, subject);
            match &rule.kind {
                RuleKind::Type(asked) => type_rules::check(&mut subjects, subject, asked, &mut notes),
                RuleKind::Group(asked) => group_rules::check(types, subject, asked, &mut notes),
                RuleKind::Apart(asked) => pair_rules::apart(&mut subjects, subject, asked, &mut notes),
                RuleKind::Together(asked) => pair_rules::together(&mut subjects, subject, asked, &mut notes),
            }
        }
    }
    allow(policy, &mut report.findings);
    report
}

/// The name of the rule of `tallyline check` that warns of exceptions in a layout policy that match no finding.
pub const UNUSED_ALLOW: &str = "unused-allow";

/// Marks each finding (a violation of a layout policy) that one of the policy's exceptions covers as allowed, and adds
/// a warning for each exception that covers none.
pub(crate) fn allow(policy: &Policy, findings: &mut Vec<Finding>) {
    allow_in_parts(policy, &mut [findings]);
}

/// Marks each finding (a violation of a layout policy) that one of the policy's exceptions covers as allowed; the
/// findings come from the [`parts`](Policy::parts) of the policy. Warnings about unused exceptions are added to the
/// last part.
pub fn allow_in_parts(policy: &Policy, parts: &mut [&mut Vec<Finding>]) {
    for allow in &policy.allows {
        let mut used = false;
        let findings = parts.iter_mut().flat_map(|findings| findings.iter_mut());
        for finding in findings.filter(|finding| allow.covers(finding)) {
            used = true;
            finding.allow(&allow.reason);
        }
        if let (false, Some(findings)) = (used, parts.last_mut()) {
            findings.push(Finding {
                rule: UNUSED_ALLOW,
                level: Level::Warn,
                ty: allow.pattern.clone(),
                member: allow.member.clone(),
                message: "nothing is found that this allows: it can go".into(),
                measured: None,
                declared_at: Position::default(),
                unit: None,
                line: allow.line,
                reason: None,
                allowed: None,
            });
        }
    }
}

/// The sink for the findings of one rule.
struct Notes<'a> {
    rule: &'a Rule,
    policy: &'a Policy,
    ty: String,
    /// The declaration of the type.
    home: Position,
    /// The unit that defines it, where others define another one of this name.
    unit: Option<String>,
    findings: &'a mut Vec<Finding>,
}

impl<'a> Notes<'a> {
    fn new(rule: &'a Rule, policy: &'a Policy, findings: &'a mut Vec<Finding>) -> Notes<'a> {
        Notes { rule, policy, ty: rule.pattern.clone(), home: Position::default(), unit: None, findings }
    }

    fn about(&mut self, types: &Types, subject: &Subject<'_>) {
        self.unit = subject.unit.map(|unit| String::from_utf8_lossy(types.name(unit)).into_owned());
        self.ty.clone_from(&subject.name);
        self.home = subject.record.declared_at;
    }

    fn add(&mut self, rule: &'static str, member: Option<&str>, at: Position, message: String) {
        let level = self.rule.level;
        self.push(rule, level, member, at, message);
    }

    /// Reports a value that is above its limit.
    fn add_limit(
        &mut self,
        rule: &'static str,
        member: Option<&str>,
        at: Position,
        measured: u64,
        message: String,
    ) {
        self.add(rule, member, at, message);
        if let Some(finding) = self.findings.last_mut() {
            finding.measured = Some(measured);
        }
    }

    /// Reports that the subject of a rule does not exist.
    fn unknown(&mut self, rule: &'static str, member: Option<&str>, message: String) {
        let Some(level) = self.policy.unknown else { return };
        self.push(rule, level.min(self.rule.level), member, self.home, message);
    }

    fn push(
        &mut self,
        rule: &'static str,
        level: Level,
        member: Option<&str>,
        at: Position,
        message: String,
    ) {
        self.findings.push(Finding {
            rule,
            level,
            ty: self.ty.clone(),
            member: member.map(String::from),
            message,
            measured: None,
            declared_at: if at.line == 0 { self.home } else { at },
            unit: self.unit.clone(),
            line: self.rule.line,
            reason: self.rule.reason.clone(),
            allowed: None,
        });
    }
}

/// Formats a count with its noun: `1 hole`, `2 holes`.
fn plural(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
