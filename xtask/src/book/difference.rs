//! Differences between a shown output and that of a run, line by line.

/// The most lines of either side that are compared in full: the table has a cell for every pair.
const LIMIT: usize = 2000;

/// Returns the lines of both, `-` in front of those shown only, `+` of those of the run only.
pub(super) fn lines(shown: &str, ran: &str) -> Vec<String> {
    let (shown, ran): (Vec<&str>, Vec<&str>) = (shown.lines().collect(), ran.lines().collect());
    let start = shown.iter().zip(&ran).take_while(|(shown, ran)| shown == ran).count();
    let mut lines: Vec<String> = shown[..start].iter().map(|line| format!("  {line}")).collect();
    let (shown, ran) = (&shown[start..], &ran[start..]);
    if shown.len() > LIMIT || ran.len() > LIMIT {
        lines.push(format!(
            "from line {} on, {} lines shown, {} of the run",
            start + 1,
            shown.len(),
            ran.len()
        ));
        return lines;
    }
    // lengths of the longest common subsequences of what is left from each pair of lines on
    let width = ran.len() + 1;
    let mut common = vec![0_usize; (shown.len() + 1) * width];
    for (row, left) in shown.iter().enumerate().rev() {
        for (column, right) in ran.iter().enumerate().rev() {
            let [below, beside] = [common[(row + 1) * width + column], common[row * width + column + 1]];
            common[row * width + column] = match left == right {
                true => 1 + common[(row + 1) * width + column + 1],
                false => below.max(beside),
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < shown.len() || column < ran.len() {
        match (shown.get(row), ran.get(column)) {
            (Some(left), Some(right)) if left == right => {
                lines.push(format!("  {left}"));
                row += 1;
                column += 1;
            }
            (Some(left), right)
                if right.is_none()
                    || common[(row + 1) * width + column] >= common[row * width + column + 1] =>
            {
                lines.push(format!("- {left}"));
                row += 1;
            }
            (_, Some(right)) => {
                lines.push(format!("+ {right}"));
                column += 1;
            }
            (_, None) => break,
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn common_lines_stand_once_between_those_of_either_side() {
        assert_eq!(lines("a\nb\nc\nd\n", "a\nX\nc\nd\ne\n"), ["  a", "- b", "+ X", "  c", "  d", "+ e"]);
    }

    #[test]
    fn equal_texts_have_no_marked_line() {
        assert!(lines("a\nb\n", "a\nb\n").iter().all(|line| line.starts_with("  ")));
    }

    #[test]
    fn an_empty_side_leaves_the_other() {
        assert_eq!(lines("", "a\n"), ["+ a"]);
        assert_eq!(lines("a\n", ""), ["- a"]);
    }
}
