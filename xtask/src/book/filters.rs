//! The filters by which shown outputs are compared with those of a run.
//!
//! Nothing is filtered unless the page asks for it, block by block. This is the whole list.

use anyhow::{Result, bail};
use regex::Regex;

/// A filter of outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// Numbers, and the blanks that align columns of them.
    Numbers,
    /// Durations with their units.
    Times,
    /// Hexadecimal addresses of five digits and more.
    Addresses,
    /// Build-ids and checksums: 40 or 64 hexadecimal digits.
    BuildIds,
    /// The event that `tallyline record` took where none was asked for: cycles, or the clock without a PMU; and with
    /// it the kernel's samples, where the machine allows them.
    Events,
    /// The order of lines, where rows with equal figures change places.
    Order,
}

impl Filter {
    /// All filters with their names, and the texts that they take out.
    const ALL: [(Self, &str, &str, &str); 8] = [
        // in front of numbers, of which they have some
        (Self::BuildIds, "build-ids", r"\b([0-9a-f]{64}|[0-9a-f]{40})\b", "BUILD-ID"),
        (Self::Addresses, "addresses", r"\b0x[0-9a-f]{5,16}\b", "ADDRESS"),
        (Self::Times, "times", r"[0-9]+(\.[0-9]+)? ?(ns|µs|us|ms|min|s)\b", "TIME"),
        (
            Self::Events,
            "events",
            r"(?m)^tallyline: no hardware counters here: sampling the clock\n|\b(cpu-clock|cycles)(:\w+)?\b| \(programs( and the kernel)?\)",
            "",
        ),
        (Self::Order, "order", "", ""),
        // a column without a number has a dash
        (Self::Numbers, "numbers", r"(?m)[ \t]+-([ \t]|$)", " N$1"),
        (Self::Numbers, "numbers", r"[ \t]*[-+]?\b[0-9]+([.,][0-9]+)*\b%?", " N"),
        (Self::Numbers, "numbers", r"[ \t]+", " "),
    ];

    /// Returns the filter of a name.
    pub(super) fn named(name: &str) -> Result<Self> {
        match Self::ALL.iter().find(|(_, known, ..)| *known == name) {
            Some((filter, ..)) => Ok(*filter),
            None => {
                let mut known: Vec<&str> = Self::ALL.iter().map(|(_, name, ..)| *name).collect();
                known.dedup();
                bail!("unknown filter `{name}` (expected {})", known.join(", "))
            }
        }
    }

    /// Returns an output with what the filters stand for taken out. Blanks at ends of lines never count.
    pub(super) fn apply(filters: &[Self], output: &str) -> Result<String> {
        let mut text: String = output.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        for (filter, _, pattern, replacement) in Self::ALL {
            if filters.contains(&filter) && !pattern.is_empty() {
                text = Regex::new(pattern)?.replace_all(&text, replacement).into_owned();
            }
        }
        if filters.contains(&Self::Order) {
            // last: numbers would keep equal rows apart
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            text = lines.iter().map(|line| format!("{line}\n")).collect();
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;

    fn filtered(filters: &[Filter], output: &str) -> String {
        Filter::apply(filters, output).expect("patterns compile")
    }

    #[test]
    fn without_a_filter_all_but_blanks_at_the_end_counts() {
        assert_eq!(filtered(&[], "a 1  \nb 0x1234567\n"), "a 1\nb 0x1234567\n");
    }

    #[test]
    fn each_filter_takes_its_own_texts_out() {
        let line = format!("took 1.25 s and 3ms at 0xffff1234 of {} in 7 rounds", "ab".repeat(20));
        for (filter, expected) in [
            (Filter::Times, line.replace("1.25 s", "TIME").replace("3ms", "TIME")),
            (Filter::Addresses, line.replace("0xffff1234", "ADDRESS")),
            (Filter::BuildIds, line.replace(&"ab".repeat(20), "BUILD-ID")),
        ] {
            assert_eq!(filtered(&[filter], &line), expected + "\n");
        }
    }

    #[test]
    fn numbers_are_equal_whatever_their_width() {
        let numbers = [Filter::Numbers];
        assert_eq!(filtered(&numbers, "  80.75  344  x\n"), filtered(&numbers, "100.00 12345  x\n"));
        assert_eq!(filtered(&numbers, "  0.00  -  -\n"), filtered(&numbers, "  0.85  2  3\n"));
        assert_eq!(filtered(&numbers, "+1,234 -5% u64 x2\n"), " N N u64 x2\n");
    }

    #[test]
    fn a_recording_is_the_same_with_hardware_counters_and_without() {
        let clock = "tallyline: no hardware counters here: sampling the clock\n\
                     tallyline: 9 samples of cpu-clock (programs and the kernel) in a.data\n";
        let cycles = "tallyline: 9 samples of cycles:u (programs) in a.data\n";
        assert_eq!(filtered(&[Filter::Events], clock), filtered(&[Filter::Events], cycles));
    }

    #[test]
    fn rows_may_change_places_after_their_numbers_are_gone() {
        let filters = [Filter::Order, Filter::Numbers];
        assert_eq!(
            filtered(&filters, "395 sent\n394 received\n"),
            filtered(&filters, "12 received\n7 sent\n")
        );
        assert_ne!(filtered(&filters, "1 sent\n"), filtered(&filters, "1 sent\n1 sent\n"));
    }

    #[test]
    fn short_hexadecimal_numbers_are_offsets_and_stay() {
        assert_eq!(filtered(&[Filter::Addresses], "0x3c 0xfffe\n"), "0x3c 0xfffe\n");
    }
}
