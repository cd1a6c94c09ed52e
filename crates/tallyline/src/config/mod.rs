//! `tallyline config`: the settings, and what each comes from.

use crate::settings::{Current, Origin, SETTINGS, Setting, Settings};
use anstyle::Style;
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use tallyline_support::output::{Color, Output, printable};

/// Show all settings, their values, and where each comes from
///
/// Settings are the defaults of options, and of what has no option. They are in
/// ~/.config/tallyline/config.toml, below $XDG_CONFIG_HOME if that is set, or in the file that
/// $TALLYLINE_CONFIG names; `off` is for none. The strongest first: options, variables
/// (TALLYLINE_…), the file, variables of many programs (PAGER, NO_COLOR), defaults. What tallyline
/// does as pahole depends on none of them.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct ConfigArgs {
    /// Print only the value of this setting
    #[arg(value_name = "SETTING", conflicts_with_all = ["json", "example"])]
    name: Option<String>,

    /// Print a JSON document
    #[arg(long, conflicts_with = "example")]
    json: bool,

    /// Print a configuration file with all settings commented out
    #[arg(long)]
    example: bool,
}

const EXAMPLES: &str = "\
Examples:
  tallyline config
  tallyline config cacheline-size
  mkdir -p ~/.config/tallyline && tallyline config --example > ~/.config/tallyline/config.toml
";

const EXIT: &str = "Exit status: 0 for success, 2 for an error, such as a mistake in the file.";

/// Returns the examples, the settings, and the exit status.
fn after_help() -> String {
    let widest = SETTINGS.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        SETTINGS.iter().map(|setting| format!("  {:widest$}  {}", setting.name, setting.about)).collect();
    format!("{EXAMPLES}\nSettings:\n{}\n\n{EXIT}", lines.join("\n"))
}

/// Runs the sub-command `tallyline config`: prints all settings, their values, and where each value comes from.
pub(crate) fn run(args: &ConfigArgs, settings: &Settings, color: Color) -> Result<()> {
    if let Some(name) = &args.name {
        let Some(current) = settings.iter().find(|current| current.setting.name == name) else {
            bail!("{}", crate::settings::unknown(name));
        };
        return Output::open(None, color)?.write(|out| {
            current.values.iter().try_for_each(|value| Ok(writeln!(out, "{}", printable(value.as_bytes()))?))
        });
    }
    Output::open(None, color)?.write(|out| match () {
        () if args.json => json(settings, out),
        () if args.example => example(out),
        () => text(settings, out),
    })
}

const DIM: Style = Style::new().dimmed();

fn text(settings: &Settings, out: &mut dyn Write) -> Result<()> {
    let rows: Vec<[String; 3]> = settings.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, values) = (width(0), width(1).min(40));
    for ([name, value, origin], current) in rows.iter().zip(settings.iter()) {
        let style = if current.origin == Origin::Default { DIM } else { Style::new() };
        writeln!(out, "{style}{name:names$}  {value:values$}  {origin}{style:#}")?;
    }
    match &settings.path {
        Some(path) if settings.has_file => writeln!(out, "\nConfiguration file: {}", path.display())?,
        Some(path) => writeln!(out, "\nConfiguration file: {} (not there)", path.display())?,
        None => writeln!(out, "\nConfiguration file: none")?,
    }
    Ok(())
}

fn row(current: &Current) -> [String; 3] {
    let values: Vec<String> =
        current.values.iter().map(|value| printable(value.as_bytes()).into_owned()).collect();
    let value = match values.join(", ") {
        empty if empty.is_empty() => "(none)".into(),
        value => value,
    };
    [current.setting.name.into(), value, current.origin.to_string()]
}

/// `{"schema":1,"file":{"path","exists"},"settings":[{"name","value","default","from","file","line","variable",
/// "option"}]}`: `value` is a text, or a list of them; `from` is `default`, `file`, `environment` or `option`, and
/// of `file`, `line`, `variable` and `option` those that are not its are null.
fn json(settings: &Settings, out: &mut dyn Write) -> Result<()> {
    let all: Vec<Value> = settings.iter().map(described).collect();
    let file = json!({"path": settings.path, "exists": settings.has_file});
    serde_json::to_writer_pretty(&mut *out, &json!({"schema": 1, "file": file, "settings": all}))?;
    Ok(writeln!(out)?)
}

fn described(current: &Current) -> Value {
    let (from, file, line, variable, option) = match &current.origin {
        Origin::Default => ("default", None, None, None, None),
        Origin::File { path, line } => ("file", Some(path), Some(line), None, None),
        Origin::Variable(name) => ("environment", None, None, Some(name), None),
        Origin::Option(name) => ("option", None, None, None, Some(name)),
    };
    let value = match current.setting.is_list() {
        true => json!(current.values),
        false => json!(current.values.first()),
    };
    json!({
        "name": current.setting.name,
        "value": value,
        "default": current.setting.default,
        "from": from,
        "file": file,
        "line": line,
        "variable": variable,
        "option": option,
    })
}

/// Writes a file that sets nothing: each setting with its default, as a comment.
fn example(out: &mut dyn Write) -> Result<()> {
    writeln!(out, "# Settings of tallyline. Options and the variables named here beat this file.")?;
    // a table goes on to the end of the file or the next one
    let (own, in_tables): (Vec<&Setting>, Vec<&Setting>) =
        SETTINGS.iter().partition(|setting| !setting.name.contains('.'));
    for setting in own.into_iter().chain(in_tables) {
        writeln!(out, "\n# {}", setting.about)?;
        write!(out, "# Variable: {}", setting.variable)?;
        if let Some(option) = setting.option {
            write!(out, "; option: --{option}")?;
        }
        writeln!(out, "\n# {} = {}", setting.name, setting.example)?;
    }
    Ok(())
}
