//! Settings, and what each comes from: options beat the program's own variables, these the configuration file, that
//! the variables of many programs (`PAGER`, `NO_COLOR`), and those the defaults.
//!
//! Most settings are the default of an option: [`give_defaults`] makes them that before the command line is parsed, so a
//! sub-command reads its options and knows of no file.

mod catalogue;
mod file;
mod value;

pub(crate) use catalogue::{
    CACHE, DEBUG_FOLDERS, HYPERLINK_FORMAT, HYPERLINKS, PAGER, PATH_PREFIX_MAP, SETTINGS, Setting,
};
pub(crate) use file::unknown;

use anyhow::{Result, anyhow};
use clap::Command;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name of the program's own command, beside those of its sub-commands.
const PROGRAM: &str = "tallyline";

/// The origin of a setting's value: the default, the configuration file, an environment variable, or an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The built-in default, as nothing sets the setting.
    Default,
    /// A line of the configuration file, which sets the setting.
    File { path: PathBuf, line: usize },
    /// An environment variable, by its name.
    Variable(&'static str),
    /// A command-line option, by its name with the dashes.
    Option(String),
}

impl Display for Origin {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(out, "default"),
            Origin::File { path, line } => write!(out, "{}:{line}", path.display()),
            Origin::Variable(name) => write!(out, "environment: {name}"),
            Origin::Option(name) => write!(out, "option: {name}"),
        }
    }
}

/// The current value of a setting of tallyline, with its origin (default, configuration file, environment variable,
/// option).
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) setting: &'static Setting,
    /// The values of the setting: any number for a list, else one.
    pub(crate) values: Vec<String>,
    pub(crate) origin: Origin,
}

/// The current values of all settings of tallyline, with their origins (default, configuration file, environment
/// variable, option).
#[derive(Debug)]
pub(crate) struct Settings {
    all: Vec<Current>,
    /// The path of the configuration file, which need not exist; none if no file is used.
    pub(crate) path: Option<PathBuf>,
    /// `true` if the configuration file exists.
    pub(crate) has_file: bool,
}

impl Settings {
    /// Reads the settings from the configuration file and from environment variables.
    pub(crate) fn load() -> Result<Settings> {
        let file = file::File::of_user()?;
        let all = SETTINGS.iter().map(|setting| current(setting, &file)).collect::<Result<_>>()?;
        Ok(Settings { all, path: file.path, has_file: file.exists })
    }

    /// Returns the default values of all settings, ignoring configuration file and environment.
    pub(crate) fn defaults() -> Settings {
        let all = SETTINGS.iter().map(default).collect();
        Settings { all, path: None, has_file: false }
    }

    /// Returns all settings with values and origins, in the order of the catalogue.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Current> {
        self.all.iter()
    }

    /// Returns the values of a setting whose value is a list.
    pub(crate) fn list(&self, name: &str) -> &[String] {
        self.all.iter().find(|current| current.setting.name == name).map_or(&[], |current| &current.values)
    }

    /// Returns the value of a setting as text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.list(name).first().map_or("", String::as_str)
    }

    /// Returns `true` if the value of the setting `name` is not just its default: the configuration file, an
    /// environment variable or an option sets it.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.all.iter().any(|current| current.setting.name == name && current.origin != Origin::Default)
    }

    /// Sets a setting to the value that a command-line option gives.
    pub(crate) fn set_by_option(&mut self, name: &str, value: &str) {
        for current in self.all.iter_mut().filter(|current| current.setting.name == name) {
            let option = current.setting.option.unwrap_or_default();
            current.values = vec![value.to_owned()];
            current.origin = Origin::Option(format!("--{option}"));
        }
    }

    /// Records the values of the settings as the defaults that [`give_defaults`] gives to command-line options. Later
    /// calls have no effect.
    pub(crate) fn make_defaults(&self) {
        let is_given = |current: &&Current| {
            current.origin != Origin::Default && !current.values.iter().any(String::is_empty)
        };
        let defaults = self.all.iter().filter(is_given).filter_map(|current| {
            let option = current.setting.option?;
            Some(OptionDefault { option, commands: current.setting.commands, values: current.values.clone() })
        });
        // a process has one command line
        let _ = DEFAULTS.set(defaults.collect());
    }
}

/// The default of an option that a setting gives.
#[derive(Debug)]
struct OptionDefault {
    option: &'static str,
    /// The sub-commands that have the option; none for an option of the program.
    commands: &'static [&'static str],
    values: Vec<String>,
}

/// Defaults of options. Static, as `Command::defer` takes a plain function, which captures nothing.
static DEFAULTS: OnceLock<Vec<OptionDefault>> = OnceLock::new();

/// Makes the values of settings the defaults of the command-line options of the program or of one of its sub-commands.
pub(crate) fn give_defaults(command: Command) -> Command {
    let is_of =
        |name: &str, commands: &[&str]| commands.contains(&name) || commands.is_empty() && name == PROGRAM;
    let name = command.get_name().to_owned();
    let defaults = DEFAULTS.get().into_iter().flatten().filter(|default| is_of(&name, default.commands));
    defaults.fold(command, |command, default| with_default(command, default.option, &default.values))
}

/// Gives an option that takes values a default.
fn with_default(command: Command, option: &str, values: &'static [String]) -> Command {
    let found = command.get_arguments().find(|arg| arg.get_long() == Some(option));
    let Some(id) = found.filter(|arg| arg.get_action().takes_values()).map(|arg| arg.get_id().clone()) else {
        return command;
    };
    command.mut_arg(id, |arg| arg.default_values(values.iter().map(String::as_str)))
}

fn default(setting: &'static Setting) -> Current {
    let values = match setting.kind.is_list() && setting.default.is_empty() {
        true => Vec::new(),
        false => vec![setting.default.to_owned()],
    };
    Current { setting, values, origin: Origin::Default }
}

fn current(setting: &'static Setting, file: &file::File) -> Result<Current> {
    if let Some(values) = from_variable(setting)? {
        return Ok(Current { setting, values, origin: Origin::Variable(setting.variable) });
    }
    if let (Some((values, line)), Some(path)) = (file.get(setting.name), &file.path) {
        let origin = Origin::File { path: path.clone(), line };
        return Ok(Current { setting, values: values.to_vec(), origin });
    }
    let common = setting.common_variable.and_then(|name| Some((name, std::env::var(name).ok()?)));
    match common.filter(|(_, value)| !value.is_empty()) {
        Some((name, value)) => {
            let value = if name == "NO_COLOR" { "never".into() } else { value };
            Ok(Current { setting, values: vec![value], origin: Origin::Variable(name) })
        }
        None => Ok(default(setting)),
    }
}

/// Returns the values that the program's own variable has. An empty one sets a text, as git's pager, and no other.
fn from_variable(setting: &Setting) -> Result<Option<Vec<String>>> {
    let Some(value) = std::env::var_os(setting.variable) else { return Ok(None) };
    if value.is_empty() && !matches!(setting.kind, value::Kind::Text) {
        return Ok(None);
    }
    let wrong = |message: String| anyhow!("{}: {message}", setting.variable);
    let Some(text) = value.to_str() else { return Err(wrong("the value is not UTF-8".into())) };
    let parts: Vec<&str> = match setting.kind {
        // as PATH has it
        kind if kind.is_list() => text.split(':').filter(|part| !part.is_empty()).collect(),
        _ => vec![text],
    };
    let checked = parts.into_iter().map(|part| setting.kind.check(part, None).map_err(wrong));
    Ok(Some(checked.collect::<Result<_>>()?))
}

/// Converts the values of a list setting to folder paths.
pub(crate) fn paths(values: &[String]) -> Vec<PathBuf> {
    values.iter().map(|value| Path::new(value).to_path_buf()).collect()
}
