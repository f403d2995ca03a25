//! The permission requests of a turn that wait for a decision.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::permission::{AgentRequest, Choice, PermissionDecider};
use crate::event::PermissionOutcome;

/// The id of a request, its key unless it is one about hooks, and the decision.
type RequestDecision = (Value, Option<Vec<u8>>, Choice);

/// The open requests of a turn. The agent identifies each by a JSON value. An agent that repeats a
/// denied request in the same turn receives the same answer.
pub(super) struct OpenRequests<'a> {
    permissions: &'a PermissionDecider<'a>,
    deciding: FuturesUnordered<BoxFuture<'a, RequestDecision>>,
    open: Vec<(Value, CancellationToken)>,
    /// Outcomes of the denied requests of the turn, by their keys.
    denied: HashMap<Vec<u8>, PermissionOutcome>,
    cancel: CancellationToken,
}

impl<'a> OpenRequests<'a> {
    /// Creates an empty list of permission requests. When `cancel` is cancelled, all of them end as
    /// cancelled.
    pub(super) fn new(permissions: &'a PermissionDecider<'a>, cancel: CancellationToken) -> OpenRequests<'a> {
        OpenRequests { permissions, deciding: FuturesUnordered::new(), open: Vec::new(), denied: HashMap::new(), cancel }
    }

    /// Starts to decide about a request. [`OpenRequests::next`] returns the decision.
    pub(super) fn ask(&mut self, id: &Value, request: AgentRequest) {
        let (id, cancel, permissions) = (id.clone(), self.cancel.child_token(), self.permissions);
        let key = request.key();
        let denied = self.denied.get(&key).copied();
        self.open.push((id.clone(), cancel.clone()));
        self.deciding.push(Box::pin(async move {
            let choice = match denied {
                Some(outcome) => permissions.deny_again(request, outcome).await,
                None => permissions.decide(request, &cancel).await,
            };
            (id, Some(key), choice)
        }));
    }

    /// Starts to run the hooks before a call. [`OpenRequests::next`] returns the decision.
    pub(super) fn check(&mut self, id: &Value, call: Call) {
        let (id, permissions) = (id.clone(), self.permissions);
        self.deciding.push(Box::pin(async move {
            let choice = permissions.check(call).await;
            (id, None, choice)
        }));
    }

    /// Waits for the next decision. Never returns while no request is open.
    pub(super) async fn next(&mut self) -> (Value, Choice) {
        let Some((id, key, choice)) = self.deciding.next().await else { return std::future::pending().await };
        self.open.retain(|(open, _)| *open != id);
        if !choice.outcome.allows() && choice.outcome != PermissionOutcome::Cancelled {
            self.denied.extend(key.map(|key| (key, choice.outcome)));
        }
        (id, choice)
    }

    /// Ends the permission request with this id as cancelled, because the agent withdrew it.
    pub(super) fn withdraw(&self, id: &Value) {
        let withdrawn = self.open.iter().filter(|(open, _)| open == id);
        withdrawn.for_each(|(_, cancel)| cancel.cancel());
    }

    /// Ends all requests as cancelled. Returns them for the answer to an agent that still runs.
    pub(super) async fn end(&mut self) -> Vec<(Value, Choice)> {
        self.cancel.cancel();
        let mut ended = Vec::new();
        while let Some((id, ..)) = self.deciding.next().await {
            ended.push((id, Choice { outcome: PermissionOutcome::Cancelled, option_id: None }));
        }
        self.open.clear();
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deciding.is_empty()
    }
}
