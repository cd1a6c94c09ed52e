//! The proposals as edits of the source.

use super::Advice;
use super::args::AdviseArgs;
use crate::apply::{self, Layout, NewLayout, NewPlace, Outcome, Plan, Target};
use crate::layout::source;
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use tallyline_advice::evidence::{Evidence, Subject};
use tallyline_advice::{Finding, LayoutProposal, Proposal};
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::{RecordId, Type, Types};
use tallyline_debuginfo::{Request, Wanted};

/// The edits that the proposals are.
pub(super) struct Edits {
    program: PathBuf,
    plan: Plan,
    /// Proposals that are no edits, with the reason.
    left: Vec<String>,
}

impl Edits {
    /// Plans the edits of the findings that declarations of structs can carry out; none where there are no findings.
    pub(super) fn plan(advice: &Advice, args: &AdviseArgs) -> Result<Option<Edits>> {
        let mut left = Vec::new();
        let mut wanted: Vec<(&Subject, NewLayout)> = Vec::new();
        for finding in &advice.findings {
            let Some(subject) = advice.evidence.subjects.get(finding.subject) else { continue };
            let name = super::text::subject_name(&advice.evidence, finding);
            if let Proposal::Counter { .. } = finding.proposal {
                counters(&advice.evidence, finding, &mut wanted, &mut left);
                continue;
            }
            let new = match new_layout(advice, finding) {
                Ok(new) => new,
                Err(why) => {
                    left.push(format!("{name}: not edited: {why}"));
                    continue;
                }
            };
            match wanted.iter_mut().find(|(known, _)| *known == subject) {
                None => wanted.push((subject, new)),
                // what is aligned or padded is apart from its neighbours, too
                Some((_, known)) if new.members.is_empty() && known.is_apart() => {}
                Some((_, known)) if !known.counters.is_empty() => {
                    left.push(format!(
                        "{name}: not edited: members of it become counters first: advise again"
                    ));
                }
                Some((_, known)) if new.members.is_empty() => {
                    let size = known.size.saturating_add(new.pad);
                    known.size = size.checked_next_multiple_of(new.align.unwrap_or(1)).unwrap_or(size);
                    (known.align, known.pad) = (new.align, new.pad);
                }
                Some(_) => left.push(format!("{name}: not edited: another finding orders its members")),
            }
        }
        let Some(program) = wanted.first().map(|(subject, _)| PathBuf::from(&subject.program)) else {
            return match advice.findings.is_empty() {
                true => Ok(None),
                false => bail!("none of the proposals is an edit: {}", left.join("; ")),
            };
        };
        let targets = targets(&program, &wanted, &mut left)?;
        let promises = Promises::of(&targets);
        let targets = targets.into_iter().map(|(target, ..)| target).collect();
        crate::interrupt::check()?;
        let plan = apply::plan(&program, targets, &|some| promises.together(some), &args.apply)?;
        Ok(Some(Edits { program, plan, left }))
    }

    /// Edits the sources in place, if that is asked for and pays.
    pub(super) fn carry_out(self, args: &AdviseArgs) -> Result<Done> {
        let applied = match args.apply.apply {
            true => apply::carry_out(&self.plan, &self.program, &args.apply)?,
            false => None,
        };
        Ok(Done { edits: self, applied })
    }
}

/// Edits that were carried out.
pub(super) struct Done {
    edits: Edits,
    applied: Option<apply::Applied>,
}

impl Done {
    fn outcome(&self) -> Outcome<'_> {
        Outcome { plan: &self.edits.plan, applied: self.applied.as_ref() }
    }

    /// Returns the edits of the sources as one unified diff.
    pub(super) fn patch(&self) -> Vec<u8> {
        self.edits.plan.patch()
    }

    /// Writes the result below the advice.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        apply::write_text(self.outcome(), "advise", out)
    }

    /// Returns the result as a part of the document.
    pub(super) fn json(&self) -> Value {
        let mut document = self.outcome().json();
        document["left"] = json!(self.edits.left);
        document
    }

    /// Says what is not edited, and fails if nothing is.
    pub(super) fn complain(&self) -> Result<()> {
        if let Err(why) = &self.edits.plan.verified
            && !self.edits.plan.edits.is_empty()
            && !self.applied.as_ref().is_some_and(apply::Applied::is_built)
        {
            eprintln!("tallyline: not compiled: {why}");
        }
        let refused = self.outcome().refusals();
        self.edits.left.iter().chain(&refused).for_each(|line| eprintln!("tallyline: {line}"));
        match self.outcome().edited() {
            0 => bail!("no source is edited"),
            _ => Ok(()),
        }
    }
}

/// Returns the layout that a proposal declares, or the reason why no declaration of a struct does.
fn new_layout(advice: &Advice, finding: &Finding) -> Result<NewLayout, &'static str> {
    match &finding.proposal {
        Proposal::Layout(layout) => Ok(of_members(layout)),
        Proposal::Apart { pad, align, sizes, .. } if finding.is_edit(&advice.evidence) => Ok(NewLayout {
            members: Vec::new(),
            align: (*pad == 0).then_some(*align),
            pad: *pad,
            size: sizes.1,
            ..NewLayout::default()
        }),
        Proposal::Apart { .. } => Err("a declaration of variables; the alignment is shown"),
        _ => Err("no edit is known for it"),
    }
}

/// Adds the counters of a finding to the layouts of their types.
fn counters<'a>(
    evidence: &'a Evidence,
    finding: &Finding,
    wanted: &mut Vec<(&'a Subject, NewLayout)>,
    left: &mut Vec<String>,
) {
    for field in &finding.fields {
        let Some(subject) = evidence.subjects.get(field.subject) else { continue };
        let Some(member) = field.member(subject) else {
            left.push(format!(
                "{}: not edited: it is no member of a struct; the lines of code to write are shown",
                subject.name
            ));
            continue;
        };
        match wanted.iter_mut().find(|(known, _)| *known == subject) {
            None => wanted
                .push((subject, NewLayout { counters: vec![member.name.clone()], ..NewLayout::default() })),
            Some((_, known)) if !known.counters.is_empty() => known.counters.push(member.name.clone()),
            Some(_) => left.push(format!(
                "{}.{}: no counter: another finding edits the type: advise again",
                subject.name, member.name
            )),
        }
    }
}

fn of_members(layout: &LayoutProposal) -> NewLayout {
    let placed = |member: &tallyline_advice::PlacedMember| NewPlace {
        name: member.name.clone(),
        from: member.from,
        offset: member.offset,
        align: member.align,
        pad: member.pad,
    };
    // a base, and the pointer to virtual functions, stay in front by themselves
    let declared = layout.members.iter().filter(|member| !member.is_implicit);
    let members: Vec<NewPlace> = declared.map(placed).collect();
    // the members' alignments are the type's
    let align = layout.align.filter(|_| members.iter().all(|member| member.align.is_none()));
    NewLayout { members, align, pad: layout.pad, size: layout.sizes.1, ..NewLayout::default() }
}

/// Returns the targets in a program, each with its type.
fn targets(
    program: &Path,
    wanted: &[(&Subject, NewLayout)],
    left: &mut Vec<String>,
) -> Result<Vec<(Target, Vec<String>)>> {
    let names = wanted.iter().map(|(subject, _)| subject.name.as_str());
    let request = Request {
        wanted: Wanted::named(names),
        inner: true,
        positions: true,
        exact: true,
        ..Request::default()
    };
    let types = source::read(program, &request, None)?;
    let mut definitions = Definitions::new(&types);
    let mut targets = Vec::new();
    for (subject, new) in wanted {
        if Path::new(&subject.program) != program {
            left.push(format!("{}: not edited: {} declares it", subject.name, subject.program));
            continue;
        }
        let found = definitions.called(subject.name.as_bytes()).into_iter().find_map(|id| {
            types.as_record(types.strip(id)).filter(|(_, record)| record.size == subject.size)
        });
        let target = found
            .ok_or_else(|| "the debug information does not have it".to_owned())
            .and_then(|(id, _)| Ok((Target::of_layout(&types, &subject.name, id, new)?, inner(&types, id))));
        match target {
            Ok(target) => targets.push(target),
            Err(why) => left.push(format!("{}: not edited: {why}", subject.name)),
        }
    }
    Ok(targets)
}

/// Returns the types of the records that are a part of a record.
fn inner(types: &Types, record: RecordId) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![record];
    let mut seen = vec![record];
    while let Some(record) = open.pop() {
        for member in types.members(types.record(record)) {
            let mut element = types.strip(member.ty);
            while let Type::Array(array) = types.get(element) {
                element = types.strip(types.array(array).of);
            }
            let Some((id, _)) = types.as_record(element) else { continue };
            if !seen.contains(&id) {
                seen.push(id);
                open.push(id);
                names.push(String::from_utf8_lossy(&types.qualified_name(element)).into_owned());
            }
        }
    }
    names
}

/// The layouts that edits promise.
struct Promises {
    all: Vec<(String, Layout, Vec<String>)>,
}

impl Promises {
    fn of(targets: &[(Target, Vec<String>)]) -> Promises {
        let all = targets
            .iter()
            .map(|(target, inner)| (target.name.clone(), target.promised.clone(), inner.clone()));
        Promises { all: all.collect() }
    }

    /// Returns the layouts when some are edited; none for one that contains another.
    fn together(&self, some: &[usize]) -> Vec<Option<Layout>> {
        let edited: Vec<&str> = some.iter().filter_map(|at| Some(self.all.get(*at)?.0.as_str())).collect();
        let promised = some.iter().map(|at| {
            let (_, layout, inner) = self.all.get(*at)?;
            let contains = inner.iter().any(|name| edited.contains(&name.as_str()));
            (!contains).then(|| layout.clone())
        });
        promised.collect()
    }
}
