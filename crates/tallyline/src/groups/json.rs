//! Groups for programs.
//!
//! `{"schema":1,"cacheline":64,"types":[{"name","size","declared_at","groups":[…],"problems":[…]}]}`.
//! A group has `name`, `offset`, `bytes`, `lines` (the first and the last), `straddles`, `align`,
//! `members` (`name`, `offset`, `bytes`, `bits` for bitfields), `holes` (`offset`, `bytes`), `foreign`
//! (`name`, `offset`, `bytes`, `inside`) and `declared_at` (`file:line` or null).

use super::{Grouped, GroupsArgs};
use crate::position::place;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_debuginfo::model::{Position, Types};
use tallyline_layout::groups::Group;
use tallyline_layout::query::Field;

/// Writes the cache line groups of structs as one JSON document.
pub(super) fn write(args: &GroupsArgs, structs: &[Grouped<'_>], out: &mut dyn Write) -> Result<()> {
    let line = args.cacheline_size;
    let types: Vec<Value> = structs
        .iter()
        .map(|of| {
            let groups: Vec<Value> = of.found.groups.iter().map(|g| group(of.types, g, line)).collect();
            json!({
                "name": text(of.types.name(of.name)),
                "size": of.record.size,
                "declared_at": position(of.types, of.record.declared_at),
                "groups": groups,
                "problems": of.found.problems,
            })
        })
        .collect();
    serde_json::to_writer(&mut *out, &json!({"schema": 1, "cacheline": line, "types": types}))?;
    Ok(writeln!(out)?)
}

fn group(types: &Types, group: &Group, line: u64) -> Value {
    let (first, last) = group.lines(line);
    let members = group.members().iter().map(|named| field(named.path(), &named.field()));
    let foreign = group.foreign().iter().map(|foreign| {
        let mut value = field(&text(types.name(foreign.field().name())), &foreign.field());
        value["inside"] = foreign.inside().into();
        value
    });
    json!({
        "name": group.name(),
        "offset": group.start(),
        "bytes": group.bytes(),
        "lines": [first, last],
        "straddles": group.straddles(line),
        "align": group.align(),
        "members": members.collect::<Vec<_>>(),
        "holes": group.holes().iter().map(|(offset, bytes)| json!({"offset": offset, "bytes": bytes})).collect::<Vec<_>>(),
        "foreign": foreign.collect::<Vec<_>>(),
        "declared_at": position(types, group.declared_at()),
    })
}

fn field(name: &str, field: &Field) -> Value {
    let mut value = json!({"name": name, "offset": field.start(), "bytes": field.bytes()});
    if field.bitfield() {
        value["bits"] = field.bits().into();
    }
    value
}

fn position(types: &Types, position: Position) -> Value {
    match place(types, position, "") {
        place if place.is_empty() => Value::Null,
        place => place.into(),
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
