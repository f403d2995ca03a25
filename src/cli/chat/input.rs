//! The keys of the chat, or lines of text in a plain chat.

use std::io;
use std::time::Instant;

use crossterm::event::{Event as TerminalEvent, EventStream, KeyCode, KeyEvent};
use futures_util::StreamExt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdin;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::commands::{ArgumentValues, CompletionCandidate};
use super::completion::{self, Completion, ComposerWord, WordKind};
use super::forms::ChatForm;
use super::history;
use super::keys::{self, is_control};
use super::pager::PagerAction;
use super::picker::PickerAction;
use super::question::QuestionChoice;
use super::state::Chat;
use super::view::{Overlay, PRESSED_AGAIN, RejectReason};
use crate::config::{ChatAction, EditingMode};
use crate::content::{FormAnswer, ReviewAnswer};
use crate::error::{Error, Result};
use crate::event::Delivery;
use crate::id::PermissionId;
use crate::options::Mode;

/// The source of the input.
pub(crate) enum ChatInput {
    Keys(EventStream),
    Lines(Lines<BufReader<Stdin>>),
    /// Another program reads the terminal.
    Suspended,
}

/// A key, a paste or a line.
pub(crate) enum InputEvent {
    Terminal(TerminalEvent),
    Line(String),
}

impl ChatInput {
    /// Opens the standard input: lines for a plain chat, else keys.
    pub(crate) fn open(plain: bool) -> ChatInput {
        match plain {
            true => ChatInput::Lines(BufReader::new(tokio::io::stdin()).lines()),
            false => ChatInput::Keys(EventStream::new()),
        }
    }

    /// Waits for the next input. `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Result<InputEvent>> {
        let failed = |error: io::Error| Error::io("reading the terminal", error);
        match self {
            ChatInput::Keys(events) => Some(events.next().await?.map(InputEvent::Terminal).map_err(failed)),
            ChatInput::Lines(lines) => Some(lines.next_line().await.transpose()?.map(InputEvent::Line).map_err(failed)),
            ChatInput::Suspended => std::future::pending().await,
        }
    }

    /// Returns whether the terminal has input that was not read yet.
    pub(crate) fn has_unread(&self) -> bool {
        let now = Timespec::default();
        matches!(self, ChatInput::Keys(_))
            && poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

impl Chat {
    /// Handles input. Returns whether the user quits.
    pub(super) async fn input(&mut self, event: InputEvent, input: &mut ChatInput) -> bool {
        let is_other = match &event {
            InputEvent::Terminal(TerminalEvent::Key(key)) => keys::is_press(key),
            InputEvent::Terminal(event) => !matches!(event, TerminalEvent::Resize(..)),
            InputEvent::Line(_) => false,
        };
        if is_other {
            self.release();
        }
        let result = match event {
            InputEvent::Line(line) => self.line(&line, input).await,
            InputEvent::Terminal(TerminalEvent::Key(key)) if keys::is_press(&key) => {
                let result = match self.view.overlay.is_some() {
                    _ if self.hold(key) => Ok(false),
                    true => self.overlay_key(key).await.map(|()| false),
                    false => self.key(key, input).await,
                };
                self.view.last_key = Instant::now();
                result
            }
            InputEvent::Terminal(TerminalEvent::Paste(text)) => {
                if self.view.overlay.is_none() {
                    self.paste(&text).await;
                }
                self.view.last_key = Instant::now();
                Ok(false)
            }
            InputEvent::Terminal(TerminalEvent::FocusGained) => {
                self.view.notifier.focused = true;
                Ok(false)
            }
            InputEvent::Terminal(TerminalEvent::FocusLost) => {
                self.view.notifier.focused = false;
                Ok(false)
            }
            InputEvent::Terminal(_) => Ok(false),
        };
        if is_other {
            self.view.last_input = Instant::now();
        }
        self.draft.change();
        result.unwrap_or_else(|error| {
            self.view.error(&error);
            false
        })
    }

    /// Handles a line of a plain chat: `/1` answers a permission request.
    async fn line(&mut self, line: &str, input: &mut ChatInput) -> Result<bool> {
        let digit = line.trim().strip_prefix('/').and_then(|number| number.parse::<u8>().ok());
        if let (Some(digit), Some(question)) = (digit, self.view.questions.first())
            && let Some(choice) = question.choice(char::from(b'0' + digit.min(9)))
        {
            return self.choose(choice).await.map(|()| false);
        }
        self.view.composer.set(line);
        if self.view.composer.is_empty() { Ok(false) } else { self.submit(input).await }
    }

    /// Handles a key in the list on the alternate screen.
    async fn overlay_key(&mut self, key: KeyEvent) -> Result<()> {
        match &mut self.view.overlay {
            Some(Overlay::Sessions(picker)) => match picker.key(key) {
                PickerAction::None => {}
                PickerAction::Close => {
                    self.view.overlay = None;
                    self.behind_list = None;
                }
                PickerAction::Open(id) => {
                    self.view.overlay = None;
                    self.continue_session(id.as_str()).await?;
                }
                PickerAction::Search => {
                    if let Some((filter, cancel)) = picker.begin_search() {
                        self.tasks.search_sessions(filter, cancel);
                    }
                }
            },
            Some(Overlay::Text(pager)) => match pager.key(key) {
                PagerAction::None => {}
                PagerAction::Close => self.view.overlay = None,
                PagerAction::More => self.show_conversation().await?,
            },
            Some(Overlay::Hunks(review)) => {
                let ended = review.key(key);
                if ended {
                    self.end_review(false).await?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Closes the review of hunks, and sends the decisions.
    pub(super) async fn end_review(&mut self, send: bool) -> Result<()> {
        let Some(Overlay::Hunks(review)) = self.view.overlay.take() else { return Ok(()) };
        if send {
            return self.answer(&review.id, &review.option, None, Some(&review.answer())).await;
        }
        if let Some(question) = self.view.questions.iter_mut().find(|question| question.id == review.id) {
            question.review = Some(review);
        }
        Ok(())
    }

    /// Handles a key. Returns whether the user quits.
    async fn key(&mut self, key: KeyEvent, input: &mut ChatInput) -> Result<bool> {
        let is_empty = self.view.composer.is_empty();
        if self.completion_key(key) {
            return Ok(false);
        }
        if let Some(action) = self.view.keys.action(&key) {
            return self.act(action, input).await.map(|()| false);
        }
        match key.code {
            _ if is_control(&key, 'c') => return self.interrupt().await,
            _ if is_control(&key, 'd') && is_empty => return Ok(true),
            KeyCode::Char('?') if is_empty => {
                let keys = self.view.keys.text();
                self.view.print(&keys);
            }
            _ if self.vim_key(key) => self.start_completion(),
            KeyCode::Tab => self.tab().await?,
            KeyCode::Esc => self.escape().await?,
            KeyCode::Enter if key.modifiers.is_empty() && self.view.form.as_ref().is_some_and(ChatForm::is_focused) => {
                // Without text, the key counts only if it was pressed by itself.
                if !is_empty {
                    self.fill_field();
                }
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                if !is_empty || !self.attached.is_empty() {
                    return self.submit(input).await;
                }
            }
            KeyCode::Up if is_empty && !self.view.queue.is_empty() => self.take_back().await?,
            _ => {
                keys::edit(&mut self.view.composer, key);
                self.start_completion();
            }
        }
        Ok(false)
    }

    /// Answers the first permission request.
    pub(super) async fn choose(&mut self, choice: QuestionChoice) -> Result<()> {
        let Some(question) = self.view.questions.first_mut() else { return Ok(()) };
        let id = question.id.clone();
        match choice {
            QuestionChoice::Option(option) => self.answer(&id, &option, None, None).await,
            QuestionChoice::Reason(option) => {
                self.view.reason = Some(RejectReason { id, option });
                Ok(())
            }
            QuestionChoice::Hunks => {
                self.view.overlay = question.review.take().map(Overlay::Hunks);
                Ok(())
            }
        }
    }

    /// Sends the answer to a permission request, after which input belongs to the next one.
    pub(super) async fn answer(
        &mut self,
        id: &PermissionId,
        option: &str,
        reason: Option<&str>,
        review: Option<&ReviewAnswer>,
    ) -> Result<()> {
        self.session.answer(id, option, reason, review).await?;
        self.view.close_question(id);
        Ok(())
    }

    async fn tab(&mut self) -> Result<()> {
        let is_empty = self.view.composer.is_empty();
        match self.view.questions.first_mut() {
            Some(question) => question.focused = !question.focused,
            None if self.view.form.is_some() => self.focus_form(),
            None if self.view.busy && !is_empty => {
                let text = self.take_text();
                self.send(&text, Delivery::Queue).await?;
            }
            None => {}
        }
        Ok(())
    }

    /// Handles a key as a command of vi, if the settings want it. Returns false for another key.
    fn vim_key(&mut self, key: KeyEvent) -> bool {
        self.view.keys.editing == EditingMode::Vim && self.view.vim.key(&mut self.view.composer, key)
    }

    /// Returns whether a turn or a command of the user runs.
    fn works(&self) -> bool {
        self.view.busy || !self.view.shell.is_empty()
    }

    async fn escape(&mut self) -> Result<()> {
        if self.view.reason.take().is_some() {
            return Ok(());
        }
        if self.view.form.as_ref().is_some_and(ChatForm::is_focused) {
            self.end_form(Some(FormAnswer::Declined));
            return Ok(());
        }
        let works = self.works();
        match self.view.questions.first_mut() {
            Some(question) if question.focused => question.focused = false,
            _ if works => self.stop().await?,
            _ if self.view.composer.is_empty() => {
                let before = self.escaped.replace(Instant::now());
                if before.is_some_and(|before| before.elapsed() < PRESSED_AGAIN) {
                    self.view.composer.up();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets the next mode: ask, accept-edits, plan, and ask again. From `auto`, it is `ask`.
    pub(super) async fn next_mode(&mut self) -> Result<()> {
        let next = match self.view.info.mode.parse() {
            Ok(Mode::Ask) => Mode::AcceptEdits,
            Ok(Mode::AcceptEdits) => Mode::Plan,
            _ => Mode::Ask,
        };
        self.session.set_mode(next.id()).await
    }

    /// Handles Ctrl-C: empties the composer, else stops the turn, else quits if pressed twice.
    async fn interrupt(&mut self) -> Result<bool> {
        let again = self.view.interrupted.replace(Instant::now()).is_some_and(|before| before.elapsed() < PRESSED_AGAIN);
        if !self.view.composer.is_empty() {
            self.take_text();
            if self.works() {
                // This press is not the first of two that quit: the next one stops the turn.
                self.view.interrupted = None;
            }
            return Ok(false);
        }
        // If nothing runs, the status row says that a second press quits.
        if self.works() && !again {
            self.stop().await?;
        }
        Ok(again)
    }

    /// Removes and returns the text of the composer, and adds it to the history.
    pub(super) fn take_text(&mut self) -> String {
        self.view.completion = None;
        self.view.vim.insert();
        let text = self.view.composer.take();
        history::add(&self.view.history_file, &text);
        text
    }

    /// Handles a key of the open completion. Returns whether it was one.
    fn completion_key(&mut self, key: KeyEvent) -> bool {
        let searches = self.view.keys.action(&key) == Some(ChatAction::Search);
        let Some(completion) = &mut self.view.completion else { return false };
        match key.code {
            KeyCode::Up => completion.select(false),
            KeyCode::Down => completion.select(true),
            _ if searches && completion.word.kind == WordKind::History => completion.select(true),
            KeyCode::Esc => self.view.completion = None,
            KeyCode::Tab => self.accept_candidate(),
            // A command that is typed whole is run.
            KeyCode::Enter
                if key.modifiers.is_empty() && (completion.chosen || self.searches_history() || !self.is_whole_command()) =>
            {
                self.accept_candidate();
            }
            _ => return false,
        }
        true
    }

    fn is_whole_command(&self) -> bool {
        let (text, _) = self.view.composer.text();
        let word = text.split_whitespace().next().unwrap_or_default();
        text.starts_with('/') && self.view.commands.iter().any(|command| command.value == word)
    }

    /// Replaces the word by the selected candidate.
    fn accept_candidate(&mut self) {
        let Some(completion) = self.view.completion.take() else { return };
        let value = &completion.selected().value;
        if completion.word.kind == WordKind::History {
            return self.view.composer.set(value);
        }
        // A directory can be completed further.
        let end = if value.ends_with('/') { "" } else { " " };
        self.view.composer.replace_before_cursor(completion.word.start, &format!("{value}{end}"));
        if end.is_empty() {
            self.start_completion();
        }
    }

    /// Searches candidates for the word at the cursor.
    pub(super) fn start_completion(&mut self) {
        if self.searches_history() {
            return self.search_history();
        }
        let (text, cursor) = self.view.composer.text();
        let word = ComposerWord::at(text, cursor).filter(|_| !self.view.plain && self.view.mark() == ">");
        match word {
            None => self.view.completion = None,
            Some(word) if word.kind == WordKind::Command => {
                let candidates = completion::matching(&word.text, &self.view.commands);
                self.view.completion = Completion::new(word, candidates);
            }
            Some(word) => self.tasks.complete(&self.session.id, word),
        }
    }

    /// Shows the candidates that were found for a word, if it is still the word at the cursor.
    pub(super) fn complete(&mut self, word: &ComposerWord, candidates: Vec<CompletionCandidate>) {
        let (text, cursor) = self.view.composer.text();
        if ComposerWord::at(text, cursor).as_ref() != Some(word) {
            return;
        }
        let searched = matches!(word.kind, WordKind::Path | WordKind::Argument(ArgumentValues::Files));
        let candidates = if searched { candidates } else { completion::matching(&word.text, &candidates) };
        self.view.completion = Completion::new(word.clone(), candidates);
    }
}
