//! Proposals for programs.
//!
//! `{"schema":1,"file":…,"types":[{"name","outcome":"smaller"|"smallest"|"refused"|"withheld",…}]}`.
//! What can be smaller has `old` and `new` (`size`, `lines`), `saved` and `total` (times `instances`),
//! `members` in the new order (`name`, `offset`, `bit_offset`, `size`, `bits`), `moves` (`members`,
//! `behind`, `size`; not of more than 1000), `move_count`, `optimal`, `fewest_moves`, `inferred`, and `verified` (the compiler, or null) or
//! `unverified` (why). `text_verified` says whether that compiler was also given the text that is printed
//! of a type by name: only C's is, for other languages and for ranked types it is the layout that was verified. What is refused or withheld has a `reason`. Where ends stay, `unpinned` has what
//! would be saved if they did not: `last`, `ends`. One of several definitions of a name has its `place`. `totals` has the bytes of all types times their
//! instances: `as_pinned`, `unpinned`, and where types are ranked `together`: what is saved (`saved`, in
//! so many `types`) when all proposals are applied and structs shrink with what they hold.

use super::together::Applied;
use super::verify::Verdict;
use super::{TypeResult, pinned};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use tallyline_debuginfo::model::{Member, Types};
use tallyline_layout::reorganize::{Extent, Proposal, Reorganization};

/// The most moves that are listed.
const MOVES: usize = 1_000;

/// Writes the proposals for a file's types as one JSON document.
pub(super) fn write(
    file: &Path,
    types: &Types,
    found: &[TypeResult],
    together: Option<&Applied>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut totals =
        json!({ "as_pinned": found.iter().fold(0_u64, |sum, found| sum.saturating_add(found.total())) });
    if let Some(sums) = pinned::sums(found) {
        totals["unpinned"] = pinned::FREED.iter().zip(sums).map(|((word, ..), sum)| (*word, sum)).collect();
    }
    if let Some(all) = together.filter(|all| all.complaint().is_none()) {
        totals["together"] = json!({ "saved": all.saved, "types": all.smaller });
        if let Verdict::Verified(by) = &all.verdict {
            totals["together"]["verified"] = by.as_str().into();
        }
    }
    let found: Vec<Value> = found.iter().map(|found| one(types, found)).collect();
    let document = json!({ "schema": 1, "file": file.to_string_lossy(), "types": found, "totals": totals });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn one(types: &Types, found: &TypeResult) -> Value {
    let mut value = match (&found.outcome, &found.verdict) {
        (Reorganization::Smaller(_), Verdict::Wrong(why)) => json!({ "outcome": "withheld", "reason": why }),
        (Reorganization::Smaller(proposal), verdict) => smaller(types, found, proposal, verdict),
        (Reorganization::Smallest { proven }, _) => json!({ "outcome": "smallest", "optimal": proven }),
        (Reorganization::Refused(why), _) => json!({ "outcome": "refused", "reason": why.to_string() }),
    };
    value["name"] = found.name.as_str().into();
    if let Some(place) = &found.place {
        value["place"] = place.as_str().into();
    }
    if let Some(freed) = found.freed {
        value["unpinned"] =
            pinned::FREED.iter().zip(freed).map(|((word, ..), saved)| (*word, saved)).collect();
    }
    value
}

fn smaller(types: &Types, found: &TypeResult, proposal: &Proposal, verdict: &Verdict) -> Value {
    let extent = |extent: Extent| json!({ "size": extent.size(), "lines": extent.lines() });
    let old = types.members(types.record(proposal.record()));
    let name = |member: &Member| String::from_utf8_lossy(types.name(member.name)).into_owned();
    let members = proposal.members().iter().map(|member| {
        json!({
            "name": name(member),
            "offset": member.offset,
            "bit_offset": member.bit_offset,
            "size": member.size,
            "bits": member.bitfield.map(|field| field.size),
        })
    });
    // each takes time in proportion to the members
    let listed = if proposal.move_count() <= MOVES { proposal.move_count() } else { 0 };
    let moves = proposal.moves().take(listed).map(|step| {
        json!({
            "members": old.get(step.members().clone()).unwrap_or(&[]).iter().map(name).collect::<Vec<_>>(),
            "behind": step.to().and_then(|at| old.get(at)).map(name),
            "size": step.extent().size(),
        })
    });
    let mut value = json!({
        "outcome": "smaller",
        "old": extent(proposal.current()),
        "new": extent(proposal.proposed()),
        "saved": proposal.saved(),
        "saved_lines": proposal.saved_lines(),
        "instances": found.instances,
        "total": found.total(),
        "members": members.collect::<Vec<_>>(),
        "moves": moves.collect::<Vec<_>>(),
        "move_count": proposal.move_count(),
        "optimal": proposal.is_smallest(),
        "fewest_moves": proposal.has_fewest_moves(),
        "inferred": proposal.inferred(),
    });
    match verdict {
        Verdict::Verified(by) => {
            value["verified"] = by.as_str().into();
            value["text_verified"] = found.text_verified.into();
        }
        Verdict::Unverified(why) => value["unverified"] = why.as_str().into(),
        Verdict::NotAsked | Verdict::Wrong(_) => value["verified"] = Value::Null,
    }
    value
}
