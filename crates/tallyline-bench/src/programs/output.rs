//! The comparison as text and as JSON.
//!
//! ```json
//! {"schema":1,"bench":"programs","machine":{…},"model":"--level 48K:12:4,… --memory 450",
//!  "programs":[{"program":"store","samples":10000,"typed":{"sampled":80.1,"modelled":79.5},"agrees":true,
//!               "correlation":0.95,"correlation_either":0.9,
//!               "fields":[{"field":"struct order +0x30 (amount)","sampled":40.1,"modelled":42.0}]}],
//!  "not_run":[{"program":"lua","why":"…"}]}
//! ```
//! Shares are percents of all samples of the program, and of all of the model's time.

use super::Programs;
use super::compare::{CORRELATION, Comparison, LEAST, TIED};
use anyhow::Result;
use serde_json::json;
use std::io::Write;
use tallyline_support::output::printable;

pub(super) fn json(found: &Programs, out: &mut dyn Write) -> Result<()> {
    let program = |one: &Comparison| {
        json!({
            "program": one.program,
            "samples": one.samples,
            "typed": {"sampled": one.typed.0, "modelled": one.typed.1},
            "agrees": one.agrees(),
            "correlation": one.correlation,
            "correlation_either": one.correlation_either,
            "fields": one.fields.iter().map(|field| json!({
                "field": field.name,
                "sampled": field.sampled,
                "modelled": field.modelled,
            })).collect::<Vec<_>>(),
        })
    };
    let document = json!({
        "schema": 1,
        "bench": "programs",
        "machine": found.machine,
        "model": found.model,
        "programs": found.compared.iter().map(program).collect::<Vec<_>>(),
        "not_run": found.not_run.iter().map(|(program, why)| json!({"program": program, "why": why}))
            .collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

pub(super) fn text(found: &Programs, out: &mut dyn Write) -> Result<()> {
    let machine = &found.machine;
    writeln!(out, "Fields of whole programs: shares of samples of the clock, and of time by the model")?;
    writeln!(
        out,
        "{}, Linux {}; model: tallyline replay --cost {}",
        machine.cpu, machine.kernel, found.model
    )?;
    for one in &found.compared {
        writeln!(
            out,
            "\n{}: {} samples; fields have {:.1} % of the samples, {:.1} % of the model's time",
            one.program, one.samples, one.typed.0, one.typed.1
        )?;
        writeln!(out, "{:>8} {:>8}  field", "sampled", "model")?;
        for field in &one.fields {
            let name = printable(field.name.as_bytes());
            writeln!(out, "{:>7.2}% {:>7.2}%  {name}", field.sampled, field.modelled)?;
        }
        let agrees = if one.agrees() { "the same field is first" } else { "other fields are first" };
        let text =
            |correlation: Option<f64>| correlation.map_or("none".to_owned(), |one| format!("{one:.2}"));
        writeln!(
            out,
            "{agrees}; rank correlation over {} fields with more than {LEAST} % of the samples: {}; with those \
             above {LEAST} % by the model alone: {}",
            one.sampled_fields(),
            text(one.correlation),
            text(one.correlation_either)
        )?;
    }
    for (program, why) in &found.not_run {
        writeln!(out, "\n{program}: not run: {}", printable(why.as_bytes()))?;
    }
    let count = found.compared.len();
    let agree = found.compared.iter().filter(|one| one.agrees()).count();
    let is_close = |one: &&Comparison| one.correlation.is_some_and(|correlation| correlation >= CORRELATION);
    let close = found.compared.iter().filter(is_close).count();
    writeln!(
        out,
        "\nThe same field is first in {agree} of {count}; the rank correlation is at least {CORRELATION} in {close} of \
         {count}.\nOf fields whose shares, in either column, differ by no more than {TIED} standard errors of a \
         difference\nof shares of so many samples, the ranks are tied."
    )?;
    Ok(())
}
