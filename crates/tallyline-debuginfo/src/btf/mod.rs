//! The reader of BTF, the kernel's compact type format: alone, or in an ELF file's section `.BTF`.
//!
//! Ids of the file become ids of the model one to one, base BTF first. Two steps: [`decode`] makes
//! types of the entries, or [`named`] of those that are wanted by name; [`complete`] adds what BTF
//! leaves to its reader: sizes of members, the units of bitfields, and alignments.

mod bytes;
mod complete;
mod decode;
mod header;
mod named;
mod symbols;

pub use symbols::Symbols;
pub(crate) use symbols::read as read_symbols;

use crate::error::Result;
use crate::model::{Origin, Type, TypeId, Types};
use crate::{Request, Wanted};
use bytes::Bytes;
use decode::Decoder;
use header::Header;

/// Up to so many names are compared with that of every entry.
const FEW: usize = 64;

/// Returns `true` if the bytes start with BTF's magic number, in either byte order.
pub(crate) fn is_btf(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x9f, 0xeb]) || bytes.starts_with(&[0xeb, 0x9f])
}

/// Reads the types of a BTF blob; `base` is the BTF that it extends, such as the kernel's for a module's.
pub(crate) fn read(bytes: &[u8], base: Option<&[u8]>, request: &Request) -> Result<Types> {
    let mut types = Types::new(Origin::Btf, 8);
    let mut base_strings: &[u8] = &[];
    if let Some(base) = base {
        let header = Header::parse(base)?;
        base_strings = header.strings;
        Decoder::new(&header, &[]).decode(&mut types)?;
    }
    let header = Header::parse(bytes)?;
    let decoder = Decoder::new(&header, base_strings);
    match &request.wanted {
        // a base is decoded whole, and small is what goes on from it
        Wanted::Named(names) | Wanted::First(names) if base.is_none() && names.len() <= FEW => {
            decoder.decode_named(names, request.pointer_targets, &mut types)?
        }
        _ => {
            match base.is_none().then(|| decoder.decode_by_offsets()).flatten() {
                Some(all) => types = all?,
                None => Decoder::new(&header, base_strings).decode(&mut types)?,
            }
            types.listed = (1..types.len() as u32).map(TypeId).collect();
        }
    }
    if let Wanted::Enumerator(name) = &request.wanted {
        let has = |id: &TypeId| has_enumerator(&types, *id, name);
        let listed = types.listed.iter().copied().filter(has).collect();
        types.listed = listed;
    }
    types.pointer_size = pointer_size(&types);
    complete::complete(&mut types, request.cacheline);
    types.shrink();
    Ok(types)
}

fn has_enumerator(types: &Types, id: TypeId, name: &[u8]) -> bool {
    let Type::Enum(id) = types.get(id) else { return false };
    types.enumerators(types.enumeration(id)).iter().any(|item| types.name(item.name) == name)
}

/// Returns the size of a `long`, which is that of a pointer wherever BTF is used: BTF does not state the
/// latter.
fn pointer_size(types: &Types) -> u8 {
    const LONGS: [&[u8]; 8] = [
        b"long int",
        b"long",
        b"int long",
        b"long unsigned int",
        b"unsigned long",
        b"long unsigned",
        b"unsigned int long",
        b"unsigned long int",
    ];
    for ty in &types.types {
        if let Type::Base { name, bits } = *ty
            && LONGS.contains(&types.name(name))
            && (bits == 32 || bits == 64)
        {
            return (bits / 8) as u8;
        }
    }
    8
}
