//! The commands of the chat itself. The agent expands its own commands.

/// A text that can complete a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompletionCandidate {
    /// The text in place of the word.
    pub value: String,
    pub about: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    Agent,
    Attach,
    Detach,
    Login,
    Copy,
    Cost,
    Diff,
    Doctor,
    Export,
    Fork,
    Background,
    Help,
    Hooks,
    Jobs,
    Keys,
    Mcp,
    Memory,
    Mode,
    Model,
    New,
    Permissions,
    Quit,
    Rename,
    Resume,
    Status,
    Thinking,
}

/// The kind of values that complete the argument of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentValues {
    /// Any text, or no argument.
    Any,
    Agents,
    Files,
    Levels,
    Modes,
    Models,
}

pub(crate) struct CommandRow {
    pub name: &'static str,
    /// The argument; empty for a command without one. In brackets if it can be omitted.
    pub argument: &'static str,
    pub about: &'static str,
    pub command: ChatCommand,
    pub values: ArgumentValues,
}

const fn row(name: &'static str, argument: &'static str, about: &'static str, command: ChatCommand) -> CommandRow {
    CommandRow { name, argument, about, command, values: ArgumentValues::Any }
}

const fn completed(row: CommandRow, values: ArgumentValues) -> CommandRow {
    CommandRow { values, ..row }
}

/// All commands, in the order of the help.
pub(crate) const COMMANDS: &[CommandRow] = &[
    row("help", "", "Show the commands and keys", ChatCommand::Help),
    completed(row("model", "[MODEL]", "Show the models, or use another one", ChatCommand::Model), ArgumentValues::Models),
    completed(
        row("mode", "[MODE]", "Show the modes, or set what the agent may do without asking", ChatCommand::Mode),
        ArgumentValues::Modes,
    ),
    completed(row("thinking", "LEVEL", "Set how much the model thinks", ChatCommand::Thinking), ArgumentValues::Levels),
    completed(row("agent", "NAME", "Begin a session with another agent", ChatCommand::Agent), ArgumentValues::Agents),
    row("new", "", "Begin a session in this directory", ChatCommand::New),
    row("resume", "[ID]", "Choose a session to continue (also /sessions)", ChatCommand::Resume),
    row("fork", "", "Continue in a copy of this session", ChatCommand::Fork),
    row("rename", "TITLE", "Set the title of this session", ChatCommand::Rename),
    completed(
        row("attach", "FILE", "Attach an image, PDF or text to the next message", ChatCommand::Attach),
        ArgumentValues::Files,
    ),
    row("detach", "[FILE]", "Remove an attachment of the next message, or all of them", ChatCommand::Detach),
    row("diff", "", "Show the uncommitted changes", ChatCommand::Diff),
    row("copy", "", "Copy the last answer to the clipboard", ChatCommand::Copy),
    row("export", "[FILE]", "Write the conversation as text to a file", ChatCommand::Export),
    row("status", "", "Show the session: model, mode, directory, usage", ChatCommand::Status),
    row("cost", "", "Show the tokens, cost and time of the session", ChatCommand::Cost),
    row("login", "[PROVIDER]", "Store the API key of a provider", ChatCommand::Login),
    row("permissions", "[remove NUMBER]", "Show the rules and what each tool may do, or remove a rule", ChatCommand::Permissions),
    row("jobs", "[NUMBER | kill NUMBER]", "List the background jobs, show the output of one, or kill it", ChatCommand::Jobs),
    row("bg", "", "Let the running command continue in the background (also Ctrl-B)", ChatCommand::Background),
    row("doctor", "", "Check the model, with one short request, and the programs", ChatCommand::Doctor),
    row("keys", "", "Show the keys (also ?)", ChatCommand::Keys),
    row("mcp", "", "Show the tools of MCP servers", ChatCommand::Mcp),
    row("hooks", "", "Show the hooks of the settings", ChatCommand::Hooks),
    row("memory", "project|user TEXT", "Add a line to AGENTS.md", ChatCommand::Memory),
    row("quit", "", "End the chat; the session stays", ChatCommand::Quit),
];

const ALIASES: &[(&str, &str)] = &[("sessions", "resume"), ("exit", "quit"), ("clear", "new")];

/// Returns the help of the chat. `others` are the commands of the agent, `keys` the list of keys.
pub(crate) fn help(others: &[CompletionCandidate], keys: &str) -> String {
    let own = COMMANDS.iter().map(|row| (format!("/{} {}", row.name, row.argument), row.about.to_owned()));
    let others = others.iter().map(|command| (command.value.clone(), command.about.clone()));
    let line = |(command, about): (String, String)| format!("{:<25} {about}\n", command.trim_end());
    let lines: String = own.map(line).chain(others.map(line)).collect();
    format!("{lines}{keys}")
}

/// Returns the command that a text begins with, and its argument.
pub(crate) fn parse(text: &str) -> Option<(&'static CommandRow, &str)> {
    let (name, argument) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let name = name.strip_prefix('/')?;
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    COMMANDS.iter().find(|row| row.name == name).map(|row| (row, argument.trim()))
}
