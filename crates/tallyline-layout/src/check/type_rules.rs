//! Rules about a type as a whole.

use super::policy::TypeRule;
use super::subjects::{Subject, Subjects};
use super::{Notes, plural};
use crate::query::holes;
use tallyline_debuginfo::model::Origin;

pub(super) fn check(
    subjects: &mut Subjects<'_>,
    subject: &Subject<'_>,
    asked: &TypeRule,
    notes: &mut Notes<'_>,
) {
    let types = subjects.types;
    let record = subject.record;
    let line = notes.policy.cacheline;
    let found = holes(types, record);
    let hole_bytes = found.bytes.iter().fold(0, |sum: u64, hole| sum.saturating_add(hole.bytes));
    let at = record.declared_at;
    let mut limit = |rule, value: u64, most: Option<u64>, what: &str, unit: &str| {
        if let Some(most) = most.filter(|most| value > *most) {
            notes.add_limit(rule, None, at, value, format!("{what} {}, {most} allowed", plural(value, unit)));
        }
    };
    limit("max-size", record.size, asked.max_size, "it has", "byte");
    limit("max-lines", record.size.div_ceil(line), asked.max_lines, "it takes", "cache line");
    limit("max-holes", found.bytes.len() as u64, asked.max_holes, "it has", "hole");
    limit("max-hole-bytes", hole_bytes, asked.max_hole_bytes, "its holes have", "byte");
    limit("max-padding", found.padding, asked.max_padding, "its padding has", "byte");
    if let Some(most) = asked.max_total_size {
        let total = record.size.saturating_mul(asked.instances);
        if total > most {
            let message = format!(
                "its {} take {}, {most} allowed",
                plural(asked.instances, "instance"),
                plural(total, "byte")
            );
            notes.add_limit("max-total-size", None, at, total, message);
        }
    }
    let align = subjects.alignments.of(types, subject.id);
    let inferred = if types.origin() == Origin::Btf { " (as inferred: BTF does not carry it)" } else { "" };
    if let Some(least) = asked.align.filter(|least| !align.is_multiple_of(*least)) {
        notes.add("align", None, at, format!("it is aligned to {align}{inferred}, {least} asked for"));
    }
    if asked.per_cpu && !align.is_multiple_of(line) {
        let message = format!(
            "it is aligned to {align}{inferred}, less than a cache line of {line}: it can start on the \
             line of another CPU's data"
        );
        notes.add("per-cpu", None, at, message);
    }
    if asked.per_cpu && !record.size.is_multiple_of(line) {
        let rest = line - record.size % line;
        let message = format!(
            "it has {}, and leaves {rest} of its last cache line to another CPU's data",
            plural(record.size, "byte")
        );
        notes.add("per-cpu", None, at, message);
    }
}
