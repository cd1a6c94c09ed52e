//! Reading a policy. Every error says the line; a key that is not known, what it may have meant.

use super::catalogue::RULES;
use super::keys::{ALLOW, APART, GROUP, KeyInfo, TOGETHER, TOP, TYPE};
use super::policy::{Allow, GroupRule, Level, PairRule, Placement, Policy, Rule, RuleKind, TypeRule};
use tallyline_debuginfo::lookup::distance;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a layout policy's text: line and message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct PolicyError {
    pub(crate) line: u32,
    pub(crate) message: String,
}

impl PolicyError {
    /// Returns the line, counted from 1, of the error in the layout policy's text.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the message of the error in the layout policy's text, without the line.
    pub fn message(&self) -> &str {
        &self.message
    }
}

type Result<T> = std::result::Result<T, PolicyError>;
type Value<'i> = Spanned<DeValue<'i>>;

impl Policy {
    /// Parses a layout policy from its TOML text; an error names the line.
    pub fn parse(text: &str) -> Result<Policy> {
        let source = PolicyText::new(text);
        Policy::read(&source)
    }

    fn read(source: &PolicyText<'_>) -> Result<Policy> {
        let top = DeTable::parse(source.text).map_err(|error| PolicyError {
            line: source.line(error.span().map_or(0, |span| span.start)),
            message: error.message().lines().collect::<Vec<_>>().join(", "),
        })?;
        let top = Table { source, table: top.get_ref(), line: 1, what: "the policy" };
        top.known(TOP)?;
        let mut policy = Policy::default();
        if let Some((cacheline, line)) = top.number("cacheline")? {
            if !(1..=1 << 16).contains(&cacheline) {
                return Err(PolicyError { line, message: "a line has 1 to 65536 bytes".into() });
            }
            policy.cacheline = cacheline;
        }
        let levels = [("deny", Some(Level::Deny)), ("warn", Some(Level::Warn)), ("ignore", None)];
        policy.unknown = top.one_of("unknown", &levels)?.unwrap_or(policy.unknown);
        for table in top.tables("type")? {
            policy.rules.push(table.rule("name", RuleKind::Type(table.type_rule()?))?);
        }
        for table in top.tables("group")? {
            policy.rules.push(table.rule("type", RuleKind::Group(table.group_rule()?))?);
        }
        for table in top.tables("apart")? {
            policy.rules.push(table.rule("type", RuleKind::Apart(table.pair_rule(true)?))?);
        }
        for table in top.tables("together")? {
            policy.rules.push(table.rule("type", RuleKind::Together(table.pair_rule(false)?))?);
        }
        policy.rules.sort_by_key(|rule| rule.line);
        policy.allows = top.tables("allow")?.iter().map(Table::allow).collect::<Result<_>>()?;
        Ok(policy)
    }
}

/// The text, and where its lines end: a rule asks for the line of each of its values, which must not
/// cost a walk over all that is before it.
struct PolicyText<'i> {
    text: &'i str,
    /// The offsets of the line breaks.
    breaks: Vec<usize>,
    /// Bytes and line breaks that were looked at, to be held against the size of the text.
    #[cfg(test)]
    steps: std::cell::Cell<usize>,
}

impl<'i> PolicyText<'i> {
    fn new(text: &'i str) -> PolicyText<'i> {
        PolicyText {
            text,
            breaks: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
            #[cfg(test)]
            steps: std::cell::Cell::new(text.len()),
        }
    }

    fn line(&self, offset: usize) -> u32 {
        let before = self.breaks.partition_point(|line_break| {
            #[cfg(test)]
            self.steps.set(self.steps.get() + 1);
            *line_break < offset
        });
        u32::try_from(before).unwrap_or(u32::MAX - 1) + 1
    }
}

/// Returns `true` for a text that a rule can name something by: findings, of one line each, print it.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

/// A table of the policy.
struct Table<'i> {
    source: &'i PolicyText<'i>,
    table: &'i DeTable<'i>,
    line: u32,
    what: &'static str,
}

impl<'i> Table<'i> {
    fn error<T>(&self, line: u32, message: impl Into<String>) -> Result<T> {
        Err(PolicyError { line, message: message.into() })
    }

    /// Refuses keys that are not known.
    fn known(&self, keys: &[KeyInfo]) -> Result<()> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !keys.iter().any(|key| key.name == name) {
                let line = self.source.line(key.span().start);
                let keys: Vec<&str> = keys.iter().map(|key| key.name).collect();
                return self.error(line, unknown_word("key", name, &keys, &format!(" in {}", self.what)));
            }
        }
        Ok(())
    }

    fn value(&self, key: &str) -> Option<(&'i Value<'i>, u32)> {
        let value = self.table.get(key)?;
        Some((value, self.source.line(value.span().start)))
    }

    /// Returns the value of a key as something, with its line.
    fn get<T>(
        &self,
        key: &str,
        what: &str,
        read: impl Fn(&'i DeValue<'i>) -> Option<T>,
    ) -> Result<Option<(T, u32)>> {
        let Some((value, line)) = self.value(key) else { return Ok(None) };
        match read(value.get_ref()) {
            Some(read) => Ok(Some((read, line))),
            None => self.error(line, format!("`{key}` has to be {what}")),
        }
    }

    fn number(&self, key: &str) -> Result<Option<(u64, u32)>> {
        self.get(key, "a whole number, 0 or more", |value| {
            let number = value.as_integer()?;
            u64::from_str_radix(number.as_str(), number.radix()).ok()
        })
    }

    fn limit(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.number(key)?.map(|(number, _)| number))
    }

    fn flag(&self, key: &str) -> Result<Option<bool>> {
        Ok(self.get(key, "true or false", DeValue::as_bool)?.map(|(flag, _)| flag))
    }

    fn text(&self, key: &str) -> Result<Option<(&'i str, u32)>> {
        // a reason may have several lines
        let is_text = |text: &&str| if key == "reason" { !text.is_empty() } else { is_name(text) };
        self.get(key, "a text without control characters", |value| value.as_str().filter(is_text))
    }

    fn needed(&self, key: &str) -> Result<&'i str> {
        match self.text(key)? {
            Some((text, _)) => Ok(text),
            None => self.error(self.line, format!("{} needs `{key}`", self.what)),
        }
    }

    fn one_of<T: Clone>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some((text, line)) = self.text(key)? else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(value.clone())),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.error(line, unknown_word("value", text, &words, &format!(" of `{key}`")))
            }
        }
    }

    fn tables(&self, key: &'static str) -> Result<Vec<Table<'i>>> {
        let Some((value, line)) = self.value(key) else { return Ok(Vec::new()) };
        let Some(array) = value.get_ref().as_array() else {
            return self.error(line, format!("`{key}` is written as [[{key}]]"));
        };
        let (what, keys) = match key {
            "type" => ("a [[type]]", TYPE),
            "group" => ("a [[group]]", GROUP),
            "apart" => ("an [[apart]]", APART),
            "together" => ("a [[together]]", TOGETHER),
            _ => ("an [[allow]]", ALLOW),
        };
        let mut tables = Vec::new();
        for item in array.iter() {
            let line = self.source.line(item.span().start);
            let Some(table) = item.get_ref().as_table() else {
                return self.error(line, format!("`{key}` is written as [[{key}]]"));
            };
            let table = Table { source: self.source, table, line, what };
            table.known(keys)?;
            tables.push(table);
        }
        Ok(tables)
    }

    fn rule(&self, name: &str, kind: RuleKind) -> Result<Rule> {
        let levels = [("deny", Level::Deny), ("warn", Level::Warn)];
        Ok(Rule {
            pattern: self.needed(name)?.into(),
            level: self.one_of("level", &levels)?.unwrap_or_default(),
            reason: self.text("reason")?.map(|(reason, _)| reason.into()),
            line: self.line,
            kind,
        })
    }

    fn type_rule(&self) -> Result<TypeRule> {
        let asks_nothing = ["name", "instances", "level", "reason"];
        if self.table.keys().all(|key| asks_nothing.contains(&key.get_ref().as_ref())) {
            return self.error(self.line, "a [[type]] that asks for nothing, such as `max-size = 64`");
        }
        Ok(TypeRule {
            max_size: self.limit("max-size")?,
            max_lines: self.limit("max-lines")?,
            max_holes: self.limit("max-holes")?,
            max_hole_bytes: self.limit("max-hole-bytes")?,
            max_padding: self.limit("max-padding")?,
            instances: self.instances()?,
            max_total_size: self.limit("max-total-size")?,
            align: self.limit("align")?,
            per_cpu: self.flag("per-cpu")?.unwrap_or(false),
        })
    }

    /// Returns the number of instances: a budget over all of them needs it, and nothing else does.
    fn instances(&self) -> Result<u64> {
        match (self.number("instances")?, self.value("max-total-size")) {
            (Some((0, line)), _) => self.error(line, "`instances` has to be 1 or more"),
            (Some((_, line)), None) => {
                self.error(line, "`instances` needs `max-total-size`, the budget of all of them")
            }
            (None, Some((_, line))) => {
                self.error(line, "`max-total-size` needs `instances`, the number of objects")
            }
            (found, _) => Ok(found.map_or(1, |(instances, _)| instances)),
        }
    }

    fn group_rule(&self) -> Result<GroupRule> {
        Ok(GroupRule {
            name: self.needed("name")?.into(),
            members: match self.value("members") {
                Some((value, line)) => self.names(value, line)?,
                None => Vec::new(),
            },
            max_size: self.limit("max-size")?,
            starts_on: self.limit("line")?,
            max_lines: self.limit("max-lines")?,
            max_hole_bytes: self.limit("max-hole-bytes")?,
            may_straddle: self.flag("straddle")?.unwrap_or(true),
            exclusive: self.flag("exclusive")?.unwrap_or(false),
        })
    }

    fn pair_rule(&self, several: bool) -> Result<PairRule> {
        let Some((value, line)) = self.value("members") else {
            return self.error(self.line, format!("{} needs `members`", self.what));
        };
        let lists =
            value.get_ref().as_array().filter(|items| items.iter().any(|item| item.get_ref().is_array()));
        let sets = match lists {
            Some(lists) if several => {
                lists.iter().map(|list| self.names(list, line)).collect::<Result<Vec<_>>>()?
            }
            _ => vec![self.names(value, line)?],
        };
        if sets.iter().map(Vec::len).sum::<usize>() < 2 {
            return self.error(line, "`members` has to name two or more");
        }
        let placements = [("line", Placement::Line), ("array", Placement::Array), ("any", Placement::Any)];
        let placement = self.one_of("placement", &placements)?.unwrap_or_default();
        Ok(PairRule { sets, placement })
    }

    fn names(&self, value: &'i Value<'i>, line: u32) -> Result<Vec<String>> {
        let read = || {
            let items = value.get_ref().as_array()?;
            items.iter().map(|item| item.get_ref().as_str().map(String::from)).collect::<Option<Vec<_>>>()
        };
        match read() {
            Some(names) if names.iter().all(|name| is_name(name)) => Ok(names),
            _ => self.error(line, "`members` has to be a list of names"),
        }
    }

    fn allow(&self) -> Result<Allow> {
        let rule = match self.text("rule")? {
            Some((rule, line)) if !RULES.iter().any(|(known, _)| *known == rule) => {
                let known: Vec<&str> = RULES.iter().map(|(rule, _)| *rule).collect();
                return self.error(line, unknown_word("rule", rule, &known, ""));
            }
            rule => rule.map(|(rule, _)| rule.to_string()),
        };
        Ok(Allow {
            pattern: self.needed("type")?.into(),
            rule,
            member: self.text("member")?.map(|(member, _)| member.into()),
            reason: self.needed("reason")?.into(),
            line: self.line,
        })
    }
}

fn unknown_word(kind: &str, word: &str, words: &[&str], place: &str) -> String {
    let nearest = words.iter().min_by_key(|known| distance(known, word)).copied().unwrap_or_default();
    let near = distance(nearest, word) <= word.chars().count().div_ceil(2);
    let meant =
        if near { format!("did you mean `{nearest}`?") } else { format!("known: {}", words.join(", ")) };
    format!("unknown {kind} `{word}`{place}; {meant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Policy::parse(text).expect_err("a policy that is no good").to_string()
    }

    /// Returns a policy of so many rules of all kinds, with each value on a line of its own.
    fn rules(count: usize) -> String {
        let rule = |number| match number % 3 {
            0 => format!("[[type]]\nname = \"t{number}\"\nmax-size = 64\nmax-holes = 1\nlevel = \"warn\"\n"),
            1 => format!("[[apart]]\ntype = \"t{number}\"\nmembers = [\n  \"a\",\n  \"b\",\n]\n"),
            _ => format!("[[allow]]\ntype = \"t{number}\"\nrule = \"max-size\"\nreason = \"known\"\n"),
        };
        (0..count).map(rule).collect()
    }

    #[test]
    fn twice_as_many_rules_take_twice_the_work() {
        let steps = |count| {
            let text = rules(count);
            let source = PolicyText::new(&text);
            let policy = Policy::read(&source).expect("a policy");
            assert_eq!(policy.rules.len() + policy.allows.len(), count);
            source.steps.get()
        };
        let (few, many) = (steps(1000), steps(4000));
        // a step more for each value as the binary search of its line grows by two
        assert!(many < 5 * few, "{few} steps for 1000 rules, {many} for 4000");
        // quadratic it was 33 million
        assert!(few < 200_000, "{few} steps for 1000 rules");
    }

    #[test]
    fn names_have_no_control_characters_and_reasons_may() {
        let said = error("[[together]]\ntype = \"\\nner\"\nmembers = [\"a\", \"b\"]\n");
        assert!(said.contains("`type` has to be a text without control characters"), "{said}");
        let said = error("[[together]]\ntype = \"t\"\nmembers = [\"a\\n\", \"b\"]\n");
        assert!(said.contains("`members` has to be a list of names"), "{said}");
        let rule = "[[together]]\ntype = \"t\"\nmembers = [\"a\", \"b\"]\nreason = \"one\\ntwo\"\n";
        assert!(Policy::parse(rule).is_ok());
    }

    #[test]
    fn lines_are_counted_to_the_offset() {
        let source = PolicyText::new("a\n\nbc\n");
        let lines: Vec<u32> = (0..=7).map(|offset| source.line(offset)).collect();
        assert_eq!(lines, [1, 1, 2, 3, 3, 3, 4, 4]);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_what_it_may_have_meant() {
        let text = "cacheline = 64\n\n[[type]]\nname = \"conn\"\nmax-hole = 1\n";
        assert_eq!(error(text), "line 5: unknown key `max-hole` in a [[type]]; did you mean `max-holes`?");
        assert_eq!(error("[[types]]\n"), "line 1: unknown key `types` in the policy; did you mean `type`?");
        assert!(error("zzzzzzzz = 1\n").contains("known: cacheline, unknown, type"));
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused_where_they_stand() {
        let rule = "[[type]]\nname = \"a\"\n";
        assert_eq!(
            error(&format!("{rule}max-size = -1")),
            "line 3: `max-size` has to be a whole number, 0 or more"
        );
        assert_eq!(error(&format!("{rule}max-size = \"1\"")), error(&format!("{rule}max-size = 1.5")));
        assert_eq!(error(&format!("{rule}per-cpu = 1")), "line 3: `per-cpu` has to be true or false");
        assert_eq!(
            error(&format!("{rule}max-size = 1\nlevel = \"warning\"")),
            "line 4: unknown value `warning` of `level`; did you mean `warn`?"
        );
        assert_eq!(error("[type]\n"), "line 1: `type` is written as [[type]]");
        assert_eq!(error("cacheline = 0\n"), "line 1: a line has 1 to 65536 bytes");
        assert!(error("[[type]]\nname = \n").starts_with("line 2: "));
    }

    #[test]
    fn what_a_rule_needs_has_to_be_there() {
        assert_eq!(error("[[type]]\nmax-size = 1\n"), "line 1: a [[type]] needs `name`");
        assert_eq!(error("\n[[allow]]\ntype = \"a\"\n"), "line 2: an [[allow]] needs `reason`");
        assert_eq!(error("[[apart]]\ntype = \"a\"\n"), "line 1: an [[apart]] needs `members`");
        assert!(error("[[apart]]\ntype = \"a\"\nmembers = [\"x\"]").contains("two or more"));
        assert!(error("[[type]]\nname = \"a\"\n").contains("asks for nothing"));
    }

    #[test]
    fn everything_that_is_asked_for_is_read() {
        let policy = Policy::parse(
            "unknown = \"warn\"\n[[together]]\ntype = \"a\"\nmembers = [\"x\", \"y\"]\nplacement = \"any\"\n\
             [[apart]]\ntype = \"a*\"\nmembers = [[\"x\"], [\"y\", \"z\"]]\nreason = \"r\"\nlevel = \"warn\"\n\
             [[type]]\nname = \"a\"\nmax-size = 0x40\n",
        )
        .expect("a policy");
        assert_eq!(policy.unknown, Some(Level::Warn));
        let kinds: Vec<_> = policy.rules.iter().map(|rule| (rule.line, rule.level)).collect();
        assert_eq!(kinds, [(2, Level::Deny), (6, Level::Warn), (11, Level::Deny)]);
        let RuleKind::Together(together) = &policy.rules[0].kind else { panic!("{policy:?}") };
        assert_eq!((together.placement, together.sets.len()), (Placement::Any, 1));
        let RuleKind::Apart(apart) = &policy.rules[1].kind else { panic!("{policy:?}") };
        assert_eq!(apart.sets, [vec!["x"], vec!["y", "z"]]);
        let RuleKind::Type(limits) = &policy.rules[2].kind else { panic!("{policy:?}") };
        assert_eq!(limits.max_size, Some(64));
    }
}
