//! The client's answers to permission requests.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api::{AnswerPermission, App, CallContext, Client, Method, method};
use crate::content::ReviewAnswer;
use crate::error::{Error, Kind};
use crate::event::{Actor, PermissionOutcome};
use crate::id::PermissionId;
use crate::protocol::acp;
use crate::session::{ChoiceDetails, Session};

/// Passes the answers of one client to the session. Any answer other than an offered option denies
/// the request.
pub(super) struct PermissionAnswers {
    pub app: Arc<App>,
    pub client: Arc<Client>,
    pub session: Session,
}

/// The client's answer: an option with decisions about parts of a review, or the reason why the
/// request is denied.
type ClientAnswer = Result<(String, ReviewAnswer), String>;

impl PermissionAnswers {
    /// Records the client's response to the request `id`: its result or its error object.
    pub(crate) fn record(self, id: &PermissionId, response: Result<Value, Value>) {
        let chosen = chosen(response);
        if self.session.broker.is_open(id) {
            self.record_here(id, chosen);
        } else {
            // Another process owns the session.
            crate::task::spawn(self.send(id.clone(), chosen));
        }
    }

    fn record_here(&self, id: &PermissionId, chosen: ClientAnswer) {
        let (broker, by) = (&self.session.broker, Actor::from(&*self.client.principal));
        let recorded = chosen.and_then(|(option, review)| {
            broker.answer(id, &option, by.clone(), ChoiceDetails { reason: None, review }).map_err(|error| error.message)
        });
        if let Err(reason) = recorded {
            broker.dismiss(id, PermissionOutcome::Denied, by, &reason);
        }
    }

    async fn send(self, id: PermissionId, chosen: ClientAnswer) {
        let reject = |reason: &str| json!({ "permissionId": id, "outcome": "reject_once", "reason": reason });
        let params = match &chosen {
            Ok((option, ReviewAnswer { hunks, edits })) => {
                json!({ "permissionId": id, "optionId": option, "hunks": hunks, "edits": edits })
            }
            Err(reason) => reject(reason),
        };
        match self.call(params).await {
            // An option that was not offered denies the request.
            Err(error) if error.kind == Kind::InvalidParams && chosen.is_ok() => {
                let _ = self.call(reject(&error.message)).await;
            }
            Err(error) => tracing::info!(%error, permission = id.as_str(), "an answer was not accepted"),
            Ok(()) => {}
        }
    }

    async fn call(&self, params: Value) -> Result<(), Error> {
        let row = method(AnswerPermission::NAME).ok_or_else(|| Error::internal("no method answers permission requests"))?;
        let cx = CallContext::new(self.app.clone(), self.client.clone(), CancellationToken::new());
        row.run(cx, params).await?.result.map(drop)
    }
}

fn chosen(response: Result<Value, Value>) -> ClientAnswer {
    let response = response.map_err(|_| "the client answered the permission request with an error")?;
    let response: acp::RequestPermissionResponse =
        serde_json::from_value(response).map_err(|error| format!("the client's answer is invalid: {error}"))?;
    let own = response.meta.as_ref().and_then(|meta| meta.get("nuncio").cloned());
    let review = own.map(serde_json::from_value).transpose();
    let review: ReviewAnswer = review.map_err(|error| format!("_meta.nuncio of the client's answer: {error}"))?.unwrap_or_default();
    match response.outcome {
        acp::RequestPermissionOutcome::Selected(selected) => Ok((selected.option_id.0.to_string(), review)),
        acp::RequestPermissionOutcome::Cancelled => Err("the permission request was dismissed".into()),
        _ => Err("the client's answer has an unknown outcome".into()),
    }
}
