//! One source with several layouts: compiled, and read back where C cannot say it.

use super::Verdict;
use super::compiler::Compiler;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, Wanted, read};
use tallyline_layout::reorganize::declare::{BitCheck, Check, VerificationSource};

/// Some layouts that are compiled together.
pub(super) struct Batch<'b> {
    pub(super) compiler: &'b Compiler,
    pub(super) folder: &'b Path,
    pub(super) index: usize,
}

impl Batch<'_> {
    /// Returns one verdict for each layout that `write` makes a source of. Layouts that the compiler
    /// complains about are taken out, and the rest is compiled again.
    pub(super) fn verify<L: Copy>(
        &self,
        layouts: &[L],
        write: impl Fn(&[L]) -> VerificationSource,
    ) -> Result<Vec<Verdict>> {
        let mut verdicts: Vec<Option<Verdict>> = vec![None; layouts.len()];
        loop {
            let open: Vec<usize> = (0..layouts.len()).filter(|at| verdicts[*at].is_none()).collect();
            if open.is_empty() || crate::interrupt::asked() {
                break;
            }
            let some: Vec<L> = open.iter().map(|at| layouts[*at]).collect();
            let source = write(&some);
            let complaints = self.compile(&source)?;
            let accepted = complaints.is_empty();
            for (check, why) in complaints {
                verdicts[open[check]].get_or_insert(Verdict::Wrong(why));
            }
            if accepted {
                for at in open {
                    verdicts[at] = Some(Verdict::Verified(self.compiler.version.clone()));
                }
            }
        }
        Ok(verdicts.into_iter().map(|verdict| verdict.unwrap_or(Verdict::NotAsked)).collect())
    }

    /// Compiles a source: the checks that do not hold, and why.
    fn compile(&self, source: &VerificationSource) -> Result<Vec<(usize, String)>> {
        let path = |end: &str| self.folder.join(format!("b{}.{end}", self.index));
        let (from, to) = (path("c"), path("o"));
        std::fs::write(&from, source.text()).with_context(|| format!("cannot write {}", from.display()))?;
        let mut command = self.compiler.command();
        command.args(self.compiler.arguments()).arg(&from);
        let has_bits = source.checks().iter().any(|check| !check.bits().is_empty());
        if has_bits {
            command.args(["-g", "-c", "-o"]).arg(&to);
        } else {
            command.arg("-fsyntax-only");
        }
        let output = command.output().context("cannot run the C compiler")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Ok(complaints(&from, source, &said));
        }
        if has_bits { self.compare_bits(source, &to) } else { Ok(Vec::new()) }
    }

    /// Compares the places of bitfields with the debug information that the compiler wrote.
    fn compare_bits(&self, source: &VerificationSource, object: &PathBuf) -> Result<Vec<(usize, String)>> {
        let bytes = std::fs::read(object).with_context(|| format!("cannot read {}", object.display()))?;
        let checks = source.checks().iter().filter(|check| !check.bits().is_empty());
        let names = checks.flat_map(|check| [check.current(), check.proposed()]);
        let request = Request { wanted: Wanted::named(names), ..Request::default() };
        let types = read(&bytes, &request).context("cannot read what the C compiler wrote")?;
        let wrong = source.checks().iter().enumerate().filter_map(|(at, check)| {
            let difference = difference(&types, check)?;
            Some((at, difference))
        });
        Ok(wrong.collect())
    }
}

/// Returns the first bitfield that lies elsewhere.
fn difference(types: &Types, check: &Check) -> Option<String> {
    let side = |name: &str, said: fn(&BitCheck) -> u64| {
        check.bits().iter().find_map(|bit| {
            let place = place_of(types, name, bit.member());
            if place == Some((said(bit), bit.width())) {
                return None;
            }
            let place = place.map_or("nowhere".to_string(), |(start, _)| format!("at bit {start}"));
            Some(format!("{name}.{} is {place}, not at bit {}", bit.member(), said(bit)))
        })
    };
    side(check.current(), |bit| bit.current()).or_else(|| side(check.proposed(), |bit| bit.proposed()))
}

fn place_of(types: &Types, record: &str, member: &str) -> Option<(u64, u32)> {
    let (_, record) = types.as_record(lookup::find(types, record.as_bytes())?)?;
    let member = types.members(record).iter().find(|known| types.name(known.name) == member.as_bytes())?;
    member.bitfield.map(|field| (member.bit_offset, field.size))
}

/// Assigns the compiler's errors to layouts by their lines; an error without a line of ours is everyone's.
fn complaints(path: &Path, source: &VerificationSource, said: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let path = path.to_string_lossy();
    for line in said.lines() {
        let Some((place, why)) = line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "))
        else {
            continue;
        };
        let number = place.strip_prefix(path.as_ref()).and_then(|rest| rest.split(':').nth(1));
        let Some(number) = number.and_then(|number| number.parse().ok()) else { continue };
        found.extend(source.checks_of_line(number).into_iter().map(|check| (check, why.to_string())));
    }
    if found.is_empty() {
        let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("the compiler failed");
        found.extend((0..source.checks().len()).map(|check| (check, why.to_string())));
    }
    found
}
