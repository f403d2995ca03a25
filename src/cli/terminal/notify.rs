//! Tells the user that the chat waits or has finished, and sets the title of the terminal.

use std::time::Duration;

use clap::ValueEnum;

use crate::config::Environment;
use crate::terminal_text::output_line;

/// Minimum duration of a turn whose end is notified.
const LONG_TURN: Duration = Duration::from_secs(10);
/// Maximum length of the title of the terminal, in characters.
const TITLE_CHARS_MAX: usize = 80;
/// Maximum length of a copied text in base64, in bytes; terminals ignore longer ones.
const COPY_BYTES_MAX: usize = 100_000;

/// How the user is notified while another window has the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NotifyMode {
    /// By a message of the desktop if the terminal supports it, else by the bell.
    #[default]
    Auto,
    Bell,
    Off,
}

/// Creates notifications as control sequences of the terminal.
pub(crate) struct Notifier {
    mode: NotifyMode,
    /// The terminal shows messages (OSC 9).
    messages: bool,
    /// The terminal has the focus, as far as it reports this.
    pub focused: bool,
}

impl Notifier {
    /// Creates notifications for the terminal that the environment names.
    pub(crate) fn new(mode: NotifyMode, environment: &Environment) -> Notifier {
        let is = |name, values: &[&str]| environment.get(name).is_some_and(|value| values.contains(&value));
        let messages = is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "ghostty"]) || is("TERM", &["xterm-kitty", "xterm-ghostty"]);
        Notifier { mode, messages: messages && mode == NotifyMode::Auto, focused: true }
    }

    /// Returns the notification that a permission request waits.
    pub(crate) fn waits(&self, title: &str) -> Option<String> {
        self.notification(&format!("nuncio asks: {title}"))
    }

    /// Returns the notification that a turn has ended. The end of a short turn is not notified.
    pub(crate) fn ended(&self, duration: Option<Duration>) -> Option<String> {
        duration.filter(|duration| *duration >= LONG_TURN).and_then(|_| self.notification("nuncio has finished"))
    }

    fn notification(&self, text: &str) -> Option<String> {
        if self.focused || self.mode == NotifyMode::Off {
            return None;
        }
        Some(if self.messages { format!("\x1b]9;{}\x07", line(text)) } else { "\x07".into() })
    }
}

/// Saves the title of the terminal, and restores it.
pub(crate) const SAVE_TITLE: &str = "\x1b[22;0t";
pub(crate) const RESTORE_TITLE: &str = "\x1b[23;0t";

/// Returns the sequence that sets the title of the terminal.
pub(crate) fn title(text: &str) -> String {
    format!("\x1b]2;{}\x07", line(text))
}

/// Returns the sequence that copies a text to the clipboard of the terminal (OSC 52). `None` if the
/// text is too long.
pub(crate) fn copy(text: &str) -> Option<String> {
    use base64::Engine;
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    (encoded.len() <= COPY_BYTES_MAX).then(|| format!("\x1b]52;c;{encoded}\x07"))
}

fn line(text: &str) -> String {
    output_line(text).chars().filter(|character| !character.is_control()).take(TITLE_CHARS_MAX).collect()
}
