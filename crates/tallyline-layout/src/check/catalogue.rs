//! The names of the rules, and what each is about.

/// Name and description of a rule of `tallyline check`, as findings name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    pub(crate) id: &'static str,
    pub(crate) about: &'static str,
}

impl RuleInfo {
    /// Returns the rule's name, such as `max-size`.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Returns a sentence that describes the findings of the rule.
    pub fn about(&self) -> &'static str {
        self.about
    }
}

const fn rule(id: &'static str, about: &'static str) -> RuleInfo {
    RuleInfo { id, about }
}

/// All rules of `tallyline check`, with names and descriptions.
pub const RULES: &[RuleInfo] = &[
    rule("unknown-type", "A type that a rule names is not in the file"),
    rule("unknown-group", "A group that a rule names is not in the type"),
    rule("unknown-member", "A member that a rule names is not in the type"),
    rule("max-size", "A type is larger than allowed"),
    rule("max-lines", "A type takes more cache lines than allowed"),
    rule("max-holes", "A type has more holes than allowed"),
    rule("max-hole-bytes", "The holes of a type have more bytes than allowed"),
    rule("max-padding", "A type has more padding than allowed"),
    rule("max-total-size", "The instances of a type take more bytes than allowed"),
    rule("align", "A type is aligned to less than asked for"),
    rule("per-cpu", "Per-CPU data shares cache lines with its neighbours"),
    rule("group-markers", "A cache line group begins or ends without the other"),
    rule("group-members", "A member lies outside of its group"),
    rule("group-size", "A group is larger than allowed"),
    rule("group-line", "A group starts on another cache line than asked for"),
    rule("group-lines", "A group lies on more cache lines than allowed"),
    rule("group-hole-bytes", "The holes of a group have more bytes than allowed"),
    rule("group-straddles", "A group lies on more cache lines than its bytes need"),
    rule("group-exclusive", "Something else lies on the cache lines of a group"),
    rule("apart", "Members that have to be apart can be on one cache line"),
    rule("together", "Members that have to be together can be on different cache lines"),
    rule("table-member", "A struct and the table of its fields differ"),
    rule("table-group", "A field lies in another group than its use asks for"),
    rule(super::UNUSED_ALLOW, "An exception that excepts nothing"),
];
