//! Kinds of DIEs.

use gimli::constants::{self, DwTag};

/// Returns `true` if a tag is that of a record: a struct, union, class or interface.
pub(super) fn is_record(tag: DwTag) -> bool {
    matches!(
        tag,
        constants::DW_TAG_structure_type
            | constants::DW_TAG_union_type
            | constants::DW_TAG_class_type
            | constants::DW_TAG_interface_type
    )
}

/// Returns `true` if a tag is that of a type that has a name of its own.
pub(super) fn is_named_type(tag: DwTag) -> bool {
    is_record(tag)
        || matches!(
            tag,
            constants::DW_TAG_typedef | constants::DW_TAG_enumeration_type | constants::DW_TAG_template_alias
        )
}

/// Returns `true` if a tag is that of a template argument, of the template that the parent is an instance of.
pub(super) fn is_template_argument(tag: DwTag) -> bool {
    matches!(
        tag,
        constants::DW_TAG_template_type_parameter
            | constants::DW_TAG_template_value_parameter
            | constants::DW_TAG_GNU_template_template_param
            | constants::DW_TAG_GNU_template_parameter_pack
    )
}
