//! Serves the requests that a running tool call makes to the user and to the model.

use std::pin::pin;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call_host::ServedCall;
use crate::content::{Form, FormAnswer, PermissionOptionKind, ToolCategory, ToolContent, ToolLabel, ToolStatus};
use crate::event::{Body, PermissionOutcome, Severity, ToolUpdate};
use crate::limits;
use crate::runtime::calls::form_answer;
use crate::runtime::calls::form_options::{FormOption, form_options};
use crate::runtime::calls::model_query;
use crate::session::TurnQuestion;
use crate::toolkit::CallRequest;
use crate::workspace::one_line;

impl ServedCall<'_> {
    /// Awaits the work of the call and serves its requests concurrently, one at a time. Open
    /// permission requests and forms are withdrawn when the work ends.
    pub(in crate::runtime) async fn serve<T>(&self, work: impl Future<Output = T>, requests: mpsc::Receiver<CallRequest>) -> T {
        let ended = self.context.cancel.child_token();
        let (mut work, mut serving) = (pin!(work), pin!(self.serve_until(requests, &ended)));
        tokio::select! {
            biased;
            output = &mut work => {
                ended.cancel();
                serving.await;
                output
            }
            () = &mut serving => work.await,
        }
    }

    async fn serve_until(&self, mut requests: mpsc::Receiver<CallRequest>, ended: &CancellationToken) {
        let mut queries = 0;
        loop {
            let request = tokio::select! {
                biased;
                () = ended.cancelled() => return,
                request = requests.recv() => request,
            };
            // An answer is dropped if its request was withdrawn.
            match request {
                Some(CallRequest::Form(form, answer)) => drop(answer.send(self.fill(&form, ended).await)),
                Some(CallRequest::Query(query, answer)) => {
                    queries += 1;
                    let reply = match queries > limits::MCP_REQUESTS_MAX {
                        true => Err("too many requests to the model during one tool call".into()),
                        false => model_query::answer(self, query, ended).await,
                    };
                    drop(answer.send(reply));
                }
                None => return,
            }
        }
    }

    /// Asks the user to fill in a form: with a form of the client, else with a permission request.
    async fn fill(&self, form: &Form, ended: &CancellationToken) -> FormAnswer {
        if let Some(client) = self.host.client() {
            let filled = tokio::select! {
                biased;
                () = ended.cancelled() => return FormAnswer::Cancelled,
                filled = client.fill(form, self.id) => Some(filled),
                () = self.host.unanswered(self.timeout) => None,
            };
            let (answer, described) = match filled {
                Some(Some(FormAnswer::Accepted(content))) => match form_answer::complete(&form.schema, content) {
                    Ok(content) => (Some(FormAnswer::Accepted(content)), "answered".into()),
                    Err(why) => (Some(FormAnswer::Declined), format!("declined: the answer does not fit the form: {why}")),
                },
                Some(Some(answer)) => (Some(answer), "declined by the user".into()),
                Some(None) => (None, String::new()),
                None => (Some(FormAnswer::Cancelled), "no answer before the deadline".into()),
            };
            if let Some(answer) = answer {
                self.report(form, Severity::Info, &described).await;
                return answer;
            }
        }
        let Some(options) = form_options(form) else {
            self.report(form, Severity::Warning, "declined: no connected client can show the form").await;
            return FormAnswer::Declined;
        };
        self.ask(form, options, ended).await
    }

    async fn ask(&self, form: &Form, options: Vec<FormOption>, ended: &CancellationToken) -> FormAnswer {
        let label = ToolLabel { name: "elicitation".into(), title: title(form), category: Some(ToolCategory::Mcp) };
        let question = TurnQuestion {
            tool_call_id: self.id.clone(),
            tool: label.clone(),
            content: vec![ToolContent::text(form.text())],
            options: options.iter().map(|known| known.option.clone()).collect(),
            review: None,
            timeout: self.timeout,
            ends_turn: true,
            cancel: ended.clone(),
        };
        let (permission_id, answer) = self.host.ask(question).await;
        if permission_id.is_none() && answer.outcome == PermissionOutcome::Denied {
            self.report(form, Severity::Warning, &format!("declined: {}", answer.reason.as_deref().unwrap_or("no answer"))).await;
            return FormAnswer::Declined;
        }
        let outcome = answer.outcome;
        self.host.emit(Body::PermissionResolved(answer.decision(permission_id, self.id, &label))).await;
        // Clients show a call with an open request as pending.
        self.host.emit(Body::ToolUpdated(ToolUpdate::status(self.id.clone(), ToolStatus::InProgress))).await;
        let mut allowing = options.iter().filter(|known| known.option.kind == PermissionOptionKind::AllowOnce);
        let chosen = match &answer.option_id {
            Some(id) => options.iter().find(|known| known.option.option_id == *id),
            // The command line only allows or rejects.
            None if outcome.allows() => allowing.next().filter(|_| allowing.next().is_none()),
            None => None,
        };
        match (chosen, outcome) {
            (Some(FormOption { answer: FormAnswer::Accepted(content), .. }), _) => {
                form_answer::complete(&form.schema, content.clone()).map_or(FormAnswer::Declined, FormAnswer::Accepted)
            }
            (Some(chosen), _) => chosen.answer.clone(),
            (None, PermissionOutcome::Cancelled) => FormAnswer::Cancelled,
            (None, _) => FormAnswer::Declined,
        }
    }

    /// Reports the end of a form that no permission request shows.
    async fn report(&self, form: &Form, severity: Severity, end: &str) {
        self.host.emit(Body::notice(severity, title(form), end)).await;
    }
}

/// Formats the server's name and the start of its message in one line.
fn title(form: &Form) -> String {
    let message: String = form.message.chars().take(limits::MCP_TITLE_CHARS_MAX).collect();
    one_line(format!("{} asks: {message}", form.server))
}
