//! Descriptions of what is exported: name, labels, unit and help text.

use crate::error::{Error, Result};
use crate::schema::Unit;
use std::borrow::Cow;

/// The name, labels, unit of measurement and help text under which a counter, or array or group of counters, is
/// exported as a metric.
///
/// ```
/// use statctr::{Description, Unit};
///
/// let description = Description::new("rx_bytes")
///     .help("bytes received")
///     .unit(Unit::BYTES)
///     .label("device", "eth0");
/// # drop(description);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    name: Cow<'static, str>,
    help: Cow<'static, str>,
    unit: Unit,
    labels: Vec<Label>,
}

impl Description {
    /// Creates a metric's description with this name, which has to consist of letters, digits, `_` and `:` and not
    /// begin with a digit.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Description {
        Description { name: name.into(), help: Cow::Borrowed(""), unit: Unit::NONE, labels: Vec::new() }
    }

    /// Creates the description (name, help text, unit of measurement) of a counter that is a `static`, in a constant
    /// expression.
    ///
    /// # Panics
    /// For a bad name: where it is evaluated by the compiler, that is an error of the compilation.
    pub(crate) const fn of_static(name: &'static str, help: &'static str, unit: Unit) -> Description {
        assert!(is_name(name, true), "a name has letters, digits, `_` and `:`, and begins with no digit");
        Description { name: Cow::Borrowed(name), help: Cow::Borrowed(help), unit, labels: Vec::new() }
    }

    /// Sets the metric's help text.
    #[must_use]
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Description {
        self.help = help.into();
        self
    }

    /// Sets the unit of measurement of the metric's values; the items (64-bit statistics) of a group have units of
    /// their own instead.
    #[must_use]
    pub fn unit(mut self, unit: Unit) -> Description {
        self.unit = unit;
        self
    }

    /// Adds a label to the metric, with a name of letters, digits and `_`, and any value. The name `__name__` is that of
    /// the metric's own name, and no label.
    #[must_use]
    pub fn label(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Description {
        self.labels.push((name.into(), value.into()));
        self
    }

    /// Returns the metric's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the metric's help text.
    #[must_use]
    pub fn help_text(&self) -> &str {
        &self.help
    }

    /// Returns the unit of measurement of the metric's values.
    pub(crate) fn unit_of_values(&self) -> &Unit {
        &self.unit
    }

    /// Returns the name of the metric values' unit of measurement; empty for no unit.
    #[must_use]
    pub fn unit_name(&self) -> &str {
        self.unit.name()
    }

    /// Returns the metric's labels as pairs (name, value), in the order in which they were added.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns a copy of the metric's description (name, unit and help text) without its labels.
    pub(crate) fn without_labels(&self) -> Description {
        Description { labels: Vec::new(), ..self.clone() }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !is_name(&self.name, true) {
            return Err(Error::BadName(self.name.to_string()));
        }
        for (index, (name, _)) in self.labels.iter().enumerate() {
            let twice = self.labels[..index].iter().any(|(other, _)| other == name);
            if twice || !is_label(name) {
                return Err(Error::BadName(name.to_string()));
            }
        }
        Ok(())
    }

    /// Returns the key by which a registry of metrics admits the metric only once: its name and its labels, sorted.
    pub(crate) fn key(&self) -> Key {
        let mut labels = self.labels.clone();
        labels.sort();
        (self.name.clone(), labels)
    }
}

/// Returns `true` if a text is a valid metric name (`colon`: with `:`), or has the letters of a label name: letters,
/// digits and `_`, no digit first.
pub(crate) const fn is_name(name: &str, colon: bool) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let letter = byte.is_ascii_alphabetic() || byte == b'_' || (colon && byte == b':');
        if !letter && (at == 0 || !byte.is_ascii_digit()) {
            return false;
        }
        at += 1;
    }
    at > 0
}

/// Returns `true` if a text is a valid label name: letters, digits and `_`, no digit first, and not the label by which
/// Prometheus knows a metric's own name.
pub(crate) const fn is_label(name: &str) -> bool {
    is_name(name, false) && !matches!(name.as_bytes(), b"__name__")
}

/// Returns a metric name with `_` in place of what such a name does not have, and before a digit at its start.
pub(crate) fn printable_name(name: String) -> String {
    if is_name(&name, true) {
        return name;
    }
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let kept: String = name.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect();
    if is_name(&kept, true) { kept } else { format!("_{kept}") }
}

type Label = (Cow<'static, str>, Cow<'static, str>);
pub(crate) type Key = (Cow<'static, str>, Vec<Label>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_names_are_names() {
        for (name, printable) in [
            ("good:name_1", "good:name_1"),
            ("bad name\n# x", "bad_name___x"),
            ("1st", "_1st"),
            ("", "_"),
            ("\u{e9}", "_"),
        ] {
            assert_eq!(printable_name(name.to_owned()), printable);
            assert!(is_name(printable, true));
        }
    }
}
