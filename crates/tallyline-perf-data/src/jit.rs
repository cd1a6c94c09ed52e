//! Symbols of code that a program compiled for itself: `/tmp/perf-PID.map`, as perf defines it.

/// The functions that a JIT compiler made, by address, from its file `/tmp/perf-PID.map`. Lines that make no
/// sense are skipped, as perf does.
#[derive(Clone, Debug, Default)]
pub struct JitMap {
    /// First address, end, name; by first address.
    symbols: Vec<(u64, u64, String)>,
}

impl JitMap {
    /// Returns the path of the file in which a process's JIT compiler lists its functions.
    pub fn path(pid: i32) -> String {
        format!("/tmp/perf-{pid}.map")
    }

    /// Parses a JIT compiler's list: an address and a length in hexadecimal digits, and a name, which may
    /// have blanks, on each line. A later line stands for code that was compiled again.
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        let mut symbols: Vec<_> = lines.filter_map(|line| symbol(std::str::from_utf8(line).ok()?)).collect();
        symbols.reverse();
        symbols.sort_by_key(|(start, ..)| *start);
        symbols.dedup_by_key(|(start, ..)| *start);
        Self { symbols }
    }

    /// Creates a map of functions that are known by their start addresses only: each extends to the next.
    pub fn of_starts(mut starts: Vec<(u64, String)>) -> Self {
        // a stable sort: of several names of one address the first one counts
        starts.sort_by_key(|(start, _)| *start);
        starts.dedup_by_key(|(start, _)| *start);
        let ends: Vec<u64> = starts.iter().skip(1).map(|(start, _)| *start).chain([u64::MAX]).collect();
        Self {
            symbols: starts.into_iter().zip(ends).map(|((start, name), end)| (start, end, name)).collect(),
        }
    }

    /// Returns the name of the JIT-compiled function at an address, and the address's offset in it.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let index = self.symbols.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        let (start, end, name) = &self.symbols[index];
        (address < *end).then(|| (name.as_str(), address - start))
    }

    /// Returns the number of JIT-compiled functions.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Returns `true` if there are no JIT-compiled functions.
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
