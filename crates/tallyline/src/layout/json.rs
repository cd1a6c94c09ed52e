//! `tallyline layout --format json`.

use anyhow::Result;
use std::io::Write;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_layout::print::json::Document;

/// Writes the types as one document, type by type.
pub(super) fn write(cacheline: u64, types: &Types, ids: &[TypeId], out: &mut dyn Write) -> Result<()> {
    let mut document = Document::start(types, cacheline, out)?;
    for id in ids {
        document.add(*id)?;
    }
    Ok(document.finish()?)
}
