//! Settings of the chat on the terminal (`[chat]`). Only in the user's settings.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The chat on the terminal (docs/CHAT.md). Only in the user's settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChatSettings {
    /// The keys that edit the text.
    pub editing: EditingMode,
    /// The keys of actions, instead of their defaults, which `/keys` lists: `{ background =
    /// "ctrl-x" }`. Without a key (`""`), the action has none.
    pub keys: BTreeMap<ChatAction, ChatKey>,
    /// A program and its arguments. It reads the state of the session as JSON, and the first line
    /// of its output stands above the status row.
    pub status_command: Vec<String>,
    /// The report of the chat's state to the terminal (OSC 7501).
    pub program_status: ProgramStatus,
}

/// The keys that edit the text of the chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditingMode {
    /// As in a shell: Ctrl-A, Ctrl-E, Ctrl-W and others.
    #[default]
    Emacs,
    /// As in vi: Esc begins commands, `i` and others begin to insert.
    Vim,
}

/// The report of the chat's state to the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramStatus {
    /// To terminals that are known to read it.
    #[default]
    Auto,
    On,
    Off,
}

/// An action of the chat whose key can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatAction {
    /// Lets the running command continue in the background.
    Background,
    /// Edits the text in an editor.
    Edit,
    /// Attaches the image in the clipboard.
    Paste,
    /// Shows what is omitted, or the whole permission request.
    Show,
    /// Searches the texts that were sent.
    Search,
    /// Prints the last turns again.
    Reprint,
    /// Suspends the chat.
    Suspend,
    /// Sets the next mode.
    Mode,
}

/// A key: `ctrl-x`, `alt-x`, `ctrl-alt-x`, `shift-tab` or `f1` to `f12`; `""` for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ChatKey(String);

/// Keys that have another meaning, or that terminals do not tell apart from Tab and Enter.
const RESERVED: [&str; 8] = ["ctrl-c", "ctrl-d", "ctrl-h", "ctrl-i", "ctrl-j", "ctrl-m", "ctrl-[", "alt-enter"];

impl TryFrom<String> for ChatKey {
    type Error = String;

    fn try_from(name: String) -> Result<ChatKey, String> {
        let name = name.to_ascii_lowercase();
        let rest = name.trim_start_matches("ctrl-").trim_start_matches("alt-");
        let is_function =
            rest.strip_prefix('f').and_then(|number| number.parse::<u8>().ok()).is_some_and(|number| (1..=12).contains(&number));
        let is_letter = rest.chars().count() == 1 && rest != name;
        match () {
            () if RESERVED.contains(&name.as_str()) => Err(format!("key \"{name}\": it has a fixed meaning")),
            () if name.is_empty() || name == "shift-tab" || is_function || is_letter => Ok(ChatKey(name)),
            () => Err(format!("key \"{name}\": use ctrl-x, alt-x, ctrl-alt-x, shift-tab or f1 to f12")),
        }
    }
}

impl From<ChatKey> for String {
    fn from(key: ChatKey) -> String {
        key.0
    }
}

impl ChatKey {
    /// Creates a key of the built-in table.
    pub(crate) fn known(name: &str) -> ChatKey {
        ChatKey(name.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChatKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.split('-').map(|part| {
            let mut letters = part.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
        });
        f.write_str(&parts.collect::<Vec<_>>().join("-"))
    }
}

impl ChatSettings {
    /// Rejects a key for two actions.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut keys: Vec<&str> = self.keys.values().map(ChatKey::as_str).filter(|key| !key.is_empty()).collect();
        keys.sort_unstable();
        match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("chat.keys: {} has two actions", pair[0])),
            None => Ok(()),
        }
    }
}
