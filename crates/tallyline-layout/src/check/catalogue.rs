//! The names of the rules, and what each is about.

/// All rules of `tallyline check`, as pairs of the rule's name (such as `max-size`) and a sentence that describes its
/// findings.
pub const RULES: &[(&str, &str)] = &[
    ("unknown-type", "A type that a rule names is not in the file"),
    ("unknown-group", "A group that a rule names is not in the type"),
    ("unknown-member", "A member that a rule names is not in the type"),
    ("max-size", "A type is larger than allowed"),
    ("max-lines", "A type takes more cache lines than allowed"),
    ("max-holes", "A type has more holes than allowed"),
    ("max-hole-bytes", "The holes of a type have more bytes than allowed"),
    ("max-padding", "A type has more padding than allowed"),
    ("max-total-size", "The instances of a type take more bytes than allowed"),
    ("align", "A type is aligned to less than asked for"),
    ("per-cpu", "Per-CPU data shares cache lines with its neighbours"),
    ("group-markers", "A cache line group begins or ends without the other"),
    ("group-members", "A member lies outside of its group"),
    ("group-size", "A group is larger than allowed"),
    ("group-line", "A group starts on another cache line than asked for"),
    ("group-lines", "A group lies on more cache lines than allowed"),
    ("group-hole-bytes", "The holes of a group have more bytes than allowed"),
    ("group-straddles", "A group lies on more cache lines than its bytes need"),
    ("group-exclusive", "Something else lies on the cache lines of a group"),
    ("apart", "Members that have to be apart can be on one cache line"),
    ("together", "Members that have to be together can be on different cache lines"),
    ("table-member", "A struct and the table of its fields differ"),
    ("table-group", "A field lies in another group than its use asks for"),
    (super::UNUSED_ALLOW, "An exception that excepts nothing"),
];
