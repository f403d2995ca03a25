//! The terminal in the mode of the chat, and the actions of its keys.

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use super::composer::Composer;
use crate::error::{Error, Result};
use crate::id::PermissionId;

/// The action of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    None,
    /// Sends the text of the composer.
    Submit,
    /// Sends it after the running turn.
    Queue,
    /// Stops the running turn.
    Stop,
    Answer {
        id: PermissionId,
        option: String,
    },
    /// Prints the whole content of the permission request.
    ShowAll,
    /// Lets the shell continue.
    Suspend,
    Quit,
}

/// The terminal passes on each key, and marks pasted text. Dropping the value restores it.
pub(crate) struct TerminalModes;

impl TerminalModes {
    pub(crate) fn enter() -> Result<TerminalModes> {
        TerminalModes::set().map(|()| TerminalModes)
    }

    pub(crate) fn set() -> Result<()> {
        let set = enable_raw_mode().and_then(|()| execute!(std::io::stdout(), EnableBracketedPaste));
        set.map_err(|error| Error::io("setting up the terminal", error))
    }

    pub(crate) fn restore() {
        // Fails if the terminal is gone.
        let _ = execute!(std::io::stdout(), DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
}

impl Drop for TerminalModes {
    fn drop(&mut self) {
        TerminalModes::restore();
    }
}

/// Returns whether a key was pressed or is held.
pub(crate) fn is_press(key: &KeyEvent) -> bool {
    key.kind != KeyEventKind::Release
}

/// Applies a key of the composer. Returns false for another key.
pub(crate) fn edit(composer: &mut Composer, key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Char('j') if control => composer.insert("\n"),
        KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => composer.insert("\n"),
        KeyCode::Char('a') if control => composer.home(),
        KeyCode::Char('e') if control => composer.end(),
        KeyCode::Char('w') if control => composer.delete_word(),
        KeyCode::Char('u') if control => composer.delete_to_line_start(),
        KeyCode::Char('b') if alt => composer.word_left(),
        KeyCode::Char('f') if alt => composer.word_right(),
        KeyCode::Char(character) if !control && !alt => composer.insert(character.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace if alt || control => composer.delete_word(),
        KeyCode::Backspace => composer.backspace(),
        KeyCode::Delete => composer.delete(),
        KeyCode::Left if control || alt => composer.word_left(),
        KeyCode::Right if control || alt => composer.word_right(),
        KeyCode::Left => composer.left(),
        KeyCode::Right => composer.right(),
        KeyCode::Home => composer.home(),
        KeyCode::End => composer.end(),
        KeyCode::Up => composer.up(),
        KeyCode::Down => composer.down(),
        _ => return false,
    }
    true
}
