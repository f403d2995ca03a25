//! A permission request in the chat. It is shown above the composer and never takes a key that the
//! user typed for something else.

use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr;

use crate::content::PermissionOption;
use crate::id::PermissionId;
use crate::terminal_text::{output_line, question_line};

/// How long a new request takes no keys, unless the user moves to it.
const UNARMED: Duration = Duration::from_millis(350);
/// How long the composer must be idle and empty before a request takes keys.
const IDLE: Duration = Duration::from_secs(1);

/// An open permission request.
pub(crate) struct ChatQuestion {
    pub id: PermissionId,
    title: String,
    /// The change or command to approve, with all characters visible.
    content: Vec<String>,
    pub options: Vec<PermissionOption>,
    appeared: Instant,
    /// The user moved to the request with Tab.
    pub focused: bool,
}

impl ChatQuestion {
    pub(crate) fn new(id: PermissionId, title: &str, content: Vec<String>, options: Vec<PermissionOption>) -> ChatQuestion {
        ChatQuestion { id, title: title.into(), content, options, appeared: Instant::now(), focused: false }
    }

    /// Returns whether digits answer the request: the user moved to it, or the composer is empty
    /// and no key was pressed for a time.
    pub(crate) fn takes_keys(&self, composer_is_empty: bool, last_key: Instant) -> bool {
        let is_new = self.appeared.elapsed() < UNARMED;
        self.focused || (!is_new && composer_is_empty && last_key.elapsed() >= IDLE)
    }

    /// Returns the option of a digit, from 1.
    pub(crate) fn option(&self, digit: char) -> Option<&PermissionOption> {
        self.options.get((digit.to_digit(10)? as usize).checked_sub(1)?)
    }

    /// Returns the rows of the request, the last of them with the options. `more` further requests
    /// wait.
    pub(crate) fn rows(&self, more: usize, rows_max: usize, columns: usize) -> Vec<String> {
        let waiting = if more > 0 { format!("  ({more} more)") } else { String::new() };
        let mut rows = vec![format!("Allow {}?{waiting}", question_line(&self.title))];
        let hidden = self.content.len().saturating_sub(rows_max);
        rows.extend(self.content[..self.content.len() - hidden].iter().map(|line| format!("  {line}")));
        if hidden > 0 {
            rows.push(format!("  … {hidden} more lines (Ctrl-O shows all)"));
        }
        let options = self.options.iter().enumerate();
        for option in options.map(|(at, option)| format!("  [{}] {}", at + 1, output_line(&option.name))) {
            match rows.last_mut().filter(|row| row.starts_with("  [") && row.width() + option.width() <= columns) {
                Some(row) => row.push_str(&option),
                None => rows.push(option),
            }
        }
        rows
    }

    /// Returns all lines of the content.
    pub(crate) fn content(&self) -> &[String] {
        &self.content
    }
}
