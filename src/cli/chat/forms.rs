//! Forms of MCP servers and hosted agents in the chat. A form takes the composer only after the
//! user has moved to it with Tab; the text that was there returns afterwards.

use serde_json::{Map, Value};

use crate::cli::terminal::client::FormRequest;
use crate::cli::terminal::form::FormField;
use crate::session::attached_clients::AttachedClient;
use crate::terminal_text::{question, question_line};

/// A form, and the values so far.
pub(crate) struct ChatForm {
    pub request: FormRequest,
    /// The fields without a value, the next one last.
    pub fields: Vec<FormField>,
    pub values: Map<String, Value>,
    /// The text of the composer from before the user moved to the form.
    pub draft: Option<String>,
}

/// The forms of the session, if it runs in this process.
#[derive(Default)]
pub(crate) struct SessionForms {
    pub requests: Option<tokio::sync::mpsc::Receiver<FormRequest>>,
    pub _attached: Option<AttachedClient>,
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
