//! Dependencies of the tool, by `cargo tree`.

use super::{Measure, Tree};
use anyhow::{Context, Result};

/// Packages that the tool should not need: a C compiler's driver, and a peer of the benchmarks.
const UNWANTED: [&str; 2] = ["cc", "contatori"];

pub(super) fn measure(tree: &Tree<'_>) -> Result<Vec<Measure>> {
    let words =
        ["tree", "-p", "tallyline", "-e", "all", "--all-features", "--target", "all", "--prefix", "none"];
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(words)
        .current_dir(tree.root)
        .output()
        .context("cargo tree")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let found = unwanted(&String::from_utf8_lossy(&output.stdout));
    Ok(vec![Measure {
        name: "unwanted-dependencies",
        title: "packages that building the tool should not need",
        count: found.len(),
        places: found
            .iter()
            .map(|name| format!("crates/tallyline/Cargo.toml: {name} in `cargo tree -p tallyline`"))
            .collect(),
        note: (!found.is_empty()).then(|| found.join(", ")),
    }])
}

fn unwanted(tree: &str) -> Vec<&'static str> {
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    UNWANTED.into_iter().filter(|name| names.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_whole_words() {
        assert_eq!(super::unwanted("tallyline v0.1.0\ncc v1.2\ncc-like v1\n[build-dependencies]\n"), ["cc"]);
        assert!(super::unwanted("tallyline v0.1.0\naccc v1\n").is_empty());
    }
}
