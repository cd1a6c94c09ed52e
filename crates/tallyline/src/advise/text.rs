//! Advice as text.

use super::observed_run::ObservedRun;
use super::{Advice, Basis};
use anyhow::Result;
use std::io::Write;
use tallyline_advice::evidence::{Evidence, Site, Subject, SubjectKind, Update};
use tallyline_advice::{FieldEvidence, Finding, FindingKind, LayoutProposal, Proposal, heap_block};
use tallyline_support::output::printable;

/// Fields of a finding that are shown; the JSON has all.
const FIELDS: usize = 8;

/// Places in the code of a field that are shown.
const SITES: usize = 2;

/// Threads of a field that are shown.
const THREADS: usize = 6;

pub(super) fn write(advice: &Advice, limit: usize, out: &mut dyn Write) -> Result<()> {
    head(advice, out)?;
    if advice.findings.is_empty() {
        writeln!(out, "Nothing to advise.")?;
    }
    for (number, finding) in advice.findings.iter().take(limit).enumerate() {
        one(advice, number + 1, finding, out)?;
    }
    let more = advice.findings.len().saturating_sub(limit);
    if more > 0 {
        writeln!(out, "… and {more} more; --limit and --json show them")?;
    }
    for finding in &advice.dropped {
        let name = subject_name(&advice.evidence, finding);
        let why = match &finding.proposal {
            Proposal::Refused { why, .. } => {
                format!("{} share a line; not reordered: {}", names_of(finding), printable(why.as_bytes()))
            }
            _ => format!("{:.2}× the speed by the model", finding.outlook.run.median),
        };
        writeln!(out, "Not advised: {}: {}: {why}", finding.kind.id(), printable(name.as_bytes()))?;
        dropped_fields(&advice.evidence, finding, out)?;
    }
    for note in &advice.notes {
        writeln!(out, "Left open: {note}")?;
    }
    Ok(())
}

/// Returns the names of the fields of a finding in an object, the first ones of many.
fn names_of(finding: &Finding) -> String {
    let name = |field: &FieldEvidence| match field.field.is_empty() {
        true => format!("+{:#x}", field.offset),
        false => printable(field.field.as_bytes()).to_string(),
    };
    let mut names: Vec<String> = finding.fields.iter().take(FIELDS).map(name).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

fn head(advice: &Advice, out: &mut dyn Write) -> Result<()> {
    let evidence = &advice.evidence;
    let model = match &advice.basis {
        Basis::Model(model) => model,
        Basis::Observed(run) => return observed_head(advice, run, out),
    };
    let [low, high, _] = model.costs;
    writeln!(
        out,
        "# A model, not a measurement: {} cores, a line from another core takes {} to {} cycles, {} schedules",
        model.cores,
        low.transfer(),
        high.transfer(),
        model.seeds
    )?;
    writeln!(
        out,
        "# process {} on {}: {} accesses of {} threads; {:.1} % of the cores' time waits for lines of others\n",
        advice.process,
        printable(advice.machine.as_bytes()),
        advice.accesses,
        evidence.threads.len(),
        100.0 * evidence.cycles_shared as f64 / evidence.cycles.max(1) as f64
    )?;
    Ok(())
}

fn observed_head(advice: &Advice, run: &ObservedRun, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "# Samples, no model: {} of process {} in {} threads, {} with an address of data",
        run.samples,
        advice.process,
        advice.evidence.threads.len(),
        run.addressed
    )?;
    if let Some(watched) = &run.watched {
        writeln!(
            out,
            "# Breakpoints on {} cache lines: {} hits of {} words by {} threads in {:.1} s, {:.1} µs each: they slowed its \
             threads by {:.1} %",
            watched.lines,
            watched.hits,
            watched.words,
            watched.threads,
            watched.time.as_secs_f64(),
            watched.cost.as_secs_f64() * 1e6,
            100.0 * watched.slowdown()
        )?;
    }
    Ok(writeln!(out)?)
}

/// Returns the name of what a finding is about.
pub(super) fn subject_name(evidence: &Evidence, finding: &Finding) -> String {
    match &finding.proposal {
        Proposal::Counter { names, .. } | Proposal::Apart { names, .. } => names.join(", "),
        Proposal::Layout(layout) => layout.ty.clone(),
        _ => evidence.subjects.get(finding.subject).map_or_else(String::new, |subject| subject.name.clone()),
    }
}

fn one(advice: &Advice, number: usize, finding: &Finding, out: &mut dyn Write) -> Result<()> {
    let evidence = &advice.evidence;
    let name = subject_name(evidence, finding);
    writeln!(
        out,
        "{number}. {}: {}: {}",
        finding.kind.id(),
        printable(name.as_bytes()),
        finding.kind.about()
    )?;
    match &advice.basis {
        Basis::Model(_) => modelled_effect(evidence, number, finding, out)?,
        Basis::Observed(run) => observed_effect(evidence, run, finding, out)?,
    }
    let mut shown: Vec<&FieldEvidence> = finding.fields.iter().collect();
    shown.sort_by_key(|field| std::cmp::Reverse((field.lost, field.reads() + field.writes())));
    for field in shown.iter().take(FIELDS) {
        self::field(evidence, field, out)?;
    }
    if shown.len() > FIELDS {
        writeln!(out, "             … and {} more fields", shown.len() - FIELDS)?;
    }
    proposal(evidence, finding, out)?;
    let (before, after) = finding.reader_lines;
    if before != after {
        writeln!(out, "   readers   one that reads all of it touches {after} cache lines, {before} now")?;
    }
    match &finding.check {
        Some(check) => {
            writeln!(out, "   check     in layout.toml, for tallyline check:")?;
            check
                .lines()
                .try_for_each(|line| writeln!(out, "             {}", printable(line.as_bytes())))?;
        }
        // these are about no line that cores share
        None if matches!(
            finding.kind,
            FindingKind::PointerChasing | FindingKind::HotPathLines | FindingKind::Holes
        ) => {}
        None => writeln!(out, "   check     tallyline sharing-check: the line must not come back")?,
    }
    writeln!(out)?;
    Ok(())
}

fn modelled_effect(evidence: &Evidence, number: usize, finding: &Finding, out: &mut dyn Write) -> Result<()> {
    let (run, cores) = (finding.outlook.run, finding.outlook.cores);
    let (least, most) = run.expected();
    writeln!(
        out,
        "   effect    {:.2}× the speed ({:.2} to {:.2}){}, by the model; {:.2}× less time of all cores; confidence {}",
        run.median,
        least,
        most,
        if number > 1 { " with the ones above done" } else { "" },
        cores.median,
        finding.confidence.id()
    )?;
    let cost = 100.0 * finding.lost as f64 / evidence.cycles.max(1) as f64;
    if finding.kind == FindingKind::PointerChasing {
        writeln!(
            out,
            "   evidence  {cost:.1} % of the cores' time, for {} objects behind the pointer",
            finding.lines
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "   evidence  {cost:.1} % of the cores' time, {} lines from other cores, on {} cache lines",
        finding.transfers, finding.lines
    )?;
    Ok(())
}

fn observed_effect(
    evidence: &Evidence,
    run: &ObservedRun,
    finding: &Finding,
    out: &mut dyn Write,
) -> Result<()> {
    writeln!(out, "   effect    not predicted; confidence {}", finding.confidence.id())?;
    let share = 100.0 * finding.lost as f64 / evidence.cycles.max(1) as f64;
    write!(out, "   evidence  {share:.1} % of the samples, on {} cache lines", finding.lines)?;
    if finding.transfers > 0 {
        let seen = if run.watched.is_some() { "hits of breakpoints" } else { "samples" };
        write!(out, "; {} {seen} followed one of another thread, one of both writing", finding.transfers)?;
    }
    Ok(writeln!(out)?)
}

fn field(evidence: &Evidence, field: &FieldEvidence, out: &mut dyn Write) -> Result<()> {
    let subject = evidence.subjects.get(field.subject);
    let name = field_name(subject, field);
    let threads: Vec<String> = field
        .threads
        .iter()
        .take(THREADS)
        .map(|(thread, reads, writes)| format!("{}: {reads} r {writes} w", thread_name(evidence, *thread)))
        .collect();
    let more = field.threads.len().saturating_sub(THREADS);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    writeln!(out, "             {} {}{more}", printable(name.as_bytes()), threads.join(", "))?;
    for (site, reads, writes) in field.own_sites(evidence).take(SITES) {
        let kind = if site.atomic { ", atomic" } else { "" };
        writeln!(out, "               {} {}  {reads} r {writes} w{kind}", function(site), place(site))?;
    }
    Ok(())
}

/// Names the fields of a finding that is not advised, each with the line of its most frequent access: they are shared all
/// the same, and may cost more with more threads.
fn dropped_fields(evidence: &Evidence, finding: &Finding, out: &mut dyn Write) -> Result<()> {
    let name = |field: &FieldEvidence| {
        let line = field.own_sites(evidence).map(|(site, ..)| place(site)).find(|place| !place.is_empty());
        let name = field_name(evidence.subjects.get(field.subject), field);
        let name = printable(name.as_bytes()).to_string();
        line.map_or_else(|| name.clone(), |line| format!("{name} {line}"))
    };
    let names: Vec<String> = finding.fields.iter().take(FIELDS).map(name).collect();
    let more = finding.fields.len().saturating_sub(FIELDS);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    if !names.is_empty() {
        writeln!(out, "             {}{more}", names.join(", "))?;
    }
    Ok(())
}

/// Describes a wait that no finding is about, with the instruction that accesses the field most often.
pub(super) fn wait_left_open(evidence: &Evidence, field: &FieldEvidence) -> String {
    let share = 100.0 * field.lost as f64 / evidence.cycles.max(1) as f64;
    let subject = evidence.subjects.get(field.subject);
    let is_named = subject.is_some_and(Subject::is_named);
    let name = match is_named {
        true => printable(field_name(subject, field).as_bytes()).to_string(),
        false => "memory of unknown type".to_owned(),
    };
    let mut text = format!("{share:.1} % of the cores' time waits for {name}");
    let first = field.own_sites(evidence).next();
    if let Some((site, _, writes)) = first {
        let does = match site.update {
            Update::Add => "adds to it",
            Update::AddReturning => "adds to it and takes the old value",
            Update::AddTested => "counts references in it",
            Update::Exchange => "exchanges it, as a lock or a flag",
            Update::Other => "updates it",
            // the runtime's own instructions, as those of a mutex, are not shown
            Update::None if is_exchanged(evidence, field) => "has it as a lock or a flag",
            Update::None if writes > 0 => "stores to it",
            Update::None => "loads it",
        };
        let place = place(site);
        let space = if place.is_empty() { "" } else { " " };
        text.push_str(&format!(": {}{space}{place} {does}", function(site)));
    }
    // without /proc the emulator does not know what is mapped; of code made at run time no file is
    if !is_named && first.is_none_or(|(site, ..)| !site.function.is_empty()) {
        text.push_str("; debug information of the program would name it");
    }
    text
}

/// Returns `true` if an instruction, of the runtime or the program, exchanges the field atomically.
fn is_exchanged(evidence: &Evidence, field: &FieldEvidence) -> bool {
    let mut sites = field.sites.iter().filter_map(|(at, ..)| evidence.sites.get(*at));
    sites.any(|site| site.atomic && site.update == Update::Exchange)
}

fn field_name(subject: Option<&Subject>, field: &FieldEvidence) -> String {
    let ty = subject.map_or("", |subject| &subject.name);
    let is_variable = subject.is_some_and(|subject| subject.kind == SubjectKind::Variable);
    let own = match (is_variable, field.field.is_empty()) {
        (true, _) if !field.variable.is_empty() => return field.variable.clone(),
        (true, _) | (false, true) => format!("{ty}+{:#x}", field.offset),
        (false, false) => format!("{ty}.{}", field.field),
    };
    if field.variable.is_empty() { own } else { format!("{own} ({})", field.variable) }
}

fn thread_name(evidence: &Evidence, thread: u32) -> String {
    let known = evidence.threads.iter().find(|known| known.thread == thread && !known.name.is_empty());
    known.map_or_else(|| thread.to_string(), |known| format!("{} {thread}", printable(known.name.as_bytes())))
}

/// Returns the name of the function that contains an instruction, for people.
fn function(site: &Site) -> String {
    match site.function.as_str() {
        "" => "code of no known file".to_owned(),
        name => printable(name.as_bytes()).to_string(),
    }
}

fn place(site: &Site) -> String {
    let file = site.file.rsplit('/').next().unwrap_or_default();
    if site.line == 0 { String::new() } else { format!("{}:{}", printable(file.as_bytes()), site.line) }
}

fn proposal(evidence: &Evidence, finding: &Finding, out: &mut dyn Write) -> Result<()> {
    match &finding.proposal {
        Proposal::Counter { names, code, bytes } => {
            writeln!(
                out,
                "   proposal  make {} {} of statctr, with a word for each CPU that counts ({} bytes a CPU, {} for the \
                 handle):",
                printable(names.join(", ").as_bytes()),
                if names.len() == 1 { "a counter" } else { "counters" },
                bytes.0,
                bytes.1
            )?;
            code.iter().try_for_each(|line| writeln!(out, "             {line}"))?;
            if finding.is_edit(evidence) {
                writeln!(
                    out,
                    "             or, with --apply, a type in the source itself, striped by threads: no library, and a KiB \
                     for each"
                )?;
            }
        }
        Proposal::Apart { names, file, line, align, pad, sizes } => {
            let place = if file.is_empty() { String::new() } else { format!(" at {file}:{line}") };
            let change = match pad {
                0 => format!("align {}{place} to {align} bytes", names.join(", ")),
                pad => format!("end {}{place} with {pad} bytes of padding", names.join(", ")),
            };
            writeln!(out, "   proposal  {change}: {} instead of {} bytes each", sizes.1, sizes.0)?;
            if *pad > 0 {
                larger_block(evidence, finding, *sizes, out)?;
                writeln!(
                    out,
                    "             (no alignment: its objects are an allocator's, which may not keep it)"
                )?;
                return Ok(());
            }
            let language = evidence.subjects.get(finding.subject).map_or("", |subject| &subject.language);
            writeln!(out, "             {}", alignment(language, *align))?;
        }
        Proposal::Layout(layout) => self::layout(evidence, finding, layout, out)?,
        Proposal::Refused { why, .. } => {
            writeln!(out, "   proposal  none: not reordered: {}", printable(why.as_bytes()))?;
        }
        Proposal::Embed { pointer, target, sizes } => {
            writeln!(
                out,
                "   proposal  put the {} in the place of {}, the only pointer to it: {} instead of {} bytes each",
                printable(target.as_bytes()),
                printable(pointer.as_bytes()),
                sizes.1,
                sizes.0
            )?;
            larger_block(evidence, finding, *sizes, out)?;
        }
        Proposal::CopyBeside { pointer, fields, sizes } => {
            writeln!(
                out,
                "   proposal  keep a copy of {} beside {}, and read that first: {} instead of {} bytes each",
                printable(fields.join(", ").as_bytes()),
                printable(pointer.as_bytes()),
                sizes.1,
                sizes.0
            )?;
            larger_block(evidence, finding, *sizes, out)?;
        }
    }
    Ok(())
}

/// Says that objects of the heap get so much larger that `malloc` has larger blocks for them.
fn larger_block(
    evidence: &Evidence,
    finding: &Finding,
    sizes: (u64, u64),
    out: &mut dyn Write,
) -> Result<()> {
    let used = evidence.types.iter().find(|used| used.subject == finding.subject);
    // elements side by side are one block, and variables none
    let is_heap = used.is_some_and(|used| used.objects > 1 && used.stride != sizes.0)
        && finding.fields.iter().all(|field| field.variable.is_empty());
    let (before, after) = (heap_block(sizes.0), heap_block(sizes.1));
    if is_heap && after > before {
        writeln!(out, "             (a block of glibc's malloc takes {after} instead of {before} bytes)")?;
    }
    Ok(())
}

fn alignment(language: &str, align: u64) -> String {
    match language {
        "Rust" => format!("#[repr(align({align}))]"),
        "C++" => format!("alignas({align})"),
        _ => format!("_Alignas({align}), or __attribute__((aligned({align})))"),
    }
}

fn layout(
    evidence: &Evidence,
    finding: &Finding,
    layout: &LayoutProposal,
    out: &mut dyn Write,
) -> Result<()> {
    let place =
        if layout.file.is_empty() { String::new() } else { format!(" at {}:{}", layout.file, layout.line) };
    writeln!(
        out,
        "   proposal  reorder {}{}: {} bytes and {} cache lines, {} and {} now",
        printable(layout.ty.as_bytes()),
        printable(place.as_bytes()),
        layout.sizes.1,
        layout.lines.1,
        layout.sizes.0,
        layout.lines.0
    )?;
    larger_block(evidence, finding, layout.sizes, out)?;
    let mut group = usize::MAX;
    for member in &layout.members {
        if member.group != group {
            group = member.group;
            let purpose = layout.groups.get(group).map_or("", String::as_str);
            writeln!(out, "             /* {} */", printable(purpose.as_bytes()))?;
        }
        let align = match (member.align, member.pad) {
            (Some(align), _) => format!("  aligned to {align}"),
            (None, 0) => String::new(),
            (None, pad) => format!("  behind {pad} bytes of padding"),
        };
        let name = if member.name.is_empty() { "<anonymous>" } else { &member.name };
        writeln!(
            out,
            "             {:>6} {:>5}  {}{align}",
            member.offset,
            member.size,
            printable(name.as_bytes())
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_code_of_no_file_say_so() {
        let field = FieldEvidence { sites: vec![(0, 0, 9)], lost: 5, ..FieldEvidence::default() };
        let evidence = |function: &str| {
            let mut evidence = Evidence::default();
            evidence.cycles = 100;
            evidence.sites.push(Site { function: function.into(), ..Site::default() });
            evidence
        };
        assert_eq!(
            wait_left_open(&evidence(""), &field),
            "5.0 % of the cores' time waits for memory of unknown type: code of no known file stores to it"
        );
        assert_eq!(
            wait_left_open(&evidence("receive"), &field),
            "5.0 % of the cores' time waits for memory of unknown type: receive stores to it; debug information of the \
             program would name it"
        );
    }
}
