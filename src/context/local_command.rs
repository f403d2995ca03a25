//! Slash commands that nuncio runs itself, without sending the user's message to the model.

use crate::content::Part;

pub(super) struct LocalCommandRow {
    pub name: &'static str,
    pub description: &'static str,
    /// Describes the input that may follow the name.
    pub hint: &'static str,
    /// Reads the text that follows the name. `None` if the prompt is a message to the model.
    read: fn(&str) -> Option<LocalCommand>,
}

pub(super) const LOCAL_COMMANDS: &[LocalCommandRow] = &[
    LocalCommandRow {
        name: "compact",
        description: "Replace the conversation by a summary",
        hint: "what to emphasize",
        read: |text| Some(LocalCommand::Compact { focus: Some(text.to_string()).filter(|focus| !focus.is_empty()) }),
    },
    LocalCommandRow {
        name: "context",
        description: "Show the tokens of the conversation by source",
        hint: "",
        read: |text| text.is_empty().then_some(LocalCommand::Context),
    },
];

/// A prompt that is a local command. The prompt and its answer are not part of the conversation
/// that models receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LocalCommand {
    /// Compacts the conversation; the summary emphasizes `focus`.
    Compact { focus: Option<String> },
    /// Shows the tokens of the conversation by source.
    Context,
}

impl LocalCommand {
    /// Returns the command that a prompt consists of.
    pub(crate) fn from_parts(parts: &[Part]) -> Option<LocalCommand> {
        let [Part::Text { text }] = parts else { return None };
        let command = text.trim().strip_prefix('/')?;
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let row = LOCAL_COMMANDS.iter().find(|row| row.name == name)?;
        (row.read)(rest.trim())
    }
}
