//! Permission requests of hosted agents: evaluated with nuncio's rules and mode on the agent's
//! description of the call, then shown to the clients with the agent's own options. Fails closed.

use std::path::Path;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::turn_environment::TurnEnvironment;
use super::turn_size::TurnBytes;
use crate::config::{AccessKind, LoadedSettings, Policy};
use crate::content::{PermissionOption, PermissionOptionKind, ToolContent};
use crate::event::{Actor, Body, PermissionDecision, PermissionOutcome};
use crate::id::PermissionId;
use crate::permission::paths::AccessPath;
use crate::permission::rules::{AccessRequest, Decision, Rules, decide};
use crate::permission::shell::CommandLine;
use crate::runtime::access_path;
use crate::session::{PermissionAnswer, Turn, TurnQuestion};
use crate::workspace::Workspace;

/// The answers to the permission requests of a turn.
pub(super) struct PermissionDecider<'a> {
    turn: &'a Turn,
    /// The size of the events of the turn, to which the requests and answers are added.
    bytes: TurnBytes,
    loaded: &'a LoadedSettings,
    workspace: &'a Workspace,
    environment: &'a TurnEnvironment<'a>,
}

/// A permission request of an agent.
pub(super) struct AgentRequest {
    pub call: Call,
    /// The options of the agent; each kind may occur several times.
    pub options: Vec<PermissionOption>,
}

/// The decision about a permission request.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub outcome: PermissionOutcome,
    /// The id of one of the agent's options; `None` if it offers no option for the outcome.
    pub option_id: Option<String>,
}

impl AgentRequest {
    /// Returns a digest that is equal for requests about the same call.
    pub(super) fn key(&self) -> Vec<u8> {
        let described = serde_json::to_vec(&(&self.call.title, &self.call.details)).unwrap_or_default();
        digest(&SHA256, &described).as_ref().to_vec()
    }
}

impl<'a> PermissionDecider<'a> {
    pub(super) fn new(
        turn: &'a Turn,
        bytes: TurnBytes,
        loaded: &'a LoadedSettings,
        workspace: &'a Workspace,
        environment: &'a TurnEnvironment<'a>,
    ) -> PermissionDecider<'a> {
        PermissionDecider { turn, bytes, loaded, workspace, environment }
    }

    /// Decides about a permission request: by the hooks, by the rules and the mode, else by asking
    /// the clients, until `cancel` is cancelled.
    pub(super) async fn decide(&self, request: AgentRequest, cancel: &CancellationToken) -> Choice {
        let AgentRequest { call, options } = request;
        if cancel.is_cancelled() {
            let answer = PermissionAnswer::without_choice(PermissionOutcome::Cancelled, Actor::Cancel, None);
            let choice = chosen(&answer, &options);
            self.resolved(&call, None, answer, None).await;
            return choice;
        }
        if self.environment.checks_requests
            && let Some(answer) = self.blocked(&call).await
        {
            return chosen(&answer, &options);
        }
        let decision = self.evaluate(&call);
        let (by, denier) = match decision.rule {
            Some(_) => (Actor::Rule, "a rule in the settings"),
            None => (Actor::Mode, "the session's mode"),
        };
        let (id, answer) = match decision.policy {
            Policy::Allow => (None, PermissionAnswer::without_choice(PermissionOutcome::AllowOnce, by, None)),
            Policy::Deny => {
                let reason = format!("denied by {denier}");
                (None, PermissionAnswer::without_choice(PermissionOutcome::Denied, by, Some(&reason)))
            }
            Policy::Ask => self.ask(&call, &options, cancel).await,
        };
        let choice = chosen(&answer, &options);
        let rule = decision.rule.filter(|_| decision.policy != Policy::Ask).map(|rule| serde_json::json!(rule));
        self.resolved(&call, id, answer, rule).await;
        choice
    }

    /// Runs the hooks before a call, which may need no permission.
    pub(super) async fn check(&self, call: Call) -> Choice {
        let answer = self.blocked(&call).await;
        Choice { outcome: answer.map_or(PermissionOutcome::AllowOnce, |answer| answer.outcome), option_id: None }
    }

    /// Runs the hooks before a call. Records a block, and returns its answer.
    async fn blocked(&self, call: &Call) -> Option<PermissionAnswer> {
        let reason = self.environment.before_call(call.hook_tool()).await?;
        let answer = PermissionAnswer::without_choice(PermissionOutcome::Denied, Actor::Hook, Some(&reason));
        self.resolved(call, None, answer.clone(), None).await;
        Some(answer)
    }

    /// Denies a permission request that was denied earlier in the turn.
    pub(super) async fn deny_again(&self, request: AgentRequest, outcome: PermissionOutcome) -> Choice {
        let reason = Some("the same question was denied in this turn");
        let answer = PermissionAnswer::without_choice(outcome, Actor::Repeated, reason);
        let choice = chosen(&answer, &request.options);
        self.resolved(&request.call, None, answer, None).await;
        choice
    }

    async fn ask(
        &self,
        call: &Call,
        options: &[PermissionOption],
        cancel: &CancellationToken,
    ) -> (Option<PermissionId>, PermissionAnswer) {
        let timeout = Duration::from_secs(self.loaded.settings.permissions.timeout_s);
        let mut content = call.details.content.clone();
        // Include the command: the agent's own description may omit it.
        content.extend(call.command().map(ToolContent::text));
        self.bytes.add(&(&call.title, &content, options));
        let question = TurnQuestion {
            tool_call_id: call.id.clone(),
            tool: call.label(),
            content,
            options: options.to_vec(),
            timeout,
            ends_turn: true,
            cancel: cancel.clone(),
            review: None,
        };
        let (id, answer) = self.turn.ask(question).await;
        if !self.turn.external || !answer.is_unattended() {
            return (id, answer);
        }
        let reason = Some("left to the client that began the turn");
        (id, PermissionAnswer::without_choice(PermissionOutcome::Cancelled, answer.by, reason))
    }

    async fn resolved(
        &self,
        call: &Call,
        permission_id: Option<PermissionId>,
        answer: PermissionAnswer,
        rule: Option<serde_json::Value>,
    ) {
        match answer.outcome.allows() {
            true => drop(self.environment.denied.lock().remove(&call.id)),
            false => drop(self.environment.denied.lock().insert(call.id.clone())),
        }
        let decision = PermissionDecision { rule, ..answer.decision(permission_id, &call.id, &call.label()) };
        let resolved = Body::PermissionResolved(decision);
        self.bytes.add(&resolved);
        self.turn.emit(resolved).await;
    }

    /// Makes git commands ask if they use another repository than the session's. `paths` has the
    /// directory of the commands, if it is not that of the session.
    fn check_repositories(&self, line: &mut CommandLine, paths: &[AccessPath]) {
        let here = paths.first().map_or(&self.workspace.cwd, |place| &place.real);
        line.check_repositories(here, |directory| self.workspace.has_own_repository(directory));
    }

    /// Evaluates the rules and the mode for a call.
    fn evaluate(&self, call: &Call) -> Decision {
        let default = self.loaded.settings.permissions.default;
        let (mode, remembered) = self.turn.permissions(default);
        let rules = Rules::new(self.loaded, remembered);
        let (kind, tool) = (call.access(), call.tool_name());
        let command = call.command();
        let url = call.details.input["url"].as_str();
        let place = |path: &Path| access_path(self.workspace.resolve(&path.to_string_lossy()), kind, self.workspace);
        let mut line = (kind == AccessKind::Exec)
            .then(|| command.as_ref().map_or_else(CommandLine::unknown, |command| CommandLine::parse("", command)));
        let file = |path: &str| place(&self.workspace.cwd.join(path));
        let writes: Vec<_> = line.iter().flat_map(CommandLine::writes).map(|path| path.map(file)).collect();
        let paths: Vec<AccessPath> = match kind {
            // The directory of the command, if it differs from the session's.
            AccessKind::Exec => {
                let directories =
                    ["cwd", "workdir", "directory", "dir_path"].iter().filter_map(|name| call.details.input[*name].as_str());
                directories.map(|directory| place(Path::new(directory))).filter(|place| place.real != place.cwd).collect()
            }
            _ => call.paths().iter().map(|path| place(path)).collect(),
        };
        line.iter_mut().for_each(|line| self.check_repositories(line, &paths));
        let described = match kind {
            AccessKind::Exec => command.is_some(),
            AccessKind::Network => url.is_some(),
            AccessKind::Read | AccessKind::Write => !paths.is_empty(),
            AccessKind::Mcp => call.is_described(),
        };
        let decision =
            decide(&rules, mode, default, &AccessRequest { paths, line, writes, url, ..AccessRequest::new(&tool, kind) });
        // Without a description of its effect, a call is allowed only by an answer.
        match decision.policy {
            Policy::Allow if !described => Decision { policy: Policy::Ask, rule: None },
            _ => decision,
        }
    }
}

/// Finds the agent's option that corresponds to an answer: the option that the answer names,
/// otherwise the first option of the same kind.
fn chosen(answer: &PermissionAnswer, options: &[PermissionOption]) -> Choice {
    let first =
        |kind: PermissionOptionKind| options.iter().find(|option| option.kind == kind).map(|option| option.option_id.clone());
    let option_id = answer.option_id.clone().or_else(|| match answer.outcome {
        PermissionOutcome::AllowOnce => first(PermissionOptionKind::AllowOnce),
        PermissionOutcome::AllowAlways => first(PermissionOptionKind::AllowAlways),
        PermissionOutcome::RejectAlways => first(PermissionOptionKind::RejectAlways),
        PermissionOutcome::RejectOnce | PermissionOutcome::Denied => first(PermissionOptionKind::RejectOnce),
        PermissionOutcome::Cancelled => None,
    });
    Choice { outcome: answer.outcome, option_id }
}
