//! Shows, fills and answers the forms of the session.

use super::forms::SessionForms;
use super::state::Chat;
use crate::cli::terminal::client::TerminalClient;
use crate::content::FormAnswer;

impl Chat {
    /// Registers the chat as a client that shows the forms of the session.
    pub(super) fn attach_forms(&mut self) {
        self.view.form = None;
        let sessions = self.session.client.app().sessions_now();
        let opened = sessions.and_then(|sessions| sessions.opened(&self.session.id));
        let may_fill = !self.view.plain && self.session.client.server().is_none();
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
