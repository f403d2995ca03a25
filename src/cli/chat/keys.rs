//! The terminal in the mode of the chat, and the keys of the composer.

use std::fs::File;
use std::io::Write;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{LocalModes, tcgetattr, ttyname};

use super::composer::Composer;
use crate::cli::terminal::notify::{RESTORE_TITLE, SAVE_TITLE};
use crate::error::{Error, Result};

/// Marks pasted text (DEC mode 2004), reports the focus (1004), and distinguishes Shift-Enter from
/// Enter (the keyboard protocol of kitty, level 1).
const SET: &str = "\x1b[?2004h\x1b[?1004h\x1b[>1u";
const RESET: &str = "\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?25h";

/// The terminal passes on each key. Dropping the value restores it.
pub(crate) struct TerminalModes;

impl TerminalModes {
    pub(crate) fn enter() -> Result<TerminalModes> {
        TerminalModes::set().map(|()| TerminalModes)
    }

    pub(crate) fn set() -> Result<()> {
        enable_raw_mode().map_err(|error| Error::io("setting up the terminal", error))?;
        write(&format!("{SAVE_TITLE}{SET}"));
        Ok(())
    }

    pub(crate) fn restore() {
        write(&format!("{RESET}{RESTORE_TITLE}"));
        let _ = disable_raw_mode();
    }
}

impl Drop for TerminalModes {
    fn drop(&mut self) {
        TerminalModes::restore();
    }
}

/// Returns whether Ctrl-C sends SIGINT (termios(3), ISIG): the terminal is not in the mode of the
/// chat.
pub(super) fn has_interrupt_character() -> bool {
    tcgetattr(rustix::stdio::stdin()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ISIG))
}

/// Writes a control sequence, unless the terminal is gone or does not read.
fn write(sequence: &str) {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let name = ttyname(rustix::stdio::stdout(), Vec::new());
    // Opened again, because the flag applies to all users of an open terminal.
    let opened = name.and_then(|name| rustix::fs::open(name, flags, Mode::empty()));
    if let Ok(terminal) = opened {
        let _ = File::from(terminal).write_all(sequence.as_bytes());
    }
}

/// Returns whether a key was pressed or is held.
pub(crate) fn is_press(key: &KeyEvent) -> bool {
    key.kind != KeyEventKind::Release
}

pub(crate) fn is_control(key: &KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
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
        KeyCode::Char('k') if control => composer.delete_to_line_end(),
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
