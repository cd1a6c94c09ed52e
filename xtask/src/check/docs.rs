//! Doc blocks that open with a clause instead of a noun or a verb.

use super::{Measure, Tree};
use crate::source;
use anyhow::{Context, Result};

/// First words of clauses and of references to something that stands elsewhere.
const CLAUSES: [&str; 11] =
    ["What", "How", "Whether", "Where", "Which", "Who", "When", "The same", "As above", "As in", "As ["];

/// The highest share of such blocks that the project wants, in thousandths.
const WANTED: usize = 30;

pub(super) fn measure(tree: &Tree<'_>) -> Result<Vec<Measure>> {
    let mut all = 0;
    let mut places = Vec::new();
    for file in source::files(tree.root, &["*.rs", "*.h", "*.hpp"])? {
        let text = std::fs::read(tree.root.join(&file)).with_context(|| file.display().to_string())?;
        for (line, opening) in blocks(&String::from_utf8_lossy(&text)) {
            all += 1;
            if opens_with_clause(opening) {
                places.push(format!("{}:{line}: {opening}", file.display()));
            }
        }
    }
    let share = (places.len() * 1000).checked_div(all).unwrap_or(0);
    let wanted = all * WANTED / 1000;
    Ok(vec![Measure {
        name: "doc-clauses",
        title: "doc blocks that open with a clause",
        count: places.len(),
        places,
        note: Some(format!(
            "{}.{} % of {all} blocks, target under {} % ({wanted})",
            share / 10,
            share % 10,
            WANTED / 10
        )),
    }])
}

/// Returns the line and the first text of each doc block: lines of `///` or `//!` one below the other,
/// or a comment from `/**` on.
fn blocks(text: &str) -> Vec<(usize, &str)> {
    let mut blocks = Vec::new();
    let mut open = None;
    let mut has_text = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let doc = [("///", false), ("//!", false), ("/**", true)]
            .into_iter()
            .find_map(|(mark, alone)| Some((mark, alone, line.strip_prefix(mark)?)))
            .filter(|(mark, _, rest)| {
                !(*mark == "///" && rest.starts_with('/') || *mark == "/**" && rest.starts_with(['*', '/']))
            });
        let Some((mark, alone, rest)) = doc else {
            // the first text of `/**` may stand on the next line
            if open == Some("/**") && !has_text {
                let rest = line.trim_start_matches('*').trim();
                if !rest.is_empty() && rest != "/" {
                    blocks.push((number + 1, rest));
                    has_text = true;
                }
                continue;
            }
            open = None;
            continue;
        };
        if open != Some(mark) || alone {
            has_text = false;
        }
        open = Some(mark);
        let rest = rest.trim().trim_start_matches('<').trim();
        if !has_text && !rest.is_empty() {
            blocks.push((number + 1, rest.trim_end_matches("*/").trim()));
            has_text = true;
        }
    }
    blocks
}

fn opens_with_clause(opening: &str) -> bool {
    CLAUSES.iter().any(|clause| {
        opening
            .strip_prefix(clause)
            .is_some_and(|rest| clause.ends_with('[') || !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::{blocks, opens_with_clause};

    #[test]
    fn a_block_is_what_stands_together() {
        let text =
            "//! Module.\n//! More.\n\n/// One.\n///\n/// Two.\nfn f() {}\n    /// Three.\n//// no doc\n";
        assert_eq!(blocks(text), [(1, "Module."), (4, "One."), (8, "Three.")]);
    }

    #[test]
    fn headers_have_comments_of_several_lines() {
        let text = "/** What it is. */\nint a;\n/**\n * How many.\n */\nint b; /**< After. */\n/*** no doc ***/\n///< Member.\n";
        assert_eq!(blocks(text), [(1, "What it is."), (4, "How many."), (8, "Member.")]);
    }

    #[test]
    fn clauses_are_told_by_whole_words() {
        for clause in
            ["What it is.", "Whether to.", "The same as `f`.", "As above, but", "As [`f`]", "Where, and how"]
        {
            assert!(opens_with_clause(clause), "{clause}");
        }
        for fine in ["Whatever comes", "Returns what", "The samename", "Asserts", "However", "`What`"] {
            assert!(!opens_with_clause(fine), "{fine}");
        }
    }
}
