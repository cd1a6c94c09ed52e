//! `tallyline check`: layouts held against a policy.

mod args;
mod baseline;
mod github;
mod gitlab;
mod json;
mod sarif;
mod text;

pub(crate) use args::CheckArgs;

use crate::layout::job::Job;
use crate::layout::{nearest_in, operands, source};
use crate::path_map::Paths;
use anyhow::{Context, Result, bail};
use args::Format;
use baseline::Baseline;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tallyline_debuginfo::locate::CompanionFinder;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::program::unit_sources;
use tallyline_debuginfo::{Request, Wanted};
use tallyline_layout::check::{
    Finding, Level, Policy, Report, SuggestedNames, Table, UNUSED_ALLOW, allow_in_parts, check, check_table,
    reference, suggest,
};
use tallyline_support::output::{Color, Output};

/// The policy where none is named.
const POLICY: &str = "layout.toml";

/// The findings by the rules of one file.
struct Checked {
    /// The path of the policy or of the table of cache lines.
    rules: String,
    types: Types,
    report: Report,
}

/// A finding with the file of its rule and the place of the type's declaration.
struct Shown<'c> {
    finding: &'c Finding,
    /// The path of the policy or of the table of cache lines.
    rules: &'c str,
    /// The file and line of the type's declaration, if known.
    declared_at: Option<(String, u32)>,
}

/// Runs the sub-command `tallyline check`, which tests the layouts of a program's types against a policy (rules on
/// sizes, holes, cache lines); the exit code is 1 if a rule is broken.
pub(crate) fn run(args: &CheckArgs, color: Color) -> Result<ExitCode> {
    let (file, names) = operands::split(&args.operands, args.file.as_deref());
    let output = Output::open(args.output.as_deref(), color)?;
    if args.reference {
        output.write(|out| Ok(out.write_all(reference().as_bytes())?))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.suggest {
        let wanted = if names.is_empty() || names.iter().any(|name| lookup::is_pattern(name)) {
            Wanted::Records
        } else {
            Wanted::named(names.iter().map(String::as_str))
        };
        let types = read(args, &file, wanted, args.cacheline_size)?;
        let named = SuggestedNames::new(&types, &names, args.cacheline_size);
        if named.is_empty() {
            bail!("{}: nothing to suggest; name types, such as --suggest 'conn*'", file.display());
        }
        drop(types);
        let mut policy = String::new();
        for part in named.parts() {
            // what a check reads may be more: types inside functions, typedefs
            let types = read(args, &file, part.wanted(), args.cacheline_size)?;
            suggest(&types, &part, args.cacheline_size, &mut policy);
        }
        output.write(|out| Ok(out.write_all(policy.as_bytes())?))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let [name, ..] = names.as_slice() {
        bail!("{name} is no file; types are named in the policy");
    }
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let mut checked = check_all(args, &file)?;
    if let Some(mut baseline) = baseline {
        let findings = checked.iter_mut().flat_map(|one| one.report.findings.iter_mut());
        findings.for_each(|finding| baseline.allow(finding));
    }
    let paths = Paths::new(&args.path_prefix_map).with_folders(folders(&checked, &file));
    let shown = show(&checked, &paths);
    output.write(|out| match args.format {
        Format::Text => text::write(&shown, checked.iter().map(|one| one.report.checked_types()).sum(), out),
        Format::Json => json::write(&file, &shown, out),
        Format::Sarif => sarif::write(&shown, &paths, out),
        Format::Github => github::write(&shown, out),
        Format::Gitlab => gitlab::write(&shown, out),
    })?;
    let fails = checked.iter().any(|one| one.report.fails());
    Ok(if fails { ExitCode::from(crate::FINDINGS) } else { ExitCode::SUCCESS })
}

fn check_all(args: &CheckArgs, file: &Path) -> Result<Vec<Checked>> {
    let mut checked = Vec::new();
    if args.policy.is_some() || args.net_cachelines.is_empty() {
        let path = args.policy.clone().unwrap_or_else(|| PathBuf::from(POLICY));
        let text = text_of(&path);
        let text = match (&args.policy, text) {
            (None, Err(error)) => {
                bail!("{error:#}: name a policy with --policy, or write one with --suggest")
            }
            (_, text) => text?,
        };
        let rules = path.display().to_string();
        let policy = Policy::parse(&text).with_context(|| rules.clone())?;
        if policy.is_empty() {
            bail!("{rules}: no rules, so there is nothing to check; --suggest writes rules that hold now");
        }
        for part in policy.parts() {
            let types = read(args, file, part.wanted(), part.cacheline())?;
            let mut report = check(&types, &part);
            suggest_types(args, file, &mut report);
            checked.push(Checked { rules: rules.clone(), types, report });
        }
        let mut findings: Vec<_> = checked.iter_mut().map(|one| &mut one.report.findings).collect();
        allow_in_parts(&policy, &mut findings);
    }
    for path in &args.net_cachelines {
        let rules = path.display().to_string();
        let table = Table::parse(&text_of(path)?).with_context(|| rules.clone())?;
        let wanted = Wanted::named([table.name()]);
        let types = read(args, file, wanted, args.cacheline_size)?;
        let mut report = check_table(&types, &table, args.cacheline_size);
        suggest_types(args, file, &mut report);
        checked.push(Checked { rules, types, report });
    }
    Ok(checked)
}

/// Adds the nearest names to findings about types that are not there. The file is read again, for all
/// of its names: only now are they needed.
fn suggest_types(args: &CheckArgs, file: &Path, report: &mut Report) {
    let misspelt = |finding: &Finding| finding.rule() == "unknown-type" && !lookup::is_pattern(finding.ty());
    if !report.findings.iter().any(misspelt) {
        return;
    }
    let job = Job { files: vec![file.to_path_buf()], btf_base: args.btf_base.clone(), ..Job::default() };
    let findings = || report.findings.iter().filter(|finding| misspelt(finding));
    let names: Vec<String> = findings().map(|finding| finding.ty().to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Ok(near) = nearest_in(job, &names) else { return };
    let findings = report.findings.iter_mut().filter(|finding| misspelt(finding));
    for (finding, near) in findings.zip(near) {
        finding.message.push_str(&lookup::did_you_mean(finding.ty(), near.iter().map(String::as_str)));
    }
}

fn text_of(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read(args: &CheckArgs, file: &Path, wanted: Wanted, cacheline: u64) -> Result<Types> {
    let request =
        Request { wanted, cacheline, positions: true, exact: true, typedefs: true, ..Request::default() };
    let types = source::read(file, &request, args.btf_base.as_deref())?;
    source::warn(file, &types);
    Ok(types)
}

/// Returns the folders that the compiler ran in, if a finding's path may start from one.
fn folders(checked: &[Checked], file: &Path) -> Vec<String> {
    let is_relative = |one: &Checked| {
        let mut files = one.report.findings.iter().map(|finding| finding.declared_at().file);
        files.any(|name| name.is_some() && !one.types.name(name).starts_with(b"/"))
    };
    if !checked.iter().any(is_relative) {
        return Vec::new();
    }
    let Ok(open) = File::open(file) else { return Vec::new() };
    let sources = unit_sources(&open, &CompanionFinder::new(file));
    let mut folders: Vec<String> = sources.into_iter().map(|(folder, _)| folder).collect();
    folders.dedup();
    folders
}

fn show<'c>(checked: &'c [Checked], paths: &Paths<'_>) -> Vec<Shown<'c>> {
    let mut shown = Vec::new();
    for one in checked {
        for finding in &one.report.findings {
            let at = finding.declared_at();
            let known = at.file.is_some() && at.line != 0;
            let declared_at = known.then(|| {
                // CI services know files by their place in the repository
                (paths.shown(&String::from_utf8_lossy(one.types.name(at.file))), at.line)
            });
            shown.push(Shown { finding, rules: &one.rules, declared_at });
        }
    }
    // of a policy that was checked in parts; what it allows in vain comes last
    let order = |one: &Shown<'_>| (one.finding.rule() == UNUSED_ALLOW, one.finding.line());
    let has_parts =
        |of_file: &[Shown<'_>]| checked.iter().filter(|one| one.rules == of_file[0].rules).count() > 1;
    let of_files = shown.chunk_by_mut(|a, b| a.rules == b.rules).filter(|of_file| has_parts(of_file));
    of_files.for_each(|of_file| of_file.sort_by_key(order));
    shown
}

impl Shown<'_> {
    /// Returns the type, and the member or group if it is about one.
    fn subject(&self) -> String {
        match self.finding.member() {
            Some(member) => format!("{}.{member}", self.finding.ty()),
            None => self.finding.ty().to_string(),
        }
    }

    /// Returns the location to report: the declaration, or the rule if that is not known.
    fn place(&self) -> (&str, u32) {
        match &self.declared_at {
            Some((file, line)) => (file, *line),
            None => (self.rules, self.finding.line().max(1)),
        }
    }

    fn is_warning(&self) -> bool {
        self.finding.level() == Level::Warn
    }
}
