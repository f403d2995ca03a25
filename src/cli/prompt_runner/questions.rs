//! The permission requests and forms that are open at the terminal.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::runner_output::RunnerOutput;
use crate::cli::terminal::ask::{self, Approver, PermissionChoice, PermissionReply};
use crate::cli::terminal::client::{FormRequest, TerminalClient};
use crate::cli::terminal::form;
use crate::cli::terminal::lines::TerminalLines;
use crate::cli::terminal::output::print_question;
use crate::client::SessionClient;
use crate::content::PermissionOptionKind;
use crate::id::{PermissionId, SessionId};
use crate::session::attached_clients::AttachedClient;
use crate::transcript::PermissionQuestion;

/// Asks the questions of a session. Each one has a task that waits for the user's answer.
pub(super) struct TerminalQuestions {
    client: SessionClient,
    pub approver: Approver,
    asked: Vec<(PermissionId, AbortOnDropHandle<()>)>,
    /// Forms to show. `None` without a terminal.
    forms: Option<mpsc::Receiver<FormRequest>>,
    /// The form that is shown.
    form: Option<AbortOnDropHandle<()>>,
    /// Registers the terminal as a client of the session.
    _attached: Option<AttachedClient>,
}

impl TerminalQuestions {
    /// Creates the questions of a session. On a terminal, its forms are shown, too.
    pub(super) fn new(client: &SessionClient, session: &SessionId, approver: Approver) -> TerminalQuestions {
        let opened = client.app().sessions_now().and_then(|sessions| sessions.opened(session));
        let (forms, attached) = match (&approver, opened) {
            (Approver::Terminal(_), Some(session)) => {
                let (terminal, forms) = TerminalClient::new();
                (Some(forms), Some(session.clients.attach(Arc::new(terminal))))
            }
            _ => (None, None),
        };
        TerminalQuestions { client: client.clone(), approver, asked: Vec::new(), forms, form: None, _attached: attached }
    }

    /// Returns the lines that the user types, if there is a terminal.
    pub(super) fn lines(&self) -> Option<Arc<TerminalLines>> {
        match &self.approver {
            Approver::Terminal(lines) => Some(lines.clone()),
            Approver::None | Approver::Elsewhere | Approver::Yes => None,
        }
    }

    /// Returns whether a question waits for an answer at the terminal.
    pub(super) fn are_open(&self) -> bool {
        !self.asked.is_empty() || self.form.is_some()
    }

    /// Asks a question. Its content has been shown, unless the output is JSON.
    pub(super) async fn ask(&mut self, question: &PermissionQuestion<'_>, output: &RunnerOutput) {
        let title = question.title.as_deref().unwrap_or("the tool call");
        match &self.approver {
            // The server takes this client for one that can answer.
            Approver::None if self.client.server().is_some() => {
                let choice = PermissionChoice::Kind(PermissionOptionKind::RejectOnce);
                ask::send(&self.client, question.id, PermissionReply::new(choice)).await;
            }
            Approver::None | Approver::Elsewhere => {}
            Approver::Yes => {
                let choice = PermissionChoice::Kind(PermissionOptionKind::AllowOnce);
                ask::send(&self.client, question.id, PermissionReply::new(choice)).await;
            }
            Approver::Terminal(lines) => {
                if output.json {
                    // Standard output carries JSON lines, so the question goes to standard error.
                    print_question(output.renderer.question(title, question.content));
                }
                let (client, id, lines) = (self.client.clone(), question.id.clone(), lines.clone());
                let (title, options) = (title.to_owned(), question.options.to_vec());
                let review = question.review.as_ref().filter(|offer| question.is_done && offer.files.len() > 1).cloned();
                let asking = async move {
                    let chosen = match review {
                        Some(offer) => ask::ask_review(&lines, &offer).await,
                        None => ask::ask(&lines, &title, &options).await,
                    };
                    ask::send(&client, &id, chosen).await;
                };
                self.asked.push((question.id.clone(), AbortOnDropHandle::new(crate::task::spawn(asking))));
            }
        }
    }

    /// Withdraws a question that was answered, here or by another client.
    pub(super) fn resolved(&mut self, id: &PermissionId) {
        self.asked.retain(|(asked, _)| asked != id);
    }

    pub(super) fn withdraw(&mut self) {
        self.asked.clear();
        self.form = None;
    }

    /// Waits for the next form, or for the end of the form that is shown, which returns `None`.
    /// Cancel safe.
    pub(super) async fn form_changed(&mut self) -> Option<FormRequest> {
        match (&mut self.form, &mut self.forms) {
            (Some(form), _) => drop(form.await),
            (None, Some(forms)) => match forms.recv().await {
                Some(form) => return Some(form),
                None => std::future::pending().await,
            },
            (None, None) => std::future::pending().await,
        }
        self.form = None;
        None
    }

    /// Shows a form, until it is answered or withdrawn.
    pub(super) fn show(&mut self, FormRequest { form, mut answer }: FormRequest) {
        let Some(lines) = self.lines() else { return };
        self.form = Some(AbortOnDropHandle::new(crate::task::spawn(async move {
            let filled = tokio::select! {
                filled = form::fill(&lines, &form) => filled,
                () = answer.closed() => return,
            };
            // Fails if the call has ended.
            let _ = answer.send(filled);
        })));
    }
}
