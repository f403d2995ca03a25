//! Slash commands: named prompts. Clients list them; `/name rest` in a prompt is sent to the model
//! as the command's text. The text is stored with the message, so that a later change of a
//! command's file does not change the conversation.

use std::borrow::Cow;
use std::sync::Arc;

use regex::{Captures, Regex};

use super::local_command::{LOCAL_COMMANDS, LocalCommandRow};
use super::prompt_files::{PromptDirs, PromptFile, PromptFiles};
use crate::content::Part;
use crate::limits;

/// A slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// Describes the input that may follow the command's name. Empty for a command without input.
    pub hint: Cow<'static, str>,
    /// The prompt. `None` for a command that nuncio runs itself, and for a prompt of an MCP server.
    pub text: Option<Arc<str>>,
}

/// The commands of nuncio: name, description, hint, text.
const BUILT_IN: &[(&str, &str, &str, &str)] = &[
    (
        "init",
        "Write an AGENTS.md for this repository",
        "what to emphasize",
        "Study this repository and write AGENTS.md at its root (or improve the existing one): how to build it, run it and test it \
         (including a single test), how the code is organized, and the conventions that a newcomer would get wrong. Write at most 60 \
         lines. Include only facts about this repository, and leave out general practice.",
    ),
    (
        "review",
        "Review the uncommitted changes",
        "what to focus on",
        "Review the uncommitted changes of this repository (git status, git diff, git diff --staged). Look for defects first: wrong \
         logic, missed cases, broken callers, swallowed errors, missing tests. Then look for code that could be simpler. For each \
         finding give file:line, why it is a problem, and how to fix it, the most severe first. Do not change anything.",
    ),
];

type Source = fn(&PromptDirs<'_>) -> Vec<SlashCommand>;

/// The sources of commands. If two commands have the same name, the command of the earlier source
/// applies.
const SOURCES: &[Source] = &[local, command_files, skill_files, built_in];

/// Returns the commands of all sources, sorted by name.
pub(crate) fn list(dirs: &PromptDirs<'_>) -> Vec<SlashCommand> {
    let mut commands: Vec<SlashCommand> = Vec::new();
    for command in SOURCES.iter().flat_map(|source| source(dirs)) {
        if !commands.iter().any(|known| known.name == command.name) {
            commands.push(command);
        }
    }
    commands.sort_by(|one, other| one.name.cmp(&other.name));
    commands
}

/// Returns the commands that nuncio runs itself.
fn local(_: &PromptDirs<'_>) -> Vec<SlashCommand> {
    let command = |row: &LocalCommandRow| SlashCommand {
        name: row.name.into(),
        description: row.description.into(),
        hint: row.hint.into(),
        text: None,
    };
    LOCAL_COMMANDS.iter().map(command).collect()
}

fn built_in(_: &PromptDirs<'_>) -> Vec<SlashCommand> {
    let command = |(name, description, hint, text): &(&'static str, &'static str, &'static str, &'static str)| SlashCommand {
        name: Cow::Borrowed(name),
        description: Cow::Borrowed(description),
        hint: Cow::Borrowed(hint),
        text: Some((*text).into()),
    };
    BUILT_IN.iter().map(command).collect()
}

fn command_files(dirs: &PromptDirs<'_>) -> Vec<SlashCommand> {
    dirs.files(PromptFiles::Commands).into_iter().map(|file| from_file(file, "")).collect()
}

fn skill_files(dirs: &PromptDirs<'_>) -> Vec<SlashCommand> {
    let skill = |file: PromptFile| {
        let about = format!("Instructions of the skill in {}:\n\n", file.path.display());
        from_file(file, &about)
    };
    dirs.files(PromptFiles::Skills).into_iter().map(skill).collect()
}

fn from_file(file: PromptFile, about: &str) -> SlashCommand {
    let first_line =
        || file.content.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim_start_matches('#').trim();
    let description = file.content.get("description").unwrap_or_else(|| first_line().into());
    SlashCommand {
        description: description.chars().take(limits::SKILL_DESCRIPTION_CHARS_MAX).collect::<String>().into(),
        hint: file.content.get("argument-hint").unwrap_or_else(|| "arguments".into()).into(),
        text: Some(format!("{about}{}", file.content.body.trim_end()).into()),
        name: file.name.into(),
    }
}

/// Splits `/name arguments`. Returns `None` for a message that does not begin with `/` and a name.
pub(crate) fn parse(parts: &[Part]) -> Option<(&str, &str)> {
    let Some(Part::Text { text }) = parts.first() else { return None };
    let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Some((name.strip_prefix('/')?, arguments.trim())).filter(|(name, _)| !name.is_empty())
}

/// Returns the name of the command that a message begins with, if no command has this name. A first
/// word that has other characters than names of commands, such as a path, is text.
pub(crate) fn unknown<'a>(commands: &[SlashCommand], parts: &'a [Part]) -> Option<&'a str> {
    let (name, _) = parse(parts)?;
    let in_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ':');
    let is_name = name.starts_with(char::is_alphabetic) && name.chars().all(in_name);
    Some(name).filter(|name| is_name && !commands.iter().any(|command| command.name == *name))
}

/// Returns the text that the model receives in place of the first part of a message, if the part is
/// a command with a text.
pub(crate) fn expand(commands: &[SlashCommand], parts: &[Part]) -> Option<String> {
    let (name, arguments) = parse(parts)?;
    let text = commands.iter().find(|command| command.name == name)?.text.as_deref()?;
    Some(with_arguments(text, arguments))
}

/// Replaces `$ARGUMENTS` by all arguments and `$1`, `$2`, … by single ones; `\$` is a dollar. If
/// the text has no placeholder, the arguments follow the text.
fn with_arguments(text: &str, arguments: &str) -> String {
    let Ok(placeholder) = Regex::new(r"\\\$|\$(?:ARGUMENTS|([1-9][0-9]*))") else { return text.into() };
    let single = words(arguments);
    let mut uses_arguments = false;
    let replace = |found: &Captures<'_>| {
        if &found[0] == r"\$" {
            return "$".to_string();
        }
        uses_arguments = true;
        match found.get(1).map(|number| number.as_str().parse::<usize>()) {
            None => arguments.to_string(),
            Some(number) => number.ok().and_then(|number| single.get(number - 1).cloned()).unwrap_or_default(),
        }
    };
    let replaced = placeholder.replace_all(text, replace).into_owned();
    if uses_arguments || arguments.is_empty() { replaced } else { format!("{replaced}\n\n{arguments}") }
}

/// Splits at white space, except in quotes. A quote opens at the start of a word or of the value in
/// `NAME=VALUE`, and only if another one closes it at the end of a word: `it's` and `5"` have none.
pub(crate) fn words(text: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let name = rest.find(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '-' | '_')).unwrap_or(0);
        let start = if name > 0 && rest[name..].starts_with('=') { name + 1 } else { 0 };
        let closed = rest[start..].chars().next().filter(|quote| matches!(quote, '"' | '\'')).and_then(|quote| {
            let ends = |place: &usize| rest[place + 1..].chars().next().is_none_or(char::is_whitespace);
            rest[start + 1..].match_indices(quote).map(|(place, _)| start + 1 + place).find(ends)
        });
        let after = match closed {
            Some(end) => {
                words.push(format!("{}{}", &rest[..start], &rest[start + 1..end]));
                &rest[end + 1..]
            }
            None => {
                let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
                words.push(word.to_owned());
                after
            }
        };
        rest = after.trim_start();
    }
    words
}

/// Expands a built-in command. Older versions stored messages without the text of their command.
pub(crate) fn expand_built_in(parts: &[Part]) -> Option<String> {
    let (name, arguments) = parse(parts)?;
    let (.., text) = BUILT_IN.iter().find(|(known, ..)| *known == name)?;
    Some(with_arguments(text, arguments))
}
