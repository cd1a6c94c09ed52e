//! Sort keys, by perf's names: what rows are made of.
//!
//! A key turns a sample into a number and that number into a text. One file for each group of keys,
//! one line of registration in [`ALL`] for each.

mod code;
mod cost;
mod data;
mod memory;
mod task;
mod types;

use super::counts::Counts;
use super::profile::Profile;
use super::samples::{MergeGranularity, SampleGroup};
use std::fmt;

/// A sort key of `tallyline report -s`: its name, its column title, and the functions that compute and format a
/// sample's value.
pub struct Key {
    /// perf's name for the sort key.
    pub name: &'static str,
    /// Other names for the sort key.
    pub(crate) aliases: &'static [&'static str],
    /// The title of the key's column.
    pub title: &'static str,
    /// The information about samples that the key needs.
    pub needs: Needs,
    /// The function that computes the value by which rows are told apart.
    pub value: fn(&Profile, &SampleGroup) -> u64,
    /// The function that formats a value, in a row with these counts.
    pub text: fn(&Profile, u64, &Counts) -> String,
}

/// The look-ups that a sort key needs before its values can be computed: symbols, source lines, types, callers, and
/// so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// `true` if the key needs the functions that samples are in.
    pub symbols: bool,
    /// `true` if the key needs the variables that samples access, by data address.
    pub data_symbols: bool,
    /// `true` if the key needs the source lines of samples.
    pub lines: bool,
    /// `true` if the key needs the types that sampled instructions access.
    pub types: bool,
    /// `true` if parts of containers' nodes are types of their own, as perf has them, instead of the nodes.
    pub parts: bool,
    /// `true` if the key needs calling functions, also where only copies of the stack tell them.
    pub callers: bool,
    /// The granularity at which equal samples are merged; with [`MergeGranularity::None`] all of them are.
    pub apart: MergeGranularity,
}

impl Needs {
    /// The needs of a sort key that uses only what the recording itself says: no look-ups.
    pub const NONE: Needs = Needs {
        symbols: false,
        data_symbols: false,
        lines: false,
        types: false,
        parts: false,
        callers: false,
        apart: MergeGranularity::None,
    };
    /// A look-up of the functions that samples are in.
    pub const SYMBOLS: Needs = Needs { symbols: true, ..Needs::NONE };
    /// A look-up of the variables that samples access, by data address.
    pub const DATA: Needs = Needs { data_symbols: true, ..Needs::NONE };
    /// A look-up of the source lines of samples, and of function names for code without lines.
    pub const LINES: Needs = Needs { symbols: true, lines: true, ..Needs::NONE };
    /// A look-up of the functions that called the sampled ones, by call chain or copy of the stack.
    pub(crate) const CALLERS: Needs = Needs { symbols: true, callers: true, ..Needs::NONE };
    /// The inference of the types that sampled instructions access.
    pub const TYPES: Needs = Needs { types: true, ..Needs::NONE };
    /// The need for the data address of every single sample, computed from registers where it was not recorded.
    pub const ADDRESSES: Needs = Needs { types: true, apart: MergeGranularity::Addresses, ..Needs::NONE };
    /// The need for the CPU of each sample: equal samples are merged only if they are of one CPU.
    pub const CPUS: Needs = Needs { apart: MergeGranularity::Cpus, ..Needs::NONE };
    /// The need for single samples in time order: equal ones are not merged.
    pub const SAMPLES: Needs = Needs { apart: MergeGranularity::Samples, ..Needs::NONE };

    /// Returns the union of two sets of needs: the look-ups that at least one of two sort keys needs.
    pub fn and(self, other: Needs) -> Needs {
        Needs {
            symbols: self.symbols || other.symbols,
            data_symbols: self.data_symbols || other.data_symbols,
            lines: self.lines || other.lines,
            types: self.types || other.types,
            parts: self.parts || other.parts,
            callers: self.callers || other.callers,
            apart: self.apart.max(other.apart),
        }
    }
}

/// All sort keys of `tallyline report -s`, in the order of the help.
pub const ALL: &[&Key] = &[
    &task::PID,
    &task::TGID,
    &task::COMM,
    &task::CPU,
    &task::SOCKET,
    &code::DSO,
    &code::SYMBOL,
    &code::SYMBOL_OFFSET,
    &code::SOURCE_FILE,
    &code::SOURCE_LINE,
    &code::CALLER,
    &code::ADDRESS,
    &code::PAGE_SIZE,
    &cost::LOCAL_WEIGHT,
    &cost::WEIGHT,
    &cost::LOCAL_INSTRUCTION,
    &cost::INSTRUCTION,
    &cost::LOCAL_RETIRE,
    &cost::RETIRE,
    &cost::LOCAL_STAGE,
    &cost::STAGE,
    &types::TYPE,
    &types::TYPE_OFFSET,
    &types::TYPE_LINE,
    &memory::LEVEL,
    &memory::SNOOP,
    &memory::TLB,
    &memory::LOCKED,
    &memory::BLOCKED,
    &data::LINE,
    &data::SYMBOL,
    &data::DSO,
    &data::PHYSICAL,
    &data::PAGE_SIZE,
];

/// A column of a report: a sort key, or a total such as the number of samples.
#[derive(Clone, Copy)]
pub enum Column {
    /// A sort key, by whose values rows are told apart.
    Key(&'static Key),
    /// The sum of the periods.
    Period,
    /// The number of samples.
    Samples,
}

impl Column {
    /// Returns the heading of this column of a report.
    pub fn title(&self) -> &'static str {
        match self {
            Column::Key(key) => key.title,
            Column::Period => "Period",
            Column::Samples => "Samples",
        }
    }

    /// Returns the sort key of this column of a report; `None` for a column of totals, such as the number of samples.
    pub fn key(&self) -> Option<&'static Key> {
        match self {
            Column::Key(key) => Some(key),
            _ => None,
        }
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key().map_or(self.title(), |key| key.name))
    }
}

/// Parses the argument of `tallyline report -s`: a comma-separated list of sort keys and columns of totals.
///
/// # Errors
/// A message that quotes the unknown name and lists those that exist.
pub fn parse(list: &str) -> Result<Vec<Column>, String> {
    let mut columns: Vec<Column> = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let column = match name {
            "period" => Column::Period,
            "sample" | "samples" => Column::Samples,
            // the share of each row is there anyway
            "overhead" => continue,
            name => Column::Key(find(name)?),
        };
        let is_there = columns.iter().any(|other| match (other.key(), column.key()) {
            (Some(a), Some(b)) => a.name == b.name,
            (None, None) => other.title() == column.title(),
            _ => false,
        });
        if !is_there {
            columns.push(column);
        }
    }
    if columns.is_empty() {
        return Err("no sort key; try type,typeoff".to_owned());
    }
    Ok(columns)
}

fn find(name: &str) -> Result<&'static Key, String> {
    let known = ALL.iter().find(|key| key.name == name || key.aliases.contains(&name));
    known.copied().ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|key| key.name).chain(["period", "sample"]).collect();
        format!("no sort key {name}; there are {}", names.join(" "))
    })
}

/// Returns the letter that perf puts before a symbol: in whose code it is.
pub(super) fn level(mode: tallyline_perf_data::sample::CpuMode) -> char {
    use tallyline_perf_data::sample::CpuMode;
    match mode {
        CpuMode::Kernel => 'k',
        CpuMode::User => '.',
        CpuMode::Hypervisor => 'H',
        CpuMode::GuestKernel => 'g',
        CpuMode::GuestUser => 'u',
        CpuMode::Unknown => '!',
    }
}

/// Formats the size of a page as perf does.
fn page_size(bytes: u64) -> String {
    match bytes {
        0 => "N/A".to_owned(),
        bytes if bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
        bytes if bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_once_each_and_a_wrong_one_is_told_with_the_right_ones() {
        let columns = parse("type, symbol,sym,period,overhead,period").expect("known names");
        let titles: Vec<_> = columns.iter().map(Column::title).collect();
        assert_eq!(titles, ["Data Type", "Symbol", "Period"]);
        let wrong = parse("type,tpye").expect_err("a typing error");
        assert!(wrong.contains("tpye") && wrong.contains("typecln"), "{wrong}");
        assert!(parse(" ,").is_err());
    }

    #[test]
    fn no_name_stands_for_two_keys() {
        let mut names: Vec<_> = ALL.iter().flat_map(|key| key.aliases.iter().chain([&key.name])).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
