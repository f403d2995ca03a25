//! The permission rules that apply in a session: list them, and remove those that answers added.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::view::SessionParams;
use crate::config::Rule;
use crate::error::{Error, Result};
use crate::event::Body;
use crate::id::SessionId;
use crate::task;

/// The scope of a rule. Within a scope, the last matching rule decides; a deny of an earlier scope
/// cannot be overridden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleScope {
    /// The user's settings.
    User,
    /// The project's settings as they were trusted, if they have changed since.
    TrustedProject,
    /// The project's settings.
    Project,
    /// Answers in the session.
    Session,
}

/// A permission rule and its scope.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ScopedRule {
    pub scope: RuleScope,
    pub rule: Rule,
    /// True if `_nuncio/permission/rules/remove` can remove it: rules of a session, and of the
    /// user's settings those for a directory.
    pub removable: bool,
}

/// Permission rules, in the order in which they are evaluated.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RuleList {
    pub rules: Vec<ScopedRule>,
}

pub(crate) struct ListRules;

impl Method for ListRules {
    type Params = SessionParams;
    type Result = RuleList;
    const NAME: &'static str = "_nuncio/permission/rules";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/rules")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the permission rules that apply in a session, by their scope: those of the user's settings, of the project's \
         settings, and of \"always\" answers in the session.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<RuleList>> {
        let session = cx.open_read_only(&params.session_id).await?;
        let (cwd, remembered) = session.log.state(|state| (state.cwd.clone(), state.rules.clone()));
        let services = cx.app.services.clone();
        let loaded = task::blocking("reading settings", move || services.settings(&cwd)).await??;
        let scopes = [
            (RuleScope::User, loaded.settings.permissions.rules),
            (RuleScope::TrustedProject, loaded.trusted_rules),
            (RuleScope::Project, loaded.project_rules),
            (RuleScope::Session, remembered),
        ];
        let can_change = cx.client.is_owner() && cx.app.services.user_rules.can_change();
        let rules = scopes.into_iter().flat_map(|(scope, rules)| rules.into_iter().map(move |rule| (scope, rule)));
        let scoped = |(scope, rule): (RuleScope, Rule)| {
            let removable = match scope {
                RuleScope::Session => true,
                RuleScope::User => can_change && rule.directory.is_some(),
                RuleScope::TrustedProject | RuleScope::Project => false,
            };
            ScopedRule { scope, rule, removable }
        };
        Ok(Reply::new(RuleList { rules: rules.map(scoped).collect() }))
    }
}

/// Names a rule.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RemoveRuleParams {
    pub session_id: SessionId,
    /// The scope of the rule: `session` or `user`.
    pub scope: RuleScope,
    /// The rule, as it is listed.
    pub rule: Rule,
}

/// The rule no longer applies.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RemovedRule {}

pub(crate) struct RemoveRule;

impl Method for RemoveRule {
    type Params = RemoveRuleParams;
    type Result = RemovedRule;
    const NAME: &'static str = "_nuncio/permission/rules/remove";
    const EXAMPLE: &'static str =
        r#"{"sessionId": "sess_01", "scope": "session", "rule": {"tool": "bash", "pattern": "make test", "policy": "allow"}}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/rules/remove")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Removes a permission rule: of \"always\" answers in the session (the event is `permission.forgotten`), or of the user's \
         settings, one for a directory, which only a local client and the owner's token may do.";

    async fn call(cx: CallContext, params: RemoveRuleParams) -> Result<Reply<RemovedRule>> {
        cx.client.authorized()?;
        let RemoveRuleParams { session_id, scope, rule } = params;
        let session = cx.owned(&session_id).await?;
        match scope {
            RuleScope::Session => {
                if !session.log.state(|state| state.rules.contains(&rule)) {
                    return Err(Error::not_found("the session does not have this rule"));
                }
                let rule = serde_json::to_value(rule).map_err(|error| Error::internal(error.to_string()))?;
                let seq = session.change(Body::PermissionForgotten { rule, by: cx.client.actor() }).await?;
                Ok(Reply::new(RemovedRule {}).after(session_id, seq))
            }
            RuleScope::User => {
                cx.client.require_owner()?;
                let app = cx.app.clone();
                let remove = move || app.services.user_rules.remove(&rule);
                task::blocking("removing a rule", remove).await??;
                Ok(Reply::new(RemovedRule {}))
            }
            RuleScope::TrustedProject | RuleScope::Project => {
                Err(Error::invalid_params("scope: the rules of a project are in its settings").hint("edit .nuncio/config.toml"))
            }
        }
    }
}
