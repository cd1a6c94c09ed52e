//! BTF's functions and variables: the prototypes of functions, and the types of variables.

use super::decode::{Decoder, kind};
use super::header::Header;
use crate::error::Result;
use crate::model::{Origin, TypeId, Types};

/// The functions and global variables that a BTF blob describes, by name, each with its type's id in the BTF.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// The names of functions, and their prototypes.
    pub functions: Vec<(Vec<u8>, TypeId)>,
    /// The names of variables, and their types.
    pub variables: Vec<(Vec<u8>, TypeId)>,
}

/// Reads the functions and global variables that a BTF blob describes; it must not extend a base BTF.
pub(crate) fn read(bytes: &[u8]) -> Result<Symbols> {
    let header = Header::parse(bytes)?;
    let mut decoder = Decoder::new(&header, &[]);
    let mut symbols = Symbols::default();
    let mut unused = Types::new(Origin::Btf, 8);
    while !decoder.bytes.is_empty() {
        let entry = decoder.entry()?;
        let table = match entry.kind {
            kind::FUNC => Some(&mut symbols.functions),
            kind::VAR => Some(&mut symbols.variables),
            _ => None,
        };
        if let Some(table) = table {
            table.push((decoder.called(entry.name).to_vec(), TypeId(entry.word)));
        }
        decoder.skip(entry, &mut unused)?;
    }
    Ok(symbols)
}
