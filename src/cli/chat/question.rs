//! A permission request in the chat. It is shown above the composer and never takes a key that the
//! user typed for something else.

use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr;

use super::hunks::HunkReview;
use super::rows::wrapped_words;
use crate::content::{PermissionOption, PermissionOptionKind};
use crate::id::{PermissionId, ToolCallId};
use crate::terminal_text::{output_line, question_line};
use crate::transcript::PermissionQuestion;

/// How long a new request takes no keys, unless the user moves to it.
const UNARMED: Duration = Duration::from_millis(350);
/// Maximum number of rows of a request that a plain chat prints.
const PLAIN_ROWS: usize = 24;
/// Number of rows that the content keeps before each answer has a row of its own.
const CONTENT_ROWS_MIN: usize = 8;
/// How long the composer must be idle and empty before a request takes keys.
const IDLE: Duration = Duration::from_secs(1);

/// An answer that the request offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuestionChoice {
    Option(String),
    /// Rejects with a reason that the user writes; the id of the option.
    Reason(String),
    /// Decides about each hunk.
    Hunks,
}

/// An open permission request.
pub(crate) struct ChatQuestion {
    pub id: PermissionId,
    /// The call that needs the permission.
    pub call: ToolCallId,
    pub title: String,
    /// The change or command to approve, with all characters visible.
    content: Vec<String>,
    /// The answers with their names.
    choices: Vec<(QuestionChoice, String)>,
    is_done: bool,
    /// The parts of a review of changes, unless they are shown.
    pub review: Option<HunkReview>,
    appeared: Instant,
    /// The user moved to the request with Tab.
    pub focused: bool,
}

impl ChatQuestion {
    /// Creates a request. `content` are its lines, with all characters visible.
    pub(crate) fn new(question: &PermissionQuestion<'_>, content: Vec<String>) -> ChatQuestion {
        let PermissionQuestion { id, call, title, content: contents, options, review, is_done } = question;
        let review = review.as_ref().and_then(|offer| HunkReview::new(id, options, offer, contents));
        let mut choices: Vec<(QuestionChoice, String)> =
            options.iter().map(|option| (QuestionChoice::Option(option.option_id.clone()), output_line(&option.name))).collect();
        let rejects = |option: &&PermissionOption| option.kind == PermissionOptionKind::RejectOnce;
        if let Some(option) = options.iter().find(rejects) {
            choices.push((QuestionChoice::Reason(option.option_id.clone()), "Reject and say why".into()));
        }
        if review.is_some() {
            choices.push((QuestionChoice::Hunks, "Choose hunks".into()));
        }
        ChatQuestion {
            id: (*id).clone(),
            call: (*call).clone(),
            title: title.clone().unwrap_or_else(|| "the tool call".into()),
            content,
            choices,
            is_done: *is_done,
            review,
            appeared: Instant::now(),
            focused: false,
        }
    }

    /// Starts the time in which the request takes no keys.
    pub(crate) fn appear(&mut self) {
        self.appeared = Instant::now();
    }

    /// Returns whether digits answer the request: the user moved to it, or the composer is empty
    /// and no key was pressed for a time.
    pub(crate) fn takes_keys(&self, composer_is_empty: bool, last_key: Instant) -> bool {
        let is_new = self.appeared.elapsed() < UNARMED;
        self.focused || (!is_new && composer_is_empty && last_key.elapsed() >= IDLE)
    }

    /// Returns the answer of a digit, from 1.
    pub(crate) fn choice(&self, digit: char) -> Option<QuestionChoice> {
        self.choices.get((digit.to_digit(10)? as usize).checked_sub(1)?).map(|(choice, _)| choice.clone())
    }

    /// Returns the title, the rows of the content and those of the answers. `more` further requests
    /// wait. The rows are at most `rows_max`, unless the answers alone are more.
    pub(crate) fn rows(&self, more: usize, rows_max: usize, columns: usize) -> (String, Vec<String>, Vec<String>) {
        let waiting = if more > 0 { format!("  (1 of {}, waits for you)", more + 1) } else { String::new() };
        let title = question_line(&self.title);
        let title = if self.is_done { title + &waiting } else { format!("Allow {title}?{waiting}") };
        let each: Vec<String> = self.choice_texts().flat_map(|choice| wrapped_words(&choice, columns, 6)).collect();
        // Most of the rows belong to the content.
        let choices =
            if each.len() + 1 + self.content.len().min(CONTENT_ROWS_MIN) <= rows_max { each } else { self.joined_choices(columns) };
        let content = self.content_rows(rows_max.saturating_sub(choices.len() + 1).max(1));
        (title, content, choices)
    }

    fn content_rows(&self, rows_max: usize) -> Vec<String> {
        let hidden = self.content.len().saturating_sub(rows_max);
        let mut rows: Vec<String> = self.content[..self.content.len() - hidden].to_vec();
        if hidden > 0 {
            rows.push(format!("  … {hidden} more lines (Ctrl-O shows all)"));
        }
        rows
    }

    fn choice_texts(&self) -> impl Iterator<Item = String> {
        self.choices.iter().enumerate().map(|(at, (_, name))| format!("  [{}] {name}", at + 1))
    }

    /// Returns the answers, several in a row.
    fn joined_choices(&self, columns: usize) -> Vec<String> {
        let mut rows: Vec<String> = Vec::new();
        for choice in self.choice_texts() {
            match rows.last_mut().filter(|row| row.width() + choice.width() <= columns) {
                Some(row) => row.push_str(&choice),
                None => rows.extend(wrapped_words(&choice, columns, 6)),
            }
        }
        rows
    }

    /// Returns the request as text: its content and the answers.
    pub(crate) fn text(&self) -> String {
        let (title, content, choices) = self.rows(0, PLAIN_ROWS, 80);
        std::iter::once(title).chain(content).chain(choices).map(|row| row + "\n").collect()
    }

    pub(crate) fn content(&self) -> &[String] {
        &self.content
    }
}
