//! Symbols of code that a program compiled for itself: `/tmp/perf-PID.map`, as perf defines it.

/// Symbols of code without an ELF file, by address: the functions that a JIT compiler listed in `/tmp/perf-PID.map`, or
/// the kernel's symbols.
#[derive(Clone, Debug, Default)]
pub struct JitMap {
    /// First address, end, name; by first address.
    symbols: Vec<(u64, u64, String)>,
}

impl JitMap {
    /// Returns the path of the map file that the JIT compiler of process `pid` writes: `/tmp/perf-PID.map`.
    pub fn path(pid: i32) -> String {
        format!("/tmp/perf-{pid}.map")
    }

    /// Parses a JIT compiler's `/tmp/perf-PID.map`: a line for each function, with address and length in hexadecimal,
    /// and name, which may contain blanks. A later line replaces an earlier one with the same address; malformed lines
    /// are skipped, as by perf.
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        let mut symbols: Vec<_> = lines.filter_map(|line| symbol(std::str::from_utf8(line).ok()?)).collect();
        symbols.reverse();
        symbols.sort_by_key(|(start, ..)| *start);
        symbols.dedup_by_key(|(start, ..)| *start);
        Self { symbols }
    }

    /// Creates a map of symbols from their start addresses and names alone, as `/proc/kallsyms` lists them: each symbol
    /// extends to the next one's start.
    pub fn of_starts(mut starts: Vec<(u64, String)>) -> Self {
        // a stable sort: of several names of one address the first one counts
        starts.sort_by_key(|(start, _)| *start);
        starts.dedup_by_key(|(start, _)| *start);
        let ends: Vec<u64> = starts.iter().skip(1).map(|(start, _)| *start).chain([u64::MAX]).collect();
        Self {
            symbols: starts.into_iter().zip(ends).map(|((start, name), end)| (start, end, name)).collect(),
        }
    }

    /// Returns the name of the listed function (JIT-compiled, or the kernel's) that contains an address, and the
    /// address's offset in it; `None` if none does.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let index = self.symbols.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        let (start, end, name) = &self.symbols[index];
        (address < *end).then(|| (name.as_str(), address - start))
    }

    /// Returns the number of listed functions (JIT-compiled, or the kernel's).
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Returns `true` if no functions (JIT-compiled, or the kernel's) are listed.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }
}

fn symbol(line: &str) -> Option<(u64, u64, String)> {
    let number = |digits: &str| u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok();
    let (start, rest) = line.split_once(' ')?;
    let (len, name) = rest.split_once(' ')?;
    let start = number(start)?;
    let end = start.checked_add(number(len)?)?;
    (!name.is_empty()).then(|| (start, end, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address_and_the_last_line_counts() {
        let map = JitMap::parse(b"1000 10 old name\nnonsense\n\nffffffffffffffff 2 over the end\n0x2000 20 two\n1000 18 new name\n\xff\xff 1 x");
        assert_eq!(map.len(), 2);
        assert_eq!(map.find(0x1017), Some(("new name", 0x17)));
        assert_eq!(map.find(0x1018), None);
        assert_eq!(map.find(0x2000), Some(("two", 0)));
        assert_eq!(map.find(0xfff), None);
    }
}
