//! The commands of vi for the text of the chat.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::composer::Composer;

/// The state of the editing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VimState {
    #[default]
    Insert,
    Normal,
    /// After `d` or `c`, which waits for a movement.
    Operator(char),
}

impl VimState {
    /// Handles a key. Returns false for a key that is no command of vi.
    pub(crate) fn key(&mut self, composer: &mut Composer, key: KeyEvent) -> bool {
        let before = *self;
        match (before, key.code) {
            (VimState::Insert, KeyCode::Esc) if !composer.is_empty() => {
                composer.left_in_line();
                *self = VimState::Normal;
                true
            }
            (VimState::Normal | VimState::Operator(_), KeyCode::Char(command)) if is_plain(&key) => {
                *self = match before {
                    VimState::Operator(operator) => operate(composer, operator, command),
                    _ => act(composer, command),
                };
                true
            }
            (VimState::Operator(_), KeyCode::Esc) => {
                *self = VimState::Normal;
                true
            }
            _ => false,
        }
    }

    /// Begins to insert, as after each text that was sent.
    pub(crate) fn insert(&mut self) {
        *self = VimState::Insert;
    }
}

fn is_plain(key: &KeyEvent) -> bool {
    !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

/// Runs a command without an operator.
fn act(composer: &mut Composer, command: char) -> VimState {
    match command {
        'h' => composer.left_in_line(),
        'l' => composer.right(),
        'j' => composer.down(),
        'k' => composer.up(),
        'w' => composer.next_word(),
        'e' => composer.word_right(),
        'b' => composer.word_left(),
        '0' | '^' => composer.home(),
        '$' => composer.end(),
        'x' => composer.delete(),
        'X' => composer.backspace(),
        'D' => composer.delete_to_line_end(),
        'C' => {
            composer.delete_to_line_end();
            return VimState::Insert;
        }
        'd' | 'c' => return VimState::Operator(command),
        'i' => return VimState::Insert,
        'a' => {
            composer.right();
            return VimState::Insert;
        }
        'I' => {
            composer.home();
            return VimState::Insert;
        }
        'A' => {
            composer.end();
            return VimState::Insert;
        }
        'o' => {
            composer.end();
            composer.insert("\n");
            return VimState::Insert;
        }
        'O' => {
            composer.home();
            composer.insert("\n");
            composer.up();
            return VimState::Insert;
        }
        _ => {}
    }
    VimState::Normal
}

/// Deletes what a movement covers; `c` then inserts.
fn operate(composer: &mut Composer, operator: char, movement: char) -> VimState {
    match movement {
        'w' | 'e' => composer.delete_next_word(),
        'b' => composer.delete_word(),
        '$' => composer.delete_to_line_end(),
        '0' | '^' => composer.delete_to_line_start(),
        line if line == operator => {
            composer.home();
            composer.delete_to_line_end();
            if operator == 'd' {
                composer.delete();
            }
        }
        _ => return VimState::Normal,
    }
    if operator == 'c' { VimState::Insert } else { VimState::Normal }
}
