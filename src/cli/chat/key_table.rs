//! The keys of actions, as the settings choose them, and the list of all keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::config::{ChatAction, ChatKey, ChatSettings, EditingMode};

/// The actions with their default keys.
const ACTIONS: &[(ChatAction, &str, &str)] = &[
    (ChatAction::Mode, "shift-tab", "sets the next mode: ask, accept-edits, plan"),
    (ChatAction::Background, "ctrl-b", "lets the running command continue in the background"),
    (ChatAction::Edit, "ctrl-g", "edits the text in $VISUAL or $EDITOR"),
    (ChatAction::Search, "ctrl-r", "searches the texts that you sent; again: the next one"),
    (ChatAction::Paste, "ctrl-v", "attaches the image in the clipboard"),
    (ChatAction::Show, "ctrl-o", "shows what is omitted, or the whole request; again: the conversation"),
    (ChatAction::Reprint, "ctrl-l", "prints the last turns again"),
    (ChatAction::Suspend, "ctrl-z", "suspends the chat"),
];

/// The keys without a setting.
const FIXED: &str = "
Enter         sends; while a turn runs, the message joins it
Tab           completes; while a turn runs: sends after it; else moves to a permission request
1 2 3 …       answer the request
Alt-Enter     begins a line (also Ctrl-J); Up and Down recall earlier texts
Esc           stops the turn, and gives the waiting texts back; twice: the last text again
?             shows these keys, if the text is empty
Ctrl-C        empties the text, else stops the turn, else quits when pressed twice
Ctrl-D        quits, if the text is empty
";
const VIM: &str = "
Esc           begins the commands of vi: h l j k w b 0 $ x D C dd cc dw db d$ i a I A o O
";
const WORDS: &str = "
@path         completes a file and sends its content; @path#L3-9 only these lines, @dir/ its list
!command      runs a command, and adds its output to the conversation
";

/// The keys of actions.
pub(crate) struct KeyTable {
    keys: Vec<(ChatAction, ChatKey, &'static str)>,
    pub editing: EditingMode,
}

impl KeyTable {
    pub(crate) fn new(settings: &ChatSettings) -> KeyTable {
        let chosen: Vec<&ChatKey> = settings.keys.values().collect();
        let key = |(action, default, about): &(ChatAction, &str, &'static str)| {
            let default = ChatKey::known(default);
            // A key that the settings give to another action is not that of its default.
            let default = if chosen.contains(&&default) { ChatKey::default() } else { default };
            (*action, settings.keys.get(action).cloned().unwrap_or(default), *about)
        };
        KeyTable { keys: ACTIONS.iter().map(key).collect(), editing: settings.editing }
    }

    /// Returns the action of a key.
    pub(crate) fn action(&self, key: &KeyEvent) -> Option<ChatAction> {
        let name = name(key)?;
        self.keys.iter().find(|(_, key, _)| key.as_str() == name).map(|(action, ..)| *action)
    }

    /// Returns the list of all keys.
    pub(crate) fn text(&self) -> String {
        let row = |(_, key, about): &(ChatAction, ChatKey, &str)| {
            let key = if key.as_str().is_empty() { "(no key)".into() } else { key.to_string() };
            format!("{key:<13} {about}\n")
        };
        let rows: String = self.keys.iter().map(row).collect();
        let vim = if self.editing == EditingMode::Vim { VIM.trim_start() } else { "" };
        format!("\n{}{rows}{vim}{}", FIXED.trim_start(), WORDS.trim_start())
    }
}

/// Returns the name of a key in the settings.
fn name(key: &KeyEvent) -> Option<String> {
    let control = if key.modifiers.contains(KeyModifiers::CONTROL) { "ctrl-" } else { "" };
    let alt = if key.modifiers.contains(KeyModifiers::ALT) { "alt-" } else { "" };
    match key.code {
        KeyCode::BackTab => Some("shift-tab".into()),
        KeyCode::F(number) => Some(format!("{control}{alt}f{number}")),
        KeyCode::Char(character) if !control.is_empty() || !alt.is_empty() => {
            Some(format!("{control}{alt}{}", character.to_lowercase()))
        }
        _ => None,
    }
}
