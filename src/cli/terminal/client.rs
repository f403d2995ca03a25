//! The terminal as a client of a session: it shows forms, and has neither files nor terminals.

use std::path::Path;

use futures_util::future::{BoxFuture, ready};
use tokio::sync::{mpsc, oneshot};

use crate::content::{Form, FormAnswer};
use crate::id::ToolCallId;
use crate::limits;
use crate::runtime::is_choice;
use crate::toolkit::{ClientAccess, ClientRefusal, ClientTerminal, TerminalCommand};

/// A form that the user fills in. Dropping `answer` cancels it.
pub(crate) struct FormRequest {
    pub form: Form,
    pub answer: oneshot::Sender<FormAnswer>,
}

/// Passes the forms of a session to its command line.
pub(crate) struct TerminalClient {
    forms: mpsc::Sender<FormRequest>,
}

impl TerminalClient {
    pub(crate) fn new() -> (TerminalClient, mpsc::Receiver<FormRequest>) {
        let (forms, receiver) = mpsc::channel(limits::MCP_REQUESTS_MAX);
        (TerminalClient { forms }, receiver)
    }
}

impl ClientAccess for TerminalClient {
    fn has_files(&self) -> bool {
        false
    }

    fn has_exact_texts(&self) -> bool {
        false
    }

    fn read_text<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, Result<Option<String>, ClientRefusal>> {
        Box::pin(ready(Ok(None)))
    }

    fn write_text<'a>(&'a self, _: &'a Path, _: &'a str) -> BoxFuture<'a, Result<bool, ClientRefusal>> {
        Box::pin(ready(Ok(false)))
    }

    fn note_unsaved(&self, _: &Path, _: bool) {}

    fn distrust(&self, _: &Path) {}

    fn may_write(&self, _: &Path) -> bool {
        false
    }

    fn has_written(&self, _: &Path) {}

    fn fill<'a>(&'a self, form: &'a Form, _: &'a ToolCallId) -> BoxFuture<'a, Option<FormAnswer>> {
        Box::pin(async {
            // A permission request shows it.
            if is_choice(form) {
                return None;
            }
            let (answer, answered) = oneshot::channel();
            self.forms.send(FormRequest { form: form.clone(), answer }).await.ok()?;
            answered.await.ok()
        })
    }

    fn start<'a>(&'a self, _: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>> {
        Box::pin(ready(Ok(None)))
    }
}
