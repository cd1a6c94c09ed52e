//! Prints the samples of a recording, a line each, in the order of time: `cargo run --example samples FILE`.
//! Then the memory accesses that traces of the hardware have.

use std::error::Error;
use std::io::Write;
use tallyline_perf_data::file::{RecordBody, RecordSource, VisitedRecord};
use tallyline_perf_data::{AddressSpaces, Recording, Sample};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: samples FILE")?;
    let bytes = std::fs::read(path)?;
    let recording = Recording::parse(&bytes)?;
    for warning in recording.warnings() {
        eprintln!("{warning}");
    }
    let mut spaces = AddressSpaces::new(&recording);
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for record in recording.in_time_order()? {
        let record = record?;
        spaces.apply(record.body())?;
        if let RecordBody::Sample(event, sample) = record.body() {
            let event = recording.events().get(*event).map(|event| event.name()).unwrap_or_default();
            writeln!(out, "{}", line(event, sample, &spaces))?;
        }
    }
    let mut accesses = Vec::new();
    recording.visit(&mut |_, seen| {
        match seen {
            VisitedRecord::Access(sample) => accesses.push((sample.time, line("memory", sample, &spaces))),
            VisitedRecord::Traces(tally) => tally.notes().iter().for_each(|note| eprintln!("{note}")),
            _ => {}
        }
        Ok(())
    })?;
    accesses.sort_by_key(|(time, _)| *time);
    accesses.iter().try_for_each(|(_, line)| writeln!(out, "{line}"))?;
    Ok(out.flush()?)
}

/// Returns the names are those of `perf script -F`.
fn line(event: &str, sample: &Sample<'_>, spaces: &AddressSpaces) -> String {
    let mut fields = vec![format!("event={event}")];
    let mut hex =
        |name: &str, value: Option<u64>| fields.extend(value.map(|value| format!("{name}={value:x}")));
    hex("ip", sample.ip);
    hex("addr", sample.addr);
    hex("phys_addr", sample.physical_address);
    hex("data_src", sample.data_source.map(|source| source.0));
    hex("data_page_size", sample.data_page_size);
    hex("code_page_size", sample.code_page_size);
    let mut number =
        |name: &str, value: Option<i128>| fields.extend(value.map(|value| format!("{name}={value}")));
    number("pid", sample.pid.map(Into::into));
    number("tid", sample.tid.map(Into::into));
    number("cpu", sample.cpu.map(Into::into));
    number("time", sample.time.map(Into::into));
    number("period", sample.period.map(Into::into));
    number("weight", sample.weight.map(|weight| weight.weight().into()));
    number("ins_lat", sample.weight.map(|weight| weight.instruction_latency().into()));
    number("retire_lat", sample.weight.map(|weight| weight.weight3().into()));
    if let Some(source) = sample.data_source {
        let (level, snoop, tlb) = (source.level_text(), source.snoop_text(), source.tlb_text());
        let (op, lock, blocked) = (source.op_text(), source.lock_text(), source.blocked_text());
        fields.push(format!("mem=|OP {op}|LVL {level}|SNP {snoop}|TLB {tlb}|LCK {lock}|BLK {blocked}"));
    }
    if let Some(registers) = sample.user_registers {
        let values: Vec<_> = registers.iter().map(|(number, value)| format!("{number}:{value:x}")).collect();
        fields.push(format!("uregs={}", values.join(" ")));
    }
    if let Some(branches) = sample.branches {
        let flag = |is_set: bool, letter: char| if is_set { letter } else { '-' };
        let branches = branches.iter().map(|branch| {
            let outcome = match (branch.mispredicted(), branch.predicted()) {
                (true, _) => 'M',
                (_, true) => 'P',
                _ => '-',
            };
            let (transaction, abort) = (flag(branch.in_transaction(), 'X'), flag(branch.abort(), 'A'));
            format!(
                "0x{:x}/0x{:x}/{outcome}/{transaction}/{abort}/{}",
                branch.from(),
                branch.to(),
                branch.cycles()
            )
        });
        fields.push(format!("brstack={}", branches.collect::<Vec<_>>().join(" ")));
    }
    let callers: Vec<_> = sample.callers().map(|(_, address)| format!("{address:x}")).collect();
    if !callers.is_empty() {
        fields.push(format!("callers={}", callers.join(" ")));
    }
    let place = spaces.resolve(sample.pid.unwrap_or(-1), sample.mode, sample.ip.unwrap_or(0));
    fields.extend(place.map(|place| format!("dso={}", spaces.dso(place.dso()).path())));
    fields.join("\t")
}
