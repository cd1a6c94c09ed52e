//! The state of the analysis of one function; other modules add its stages as methods.

use super::catalog::Catalog;
use super::catalog::Templates;
use super::globals::Globals;
use super::tag_facts::TagDomain;
use super::value::{State, Value};
use crate::code::{Body, Image, Machine, Register};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::program::{Function, Unit};

/// The maximum number of instructions that are looked at in one function for the indices of all its gathers.
const VECTOR_BUDGET: usize = 1 << 18;

/// The analysis of one function.
pub(super) struct Analysis<'f, 'i, 'u, 'a> {
    pub(super) image: &'f Image,
    pub(super) body: &'f Body,
    pub(super) function: &'f Function,
    pub(super) unit: Option<Rc<Unit<'u, 'a>>>,
    pub(super) globals: &'f Globals<'f>,
    pub(super) catalog: &'f mut Catalog<'i, 'u, 'a>,
    /// Types of functions by address, for calls whose callee debug information does not describe.
    pub(super) prototypes: &'f FxHashMap<u64, TypeId>,
    /// Values of registers at entry that do not come from variables.
    pub(super) at_entry: Vec<(Register, Value)>,
    /// States at the starts of blocks.
    pub(super) states: Vec<Option<State>>,
    pub(super) visits: Vec<u32>,
    // `true` for blocks reached only from behind calls
    pub(super) behind_call: Vec<bool>,
    /// Types of variables, once they are read.
    pub(super) variable_types: Vec<Option<Option<TypeId>>>,
    pub(super) declared: FxHashMap<usize, Value>,
    // innermost scope of each instruction, from 1
    pub(super) innermost: Vec<u32>,
    pub(super) templates: FxHashMap<u32, Templates>,
    /// The remaining number of instructions that may be looked at for the indices of gathers.
    pub(super) vector_budget: usize,
    pub(super) no_return: FxHashMap<u64, bool>,
    /// Domains of enum tags, and the domain of each tag by type and offset.
    pub(super) tag_domains: Vec<TagDomain>,
    pub(super) tag_domain_of: FxHashMap<(TypeId, u32), Option<u32>>,
}

/// Control flow behind an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuation {
    /// The next instruction can be reached.
    FallsThrough,
    /// No instruction behind it can be reached from it.
    Ends,
}

impl<'f, 'i, 'u, 'a> Analysis<'f, 'i, 'u, 'a> {
    pub(super) fn new(
        image: &'f Image,
        body: &'f Body,
        function: &'f Function,
        unit: Option<Rc<Unit<'u, 'a>>>,
        globals: &'f Globals<'f>,
        catalog: &'f mut Catalog<'i, 'u, 'a>,
        prototypes: &'f FxHashMap<u64, TypeId>,
    ) -> Self {
        let mut analysis = Analysis {
            image,
            body,
            function,
            unit,
            globals,
            catalog,
            prototypes,
            at_entry: Vec::new(),
            states: vec![None; body.blocks().len()],
            visits: vec![0; body.blocks().len()],
            behind_call: vec![false; body.blocks().len()],
            variable_types: vec![None; function.variables.len()],
            declared: FxHashMap::default(),
            innermost: Vec::new(),
            templates: FxHashMap::default(),
            vector_budget: VECTOR_BUDGET,
            no_return: FxHashMap::default(),
            tag_domains: Vec::new(),
            tag_domain_of: FxHashMap::default(),
        };
        analysis.find_innermost();
        analysis
    }

    /// Returns the stack pointer's register.
    pub(super) fn stack_register(&self) -> Register {
        match self.image.machine() {
            Machine::X86_64 => Register(7),
            Machine::Aarch64 | Machine::Other => Register(31),
        }
    }

    /// Returns the state at the start of a block; `None` if the block is unreached.
    pub(super) fn state_at(&self, block: usize) -> Option<&State> {
        self.states.get(block)?.as_ref()
    }

    fn find_innermost(&mut self) {
        self.innermost = vec![0; self.body.instructions().len()];
        // inner scopes come after those around them
        for (index, scope) in self.function.scopes.iter().enumerate() {
            for range in &scope.ranges {
                let instructions = self.body.instructions();
                let start = instructions.partition_point(|instruction| instruction.address < range.start);
                let end = instructions.partition_point(|instruction| instruction.address < range.end);
                if let Some(covered) = self.innermost.get_mut(start..end) {
                    covered.fill(index as u32 + 1);
                }
            }
        }
    }

    /// Returns the template arguments of the scopes around an instruction, innermost first.
    pub(super) fn templates(&mut self, position: usize) -> Templates {
        let innermost = self.innermost.get(position).copied().unwrap_or(0);
        if let Some(known) = self.templates.get(&innermost) {
            return known.clone();
        }
        let templates = self.find_templates(innermost);
        self.templates.insert(innermost, templates.clone());
        templates
    }

    fn find_templates(&mut self, innermost: u32) -> Templates {
        let Some(units) = &mut self.catalog.units else { return Templates::default() };
        let mut found: Vec<(String, u64)> = Vec::new();
        let Some(mut scope) = (innermost as usize).checked_sub(1) else { return Templates::default() };
        while let Some(here) = self.function.scopes.get(scope) {
            if let Some(function) = here.function {
                let declared = units.declared(function);
                found.extend(units.templates(declared).iter().cloned());
                if declared != function {
                    found.extend(units.templates(function).iter().cloned());
                }
                if let Some(class) = units.class_of(declared) {
                    found.extend(units.templates(class).iter().cloned());
                }
            }
            if here.parent == scope {
                break;
            }
            scope = here.parent;
        }
        found.into()
    }
}
