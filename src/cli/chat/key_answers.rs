//! Handles the keys that answer ([`HeldKey`]).

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};

use super::forms::ChatForm;
use super::held_key::{HeldKey, KeyAnswer};
use super::input::ChatInput;
use super::keys;
use super::state::Chat;
use super::view::Overlay;
use crate::cli::terminal::lines::QUIET;
use crate::error::Result;

impl Chat {
    /// Keeps a key that answers. Returns whether it is one.
    pub(super) fn hold(&mut self, key: KeyEvent) -> bool {
        let answer = self.answer_of(key).filter(|_| self.view.is_quiet());
        self.held = answer.map(|answer| HeldKey { due: Instant::now() + QUIET, key, answer });
        self.held.is_some()
    }

    fn answer_of(&self, key: KeyEvent) -> Option<KeyAnswer> {
        let is_empty = self.view.composer.is_empty();
        let question = self.view.questions.first().filter(|_| self.view.reason.is_none());
        match (&self.view.overlay, key.code) {
            (Some(Overlay::Hunks(review)), KeyCode::Enter) => Some(KeyAnswer::Hunks(review.id.clone())),
            (Some(_), _) => None,
            _ if !key.modifiers.is_empty() => None,
            (None, KeyCode::Char(digit)) => {
                let question = question.filter(|question| question.takes_keys(is_empty, self.view.last_key))?;
                Some(KeyAnswer::Question(question.id.clone(), question.choice(digit)?))
            }
            (None, KeyCode::Enter) => {
                let is_focused = is_empty && self.view.form.as_ref().is_some_and(ChatForm::is_focused);
                is_focused.then_some(KeyAnswer::Form)
            }
            (None, _) => None,
        }
    }

    /// Handles a kept key that other input follows: it is text.
    pub(super) fn release(&mut self) {
        let Some(HeldKey { key, .. }) = self.held.take().filter(|_| self.view.overlay.is_none()) else { return };
        if key.code != KeyCode::Enter {
            keys::edit(&mut self.view.composer, key);
            self.start_completion();
        }
    }

    /// Ends the wait for input after the kept key. Returns whether the user quits.
    pub(super) async fn end_hold(&mut self, input: &mut ChatInput) -> Result<bool> {
        let more = poll_fn(|context| Poll::Ready(pin!(input.next()).poll(context))).await;
        match more {
            Poll::Ready(Some(event)) => Ok(self.input(event?, input).await),
            Poll::Ready(None) => Ok(true),
            Poll::Pending => {
                if let Err(error) = self.answer_held(input).await {
                    self.view.error(&error);
                }
                Ok(false)
            }
        }
    }

    /// Answers with the kept key, unless there is more input.
    async fn answer_held(&mut self, input: &mut ChatInput) -> Result<()> {
        if let Some(held) = self.held.as_mut().filter(|_| input.has_unread()) {
            held.due = Instant::now() + QUIET;
            return Ok(());
        }
        let Some(held) = self.held.take() else { return Ok(()) };
        match held.answer {
            KeyAnswer::Question(id, choice) if self.view.questions.first().is_some_and(|question| question.id == id) => {
                self.choose(choice).await
            }
            KeyAnswer::Hunks(id) if matches!(&self.view.overlay, Some(Overlay::Hunks(review)) if review.id == id) => {
                self.end_review(true).await
            }
            KeyAnswer::Form => {
                self.fill_field();
                Ok(())
            }
            // The request was answered elsewhere.
            KeyAnswer::Question(..) | KeyAnswer::Hunks(_) => Ok(()),
        }
    }
}
