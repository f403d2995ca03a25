//! Slash commands: prompts that have a name. A client lists them; `/name rest` in a prompt becomes their text.

use crate::content::Part;

pub struct Command {
    pub name: &'static str,
    pub description: &'static str,
    /// What may follow the name.
    pub hint: &'static str,
    text: &'static str,
}

pub const COMMANDS: &[Command] = &[
    Command {
        name: "init",
        description: "Write an AGENTS.md for this repository",
        hint: "what it should stress",
        text: "Study this repository and write AGENTS.md at its root (or improve the one that is there): how to build it, run it and test it \
               (also a single test), how the code is laid out, and the conventions that a newcomer would get wrong. At most 60 lines, only \
               what is true here, nothing that every project does.",
    },
    Command {
        name: "review",
        description: "Review the changes that are not committed yet",
        hint: "what to look at",
        text: "Review the uncommitted changes of this repository (git status, git diff, git diff --staged). Look for defects first: wrong \
               logic, missed cases, broken callers, lost errors, missing tests. Then for what could be simpler. Name each finding with \
               file:line, why it is one, and how to mend it; the gravest first. Change nothing.",
    },
];

/// The prompt with a leading `/name` replaced by what it stands for. One that is no command is left as it is.
pub fn expand(parts: &[Part]) -> Vec<Part> {
    let mut expanded = parts.to_vec();
    if let Some(Part::Text { text }) = expanded.first_mut() {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text.as_str(), ""));
        let command = COMMANDS.iter().find(|command| name.strip_prefix('/') == Some(command.name));
        if let Some(command) = command {
            let rest = rest.trim();
            *text = if rest.is_empty() { command.text.into() } else { format!("{}\n\n{rest}", command.text) };
        }
    }
    expanded
}
