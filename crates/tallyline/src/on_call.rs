//! Sub-commands whose options are described only when the sub-command is called.
//!
//! Describing the options of all sub-commands takes 0.7 ms, a sixth of a report of a small recording.

use crate::settings;
use clap::builder::{Resettable, StyledStr};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::cell::Cell;

/// Arguments of a sub-command that clap learns about when that sub-command is called, or its help is asked for.
#[derive(Debug)]
pub(crate) struct OnCall<T>(pub(crate) Box<T>);

impl<T: Args> Args for OnCall<T> {
    fn augment_args(command: Command) -> Command {
        if IS_WHOLE.get() { describe::<T>(command) } else { command.defer(describe::<T>) }
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for OnCall<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(|args| OnCall(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

thread_local! {
    /// `true` while [`whole`] describes all sub-commands.
    static IS_WHOLE: Cell<bool> = const { Cell::new(false) };
}

/// Describes a program with the options of all its sub-commands, for completion scripts and manual pages: clap has
/// the tree of `help`'s words, and the order of options, from what is there before it builds commands.
pub(crate) fn whole(command: fn() -> Command) -> Command {
    IS_WHOLE.set(true);
    let command = command();
    IS_WHOLE.set(false);
    command
}

/// Adds the arguments of `T` with the defaults that the settings give them. Texts that the sub-command has stay, as
/// they do where clap's derive adds arguments.
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
    settings::give_defaults(command)
}
