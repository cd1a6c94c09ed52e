//! TOML files of sections with numbers, texts and lists of texts.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// A value of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number.
    Number(usize),
    /// A text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

/// The sections of a file with their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    sections: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Config {
    /// Reads a file. Values of other types are left out.
    pub(crate) fn read(file: &Path) -> Result<Config> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{}: cannot read", file.display()))?;
        Config::parse(&text).with_context(|| file.display().to_string())
    }

    /// Parses a file's text.
    pub(crate) fn parse(text: &str) -> Result<Config> {
        let table = DeTable::parse(text)?.into_inner();
        let mut sections = BTreeMap::new();
        for (name, section) in table {
            let name = name.into_inner().into_owned();
            let mut values = BTreeMap::new();
            let section = section.into_inner();
            for (key, value) in section.as_table().into_iter().flatten() {
                let key = key.get_ref().clone().into_owned();
                values.extend(convert(value.get_ref()).map(|value| (key, value)));
            }
            sections.insert(name, values);
        }
        Ok(Config { sections })
    }

    /// Returns the names of the sections.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }

    /// Returns the numbers of a section.
    pub(crate) fn numbers(&self, section: &str) -> BTreeMap<String, usize> {
        let number = |value: &Value| if let Value::Number(number) = value { Some(*number) } else { None };
        self.select(section, number)
    }

    /// Returns the texts of a section.
    pub(crate) fn texts(&self, section: &str) -> BTreeMap<String, String> {
        self.select(section, |value| if let Value::Text(text) = value { Some(text.clone()) } else { None })
    }

    /// Returns the lists of a section.
    pub(crate) fn lists(&self, section: &str) -> BTreeMap<String, Vec<String>> {
        self.select(section, |value| if let Value::List(list) = value { Some(list.clone()) } else { None })
    }

    fn select<T>(&self, section: &str, each: impl Fn(&Value) -> Option<T>) -> BTreeMap<String, T> {
        let values = self.sections.get(section).into_iter().flatten();
        values.filter_map(|(key, value)| Some((key.clone(), each(value)?))).collect()
    }
}

fn convert(value: &DeValue<'_>) -> Option<Value> {
    if let Some(number) = value.as_integer() {
        return usize::from_str_radix(number.as_str(), number.radix()).ok().map(Value::Number);
    }
    if let Some(text) = value.as_str() {
        return Some(Value::Text(text.to_owned()));
    }
    let list = value.as_array()?.iter().map(|one| one.get_ref().as_str().map(str::to_owned));
    list.collect::<Option<_>>().map(Value::List)
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn values_are_told_by_their_type() {
        let config = Config::parse("[a]\nn = 12\nt = \"x\"\nl = [\"y\", \"z\"]\n").expect("parses");
        assert_eq!(config.numbers("a").into_iter().collect::<Vec<_>>(), [("n".to_owned(), 12)]);
        assert_eq!(config.texts("a")["t"], "x");
        assert_eq!(config.lists("a")["l"], ["y", "z"]);
        assert!(config.numbers("b").is_empty());
    }

    #[test]
    fn other_values_are_left_out_and_other_texts_are_errors() {
        let config =
            Config::parse("top = 1\n[a]\nwrong = -1\nflag = true\nn = 1\n[[b]]\nn = 2\n").expect("parses");
        assert_eq!(config.numbers("a").len(), 1);
        assert!(config.numbers("b").is_empty());
        assert!(Config::parse("[a\n").is_err());
    }
}
