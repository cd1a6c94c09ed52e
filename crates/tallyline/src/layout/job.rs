//! The job that a command line describes: the types to read, their files, and the output.

use super::select::Names;
use super::source;
use anyhow::Result;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Format, PointerTargets, Request, UnitFilter, Wanted};
use tallyline_layout::print::pahole::Style;
use tallyline_layout::query::Filter;

/// The path of the running kernel's BTF, which describes its types.
pub(crate) const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// The query of a layout command: types by name, or structs that contain, or point to, a type.
#[derive(Debug)]
pub(crate) enum Ask {
    /// The types of these names, or all.
    Types(Names),
    /// Records with a member of a type.
    Containers {
        /// The name of the type that the member has.
        name: String,
        /// `true` to also list, indented, the types of a record's members that contain such a member.
        recursive: bool,
        /// `true` to also show the number of such members in each record.
        counted: bool,
    },
    /// Members that point to a type.
    PointersTo(String),
    /// Enumerations with a constant.
    Enumerator(String),
}

/// The output of a layout command for each selected type: its definition, its size, its name and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// The definition of the type.
    Definition,
    /// The definition of the type after the definitions that it needs to compile.
    Compilable,
    /// The type's name, size and number of holes.
    Sizes,
    /// The type's name and number of members.
    Members,
    /// The type's name and the length of the name.
    NameLength,
    /// The name of the type.
    Name,
    /// The type's name and the number of its definitions.
    Definitions,
    /// The unit that defines the type, without the type's name.
    Unit,
}

/// A parsed layout command: files to read, the query, and the output.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) files: Vec<PathBuf>,
    /// The formats to read, in order of preference; empty for any.
    pub(crate) formats: Vec<Format>,
    pub(crate) btf_base: Option<PathBuf>,
    pub(crate) ask: Ask,
    pub(crate) show: Show,
    pub(crate) style: Style,
    pub(crate) filter: Filter,
    pub(crate) units: UnitFilter,
    /// `true` to print the unit and place of each definition before it.
    pub(crate) positions: bool,
    /// `true` if declarations' places are read, though not shown before each type.
    pub(crate) with_places: bool,
    /// `true` to also show unnamed types that have a typedef.
    pub(crate) anonymous: bool,
    /// `true` to also show unnamed types without a typedef.
    pub(crate) nested_anonymous: bool,
    /// `true` to also show types inside functions and other types.
    pub(crate) inner: bool,
    pub(crate) sort: bool,
    pub(crate) separator: char,
    /// `true` to ignore names of types that do not exist.
    pub(crate) skip_missing: bool,
    /// `true` to show bitfields that are as wide as their types as plain members.
    pub(crate) widen_bitfields: bool,
    /// `true` to stop at the first name of a type that does not exist.
    pub(crate) stop_at_missing: bool,
}

impl Default for Job {
    fn default() -> Job {
        Job {
            files: Vec::new(),
            formats: Vec::new(),
            btf_base: None,
            ask: Ask::Types(Names::default()),
            show: Show::Definition,
            style: Style::default(),
            filter: Filter::default(),
            units: UnitFilter::default(),
            positions: false,
            with_places: false,
            anonymous: false,
            nested_anonymous: false,
            inner: false,
            sort: false,
            separator: '\t',
            skip_missing: false,
            widen_bitfields: false,
            stop_at_missing: false,
        }
    }
}

impl Job {
    /// Reads the types that the layout command needs from its files. If a requested name has several types, reads again
    /// with source positions, which tell them apart in the output.
    pub(crate) fn read_and_locate(&mut self) -> Result<Types> {
        let types = self.read()?;
        match &self.ask {
            // of names that are read alone they mostly come with the types
            Ask::Types(names)
                if types.sources().next().is_none()
                    && !self.request().positions
                    && names.are_ambiguous(&types) =>
            {
                drop(types);
                self.with_places = true;
                self.read()
            }
            _ => Ok(types),
        }
    }

    /// Reads the types that the layout command needs.
    pub(crate) fn read(&self) -> Result<Types> {
        let parts = self.files.iter().map(|file| {
            let types = source::read_first(file, &self.formats, &self.request(), self.btf_base.as_deref())?;
            source::warn(file, &types);
            Ok(types)
        });
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        let mut types = match parts.len() {
            1 => parts.remove(0),
            _ => Types::merged(parts)?,
        };
        if self.widen_bitfields {
            types.widen_bitfields();
        }
        Ok(types)
    }

    /// Returns `true` if the layout command prints type definitions in C.
    pub(crate) fn shows_definitions(&self) -> bool {
        let of_types = matches!(self.ask, Ask::Types(_) | Ask::Enumerator(_));
        of_types && matches!(self.show, Show::Definition | Show::Compilable)
    }

    /// Returns the file whose types can be printed part by part while it is read; `None` if the layout command needs
    /// all types together.
    pub(crate) fn in_parts(&self) -> Option<&Path> {
        let all = matches!(&self.ask, Ask::Types(names) if names.is_empty());
        let together = self.sort
            || self.anonymous
            || self.nested_anonymous
            || self.request().positions
            || self.style.expand_pointers
            || self.show == Show::Compilable;
        match &self.files[..] {
            [file] if all && !together => {
                source::has_parts(file, &self.formats, self.btf_base.as_deref()).then_some(file)
            }
            _ => None,
        }
    }

    /// Returns the request to the reader of debug information: the types and details that the layout command needs.
    pub(crate) fn request(&self) -> Request {
        let wanted = match &self.ask {
            Ask::Types(names) => match names.wanted() {
                // what patterns match may then be inside of functions, or have no name
                Wanted::Matching(_) if self.inner || self.anonymous || self.nested_anonymous => {
                    Wanted::Records
                }
                wanted => wanted,
            },
            Ask::Containers { .. } | Ask::PointersTo(_) => Wanted::Records,
            Ask::Enumerator(name) => Wanted::Enumerator(name.clone().into()),
        };
        let sizes_only = !matches!(self.show, Show::Definition | Show::Compilable);
        let Filter { packed, flexible, embedded_flexible, .. } = self.filter;
        let looks_inside = packed || flexible || embedded_flexible;
        let sources =
            self.positions || self.with_places || matches!(self.show, Show::Definitions | Show::Unit);
        Request {
            typedefs: matches!(wanted, Wanted::Matching(_)),
            wanted,
            format: None,
            cacheline: self.style.cacheline,
            units: self.units.clone(),
            inner: self.inner,
            exact: matches!(&self.ask, Ask::Types(names) if !names.is_empty()),
            anonymous: self.anonymous || self.nested_anonymous,
            pointer_targets: match self.show {
                _ if self.style.expand_pointers => PointerTargets::Contents,
                Show::Compilable => PointerTargets::Declarations,
                _ => PointerTargets::Names,
            },
            sizes_only,
            shallow: sizes_only && matches!(self.ask, Ask::Types(_)) && !looks_inside,
            positions: sources || self.filter.declared_exclude.is_some(),
            each_place: false,
        }
    }
}
