//! Tells the user that the chat waits or has finished, and sets the title of the terminal.

use std::time::Duration;

use base64::Engine;
use clap::ValueEnum;

use crate::config::{Environment, ProgramStatus};
use crate::event::ChildLabel;
use crate::id::SessionId;
use crate::terminal_text::output_line;

/// Minimum duration of a turn whose end is notified.
const LONG_TURN: Duration = Duration::from_secs(10);
/// Maximum length of the title of the terminal, in characters.
const TITLE_CHARS_MAX: usize = 80;
/// Maximum length of a title in the report of a state, in bytes; terminals ignore reports with
/// longer ones.
const REPORTED_BYTES_MAX: usize = 192;
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
    /// The terminal shows the state of programs (OSC 7501).
    states: bool,
    /// The state that was reported last.
    reported: String,
    /// The ids of the subagents whose states were reported.
    subagents: Vec<String>,
    /// The terminal has the focus, as far as it reports this.
    pub focused: bool,
}

impl Notifier {
    /// Creates notifications for the terminal that the environment names.
    pub(crate) fn new(mode: NotifyMode, status: ProgramStatus, environment: &Environment) -> Notifier {
        let is = |name, values: &[&str]| environment.get(name).is_some_and(|value| values.contains(&value));
        let messages = is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "ghostty"]) || is("TERM", &["xterm-kitty", "xterm-ghostty"]);
        let states = match status {
            ProgramStatus::Auto => is("TERM_PROGRAM", &["ghostty", "cmux", "tuios"]) || is("TERM", &["xterm-ghostty"]),
            ProgramStatus::On => true,
            ProgramStatus::Off => false,
        };
        let messages = messages && mode == NotifyMode::Auto;
        Notifier { mode, messages, states, reported: String::new(), subagents: Vec::new(), focused: true }
    }

    /// Returns the report of a state, if the terminal shows states and this one is new. `title` is
    /// that of the session.
    pub(crate) fn program_status(&mut self, state: &str, title: &str) -> String {
        if !self.states {
            return String::new();
        }
        let report = program_report(state, title);
        if report == self.reported {
            return String::new();
        }
        self.reported.clone_from(&report);
        report
    }

    /// Returns the reports about the subagents that started or ended since the last ones, if the
    /// terminal shows states.
    pub(crate) fn subagent_status(&mut self, running: &[ChildLabel]) -> String {
        if !self.states {
            return String::new();
        }
        let named: Vec<(String, &ChildLabel)> = running.iter().map(|child| (report_id(&child.child_session_id), child)).collect();
        let mut reports = String::new();
        self.subagents.retain(|id| {
            let runs = named.iter().any(|(running, _)| running == id);
            reports += &if runs { String::new() } else { format!("\x1b]7501;state=clear:id={id}\x07") };
            runs
        });
        for (id, child) in named {
            if !self.subagents.contains(&id) {
                reports += &program_report(&format!("working:id={id}"), &child.title);
                self.subagents.push(id);
            }
        }
        reports
    }

    /// Returns the report that the program has ended, with its subagents.
    pub(crate) fn program_ends(&self) -> String {
        if self.states { "\x1b]7501;state=clear\x07".into() } else { String::new() }
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

/// Returns the report of a state (OSC 7501), of the program or of the subagent that it names.
fn program_report(state: &str, title: &str) -> String {
    let title = line(title);
    let cut = &title[..title.floor_char_boundary(REPORTED_BYTES_MAX)];
    let encoded = base64::engine::general_purpose::STANDARD.encode(cut);
    let title = if title.is_empty() { String::new() } else { format!(":title={encoded}") };
    format!("\x1b]7501;state={state}:app=nuncio{title}\x07")
}

/// Returns the id of a subagent in reports: its session's, which is too long, without the prefix.
fn report_id(session: &SessionId) -> String {
    let id = session.as_str();
    id.rsplit('_').next().unwrap_or(id).into()
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
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    (encoded.len() <= COPY_BYTES_MAX).then(|| format!("\x1b]52;c;{encoded}\x07"))
}

fn line(text: &str) -> String {
    output_line(text).chars().filter(|character| !character.is_control()).take(TITLE_CHARS_MAX).collect()
}
