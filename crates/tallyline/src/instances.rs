//! Numbers of instances of types.

use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::path::Path;

/// The number of live objects of each type, by type name, to weigh savings; 1 for a type that is not listed.
#[derive(Debug, Default)]
pub(crate) struct Instances(HashMap<String, u64>);

impl Instances {
    /// Reads the number of live objects of each type from a file with lines `TYPE COUNT`, or from a copy of the
    /// kernel's `/proc/slabinfo`. Without a file, no type is listed.
    pub(crate) fn read(path: Option<&Path>) -> Result<Instances> {
        let Some(path) = path else { return Ok(Instances::default()) };
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        parse(&text).with_context(|| path.display().to_string())
    }

    /// Returns the number of objects of the type with this name; 1 if it is not listed.
    pub(crate) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(1)
    }
}

fn parse(text: &str) -> Result<Instances> {
    let mut counts = HashMap::new();
    let is_slabinfo = text.starts_with("slabinfo - version");
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("slabinfo -") {
            continue;
        }
        // of a cache the second number counts what it has memory for
        let (name, count) = if is_slabinfo {
            let mut words = line.split_whitespace();
            (words.next(), words.nth(1))
        } else {
            let split = line.rsplit_once(char::is_whitespace);
            (split.map(|(name, _)| name.trim()), split.map(|(_, count)| count))
        };
        let count: Option<u64> = count.and_then(|count| count.parse().ok());
        let (Some(name), Some(count)) = (name, count) else {
            bail!("line {}: not TYPE COUNT: {line}", index + 1);
        };
        let name = name.strip_prefix("struct ").unwrap_or(name);
        counts.insert(name.to_string(), count);
    }
    Ok(Instances(counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_counts_one_a_line() {
        let counts = parse("# live\nstruct dentry 1000\nstd::pair<int, long> 7\n\n").expect("good");
        assert_eq!((counts.of("dentry"), counts.of("std::pair<int, long>"), counts.of("x")), (1000, 7, 1));
        assert!(parse("dentry\n").is_err());
        assert!(parse("dentry many\n").is_err());
    }

    #[test]
    fn caches_of_the_kernel() {
        let text = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize> : tunables\n\
                    dentry 100 210 192 21 1 : tunables 0 0 0 : slabdata 10 10 0\n";
        assert_eq!(parse(text).expect("good").of("dentry"), 210);
    }
}
