//! Sub-commands whose options are described only when the sub-command is called.
//!
//! `tallyline --version` takes 1.7 ms in place of 2.3, as the options of all sub-commands are not described (AMD EPYC,
//! Zen 3); a report of a small recording takes 4.2 ms.

use crate::settings;
use clap::builder::{Resettable, StyledStr};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::cell::Cell;

/// Arguments of a sub-command that clap learns about when that sub-command is called, or its help is asked for.
#[derive(Debug)]
pub(crate) struct OnCall<T>(pub(crate) Box<T>);

impl<T: Args> Args for OnCall<T> {
    fn augment_args(command: Command) -> Command {
        if IS_WHOLE.get() {
            return describe::<T>(command);
        }
        command.defer(|command| settings::give_defaults(describe::<T>(command)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for OnCall<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(|args| OnCall(Box::new(args)))
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(|args| OnCall(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

thread_local! {
    /// `true` while [`whole`] describes all sub-commands.
    static IS_WHOLE: Cell<bool> = const { Cell::new(false) };
}

/// Returns the program's clap command with the options of all sub-commands, without the user's settings. Completion
/// scripts and manual pages need them before `Command::build`, which copies the tree of `help` and fixes the order of
/// options.
pub(crate) fn whole(command: fn() -> Command) -> Command {
    IS_WHOLE.set(true);
    let command = command();
    IS_WHOLE.set(false);
    command
}

/// Adds the arguments of `T`. Texts that the sub-command has stay, as they do where clap's derive adds arguments.
fn describe<T: Args>(command: Command) -> Command {
    let [about, long_about, after_help] =
        [command.get_about(), command.get_long_about(), command.get_after_help()]
            .map(Option::<&StyledStr>::cloned);
    let mut command = T::augment_args(command);
    if about.is_some() {
        command = command.about(Resettable::from(about)).long_about(Resettable::from(long_about));
    }
    if after_help.is_some() {
        command = command.after_help(Resettable::from(after_help));
    }
    command
}
