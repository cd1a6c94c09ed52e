//! The printed text of a proposal, compiled as it is, and compared with what was promised.

use super::compiler::Compiler;
use super::{Folder, Verdict};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Output;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::{Member, MemberKind, Types};
use tallyline_debuginfo::{Request, Wanted, read};
use tallyline_layout::reorganize::{CompilableProposal, Proposal};

/// Compiles a text; none if the compiler lays it out as promised.
pub(super) fn verify(
    compiler: &Compiler,
    types: &Types,
    proposal: &Proposal,
    printed: &CompilableProposal,
) -> Result<Option<Verdict>> {
    let folder = Folder::new()?;
    let needs = compile(compiler, &folder.0, printed.needs())?;
    if !needs.status.success() {
        let why = format!("the types that it needs do not compile: {}", first_error(&needs));
        return Ok(Some(Verdict::Unverified(why)));
    }
    let whole = compile(compiler, &folder.0, &format!("{}\n{}", printed.needs(), printed.text()))?;
    if !whole.status.success() {
        let why = format!("the printed text does not compile: {}", first_error(&whole));
        return Ok(Some(Verdict::Wrong(why)));
    }
    let path = folder.0.join("printed.o");
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let request = Request { wanted: Wanted::named([printed.name()]), ..Request::default() };
    let compiled = read(&bytes, &request).context("cannot read what the C compiler wrote")?;
    Ok(difference(types, proposal, &compiled, printed.name()).map(Verdict::Wrong))
}

fn compile(compiler: &Compiler, folder: &Path, text: &str) -> Result<Output> {
    let (from, to) = (folder.join("printed.c"), folder.join("printed.o"));
    std::fs::write(&from, text).with_context(|| format!("cannot write {}", from.display()))?;
    let mut command = compiler.command();
    command.args(compiler.arguments()).arg(&from).args(["-g", "-c", "-o"]).arg(&to);
    command.output().context("cannot run the C compiler")
}

fn first_error(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find_map(|line| line.split_once("error: ").map(|(_, why)| why.to_string()));
    error.unwrap_or_else(|| "the compiler failed".to_string())
}

/// A member's offset in bits, and its size in bytes or bits.
type Place = (u64, u64);

fn places(members: &[Member]) -> Vec<(&Member, Place)> {
    let placed = members.iter().filter(|member| member.kind != MemberKind::Static);
    placed
        .map(|member| match member.bitfield {
            Some(field) => (member, (member.bit_offset, field.size.into())),
            None => (member, (member.bit_offset, member.size.saturating_mul(8))),
        })
        .collect()
}

/// Returns the first difference between what was promised and what the compiler made of the text.
fn difference(types: &Types, proposal: &Proposal, compiled: &Types, name: &str) -> Option<String> {
    let found = lookup::find(compiled, name.as_bytes());
    let found = found.and_then(|id| compiled.as_record(compiled.strip(id)));
    let Some((_, record)) = found else {
        return Some(format!("the printed text defines no {name}"));
    };
    if record.size != proposal.proposed().size() {
        return Some(format!(
            "as printed it takes {} bytes, not {}",
            record.size,
            proposal.proposed().size()
        ));
    }
    let (promised, compiled) = (places(proposal.members()), places(compiled.members(record)));
    if promised.len() != compiled.len() {
        return Some(format!("as printed it has {} members, not {}", compiled.len(), promised.len()));
    }
    promised.iter().zip(&compiled).find(|((_, promised), (_, compiled))| promised != compiled).map(
        |((member, promised), (_, compiled))| {
            let name = String::from_utf8_lossy(types.name(member.name)).into_owned();
            let place = |(bit, size): Place| format!("bits {bit} to {}", bit.saturating_add(size));
            format!("as printed {name} is at {}, not at {}", place(*compiled), place(*promised))
        },
    )
}
