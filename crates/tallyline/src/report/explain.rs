//! `--explain`: how a sample, or an address, came to its type.

use crate::profile::debug_information;
use crate::profile::names::select;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use tallyline_inference as infer;
use tallyline_inference::code::Body;
use tallyline_report::filter::sampled_names;
use tallyline_report::operand::Outcome;
use tallyline_report::pattern::{NameKind, NamePattern};
use tallyline_report::{Filter, PlaceId, Profile, SampleGroup, Skid};
use tallyline_support::output::printable;

/// The subject of `report --explain`, which says how a sample's data type was found: a sample by number, an address, or
/// a function.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    /// A sample by its number, from 0, in the order of time.
    Sample(usize),
    /// An address: as recorded, or in a file.
    Address(u64),
    /// The place with most samples in the functions that a name stands for.
    Function(NamePattern),
}

impl Subject {
    /// Parses the argument of `--explain`: `#12` is a sample, hexadecimal digits are an address, anything else is a
    /// function's name.
    pub(crate) fn parse(text: &str) -> Result<Subject, String> {
        let wrong = || "expected an address such as 0x401136, a sample such as #12, or a function".to_owned();
        if let Some(number) = text.strip_prefix('#') {
            return number.parse().map(Subject::Sample).map_err(|_| wrong());
        }
        if let Some(digits) = text.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16).map(Subject::Address).map_err(|_| wrong());
        }
        // there are functions called `add`
        match u64::from_str_radix(text, 16) {
            Ok(address) if text.contains(|digit: char| digit.is_ascii_digit()) => {
                Ok(Subject::Address(address))
            }
            _ if text.is_empty() => Err(wrong()),
            _ => NamePattern::parse(text).map(Subject::Function),
        }
    }
}

/// Explains one sample, or the first at an address.
pub(super) fn write(profile: &Profile, subject: &Subject, out: &mut dyn Write) -> Result<()> {
    let (number, point) = find(profile, subject)?;
    let samples = profile.groups().iter().filter(|other| other.place == point.place).count();
    let event = profile.info().events.get(point.event as usize).map_or("", |event| event.name.as_str());
    writeln!(out, "sample #{number} of event {}, one of {samples} at {:#x}", clean(event), point.ip)?;
    write!(out, "  thread {} ({}), process {}", point.tid, clean(profile.text(point.comm)), point.pid)?;
    if let Some(cpu) = point.cpu {
        write!(out, ", CPU {cpu}")?;
    }
    if point.address != 0 {
        write!(out, ", data at {:#x}", point.address)?;
    }
    writeln!(out)?;
    place(profile, "taken at", point.place, out)?;
    if point.charged == point.place {
        writeln!(out, "charged to the same instruction: {}", why_same(profile, &point))?;
    } else {
        let rule = profile.rule(&point).map_or("what ran before", |rule| rule.text());
        place(profile, "charged, as the event is not precise, to", point.charged, out)?;
        writeln!(out, "  by the rule: {rule}")?;
        let own = uncorrected(profile, point.place);
        writeln!(out, "  without correction it would be {}", clean(&own))?;
    }
    let outcome = profile.outcome(&point);
    let text = match outcome {
        Outcome::Typed(operand) => profile.text(operand.text).to_owned(),
        Outcome::Pseudo(pseudo) => {
            let slot = profile.slot(point.charged);
            slot.map_or_else(|| pseudo.name(), |slot| profile.text(slot)).to_owned()
        }
        Outcome::Untyped(reason) => format!("no type: {}", reason.text(|name| profile.text(name))),
    };
    writeln!(out, "result: {}", clean(&text))?;
    analysis(profile, point.charged, out)
}

fn find(profile: &Profile, subject: &Subject) -> Result<(usize, SampleGroup)> {
    let found = match subject {
        Subject::Sample(number) => profile.groups().get(*number).map(|point| (*number, *point)),
        Subject::Function(name) => {
            let names = select(NameKind::Function, name, &sampled_names(profile, NameKind::Function))?;
            most_sampled(profile, &names)
        }
        Subject::Address(address) => {
            let address = *address;
            let at = |point: &&SampleGroup| {
                point.ip == address
                    || profile.at(point.place).address == address
                    || profile.at(point.charged).address == address
            };
            profile
                .groups()
                .iter()
                .position(|point| at(&point))
                .map(|number| (number, profile.groups()[number]))
        }
    };
    let Some(found) = found else {
        match subject {
            Subject::Sample(number) => {
                bail!("no sample #{number}; there are {}, from #0", profile.groups().len())
            }
            Subject::Function(name) => bail!("no samples of function {name}"),
            Subject::Address(address) => {
                bail!("no sample at {address:#x}; see where there are: tallyline report -s dso,sym,addr")
            }
        }
    };
    Ok(found)
}

/// Returns the first sample at the place with most samples in some functions.
fn most_sampled(profile: &Profile, names: &BTreeSet<&str>) -> Option<(usize, SampleGroup)> {
    let mut samples: HashMap<PlaceId, u64> = HashMap::new();
    for point in profile.groups() {
        let symbol = profile.function(point.charged);
        if symbol.is_some_and(|symbol| names.contains(profile.text(symbol.name))) {
            *samples.entry(point.charged).or_default() += point.samples;
        }
    }
    let (most, _) =
        samples.into_iter().max_by_key(|(place, samples)| (*samples, std::cmp::Reverse(*place)))?;
    let number = profile.groups().iter().position(|point| point.charged == most)?;
    Some((number, profile.groups()[number]))
}

fn why_same(profile: &Profile, point: &SampleGroup) -> &'static str {
    let is_precise = profile.info().events.get(point.event as usize).is_some_and(|event| event.is_precise);
    let rule = profile.rule_at(point.place).filter(|_| !point.exact && !is_precise);
    if let Some(rule) = rule {
        return rule.text();
    }
    match profile.skid() {
        Skid::None if profile.info().is_emulated() => "the machine was emulated",
        Skid::None => "skid is not corrected",
        _ if point.exact || is_precise => "the event is precise",
        _ => "what ran before is not known, or differs by the way control came",
    }
}

/// Describes the access of the sampled instruction itself.
fn uncorrected(profile: &Profile, place: PlaceId) -> String {
    let dso = profile.place(place).dso;
    let table = dso.and_then(|dso| profile.type_table(dso));
    match table.and_then(|table| Some((table, table.outcome(profile.at(place).address)?))) {
        Some((table, infer::Outcome::Typed(typed))) => {
            let name = dso.map_or_else(String::new, |dso| profile.type_name(dso, typed.ty()));
            format!("{name} {}", infer::place_text(table.types(), &typed))
        }
        Some((_, infer::Outcome::Pseudo(pseudo))) => pseudo.name().to_owned(),
        Some((_, infer::Outcome::Untyped(reason))) => format!("no type: {reason}"),
        None => match dso.and_then(|dso| profile.program(dso)?.image().undecoded()) {
            Some(machine) => format!("no type: code of {machine} is not decoded"),
            None => "no type: no debug information".to_owned(),
        },
    }
}

/// Writes a place with its instruction.
fn place(profile: &Profile, what: &str, id: PlaceId, out: &mut dyn Write) -> Result<()> {
    let (dso, at) = (profile.place(id).dso, profile.at(id));
    let symbol = profile.function(id);
    let name = symbol.map_or("", |symbol| profile.text(symbol.name));
    let inside =
        symbol.filter(|symbol| symbol.is_known).map_or(0, |symbol| at.address.wrapping_sub(symbol.start));
    write!(
        out,
        "{what}: {}+{inside:#x} in {} at {:#x}",
        clean(name),
        clean(profile.dso_name(dso)),
        at.address
    )?;
    let function = dso.and_then(|dso| profile.type_table(dso)?.function_at(at.address));
    let program = dso.and_then(|dso| profile.program(dso));
    if let (Some(program), Some(function)) = (program, function) {
        let body = Body::decode(program.image(), function.ranges(), at.address);
        if let Some(position) = body.position(at.address) {
            write!(out, ": {}", program.image().text(&body.instructions()[position]).replace('\t', " "))?;
        }
    }
    Ok(writeln!(out)?)
}

/// Writes the scopes, the variables, and what is known of registers before each instruction.
fn analysis(profile: &Profile, id: PlaceId, out: &mut dyn Write) -> Result<()> {
    let Some(dso) = profile.place(id).dso else { return Ok(()) };
    let Some(program) = profile.program(dso) else {
        if let Some(why) = profile.why_not(dso) {
            writeln!(out, "the program cannot be read: {}", clean(why))?;
        }
        return Ok(());
    };
    if let Some(machine) = program.image().undecoded() {
        return Ok(writeln!(out, "code of {machine} is not decoded")?);
    }
    let Some(debug) = &program.debug() else {
        writeln!(out, "the program has no debug information")?;
        let hints = debug_information(profile, &Filter::default());
        return hints.iter().try_for_each(|hint| Ok(writeln!(out, "  {}", clean(hint))?));
    };
    let address = profile.at(id).address;
    let found =
        infer::explain(program.image(), infer::Debug::File(debug.file()), debug.companions(), address)
            .context("the debug information cannot be read")?;
    let Some(found) = found else {
        return Ok(writeln!(out, "no function of the debug information is there")?);
    };
    writeln!(out, "function {}", clean(found.function()))?;
    for scope in found.scopes() {
        writeln!(out, "  in the scope of {}", clean(scope))?;
    }
    for variable in found.variables() {
        writeln!(out, "  {}", clean(variable))?;
    }
    for step in found.steps() {
        writeln!(out, "  {:#x}: {}", step.address(), clean(&step.known().join("; ")))?;
    }
    Ok(writeln!(out, "  so: {}", clean(found.answer()))?)
}

fn clean(text: &str) -> std::borrow::Cow<'_, str> {
    printable(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::Subject;

    #[test]
    fn numbers_are_addresses_names_are_functions_and_a_hash_marks_samples() {
        assert!(matches!(Subject::parse("#12"), Ok(Subject::Sample(12))));
        assert!(matches!(Subject::parse("0x40a"), Ok(Subject::Address(0x40a))));
        assert!(matches!(Subject::parse("40a"), Ok(Subject::Address(0x40a))));
        assert!(matches!(Subject::parse("0xadd"), Ok(Subject::Address(0xadd))));
        assert!(matches!(Subject::parse("add"), Ok(Subject::Function(_))));
        assert!(matches!(Subject::parse("main"), Ok(Subject::Function(_))));
        assert!(Subject::parse("#x").is_err() && Subject::parse("").is_err());
    }
}
