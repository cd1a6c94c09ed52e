//! Functions' types: prototypes and pointers to functions.

use super::{Printer, frame::Frame};
use tallyline_debuginfo::model::{
    Function, FunctionId, NameId, Parameter, Pointer, Qualifier, RecordId, Type, TypeId,
};

impl Printer<'_> {
    /// Prints `returns (*name)(parameters)`, with the column of types as wide as `width`. `points` stands
    /// before the name.
    pub(super) fn prototype(&mut self, id: FunctionId, name: Option<&[u8]>, points: &[u8], width: i64) {
        let function = self.types.function(id);
        self.prototype_of(function, self.types.parameters(function), name, points, width);
    }

    /// Prints `returns (Class::*name)(parameters)`: the object that the member is called for is no parameter
    /// in C++.
    pub(super) fn member_prototype(&mut self, id: FunctionId, class: TypeId, name: &[u8], width: i64) {
        let function = self.types.function(id);
        let mut parameters = self.types.parameters(function);
        if let [this, rest @ ..] = parameters
            && let Type::Pointer { kind: Pointer::Pointer, to } = self.types.get(this.ty)
            && self.types.type_name(self.types.strip(to)) == self.types.type_name(class)
        {
            parameters = rest;
        }
        let class = self.types.name(self.types.type_name(class));
        self.prototype_of(function, parameters, Some(name), &[class, b"::*"].concat(), width);
    }

    fn prototype_of(
        &mut self,
        function: Function,
        parameters: &[Parameter],
        name: Option<&[u8]>,
        points: &[u8],
        width: i64,
    ) {
        if !self.enter() {
            return;
        }
        let start = self.out.len();
        self.type_name(function.returns);
        self.pad_from(start, width);
        self.put(b" (");
        self.put(points);
        self.put(name.unwrap_or_default());
        self.put(b")(");
        for (index, parameter) in parameters.iter().enumerate() {
            if index != 0 {
                self.put(b", ");
            }
            self.parameter(parameter.ty, parameter.name);
        }
        self.put(match (parameters.is_empty(), function.variadic) {
            (true, _) => b"void)".as_slice(),
            (false, true) => b", ...)",
            (false, false) => b")",
        });
        self.leave();
    }

    fn parameter(&mut self, ty: TypeId, name: NameId) {
        let named = name.is_some().then(|| self.types.name(name));
        if self.nested_parameter(ty, named) {
            return;
        }
        if let Type::Pointer { kind: Pointer::Pointer, to } = self.types.get(ty)
            && let Type::Function(function) = self.types.get(to)
        {
            return self.prototype(function, named, b"*", 0);
        }
        self.type_name(ty);
        if let Some(name) = named {
            self.put(b" ");
            self.put(name);
        }
    }

    /// Prints the definition of a typedef.
    pub(super) fn typedef(&mut self, name: NameId, of: TypeId, frame: &Frame<'_>) {
        let name = self.types.name(name);
        self.put(b"typedef ");
        let mut target = of;
        for _ in 0..super::DEPTH_LIMIT {
            let Type::Qualified { qualifier: Qualifier::Atomic, of } = self.types.get(target) else { break };
            self.put(b"_Atomic ");
            target = of;
        }
        if self.nested(target, Some(name), &Frame { type_width: 0, ..*frame }) {
            return;
        }
        match self.types.get(target) {
            Type::Array(array) => self.array(array, name, frame),
            Type::Function(function) => self.prototype(function, Some(name), b"", 0),
            Type::Pointer { kind: Pointer::Pointer, to } if self.is_function(to) => {
                if let Type::Function(function) = self.types.get(to) {
                    self.prototype(function, Some(name), b"*", 0);
                }
            }
            Type::Record(record) => self.typedef_of_record(record, name, frame),
            Type::Enum(item) if !self.types.enumeration(item).name.is_some() => {
                self.enumeration(item, &Frame { suffix: Some(name), ..*frame });
            }
            _ => {
                self.type_name(target);
                self.put(b" ");
                self.put(name);
            }
        }
    }

    fn is_function(&self, id: TypeId) -> bool {
        matches!(self.types.get(id), Type::Function(_))
    }

    fn typedef_of_record(&mut self, id: RecordId, name: &[u8], frame: &Frame<'_>) {
        let record = self.types.record(id);
        if record.name.is_some() && !self.style.expand_types {
            let keyword = if record.is_union() { "union" } else { "struct" };
            self.fmt(format_args!("{keyword} "));
            let start = self.out.len();
            let tag = self.tag_text(keyword, record.name);
            self.put(&tag);
            // pahole pads the names of unions here, and of structs not
            if record.is_union() {
                self.pad_from(start, frame.type_width - 6);
            }
            self.put(b" ");
            self.put(name);
            return;
        }
        let inner = Frame { type_width: frame.type_width - 8, suffix: Some(name), ..*frame };
        if record.is_union() { self.union_body(id, &inner) } else { self.record_body(id, &inner) }
    }
}
