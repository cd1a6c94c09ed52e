//! The structs to edit, and the layouts that their new declarations promise.

use std::path::PathBuf;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::{Language, Member, MemberKind, Types};
use tallyline_layout::reorganize::Proposal;
use tallyline_source::{self as source, Change};

/// A member's name, first bit and number of bits.
pub(crate) type PlacedMember = (String, u64, u64);

/// The layout of a struct that its edited declaration must have: size and places of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The size in bytes.
    pub(crate) size: u64,
    /// The members that take place, in order.
    pub(crate) members: Vec<PlacedMember>,
}

/// A struct whose declaration in the sources is to be edited.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name as it is shown.
    pub(crate) name: String,
    /// The name in the declaration, without scopes; empty for an unnamed struct.
    pub(crate) tag: Vec<u8>,
    /// The typedefs of the struct.
    pub(crate) aliases: Vec<Vec<u8>>,
    /// The language.
    pub(crate) language: source::Language,
    /// The file as the debug information has it.
    pub(crate) declared_in: String,
    /// The line of the declaration.
    pub(crate) line: u32,
    /// Today's layout.
    pub(crate) current: Layout,
    /// The promised layout.
    pub(crate) promised: Layout,
    /// The source file, once it is found.
    pub(crate) path: PathBuf,
    lines: Vec<u32>,
    order: Vec<usize>,
}

impl Target {
    /// Creates the struct to edit from a proposal for its type; none where the place of the declaration or
    /// the language is not known.
    pub(crate) fn of_proposal(types: &Types, name: &str, proposal: &Proposal) -> Option<Target> {
        let record = types.record(proposal.record());
        let language = match record.language {
            language if language.is_rust() => source::Language::Rust,
            language if language.is_cpp() => source::Language::Cpp,
            language if language.is_c() => source::Language::C,
            Language(_) => return None,
        };
        let at = record.declared_at;
        if !at.file.is_some() || at.line == 0 {
            return None;
        }
        let members = types.members(record);
        // members that a declaration declares, by their index among all
        let declared: Vec<usize> = (0..members.len()).filter(|at| is_declared(&members[*at])).collect();
        let index = |all: usize| declared.iter().position(|known| *known == all);
        let order: Vec<usize> = proposal.order().iter().filter_map(|all| index(*all)).collect();
        let bare = |name: &[u8]| name.split(|byte| *byte == b'<').next().unwrap_or_default().to_vec();
        Some(Target {
            name: name.to_string(),
            tag: bare(types.name(record.name)),
            aliases: lookup::typedefs(types, proposal.record())
                .into_iter()
                .map(|name| types.name(name).to_vec())
                .collect(),
            language,
            declared_in: String::from_utf8_lossy(types.name(at.file)).into_owned(),
            line: at.line,
            current: layout(types, members, record.size),
            promised: layout(types, proposal.members(), proposal.proposed().size()),
            path: PathBuf::new(),
            lines: declared.iter().map(|at| members[*at].declared_at.line).collect(),
            order,
        })
    }

    /// Returns the change of the struct's declaration in the source.
    pub(crate) fn change(&self) -> Change {
        let members = self.current.members.iter().zip(&self.lines).map(|((name, ..), line)| (name, *line));
        Change::new(self.language, self.line, &self.tag).with_order(members, self.order.iter().copied())
    }

    /// Returns every name of the struct: its tag and its typedefs.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let own = (!self.tag.is_empty()).then(|| self.tag.clone());
        own.into_iter().chain(self.aliases.iter().cloned()).collect()
    }
}

/// Returns whether a declaration's text declares a member as data.
fn is_declared(member: &Member) -> bool {
    member.kind == MemberKind::Data && !member.artificial
}

/// Returns the layout of a struct with these members in their order.
pub(crate) fn layout(types: &Types, members: &[Member], size: u64) -> Layout {
    let placed = members.iter().filter(|member| is_declared(member)).map(|member| {
        let bits = member.bitfield.map_or(member.size.saturating_mul(8), |field| field.size.into());
        (String::from_utf8_lossy(types.name(member.name)).into_owned(), member.bit_offset, bits)
    });
    Layout { size, members: placed.collect() }
}
