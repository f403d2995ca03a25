//! Forms of MCP servers and hosted agents in the chat. A form takes the composer only after the
//! user has moved to it with Tab; the text that was there returns afterwards.

use serde_json::{Map, Value};

use super::Chat;
use crate::cli::terminal::client::{FormRequest, TerminalClient};
use crate::cli::terminal::form::FormField;
use crate::content::FormAnswer;
use crate::session::attached_clients::AttachedClient;
use crate::terminal_text::{question, question_line};

/// A form, and the values so far.
pub(crate) struct ChatForm {
    request: FormRequest,
    /// The fields without a value, the next one last.
    fields: Vec<FormField>,
    values: Map<String, Value>,
    /// The text of the composer from before the user moved to the form.
    draft: Option<String>,
}

/// The forms of the session, if it runs in this process.
#[derive(Default)]
pub(crate) struct SessionForms {
    requests: Option<tokio::sync::mpsc::Receiver<FormRequest>>,
    _attached: Option<AttachedClient>,
}

impl SessionForms {
    /// Waits for a form. Cancel safe.
    pub(crate) async fn next(&mut self) -> FormRequest {
        match &mut self.requests {
            Some(requests) => match requests.recv().await {
                Some(request) => request,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}

impl ChatForm {
    pub(crate) fn new(request: FormRequest) -> ChatForm {
        let mut fields = FormField::all(&request.form);
        fields.reverse();
        ChatForm { request, fields, values: Map::new(), draft: None }
    }

    /// Returns whether the composer has the value of a field.
    pub(crate) fn is_focused(&self) -> bool {
        self.draft.is_some()
    }

    /// Returns the lines of the form: its message, and the next field.
    pub(crate) fn text(&self) -> String {
        let form = &self.request.form;
        let field = match self.fields.last() {
            Some(field) => format!("{}  {}\n", field.text(), field.hint()),
            None => "  [Enter accepts]\n".into(),
        };
        format!("{} asks: {}\n{field}", question_line(&form.server), question(&form.message))
    }

    /// Waits until the form is not needed any more. Cancel safe.
    pub(crate) async fn withdrawn(&mut self) {
        self.request.answer.closed().await;
    }
}

impl Chat {
    /// Registers the chat as a client that shows the forms of the session.
    pub(super) fn attach_forms(&mut self) {
        self.view.form = None;
        let sessions = self.session.client.app().sessions_now();
        let opened = sessions.and_then(|sessions| sessions.opened(&self.session.id));
        let may_fill = !self.view.plain && self.session.client.is_local();
        self.forms = match opened.filter(|_| may_fill) {
            Some(session) => {
                let (client, requests) = TerminalClient::new();
                let attached = session.clients.attach(std::sync::Arc::new(client));
                SessionForms { requests: Some(requests), _attached: Some(attached) }
            }
            None => SessionForms::default(),
        };
    }

    /// Moves between the composer and the form.
    pub(super) fn focus_form(&mut self) {
        let Some(form) = &mut self.view.form else { return };
        match form.draft.take() {
            Some(draft) => self.view.composer.set(&draft),
            None => {
                form.draft = Some(self.view.composer.whole());
                self.view.composer.set("");
            }
        }
    }

    /// Takes the text of the composer as the value of the field. After the last field, the form is
    /// sent.
    pub(super) fn fill_field(&mut self) {
        let Some(form) = &mut self.view.form else { return };
        let line = self.view.composer.whole();
        if let Some(field) = form.fields.last() {
            match field.read(line.trim()) {
                Ok(value) => {
                    let field = form.fields.pop().expect("the field was read");
                    form.values.extend(value.map(|value| (field.name, value)));
                }
                Err(problem) => return self.view.print(&format!("  {problem}\n")),
            }
        }
        self.view.composer.set("");
        if form.fields.is_empty() {
            let values = std::mem::take(&mut form.values);
            self.end_form(Some(FormAnswer::Accepted(values)));
        }
    }

    /// Ends the form with an answer, or without one if it was withdrawn. The text of the composer
    /// returns.
    pub(super) fn end_form(&mut self, answer: Option<FormAnswer>) {
        let Some(form) = self.view.form.take() else { return };
        if let Some(draft) = form.draft {
            self.view.composer.set(&draft);
        }
        if let Some(answer) = answer {
            // Fails if the call has ended.
            let _ = form.request.answer.send(answer);
        }
    }
}
