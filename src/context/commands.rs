//! Slash commands: named prompts. Clients list them; `/name rest` in a prompt expands to the
//! command's text, followed by `rest`.

use crate::content::Part;

/// A slash command.
pub(crate) struct SlashCommand {
    pub name: &'static str,
    pub description: &'static str,
    /// Describes the input that may follow the command's name.
    pub hint: &'static str,
    text: &'static str,
}

pub(crate) const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "init",
        description: "Write an AGENTS.md for this repository",
        hint: "what to emphasize",
        text: "Study this repository and write AGENTS.md at its root (or improve the existing one): how to build it, run it and test it \
               (including a single test), how the code is organized, and the conventions that a newcomer would get wrong. Write at most 60 \
               lines. Include only facts about this repository, and leave out general practice.",
    },
    SlashCommand {
        name: "review",
        description: "Review the uncommitted changes",
        hint: "what to focus on",
        text: "Review the uncommitted changes of this repository (git status, git diff, git diff --staged). Look for defects first: wrong \
               logic, missed cases, broken callers, swallowed errors, missing tests. Then look for code that could be simpler. For each \
               finding give file:line, why it is a problem, and how to fix it, the most severe first. Do not change anything.",
    },
];

/// Replaces a leading `/name` with the command's text. Other prompts are returned unchanged.
pub(crate) fn expand(parts: &[Part]) -> Vec<Part> {
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
