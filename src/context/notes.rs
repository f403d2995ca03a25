//! Notes to the model: their tag, and those about turns that did not complete and about the mode.

use std::sync::Arc;

use uuid::Uuid;

use super::environment;
use crate::content::Part;
use crate::event::CancelCause;
use crate::options::Mode;

/// How the notes of a session are marked in its requests: with a key that no file, program or page
/// knows, so that none of them can pretend to be a note.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoteTag {
    /// Missing in sessions of earlier versions, whose notes stand in square brackets.
    key: Option<Arc<str>>,
}

impl NoteTag {
    /// Draws the key of a new session. Letters need fewer tokens than digits.
    pub(crate) fn new_key() -> String {
        let random = Uuid::now_v7().as_u128() as u64;
        (0..5).map(|place| char::from(b'a' + (random / 26_u64.pow(place) % 26) as u8)).collect()
    }

    pub(super) fn new(key: Option<&str>) -> NoteTag {
        NoteTag { key: key.map(Arc::from) }
    }

    /// Returns the line of the environment that tells the key to the model.
    pub(crate) fn line(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("{KEY}{key}"))
    }

    /// Returns whether the context of a message tells the key. Without a key, each context counts.
    pub(super) fn is_told(&self, context: &[Part]) -> bool {
        let Some(line) = self.line() else { return !context.is_empty() };
        context
            .iter()
            .any(|part| matches!(part, Part::Text { text } if text.starts_with(environment::START) && text.contains(&line)))
    }

    /// Returns a note as the model receives it.
    pub(crate) fn text(&self, note: &str) -> String {
        match &self.key {
            // Names in a note must not end it.
            Some(key) => format!("<nuncio {key}>{}</nuncio>", note.replace("</nuncio", "</ nuncio")),
            None if note.starts_with('[') => note.into(),
            None => format!("[{note}]"),
        }
    }

    /// Returns a part as the model receives it.
    pub(super) fn part(&self, part: &Part) -> Part {
        match part {
            Part::Note { text } => Part::text(self.text(text)),
            part => part.clone(),
        }
    }

    /// Returns the text of a part without its tag, if it is a note that starts with `start`.
    fn inside<'a>(&self, text: &'a str, start: &str) -> Option<&'a str> {
        let opening = self.key.as_ref().map_or_else(|| "[".into(), |key| format!("<nuncio {key}>"));
        text.strip_prefix(&opening).filter(|note| note.starts_with(start))
    }

    /// Returns whether a part of a request is an unmarked note of an earlier version that starts
    /// with `start`.
    pub(super) fn is_older_note(&self, part: &Part, start: &str) -> bool {
        self.key.is_none() && matches!(part, Part::Text { text } if text.starts_with(start))
    }

    /// Returns whether a part of a request is a note that starts with `start`.
    pub(super) fn is_note(&self, part: &Part, start: &str) -> bool {
        matches!(part, Part::Text { text } if self.inside(text, start).is_some())
    }
}

const KEY: &str = "Key: ";

/// Removes the lines of an environment that tell a key.
pub(crate) fn without_key(part: Part) -> Part {
    match part {
        Part::Text { text } if text.starts_with(environment::START) => {
            Part::text(text.split_inclusive('\n').filter(|line| !line.starts_with(KEY)).collect::<String>())
        }
        part => part,
    }
}

const CANCELLED: &str = "the previous request was cancelled by the user";
const CANCELLED_CUT: &str = "the previous request was cancelled by the user; the answer above is cut off";
const UNANSWERED: &str = "the previous request was stopped: its permission request got no answer";
const UNANSWERED_CUT: &str = "the previous request was stopped: its permission request got no answer; the answer above is cut off";
pub(super) const INTERRUPTED: &str = "the previous request was interrupted";
pub(super) const INTERRUPTED_CUT: &str = "the previous request was interrupted; the answer above is cut off";
pub(super) const FAILED_CUT: &str = "the previous request failed; the answer above is cut off";
pub(super) const REFUSED: &str = "the provider refused the previous request";
pub(super) const REFUSED_CUT: &str = "the answer above is cut off: the provider refused the request";
pub(super) const LIMIT: &str = "the previous request reached the output token limit without an answer";
pub(super) const LIMIT_CUT: &str = "the output limit cut off the answer above";

pub(in crate::context) const OVERFLOW: &str =
    "the previous request and the work on it are left out, because they exceeded your context window; changes to files remain";
pub(in crate::context) const OVERFLOW_OLDEST: &str =
    "the oldest messages and the previous request are left out, because they exceeded your context window; changes to files remain";

/// Returns the note about a cancelled turn.
pub(super) fn cancelled(cause: Option<CancelCause>) -> &'static str {
    cause.map_or(CANCELLED, |_| UNANSWERED)
}

/// Returns the note about a cancelled turn whose answer is cut off.
pub(super) fn cancelled_cut(cause: Option<CancelCause>) -> &'static str {
    cause.map_or(CANCELLED_CUT, |_| UNANSWERED_CUT)
}

/// Starts of the notes about the mode, and of the line in the environment of the first message.
/// They stand in user messages, not in the system prompt: a change must not alter the start of
/// later requests, which providers cache.
const MODE: &str = "mode: ";
const PLAN_ENDED: &str = "the mode is no longer plan: you may make changes.";
const MODE_LINE: &str = "\nMode: ";

/// Says what a mode allows.
fn meaning(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "Changes and commands need the user's permission.",
        Mode::AcceptEdits => "Changes of files in the directory need no permission, commands do.",
        Mode::Plan => {
            "You have read-only access: investigate, then answer with a plan of the changes you propose, and set its steps with the \
             plan tool if you have it. Changes and commands are denied; do not try them."
        }
        Mode::Auto => "Changes and commands in the directory need no permission.",
    }
}

/// Returns the line about the mode in the environment of the first message.
pub(crate) fn mode_line(mode: Mode) -> String {
    format!("Mode: {mode}. {}", meaning(mode))
}

/// Returns the note about a mode that differs from the one that the model knows.
pub(super) fn mode_note(mode: Mode, known: Option<Mode>) -> String {
    match (mode, known) {
        (Mode::Plan, _) | (_, None | Some(Mode::Ask | Mode::AcceptEdits | Mode::Auto)) => {
            format!("{MODE}{mode}. {}", meaning(mode))
        }
        (_, Some(Mode::Plan)) => {
            format!("{PLAN_ENDED} Carry out the plan only if the user asked for it. Mode: {mode}. {}", meaning(mode))
        }
    }
}

impl NoteTag {
    /// Returns the mode according to the notes in a message, if it has any. Those of earlier
    /// versions name only the mode `plan`.
    pub(in crate::context) fn told_mode(&self, parts: &[Part]) -> Option<Mode> {
        let named = |text: &str| text.split(['.', ']']).next().and_then(|name| name.parse().ok());
        let told = |text: &str| {
            if let Some(note) = self.inside(text, MODE) {
                return named(&note[MODE.len()..]);
            }
            if let Some(note) = self.inside(text, PLAN_ENDED) {
                return note.split_once("Mode: ").map_or(Some(Mode::Ask), |(_, name)| named(name));
            }
            let environment = text.starts_with(environment::START).then_some(text)?;
            named(environment.split_once(MODE_LINE)?.1)
        };
        let texts = parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text) } else { None });
        texts.filter_map(|text| told(text)).next_back()
    }
}
