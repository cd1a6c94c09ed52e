//! The settings: their names, values, variables and options. The parser of the configuration file, the variables, the
//! defaults of options, `tallyline config` and its example are made from this table.

use super::value::Kind;

/// A setting of the configuration file: its name, kind of value, description, and the option that overrides it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The setting's name in the configuration file; the part before a dot is the name of a table.
    pub(crate) name: &'static str,
    /// The kind of the setting's value.
    pub(super) kind: Kind,
    /// The setting's value if nothing sets it.
    pub(crate) default: &'static str,
    /// The environment variable of tallyline that sets the setting.
    pub(crate) variable: &'static str,
    /// The variable of many programs that sets it, if there is one: weaker than the file.
    pub(crate) common_variable: Option<&'static str>,
    /// The option that sets it, without dashes, if there is one.
    pub(crate) option: Option<&'static str>,
    /// The sub-commands that have the option; empty for an option of all.
    pub(crate) commands: &'static [&'static str],
    /// The description of the setting, in one line.
    pub(crate) about: &'static str,
    /// The setting's value in the example of a configuration file.
    pub(crate) example: &'static str,
}

impl Setting {
    /// Returns `true` if the setting's value is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.kind.is_list()
    }
}

const WHEN: Kind = Kind::Choice(&["auto", "always", "never"]);

/// All settings that the configuration file may have, in the order of `tallyline config`.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "color",
        kind: WHEN,
        default: "auto",
        variable: "TALLYLINE_COLOR",
        common_variable: Some("NO_COLOR"),
        option: Some("color"),
        commands: &[],
        about: "Colours in the output: auto (on a terminal), always, never",
        example: "\"auto\"",
    },
    Setting {
        name: PAGER,
        kind: Kind::Text,
        default: "less -FRX",
        variable: "TALLYLINE_PAGER",
        common_variable: Some("PAGER"),
        option: Some("no-pager"),
        commands: &[],
        about: "The program that shows long output on a terminal; \"\" or \"cat\" for none",
        example: "\"less -FRX\"",
    },
    Setting {
        name: HYPERLINKS,
        kind: WHEN,
        default: "auto",
        variable: "TALLYLINE_HYPERLINKS",
        common_variable: None,
        option: Some("hyperlinks"),
        commands: &[],
        about: "Links from FILE:LINE to files: auto (where they work), always, never",
        example: "\"auto\"",
    },
    Setting {
        name: HYPERLINK_FORMAT,
        kind: Kind::LinkFormat,
        default: "file://{host}{path}",
        variable: "TALLYLINE_HYPERLINK_FORMAT",
        common_variable: None,
        option: None,
        commands: &[],
        about: "The address of a link, with {host}, {path} and {line}",
        example: "\"vscode://file{path}:{line}\"",
    },
    Setting {
        name: "cacheline-size",
        kind: Kind::Bytes { least: 1, most: 1 << 16 },
        default: "64",
        variable: "TALLYLINE_CACHELINE_SIZE",
        common_variable: None,
        option: Some("cacheline-size"),
        commands: &["layout", "groups", "check", "diff", "reorganize", "lsp"],
        about: "The size of a cache line in bytes; policies and recordings override it",
        example: "128",
    },
    Setting {
        name: "report.sort",
        kind: Kind::SortKeys,
        default: crate::report::DEFAULT_KEYS,
        variable: "TALLYLINE_REPORT_SORT",
        common_variable: None,
        option: Some("sort"),
        commands: &["report"],
        about: "The sort keys of tallyline report, comma-separated",
        example: "\"type,typeoff,sym\"",
    },
    Setting {
        name: "mem.sort",
        kind: Kind::SortKeys,
        default: crate::report::MEMORY_KEYS,
        variable: "TALLYLINE_MEM_SORT",
        common_variable: None,
        option: Some("sort"),
        commands: &["mem"],
        about: "The sort keys of tallyline mem",
        example: "\"mem,type,typeoff\"",
    },
    Setting {
        name: DEBUG_FOLDERS,
        kind: Kind::Paths,
        default: "/usr/lib/debug",
        variable: "TALLYLINE_DEBUG_FOLDER",
        common_variable: None,
        option: None,
        commands: &[],
        about: "The folders to search for debug files of stripped programs, in this order",
        example: "[\"/usr/lib/debug\", \"~/symbols\"]",
    },
    Setting {
        name: "vmlinux",
        kind: Kind::Path,
        default: "",
        variable: "TALLYLINE_VMLINUX",
        common_variable: None,
        option: Some("vmlinux"),
        commands: &["report", "annotate", "mem", "sharing", "replay"],
        about: "The kernel file with debug information; \"\" for where distributions put it",
        example: "\"~/linux/vmlinux\"",
    },
    Setting {
        name: PATH_PREFIX_MAP,
        kind: Kind::PrefixMaps,
        default: "",
        variable: "TALLYLINE_PATH_PREFIX_MAP",
        common_variable: None,
        option: Some("path-prefix-map"),
        commands: &["check"],
        about: "OLD=NEW: replace the prefix OLD of source paths by NEW",
        example: "[\"/build/server=.\"]",
    },
    Setting {
        name: CACHE,
        kind: Kind::CacheFolder,
        default: "",
        variable: "TALLYLINE_CACHE",
        common_variable: None,
        option: Some("no-cache"),
        commands: &["report", "annotate", "mem", "sharing"],
        about: "The folder for cached types; \"off\" for none, \"\" for ~/.cache/tallyline",
        example: "\"off\"",
    },
];

pub(crate) const PAGER: &str = "pager";
pub(crate) const HYPERLINKS: &str = "hyperlinks";
pub(crate) const HYPERLINK_FORMAT: &str = "hyperlink-format";
pub(crate) const DEBUG_FOLDERS: &str = "debug-folders";
pub(crate) const PATH_PREFIX_MAP: &str = "path-prefix-map";
pub(crate) const CACHE: &str = "cache";
