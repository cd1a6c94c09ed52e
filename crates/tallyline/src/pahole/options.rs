//! pahole's options: their names, and what each does here.

use super::argp::{Argument, Opt};
use super::key::Key;

const ENCODING: &str = "encodes BTF";
const PRETTY: &str = "prints raw data";

const fn flag(long: &'static str, short: char, key: Key, doc: &'static str) -> Opt {
    Opt { long, short: Some(short), argument: Argument::None, key, doc }
}

const fn long(long: &'static str, key: Key, doc: &'static str) -> Opt {
    Opt { long, short: None, argument: Argument::None, key, doc }
}

const fn with(long: &'static str, short: char, argument: &'static str, key: Key, doc: &'static str) -> Opt {
    Opt { long, short: Some(short), argument: Argument::Required(argument), key, doc }
}

const fn long_with(long: &'static str, argument: &'static str, key: Key, doc: &'static str) -> Opt {
    Opt { long, short: None, argument: Argument::Required(argument), key, doc }
}

/// All options of pahole. A prefix of a long name stands for the only option that starts with it.
pub(super) const OPTIONS: &[Opt] = &[
    flag("anon_include", 'a', Key::AnonInclude, "also types without a name that a typedef names"),
    flag("nested_anon_include", 'A', Key::NestedAnonInclude, "with -a, also those without a typedef"),
    with("bit_holes", 'B', "NR_HOLES", Key::BitHoles, "only structs with so many holes of bits or more"),
    long_with("btf_base", "PATH", Key::BtfBase, "the BTF that the file's goes on from"),
    with("cacheline_size", 'c', "SIZE", Key::CachelineSize, "the size of a cache line"),
    with("class_name", 'C', "CLASS_NAME", Key::ClassName, "only these types"),
    long("classes_as_structs", Key::ClassesAsStructs, "`struct' also for classes"),
    long("compile", Key::Compile, "before each type those that it needs"),
    with("contains", 'i', "CLASS_NAME", Key::Contains, "structs with a member of this type"),
    long_with(
        "contains_enumerator",
        "ENUMERATOR",
        Key::ContainsEnumerator,
        "enumerations with this constant",
    ),
    with("cu_exclude", 'X', "PREFIX", Key::CuExclude, "no types of units whose names start so"),
    with("decl_exclude", 'D', "PREFIX", Key::DeclExclude, "no types declared in files whose paths start so"),
    flag("defined_in", 'u', Key::DefinedIn, "the unit that defines the types of -C"),
    with("exclude", 'x', "PREFIX", Key::Exclude, "no types whose names start so"),
    flag("expand_types", 'E', Key::ExpandTypes, "unfold the types of members"),
    with("find_pointers_to", 'f', "CLASS_NAME", Key::FindPointersTo, "members that point to this type"),
    long("flat_arrays", Key::FlatArrays, "several dimensions as one"),
    with("format_path", 'F', "FORMAT_LIST", Key::FormatPath, "formats to try, in this order: dwarf, btf"),
    long("hex", Key::Hex, "numbers in hexadecimal"),
    with("hole_size_ge", 'z', "HOLE_SIZE", Key::HoleSize, "only structs with a hole of this size or larger"),
    with("holes", 'H', "NR_HOLES", Key::Holes, "only structs with so many holes or more"),
    long_with("lang", "LANGUAGES", Key::Lang, "only units in these languages"),
    long_with("lang_exclude", "LANGUAGES", Key::LangExclude, "no units in these languages"),
    flag("class_name_len", 'N', Key::NameLength, "how long names are"),
    flag("nr_definitions", 'T', Key::NrDefinitions, "how many units define each type"),
    flag("nr_members", 'n', Key::NrMembers, "how many members each type has"),
    flag("show_only_data_members", 'M', Key::OnlyData, "only members that take space"),
    long("packed", Key::Packed, "only packed structs"),
    long_with(
        "padding",
        "SIZE_PADDING",
        Key::Padding,
        "only structs with so many bytes of padding at the end",
    ),
    long_with("padding_ge", "SIZE_PADDING", Key::PaddingAtLeast, "the same, or more"),
    with("prefix_filter", 'y', "PREFIX", Key::Prefix, "only types whose names start so"),
    flag("quiet", 'q', Key::Quiet, "no offsets, notes and sums"),
    flag("recursive", 'd', Key::Recursive, "with -i, also which members have one"),
    flag("rel_offset", 'r', Key::RelativeOffsets, "offsets relative to the inner struct"),
    with("separator", 't', "SEP", Key::Separator, "what stands between columns"),
    flag("show_decl_info", 'I', Key::Positions, "file and line of each type"),
    flag(
        "show_first_biggest_size_base_type_member",
        'l',
        Key::FirstBiggest,
        "the first of the largest members that a word can hold",
    ),
    long("show_private_classes", Key::Private, "also types inside of functions and other types"),
    flag("sizes", 's', Key::Sizes, "sizes and numbers of holes"),
    long("skip_missing", Key::SkipMissing, "go on after a type that is not there"),
    long("sort", Key::Sort, "sort by name"),
    long("structs", Key::Structs, "only structs"),
    long("suppress_aligned_attribute", Key::SuppressAligned, "no alignments"),
    long("suppress_force_paddings", Key::SuppressForcePadding, "no bitfields that stand for padding"),
    long("suppress_packed", Key::SuppressPacked, "not what is packed"),
    long("unions", Key::Unions, "only unions"),
    flag("verbose", 'V', Key::Verbose, "with -i, also how many; with -z, whole types"),
    long("with_flexible_array", Key::WithFlexibleArray, "only structs that end with a flexible array"),
    long(
        "with_embedded_flexible_array",
        Key::WithEmbeddedFlexibleArray,
        "only structs that hold one that ends with a flexible array",
    ),
    long("first_obj_only", Key::Nothing, "taken for pahole's sake"),
    long_with("hashbits", "BITS", Key::Nothing, "taken for pahole's sake"),
    long_with("features", "FEATURE_LIST", Key::Nothing, "taken for pahole's sake"),
    long_with("kabi_prefix", "STRING", Key::Nothing, "taken for pahole's sake"),
    Opt {
        long: "jobs",
        short: Some('j'),
        argument: Argument::Optional("NR_JOBS"),
        key: Key::Nothing,
        doc: "taken for pahole's sake: every CPU is used",
    },
    flag("btf_encode", 'J', Key::Elsewhere(ENCODING), ENCODING),
    long_with("btf_encode_detached", "FILENAME", Key::Elsewhere(ENCODING), ENCODING),
    long("btf_encode_force", Key::Nothing, "with -J"),
    long("btf_attributes", Key::Nothing, "with -J"),
    long_with("btf_features", "FEATURE_LIST", Key::Nothing, "with -J"),
    long_with("btf_features_strict", "FEATURE_LIST_STRICT", Key::Elsewhere(ENCODING), ENCODING),
    long("btf_gen_all", Key::Nothing, "with -J"),
    long("btf_gen_floats", Key::Nothing, "with -J"),
    long("btf_gen_optimized", Key::Nothing, "with -J"),
    long("reproducible_build", Key::Nothing, "with -J"),
    long(
        "skip_emitting_atomic_typedefs",
        Key::SkipAtomic,
        "with --compile, no typedefs of atomic base types",
    ),
    long("skip_encoding_btf_decl_tag", Key::Nothing, "with -J"),
    long("skip_encoding_btf_enum64", Key::Nothing, "with -J"),
    long("skip_encoding_btf_inconsistent_proto", Key::Nothing, "with -J"),
    long("skip_encoding_btf_type_tag", Key::Nothing, "with -J"),
    long("skip_encoding_btf_vars", Key::Nothing, "with -J"),
    long("supported_btf_features", Key::Elsewhere(ENCODING), ENCODING),
    flag("ctf_encode", 'Z', Key::Elsewhere("encodes CTF"), "encodes CTF"),
    long_with("prettify", "PATH", Key::Elsewhere(PRETTY), PRETTY),
    long_with("count", "COUNT", Key::Elsewhere(PRETTY), PRETTY),
    long_with("skip", "COUNT", Key::Elsewhere(PRETTY), PRETTY),
    long_with("seek_bytes", "BYTES", Key::Elsewhere(PRETTY), PRETTY),
    long_with("size_bytes", "BYTES", Key::Elsewhere(PRETTY), PRETTY),
    long_with("header_type", "TYPE", Key::Elsewhere(PRETTY), PRETTY),
    long_with("range", "STRUCT", Key::Elsewhere(PRETTY), PRETTY),
    flag("expand_pointers", 'p', Key::ExpandPointers, "unfold what members point to"),
    flag("nr_methods", 'm', Key::Elsewhere("counts functions"), "counts functions"),
    flag("packable", 'P', Key::Packable, "which structs can be smaller: size, new size, bytes saved"),
    flag("reorganize", 'R', Key::Reorganize, "the structs of -C as small as they can be"),
    flag("show_reorg_steps", 'S', Key::Steps, "with -R, each move"),
    with("word_size", 'w', "WORD_SIZE", Key::Elsewhere("changes sizes"), "changes sizes"),
    long("fixup_silly_bitfields", Key::Fixup, "bitfields as wide as their types are plain members"),
    long("running_kernel_vmlinux", Key::RunningVmlinux, "the file that the running kernel was made as"),
    long("ptr_table_stats", Key::Nothing, "taken for pahole's sake: it counts its own tables"),
    long("devel_version", Key::Version, "the version"),
    long("numeric_version", Key::NumericVersion, "the version as a number"),
    flag("help", '?', Key::Help, "this list"),
    long("usage", Key::Usage, "a short list"),
    long("version", Key::Version, "the version"),
    long_with("program-name", "NAME", Key::Nothing, ""),
];
