//! Unified diffs as git writes and applies them.

/// The lines of context around a change.
const CONTEXT: usize = 3;

/// The most pairs of lines that are compared; a larger change is shown as one block.
const CELLS: usize = 1 << 24;

/// Returns the differences between two versions of a file as a unified diff that `git apply` and `patch -p1` accept;
/// empty if they are equal. `path` is the file's path relative to the folder in which the patch is applied; it is quoted
/// as git quotes it.
pub fn unified_diff(path: impl AsRef<[u8]>, old: &[u8], new: &[u8]) -> Vec<u8> {
    let (old, new) = (lines(old), lines(new));
    let operations = operations(&old, &new);
    let hunks = hunks(&operations);
    let mut out = Vec::new();
    if hunks.is_empty() {
        return out;
    }
    let (from, to) = (quoted(b"a/", path.as_ref()), quoted(b"b/", path.as_ref()));
    // patch takes what is behind a blank for a date, but for a tab at the end
    let tab = if path.as_ref().contains(&b' ') { "\t" } else { "" };
    out.extend_from_slice(format!("diff --git {from} {to}\n--- {from}{tab}\n+++ {to}{tab}\n").as_bytes());
    for hunk in hunks {
        let count = |is_counted: fn(&Operation) -> bool| hunk.iter().filter(|one| is_counted(one)).count();
        let (taken, given) = (
            count(|one| !matches!(one, Operation::Add(_))),
            count(|one| !matches!(one, Operation::Remove(_))),
        );
        let start = |of: fn(&Operation) -> Option<usize>| hunk.iter().find_map(of).map_or(0, |at| at + 1);
        let from = start(|one| match one {
            Operation::Keep(old, _) | Operation::Remove(old) => Some(*old),
            Operation::Add(_) => None,
        });
        let to = start(|one| match one {
            Operation::Keep(_, new) | Operation::Add(new) => Some(*new),
            Operation::Remove(_) => None,
        });
        out.extend_from_slice(format!("@@ -{from},{taken} +{to},{given} @@\n").as_bytes());
        for one in hunk {
            let (sign, line) = match one {
                Operation::Keep(at, _) => (b' ', old[*at]),
                Operation::Remove(at) => (b'-', old[*at]),
                Operation::Add(at) => (b'+', new[*at]),
            };
            out.push(sign);
            out.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                out.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
    out
}

/// Returns a path behind a prefix as git prints it: between quotes with C's escapes if it has a quote, a backslash, a
/// control character or a byte beyond ASCII.
fn quoted(prefix: &[u8], path: &[u8]) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let bytes = prefix.iter().chain(path);
    if path.iter().all(is_plain) {
        return bytes.map(|byte| char::from(*byte)).collect();
    }
    let escaped = bytes.map(|byte| match byte {
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\n' => "\\n".to_owned(),
        0x0b => "\\v".to_owned(),
        0x0c => "\\f".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        byte if is_plain(byte) => char::from(*byte).to_string(),
        byte => format!("\\{byte:03o}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Keep(usize, usize),
    Remove(usize),
    Add(usize),
}

/// Compares lines by their longest common subsequence, between the first and the last that differ.
fn operations(old: &[&[u8]], new: &[&[u8]]) -> Vec<Operation> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut operations: Vec<Operation> = (0..start).map(|at| Operation::Keep(at, at)).collect();
    operations.extend(middle(a, b).into_iter().map(|one| match one {
        Operation::Keep(x, y) => Operation::Keep(x + start, y + start),
        Operation::Remove(x) => Operation::Remove(x + start),
        Operation::Add(y) => Operation::Add(y + start),
    }));
    operations.extend((0..end).map(|at| Operation::Keep(old.len() - end + at, new.len() - end + at)));
    operations
}

fn middle(a: &[&[u8]], b: &[&[u8]]) -> Vec<Operation> {
    let width = b.len() + 1;
    if (a.len() + 1).saturating_mul(width) > CELLS {
        return (0..a.len()).map(Operation::Remove).chain((0..b.len()).map(Operation::Add)).collect();
    }
    // the length of the longest common subsequence of what is left on both sides
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            longest[x * width + y] = match a[x] == b[y] {
                true => longest[(x + 1) * width + y + 1] + 1,
                false => longest[(x + 1) * width + y].max(longest[x * width + y + 1]),
            };
        }
    }
    let (mut x, mut y) = (0, 0);
    let mut operations = Vec::with_capacity(a.len() + b.len());
    while x < a.len() || y < b.len() {
        if x < a.len() && y < b.len() && a[x] == b[y] {
            operations.push(Operation::Keep(x, y));
            (x, y) = (x + 1, y + 1);
        } else if y == b.len() || x < a.len() && longest[(x + 1) * width + y] >= longest[x * width + y + 1] {
            operations.push(Operation::Remove(x));
            x += 1;
        } else {
            operations.push(Operation::Add(y));
            y += 1;
        }
    }
    operations
}

/// Cuts operations into changes with their context.
fn hunks(operations: &[Operation]) -> Vec<&[Operation]> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, one) in operations.iter().enumerate() {
        if matches!(one, Operation::Keep(..)) {
            continue;
        }
        let (start, end) = (at.saturating_sub(CONTEXT), (at + 1 + CONTEXT).min(operations.len()));
        match hunks.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks.into_iter().map(|hunk| &operations[hunk]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_line_is_removed_and_added() {
        let diff = unified_diff("a/b.h", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", b"1\n3\n4\n5\n2\n6\n7\n8\n9\n");
        let text = String::from_utf8_lossy(&diff);
        assert_eq!(
            text,
            "diff --git a/a/b.h b/a/b.h\n--- a/a/b.h\n+++ b/a/b.h\n@@ -1,8 +1,8 @@\n 1\n-2\n 3\n 4\n 5\n+2\n 6\n 7\n 8\n"
        );
    }

    #[test]
    fn paths_are_quoted_as_git_quotes_them() {
        let head = |path: &str| {
            let diff = unified_diff(path, b"x\n", b"y\n");
            String::from_utf8_lossy(&diff).split("@@").next().unwrap_or_default().to_owned()
        };
        assert_eq!(head("d/a b.h"), "diff --git a/d/a b.h b/d/a b.h\n--- a/d/a b.h\t\n+++ b/d/a b.h\t\n");
        let quoted = "\"a/t\\tb\\\"\\\\\\303\\274\\001.h\"";
        let expected = format!(
            "diff --git {quoted} {}\n--- {quoted}\n+++ {}\n",
            quoted.replacen('a', "b", 1),
            quoted.replacen('a', "b", 1)
        );
        assert_eq!(head("t\tb\"\\ü\u{1}.h"), expected);
    }

    #[test]
    fn equal_texts_have_no_patch_and_missing_line_ends_are_said() {
        assert!(unified_diff("a", b"x\n", b"x\n").is_empty());
        let diff = unified_diff("a", b"x", b"y");
        assert!(diff.ends_with(b"-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"));
    }
}
