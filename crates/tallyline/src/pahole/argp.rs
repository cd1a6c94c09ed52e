//! Command lines as the C library's `argp` takes them apart: short options bundled, long ones
//! abbreviated as long as only one fits, options and operands in any order.

use super::key::Key;

/// An option's argument: none, or one with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    None,
    Required(&'static str),
    /// An optional argument with this name, accepted only in the option's own word.
    Optional(&'static str),
}

/// An option of the command line: its names, its argument and its help.
#[derive(Debug)]
pub(super) struct Opt {
    pub(super) long: &'static str,
    pub(super) short: Option<char>,
    pub(super) argument: Argument,
    pub(super) key: Key,
    pub(super) doc: &'static str,
}

/// An option that was given, with its argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) key: Key,
    /// The option's argument; empty if there is none.
    pub(super) value: String,
    /// The option's name in messages.
    pub(super) name: &'static str,
}

/// A command line taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) options: Vec<Given>,
    pub(super) operands: Vec<String>,
}

/// Takes a command line apart; what is wrong with it if it cannot be.
pub(super) fn parse(options: &[Opt], words: &[String]) -> Result<Parsed, String> {
    let mut parsed = Parsed::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.operands.extend(words.cloned());
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            parsed.options.push(long_option(options, long, &mut words)?);
        } else if word.len() > 1 && word.starts_with('-') {
            short_options(options, &word[1..], &mut words, &mut parsed.options)?;
        } else {
            parsed.operands.push(word.clone());
        }
    }
    Ok(parsed)
}

fn long_option<'w>(
    options: &[Opt],
    word: &str,
    words: &mut impl Iterator<Item = &'w String>,
) -> Result<Given, String> {
    let (name, attached) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let option = find(options, name)?;
    let value = match (option.argument, attached) {
        (Argument::None, Some(_)) => {
            return Err(format!("option '--{}' doesn't allow an argument", option.long));
        }
        (Argument::Required(_), None) => match words.next() {
            Some(word) => word.clone(),
            None => return Err(format!("option '--{}' requires an argument", option.long)),
        },
        (_, attached) => attached.unwrap_or_default().to_string(),
    };
    Ok(Given { key: option.key, value, name: option.long })
}

fn find<'o>(options: &'o [Opt], name: &str) -> Result<&'o Opt, String> {
    if let Some(option) = options.iter().find(|option| option.long == name) {
        return Ok(option);
    }
    let fitting: Vec<&Opt> = options.iter().filter(|option| option.long.starts_with(name)).collect();
    match fitting.as_slice() {
        [] => Err(format!("unrecognized option '--{name}'")),
        [one] => Ok(one),
        several => {
            let names: Vec<String> = several.iter().map(|option| format!("'--{}'", option.long)).collect();
            Err(format!("option '--{name}' is ambiguous; possibilities: {}", names.join(" ")))
        }
    }
}

fn short_options<'w>(
    options: &[Opt],
    letters: &str,
    words: &mut impl Iterator<Item = &'w String>,
    given: &mut Vec<Given>,
) -> Result<(), String> {
    for (index, letter) in letters.char_indices() {
        let Some(option) = options.iter().find(|option| option.short == Some(letter)) else {
            return Err(format!("invalid option -- '{letter}'"));
        };
        let rest = &letters[index + letter.len_utf8()..];
        let value = match option.argument {
            Argument::None => {
                given.push(Given { key: option.key, value: String::new(), name: option.long });
                continue;
            }
            Argument::Required(_) if rest.is_empty() => match words.next() {
                Some(word) => word.clone(),
                None => return Err(format!("option requires an argument -- '{letter}'")),
            },
            _ => rest.to_string(),
        };
        given.push(Given { key: option.key, value, name: option.long });
        return Ok(());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::options::OPTIONS;
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Parsed, String> {
        parse(OPTIONS, &words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
    }

    fn keys(words: &[&str]) -> Vec<(Key, String)> {
        let parsed = parse_words(words).expect("understood");
        parsed.options.into_iter().map(|given| (given.key, given.value)).collect()
    }

    #[test]
    fn short_options_are_bundled_and_take_the_rest_as_their_argument() {
        let line = (Key::CachelineSize, "32".to_string());
        for words in [&["-Ec32"][..], &["-Ec", "32"], &["-E", "--cacheline_size=32"], &["-E", "--cach", "32"]]
        {
            assert_eq!(keys(words), [(Key::ExpandTypes, String::new()), line.clone()], "{words:?}");
        }
        assert_eq!(keys(&["-j", "-j4"]), [(Key::Nothing, String::new()), (Key::Nothing, "4".into())]);
    }

    #[test]
    fn long_options_are_abbreviated_as_long_as_one_fits() {
        assert_eq!(keys(&["--flat"]), keys(&["--flat_arrays"]).as_slice());
        let error = parse_words(&["--suppress_"]).expect_err("several fit");
        assert!(
            error.starts_with("option '--suppress_' is ambiguous; possibilities: '--suppress_"),
            "{error}"
        );
        assert_eq!(keys(&["--packed"]), [(Key::Packed, String::new())]);
        assert_eq!(
            parse_words(&["--hex=3"]).expect_err("no argument"),
            "option '--hex' doesn't allow an argument"
        );
    }

    #[test]
    fn options_and_operands_stand_in_any_order_until_two_dashes() {
        let parsed = parse_words(&["a.o", "-E", "-", "--", "-s"]).expect("understood");
        assert_eq!(parsed.operands, ["a.o", "-", "-s"]);
        assert_eq!(parsed.options.len(), 1);
    }

    #[test]
    fn every_name_is_there_once() {
        for (index, option) in OPTIONS.iter().enumerate() {
            let same = |other: &Opt| {
                other.long == option.long || option.short.is_some() && other.short == option.short
            };
            assert!(!OPTIONS[index + 1..].iter().any(same), "{}", option.long);
        }
    }
}
