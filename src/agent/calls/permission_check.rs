//! The permission check of one tool call: evaluates the rules and the mode, and requests a decision
//! if they ask for one.

use std::time::Duration;

use serde_json::{Value, json};

use super::call_host::{CallHost, CallOutcome, Question};
use super::permission;
use crate::config::{AccessKind, Policy};
use crate::content::{ToolContent, ToolLabel};
use crate::event::{Body, PermissionOutcome};
use crate::id::{PermissionId, ToolCallId};
use crate::options::Mode;
use crate::permission::rules::{self, PermissionRequest, Rules};
use crate::session::PermissionAnswer;
use crate::toolkit::{PreparedCall, ToolContext};

/// The permission check of one call.
pub(in crate::agent) struct Check<'a> {
    pub host: &'a dyn CallHost,
    pub id: &'a ToolCallId,
    pub label: &'a ToolLabel,
    /// nuncio makes the call: it is allowed unless a rule or the mode denies it.
    pub automatic: bool,
    pub context: &'a ToolContext,
    pub prepared: &'a PreparedCall,
    pub mode: Mode,
    pub rules: &'a Rules,
    pub default: Policy,
    pub timeout: Duration,
}

impl Check<'_> {
    /// Evaluates the rules and the mode, and requests permission if they require it. Returns `None`
    /// if the call is allowed.
    pub(in crate::agent) async fn decide(&self) -> Option<CallOutcome> {
        let request = permission::request(self.prepared, self.context);
        // Without mounts, commands are asked about as in the mode `accept-edits`.
        let mode = if self.exposes_git() { Mode::AcceptEdits } else { self.mode };
        let decision = permission::evaluate(self.rules, mode, self.default, self.prepared, &request);
        match decision.policy {
            Policy::Allow => {
                if let Some(rule) = decision.rule {
                    self.record(PermissionOutcome::AllowOnce, "rule", Some(json!(rule))).await;
                }
                None
            }
            Policy::Deny => {
                let why = permission::denial(&decision, self.mode);
                let by = if decision.rule.is_some() { "rule" } else { "mode" };
                self.record(PermissionOutcome::Denied, by, decision.rule.map(|rule| json!(rule))).await;
                Some(CallOutcome::Denied(why))
            }
            Policy::Ask if self.automatic => {
                self.record(PermissionOutcome::AllowOnce, "verify.auto", None).await;
                None
            }
            Policy::Ask => {
                let content = match self.prepared.preview(self.context).await {
                    Ok(content) => content,
                    // Return the error without asking: the call would fail, and the model may read
                    // the cause.
                    Err(error) if permission::may_read(self.rules, self.mode, self.default, &request) => {
                        return Some(CallOutcome::Failed(error.0));
                    }
                    Err(error) => vec![ToolContent::text(error.0)],
                };
                self.ask(content, &request).await
            }
        }
    }

    /// Returns whether the mode `auto` would let a command change git's control files.
    fn exposes_git(&self) -> bool {
        let runs = self.mode == Mode::Auto && !self.automatic && self.prepared.access.kind == AccessKind::Exec;
        let sandbox = self.context.sandbox.as_ref().filter(|_| runs);
        sandbox.is_some_and(|sandbox| sandbox.exposes_git(|| self.context.launcher.can_mount()))
    }

    /// Records a decision of a rule or of the mode.
    async fn record(&self, outcome: PermissionOutcome, by: &str, rule: Option<Value>) {
        self.resolve(None, PermissionAnswer::without_choice(outcome, by, None), rule).await;
    }

    /// Records how the permission was decided. No need to wait: events are committed in order, and
    /// the next commit of the call is awaited.
    async fn resolve(&self, permission_id: Option<PermissionId>, answer: PermissionAnswer, rule: Option<Value>) {
        self.host
            .emit(Body::PermissionResolved {
                permission_id,
                tool_call_id: self.id.clone(),
                tool: Some(self.label.clone()),
                outcome: answer.outcome,
                reason: answer.reason,
                by: answer.by,
                rule,
            })
            .await;
    }

    async fn ask(&self, content: Vec<ToolContent>, request: &PermissionRequest<'_>) -> Option<CallOutcome> {
        let question = Question {
            tool_call_id: self.id.clone(),
            label: self.label.clone(),
            content,
            options: permission::options(request),
            timeout: self.timeout,
            cancel: self.context.cancel.clone(),
        };
        let (permission_id, answer) = self.host.ask(question).await;
        let rule = match answer.outcome {
            PermissionOutcome::AllowAlways => Some(rules::remembered(Policy::Allow, request)),
            PermissionOutcome::RejectAlways => Some(rules::remembered(Policy::Deny, request)),
            _ => None,
        };
        self.resolve(permission_id, answer.clone(), rule.map(|rule| json!(rule))).await;
        let because = answer.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        match answer.outcome {
            PermissionOutcome::AllowOnce | PermissionOutcome::AllowAlways => None,
            PermissionOutcome::RejectOnce | PermissionOutcome::RejectAlways => {
                Some(CallOutcome::Denied(format!("denied by the user{because}")))
            }
            PermissionOutcome::Denied => Some(CallOutcome::Denied(format!("denied{because}"))),
            PermissionOutcome::Cancelled => Some(CallOutcome::Cancelled),
        }
    }
}
