//! The help of the program: its commands, grouped by task.

use clap::Command;

const GROUPS: &[(&str, &[&str])] = &[
    ("Work", &["chat", "run", "demo", "eval", "replay", "tool"]),
    ("Serve editors, browsers and other agents", &["acp", "serve", "token"]),
    ("Sessions and directories", &["sessions", "ps", "workspaces", "store", "trust"]),
    ("Set up", &["doctor", "login", "logout", "config", "models", "agents", "mcp", "schema", "update"]),
];

/// Options that most users need. The help of a command explains all of them.
const OPTIONS: &str = "For all commands: --model, --agent, --mode, --thinking, --cwd, --sandbox (nuncio COMMAND --help).\n";

/// Returns the help. Commands outside of the groups are listed at the end.
pub(super) fn text(program: &Command) -> String {
    let about = program.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!(
        "{about}\n\nUsage: nuncio [OPTIONS] [COMMAND]   without COMMAND: the chat on a terminal, otherwise acp\n       \
         nuncio \"Fix the test\"   short for nuncio run \"Fix the test\", as nuncio -c for nuncio chat -c\n"
    );
    for (title, names) in GROUPS {
        text += &format!("\n{title}\n");
        let commands = names.iter().filter_map(|name| program.find_subcommand(name));
        commands.for_each(|command| text += &line(command));
    }
    let grouped = |name: &str| name == "help" || GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others = program.get_subcommands().filter(|command| !command.is_hide_set() && !grouped(command.get_name()));
    others.for_each(|command| text += &line(command));
    text + OPTIONS
}

fn line(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("  {:<11} {about}\n", command.get_name())
}
