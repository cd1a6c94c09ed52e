//! Values of settings: their kinds, and their check.

use crate::path_map::PrefixMap;
use crate::report::Columns;
use std::path::Path;
use tallyline_debuginfo::lookup;

/// The kind of a setting's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// One word of a fixed set.
    Choice(&'static [&'static str]),
    /// A number of bytes from `least` to `most`.
    Bytes { least: u64, most: u64 },
    /// Any text.
    Text,
    /// The address of a link with placeholders, of which `{path}` is required.
    LinkFormat,
    /// Comma-separated sort keys.
    SortKeys,
    /// The path of a file.
    Path,
    /// The path of a folder, or `off`.
    CacheFolder,
    /// A list of folder paths.
    Paths,
    /// A list of path prefixes and their replacements.
    PrefixMaps,
}

impl Kind {
    /// Returns `true` if a setting's value of this kind is a list.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Kind::Paths | Kind::PrefixMaps)
    }

    /// Describes the values that are accepted in the file.
    pub(super) fn expected(self) -> String {
        match self {
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Bytes { least, most } => format!("a number from {least} to {most}"),
            Kind::Paths | Kind::PrefixMaps => "a list of texts".into(),
            _ => "a text".into(),
        }
    }

    /// Checks one value, or one element of a list. Relative paths start from `folder`, and `~/` is the home folder.
    pub(super) fn check(self, text: &str, folder: Option<&Path>) -> Result<String, String> {
        match self {
            Kind::Choice(words) if words.contains(&text) => Ok(text.into()),
            Kind::Choice(words) => {
                let near = lookup::did_you_mean(text, words.iter().copied());
                Err(format!("`{text}` is not {}{near}", self.expected()))
            }
            Kind::Bytes { least, most } => match text.parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
                _ => Err(format!("`{text}` is not {}", self.expected())),
            },
            Kind::SortKeys => Columns::parse(text).map(|_| text.into()),
            Kind::LinkFormat if text.contains("{path}") => Ok(text.into()),
            Kind::LinkFormat => Err(format!("`{text}` has no {{path}}")),
            Kind::PrefixMaps => text.parse::<PrefixMap>().map(|_| text.into()),
            Kind::CacheFolder if text == "off" => Ok(text.into()),
            Kind::Path | Kind::Paths | Kind::CacheFolder => path(text, folder),
            Kind::Text => Ok(text.into()),
        }
    }
}

/// Returns a path that does not depend on the working folder.
fn path(text: &str, folder: Option<&Path>) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let path = match (text.strip_prefix("~/"), folder) {
        (Some(rest), _) => std::env::home_dir().ok_or("there is no home folder for ~/")?.join(rest),
        (None, Some(folder)) => folder.join(text),
        (None, None) => text.into(),
    };
    path.to_str().map(str::to_owned).ok_or_else(|| format!("{} is not UTF-8", path.display()))
}
