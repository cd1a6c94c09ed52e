//! Words of a command line as a shell reads and writes them.

/// The characters at which bash cuts words that are not quoted, where a user has not set others.
const BREAKS: &str = "=:";

/// Splits a command line into words without their quotes. Returns them, the index of the word at the cursor, which is
/// cut there, and its quote if it is open; none where the cursor is not in the line.
pub(super) fn split(line: &str, point: usize) -> Option<(Vec<String>, usize, Option<char>)> {
    let (before, after) = line.split_at_checked(point.min(line.len()))?;
    let (mut words, quote, is_between) = words(before);
    if is_between {
        words.push(String::new());
    }
    let index = words.len().checked_sub(1)?;
    // the rest of the word at the cursor is no word of its own
    let rest = match after.starts_with(char::is_whitespace) {
        true => after,
        false => after.split_once(char::is_whitespace).map_or("", |(_, rest)| rest),
    };
    words.extend(self::words(rest).0);
    Some((words, index, quote))
}

/// Returns the words of a text, the quote that is open at its end, and whether it ends between words.
fn words(text: &str) -> (Vec<String>, Option<char>, bool) {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => {
                let next = letters.next();
                word.get_or_insert_default().extend(next);
            }
            (letter, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    let is_between = word.is_none();
    words.extend(word);
    (words, quote, is_between)
}

/// Returns the text that bash puts in the place of the last part of a word, so that the word becomes another one.
pub(super) fn for_bash(word: &str, whole: &str, quote: Option<char>) -> String {
    if quote.is_some() {
        return whole.to_owned();
    }
    let kept = word.rfind(|letter| BREAKS.contains(letter)).map_or(0, |at| at + 1);
    let rest = whole.get(kept..).unwrap_or(whole);
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:,+@%=".contains(letter);
    let mut quoted = String::new();
    for letter in rest.chars() {
        if !is_plain(letter) {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_the_cursor_and_lose_their_quotes() {
        let at = |line: &str, point| split(line, point).expect("in the line");
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(at("a lay con ./x", 9), (owned(&["a", "lay", "con", "./x"]), 2, None));
        assert_eq!(at("a lay connection ./x", 9), (owned(&["a", "lay", "con", "./x"]), 2, None));
        assert_eq!(at("a lay  ./x", 6), (owned(&["a", "lay", "", "./x"]), 2, None));
        assert_eq!(at("a 'b c' d\\ e", 12), (owned(&["a", "b c", "d e"]), 2, None));
        assert_eq!(at("a 'std::ve", 10), (owned(&["a", "std::ve"]), 1, Some('\'')));
        assert_eq!(split("é", 1), None);
        assert_eq!(at("", 0), (owned(&[""]), 0, None));
    }

    #[test]
    fn bash_gets_the_part_behind_its_last_break() {
        assert_eq!(for_bash("std::ve", "std::vector<int, x>", None), "vector\\<int,\\ x\\>");
        assert_eq!(for_bash("--class=a", "--class=abc", None), "abc");
        assert_eq!(for_bash("a", "a::b", None), "a::b");
        assert_eq!(for_bash("std::ve", "std::vector<int>", Some('\'')), "std::vector<int>");
    }
}
