//! The arguments of the process, also those without a command: a prompt, or an option that
//! continues a session.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Command, CommandFactory, FromArgMatches};

use super::errors::unknown_command;
use super::flags::{AcpOptions, CliCommand, CommonFlags, Flags};
use super::help;

impl Flags {
    /// Parses the arguments of the process. If an argument with several words stands for a command,
    /// it is the prompt of `nuncio run`; a single word is never a prompt, because it can be a
    /// misspelled command.
    pub(super) fn from_arguments() -> std::result::Result<Flags, clap::Error> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        if let Some(flags) = of_editor(&arguments) {
            return Ok(flags);
        }
        let parsed = parse(&arguments);
        if let Some(chat) = parsed.as_ref().err().and_then(|error| continued_chat(error, &arguments)) {
            return Ok(chat);
        }
        let Some(prompt) = parsed.as_ref().err().and_then(unknown_command).filter(|given| given.trim().contains([' ', '\t', '\n']))
        else {
            return parsed;
        };
        // An option before the prompt may have the same value.
        let places = (1..arguments.len()).filter(|index| arguments[*index] == prompt.as_str());
        let runs = places.map(|index| {
            let (before, prompt) = arguments.split_at(index);
            let run = [before, &["run".into()], prompt].concat();
            parse(&run)
        });
        let is_run = |parsed: &std::result::Result<Flags, clap::Error>| {
            !parsed.as_ref().is_err_and(|error| unknown_command(error).is_some())
        };
        runs.into_iter().find(is_run).unwrap_or(parsed)
    }
}

/// Parses arguments with which editors start nuncio: `acp`, or no command. Does not create the
/// descriptions of the other commands, which takes a large part of a start. Returns `None` for
/// other arguments, and for invalid ones, so that their errors name all commands.
fn of_editor(arguments: &[OsString]) -> Option<Flags> {
    const NAME: &str = "acp";
    if arguments.len() > 1 && !arguments.iter().any(|argument| argument == NAME) {
        return None;
    }
    let acp = AcpOptions::augment_args(Command::new(NAME));
    let program = CommonFlags::augment_args(Command::new("nuncio")).subcommand(acp);
    let mut matches = program.try_get_matches_from(arguments).ok()?;
    Flags::from_arg_matches_mut(&mut matches).ok()
}

fn parse(arguments: &[OsString]) -> std::result::Result<Flags, clap::Error> {
    let program = Flags::command();
    let help = help::text(&program);
    let mut matches = program.override_help(help).try_get_matches_from(arguments)?;
    Flags::from_arg_matches_mut(&mut matches)
}

/// Parses arguments without a command that continue a session, or `--plain`, as those of `chat`.
fn continued_chat(error: &clap::Error, arguments: &[OsString]) -> Option<Flags> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    if !["-c", "--continue", "-r", "--resume", "--plain"].contains(&unknown.as_str()) {
        return None;
    }
    let (program, rest) = arguments.split_first()?;
    let chat = parse(&[&[program.clone(), "chat".into()], rest].concat()).ok()?;
    let is_command = |word: &String| Flags::command().find_subcommand(word).is_some();
    match &chat.command {
        // The option follows a command that does not have it.
        Some(CliCommand::Chat(options)) if options.words.iter().any(is_command) => None,
        _ => Some(chat),
    }
}
