//! The user's settings: what is configured, from where, and the changes that clients make to the
//! settings file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::turns::rules::{RuleScope, ScopedRule};
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::directories::directory;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::config::{LoadedSettings, McpServer, Origin, Rule, mask_urls};
use crate::context::skills;
use crate::error::{Error, Kind, Result};
use crate::runtime::{SettingsChange, provider_names};
use crate::task;

/// Selects the directory whose settings are listed.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetSettingsParams {
    /// Directory of a session; the server's directory when it is missing.
    cwd: Option<PathBuf>,
}

/// A model provider.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "KeyedProvider")]
pub(crate) struct ProviderKey {
    name: String,
    /// Where its API key is; missing without a key.
    key_source: Option<String>,
}

/// An MCP server of the settings.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConfiguredServer")]
pub(crate) struct ConfiguredServer {
    name: String,
    /// Its URL without secrets, or its command.
    target: String,
    enabled: bool,
    /// Where it is defined: a file, or a flag.
    defined_in: String,
    /// True if `_nuncio/settings/mcp/remove` can remove it.
    removable: bool,
}

/// A skill that the model may use.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Skill")]
pub(crate) struct SkillView {
    name: String,
    description: String,
    path: PathBuf,
}

/// The settings that apply in a directory. Rules are in the order in which they are evaluated.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsView {
    /// The user's settings file. Missing for a token that is limited to roots.
    file: Option<PathBuf>,
    /// True if the caller may change the settings file.
    changeable: bool,
    /// The default model; missing if the settings name none.
    model: Option<String>,
    /// Where the default model is defined.
    model_from: Option<String>,
    providers: Vec<ProviderKey>,
    mcp_servers: Vec<ConfiguredServer>,
    rules: Vec<ScopedRule>,
    skills: Vec<SkillView>,
}

pub(crate) struct GetSettings;

impl Method for GetSettings {
    type Params = GetSettingsParams;
    type Result = SettingsView;
    const NAME: &'static str = "_nuncio/settings/get";
    const EXAMPLE: &'static str = r#"{"cwd": "/home/me/project"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/settings")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the default model, the providers with a key, the MCP servers, the permission rules and the skills of a \
         directory, each with where it is defined. No key is part of it.";

    async fn call(cx: CallContext, params: GetSettingsParams) -> Result<Reply<SettingsView>> {
        let cwd = match &params.cwd {
            Some(cwd) => directory(&cx, "cwd", cwd)?,
            None => cx.app.cwd.clone(),
        };
        cx.client.require_dir(&cwd)?;
        let view = task::blocking("reading settings", move || view(&cx, &cwd)).await??;
        Ok(Reply::new(view))
    }
}

fn view(cx: &CallContext, cwd: &std::path::Path) -> Result<SettingsView> {
    let services = &cx.app.services;
    let loaded = services.settings(cwd)?;
    let changeable = cx.client.is_owner() && services.can_change_settings();
    let sources: BTreeMap<String, String> = services.models.key_sources(&loaded.settings).into_iter().collect();
    let provider = |name: &str| ProviderKey { name: name.into(), key_source: sources.get(name).cloned() };
    let place = |setting: &str| origin(&loaded, setting, cx.client.sees_all);
    let own = &services.user.settings.mcp;
    let server = |(name, server): (&String, &McpServer)| ConfiguredServer {
        name: name.clone(),
        target: target(server, cx.client.is_owner()),
        enabled: server.enabled,
        defined_in: place(&format!("mcp.{name}.")).unwrap_or_default(),
        removable: changeable && own.contains_key(name),
    };
    let scopes = [
        (RuleScope::User, &loaded.settings.permissions.rules),
        (RuleScope::TrustedProject, &loaded.trusted_rules),
        (RuleScope::Project, &loaded.project_rules),
    ];
    let rules = scopes.into_iter().flat_map(|(scope, rules)| rules.iter().map(move |rule| (scope, rule.clone())));
    let rule = |(scope, rule)| ScopedRule { scope, rule, removable: changeable && scope == RuleScope::User };
    let skills = skills::find(&services.prompt_dirs(cwd)).into_iter();
    Ok(SettingsView {
        file: cx.client.sees_all.then(|| services.places.file.clone()),
        changeable,
        model: loaded.settings.model.clone(),
        model_from: place("model"),
        providers: provider_names(&loaded.settings).into_iter().map(provider).collect(),
        mcp_servers: loaded.settings.mcp.iter().map(server).collect(),
        rules: rules.map(rule).collect(),
        skills: skills.map(|skill| SkillView { name: skill.name, description: skill.description, path: skill.path }).collect(),
    })
}

/// Returns the URL of a server without secrets, or its command. Arguments can be secrets, too: only
/// the owner sees them.
fn target(server: &McpServer, is_owner: bool) -> String {
    match &server.url {
        Some(url) => mask_urls(url),
        None if is_owner => mask_urls(&server.command.join(" ")),
        None => server.command.first().cloned().unwrap_or_default(),
    }
}

/// Returns where a setting, or the first setting with this prefix, is defined. The path of the
/// user's file is for clients with access to all directories.
fn origin(loaded: &LoadedSettings, prefix: &str, sees_all: bool) -> Option<String> {
    let is_it = |name: &&String| name.as_str() == prefix || (prefix.ends_with('.') && name.starts_with(prefix));
    loaded.origins.iter().find(|(name, _)| is_it(name)).map(|(_, origin)| match origin {
        Origin::User(_) if !sees_all => "the user's settings".into(),
        origin => origin.to_string(),
    })
}

/// The settings file was changed. New sessions of this process use it; other processes when they
/// start.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ChangedSettings {
    file: PathBuf,
}

/// Changes the settings file for the owner of the server.
async fn change(cx: CallContext, change: SettingsChange) -> Result<Reply<ChangedSettings>> {
    cx.client.authorized()?;
    cx.client.require_owner()?;
    let services = cx.app.services.clone();
    let file = services.places.file.clone();
    task::blocking("changing settings", move || services.change_settings(change)).await??;
    Ok(Reply::new(ChangedSettings { file }))
}

/// The default model.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetDefaultModelParams {
    /// `PROVIDER/NAME`; without it, the setting is removed.
    model: Option<String>,
}

pub(crate) struct SetDefaultModel;

impl Method for SetDefaultModel {
    type Params = SetDefaultModelParams;
    type Result = ChangedSettings;
    const NAME: &'static str = "_nuncio/settings/set_model";
    const EXAMPLE: &'static str = r#"{"model": "anthropic/claude-sonnet-5"}"#;
    const ROUTES: &'static [Route] = &[Route::put("/v1/settings/model")];
    const DOC: &'static str =
        "Sets the model of new sessions in the user's settings file. For local clients and the owner's token only.";

    async fn call(cx: CallContext, SetDefaultModelParams { model }: Self::Params) -> Result<Reply<ChangedSettings>> {
        cx.client.require_owner()?;
        if let Some(model) = &model {
            cx.app.services.check_model(model, &cx.app.cwd)?;
        }
        change(cx, SettingsChange::Model(model)).await
    }
}

/// An MCP server to add.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddServerParams {
    /// Letters, digits, `_` and `-`.
    name: String,
    /// Its settings. Over HTTP, values of `env` and `headers` must be `$NAME`, a variable of the
    /// server.
    #[schemars(schema_with = "server_schema")]
    server: McpServer,
}

/// Creates the schema in place, because ACP has another type of this name.
fn server_schema(generator: &mut SchemaGenerator) -> Schema {
    McpServer::json_schema(generator)
}

pub(crate) struct AddServer;

impl Method for AddServer {
    type Params = AddServerParams;
    type Result = ChangedSettings;
    const NAME: &'static str = "_nuncio/settings/mcp/add";
    const EXAMPLE: &'static str = r#"{"name": "docs", "server": {"url": "https://example.com/mcp"}}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/settings/mcp")];
    const DOC: &'static str = "Adds an MCP server to the user's settings file. For local clients and the owner's token only.";

    async fn call(cx: CallContext, params: AddServerParams) -> Result<Reply<ChangedSettings>> {
        cx.client.require_owner()?;
        let AddServerParams { name, server } = params;
        let secret = server.env.iter().chain(&server.headers).find(|(_, text)| text.variable().is_none());
        if let Some((field, _)) = secret.filter(|_| cx.client.local.is_none()) {
            return Err(Error::new(Kind::Forbidden, format!("{field}: no secrets are sent over HTTP"))
                .hint("name an environment variable of the server: $NAME"));
        }
        server.check().map_err(|why| Error::invalid_params(format!("{name}: {why}")))?;
        change(cx, SettingsChange::AddServer(name, Box::new(server))).await
    }
}

/// Names an MCP server.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveServerParams {
    name: String,
}

pub(crate) struct RemoveServer;

impl Method for RemoveServer {
    type Params = RemoveServerParams;
    type Result = ChangedSettings;
    const NAME: &'static str = "_nuncio/settings/mcp/remove";
    const EXAMPLE: &'static str = r#"{"name": "docs"}"#;
    const ROUTES: &'static [Route] = &[Route::delete("/v1/settings/mcp/{name}")];
    const DOC: &'static str = "Removes an MCP server from the user's settings file. For local clients and the owner's token only.";

    async fn call(cx: CallContext, params: RemoveServerParams) -> Result<Reply<ChangedSettings>> {
        change(cx, SettingsChange::RemoveServer(params.name)).await
    }
}

/// A permission rule of the user's settings.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserRuleParams {
    rule: Rule,
}

pub(crate) struct AddRule;

impl Method for AddRule {
    type Params = UserRuleParams;
    type Result = ChangedSettings;
    const NAME: &'static str = "_nuncio/settings/rules/add";
    const EXAMPLE: &'static str = r#"{"rule": {"tool": "bash", "pattern": "make test", "policy": "allow"}}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/settings/rules")];
    const DOC: &'static str = "Adds a permission rule to the user's settings file, after the others, so that it decides before them. For local \
         clients and the owner's token only.";

    async fn call(cx: CallContext, params: UserRuleParams) -> Result<Reply<ChangedSettings>> {
        change(cx, SettingsChange::AddRule(params.rule)).await
    }
}

pub(crate) struct RemoveUserRule;

impl Method for RemoveUserRule {
    type Params = UserRuleParams;
    type Result = ChangedSettings;
    const NAME: &'static str = "_nuncio/settings/rules/remove";
    const EXAMPLE: &'static str = r#"{"rule": {"tool": "bash", "pattern": "make test", "policy": "allow"}}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/settings/rules/remove")];
    const DOC: &'static str =
        "Removes a permission rule, as it is listed, from the user's settings file. For local clients and the owner's token only.";

    async fn call(cx: CallContext, params: UserRuleParams) -> Result<Reply<ChangedSettings>> {
        change(cx, SettingsChange::RemoveRule(params.rule)).await
    }
}
