//! The configuration file. Every error says the line; a name that is not known, what it may have meant.

use super::catalogue::{SETTINGS, Setting};
use anyhow::{Context, Result, anyhow, bail};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::lookup;
use toml::de::{DeTable, DeValue};

/// The variable that names the file; `off` for none.
pub(super) const VARIABLE: &str = "TALLYLINE_CONFIG";

/// The most bytes of a configuration file: what is larger is something else.
const LIMIT: u64 = 1 << 20;

/// The values that a file sets.
#[derive(Debug, Default)]
pub(super) struct File {
    /// The path, whether the file is there or not; none where there is no place for it.
    pub(super) path: Option<PathBuf>,
    /// `true` if the file is there.
    pub(super) exists: bool,
    entries: Vec<Entry>,
}

/// A setting in the file.
#[derive(Debug)]
struct Entry {
    name: &'static str,
    values: Vec<String>,
    line: usize,
}

impl File {
    /// Returns the values of a setting and their line.
    pub(super) fn get(&self, name: &str) -> Option<(&[String], usize)> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some((&entry.values, entry.line))
    }

    /// Reads the user's file; one that is not there sets nothing, unless a variable names it.
    pub(super) fn of_user() -> Result<File> {
        let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        if named.as_deref().is_some_and(|value| value == "off") {
            return Ok(File::default());
        }
        let is_named = named.is_some();
        let Some(path) = named.map(PathBuf::from).or_else(usual_path) else { return Ok(File::default()) };
        match path.metadata() {
            Ok(metadata) if metadata.len() > LIMIT => {
                bail!("{}: {} bytes are too many for a configuration file", path.display(), metadata.len())
            }
            Ok(metadata) if metadata.is_dir() => bail!("{} is a directory", path.display()),
            _ => {}
        }
        let text = match std::fs::read_to_string(&path) {
            // the home folder of a service may be no folder at all, or another user's, as after `setpriv`
            Err(error)
                if !is_named
                    && matches!(
                        error.kind(),
                        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
                    ) =>
            {
                return Ok(File { path: Some(path), ..File::default() });
            }
            text => text.with_context(|| format!("cannot read the configuration file {}", path.display()))?,
        };
        let entries = entries(&text, &path)?;
        Ok(File { path: Some(path), exists: true, entries })
    }
}

/// Returns the file's place by the XDG base directory specification, which ignores relative paths.
fn usual_path() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(std::env::home_dir()?.join(".config")))?;
    Some(base.join("tallyline/config.toml"))
}

fn entries(text: &str, path: &Path) -> Result<Vec<Entry>> {
    let line_of = |offset: usize| {
        1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
    };
    let wrong = |line: usize, message: String| anyhow!("{}:{line}: {message}", path.display());
    let top = DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        wrong(line_of(error.span().map_or(0, |span| span.start)), message)
    })?;
    let folder = path.parent();
    let mut entries = Vec::new();
    let mut tables = vec![(String::new(), top.get_ref())];
    while let Some((prefix, table)) = tables.pop() {
        for (key, value) in table {
            let line = line_of(key.span().start);
            let name = format!("{prefix}{}", key.get_ref());
            let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
                let has_settings =
                    SETTINGS.iter().any(|setting| setting.name.starts_with(&format!("{name}.")));
                match value.get_ref().as_table() {
                    Some(table) if has_settings => {
                        tables.push((format!("{name}."), table));
                        continue;
                    }
                    _ => return Err(wrong(line, unknown(&name))),
                }
            };
            let values = values(setting, value.get_ref(), folder)
                .map_err(|message| wrong(line, format!("{name}: {message}")))?;
            entries.push(Entry { name: setting.name, values, line });
        }
    }
    Ok(entries)
}

/// Returns the error text for a name that is no setting of the configuration file, with similar names or, without such,
/// a setting of another table whose last part is the same or begins like it.
pub(crate) fn unknown(name: &str) -> String {
    let names = || SETTINGS.iter().map(|setting| setting.name);
    let near = lookup::did_you_mean(name, names());
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let near = match (near.is_empty(), name.rsplit('.').next()) {
        (true, Some(own)) => {
            let same = names().find(|name| last(name) == own || last(name).starts_with(own) && own.len() > 2);
            same.map_or_else(
                || "; tallyline config lists them".into(),
                |same| format!("; did you mean {same}?"),
            )
        }
        _ => near,
    };
    format!("unknown setting `{name}`{near}")
}

fn values(setting: &Setting, value: &DeValue<'_>, folder: Option<&Path>) -> Result<Vec<String>, String> {
    let expected = || format!("expected {}", setting.kind.expected());
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
        // as git has it, for what is a program or nothing
        DeValue::Boolean(false) if matches!(setting.kind, super::value::Kind::Text) => Ok(String::new()),
        _ => Err(expected()),
    };
    let texts = match value {
        DeValue::Array(array) if setting.kind.is_list() => {
            array.iter().map(|value| one(value.get_ref())).collect::<Result<Vec<_>, _>>()?
        }
        value => vec![one(value)?],
    };
    texts.iter().map(|text| setting.kind.check(text, folder)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Entry>> {
        entries(text, Path::new("/etc/x/config.toml"))
    }

    #[test]
    fn names_of_tables_and_settings_are_told_with_their_lines() {
        let entries = read("cacheline-size = 128\n\n[report]\nsort = \"type\"\n").expect("valid");
        let mut lines: Vec<_> =
            entries.iter().map(|entry| (entry.name, entry.line, &entry.values[..])).collect();
        lines.sort();
        let (size, keys) = (vec!["128".to_owned()], vec!["type".to_owned()]);
        assert_eq!(lines, [("cacheline-size", 1, &size[..]), ("report.sort", 4, &keys[..])]);
    }

    #[test]
    fn errors_name_the_line_and_what_was_meant() {
        let cases = [
            ("\ncolour = \"auto\"", "/etc/x/config.toml:2: unknown setting `colour`; did you mean color?"),
            (
                "color = \"alway\"",
                ":1: color: `alway` is not one of auto, always, never; did you mean always?",
            ),
            ("sort = \"type\"", ":1: unknown setting `sort`; did you mean report.sort?"),
            ("[report]\nsrt = 1", ":2: unknown setting `report.srt`; did you mean report.sort?"),
            ("[reprot]\nsort = \"type\"", ":1: unknown setting `reprot`; tallyline config lists them"),
            ("cacheline-size = 0", ":1: cacheline-size: `0` is not a number from 1 to 65536"),
            ("cacheline-size = true", ":1: cacheline-size: expected a number from 1 to 65536"),
            ("path-prefix-map = [\"x\"]", ":1: path-prefix-map: no `=`"),
            ("color = ", ":1: "),
        ];
        for (text, expected) in cases {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn paths_start_from_the_folder_of_the_file() {
        let entries = read("debug-folders = [\"/a\", \"b\"]").expect("valid");
        assert_eq!(entries[0].values, ["/a", "/etc/x/b"]);
    }
}
