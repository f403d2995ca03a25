//! Opens the session of `nuncio run` and `nuncio chat`, in this process or on a server elsewhere.

use std::sync::Arc;

use super::session_id::{resolve, unknown};
use crate::api::{
    App, CreateWorkspace, CreateWorkspaceParams, GetStatus, ListSessions, ListSessionsParams, ListedSession, NewSessionParams,
    NoParams, OpenSessionParams, SetConfigOption, SetMode, SetModeParams, SetOptionParams,
};
use crate::cli::flags::run_options::SessionOptions;
use crate::cli::terminal::output::print_stderr;
use crate::client::SessionClient;
use crate::client::remote::RemoteServer;
use crate::config::Overrides;
use crate::error::{Error, Result};
use crate::event::BACKGROUND;
use crate::id::{Seq, SessionId};
use crate::terminal_text::output_line;

/// Instead of an id: the session that was updated last.
const LAST: &str = "last";
/// Maximum number of pages of a list that are read.
const PAGES_MAX: usize = 1000;

/// Creates the client of the terminal. It uses the sessions of the server at `--url`, if it is
/// given.
pub(in crate::cli) fn client(app: &Arc<App>, options: &SessionOptions) -> Result<SessionClient> {
    let client = SessionClient::new(app.clone(), "terminal");
    let Some(url) = &options.url else { return Ok(client) };
    let services = &app.services;
    if services.overrides.apply_to_process() {
        let error = Error::invalid_params("--url: only --agent, --model, --thinking and --mode apply to a session of a server");
        return Err(error.hint("set the others where nuncio serve runs"));
    }
    let token = services.environment.get("NUNCIO_TOKEN");
    let token = token.ok_or_else(|| Error::invalid_params("--url: no token").hint("set NUNCIO_TOKEN: nuncio token new NAME"))?;
    Ok(client.on_server(RemoteServer::new(&services.models.clients, url, token)?))
}

/// Opens or creates the session of the options. Also returns the sequence number after which its
/// events are new: 0 for a new session, the head for an existing one.
pub(in crate::cli) async fn open(client: &SessionClient, options: &SessionOptions) -> Result<(SessionId, Seq)> {
    let (app, overrides) = (client.app(), &client.app().services.overrides);
    let given = options.resume.as_deref().filter(|_| !options.chooses());
    let known = match (given, options.last) {
        (Some(id), _) if id != LAST => find(client, id).await?,
        (Some(_), _) | (None, true) => {
            let session = last_of_user(client).await?;
            let title = session.title.unwrap_or_default();
            let id = output_line(session.session_id.as_str());
            print_stderr(format!("continuing \"{}\" ({id})\n", output_line(&title)));
            session.session_id
        }
        (None, false) => {
            let place = match &options.worktree {
                Some(name) => in_workspace(client, name).await?,
                None => NewSessionParams::default(),
            };
            let params = NewSessionParams { title: options.title.clone(), ..place };
            if client.server().is_some() {
                return client.begin(on_server(client, params, overrides).await?).await;
            }
            // The model of a hosted agent is known to the agent only.
            if let Some(model) = overrides.model.as_ref().filter(|_| overrides.agents.is_empty()) {
                app.services.check_model(model, &app.cwd)?;
            }
            return client.begin(params).await;
        }
    };
    // The session keeps its own directory, because the request names none.
    let opened = client.resume(OpenSessionParams::new(known.clone())).await?;
    adopt_flags(client, &known, overrides).await?;
    Ok(opened)
}

/// Creates a workspace, by default with a free name, for a session in it.
async fn in_workspace(client: &SessionClient, name: &str) -> Result<NewSessionParams> {
    let name = Some(name).filter(|name| !name.is_empty()).map(String::from);
    let params = CreateWorkspaceParams { cwd: Some(client.app().cwd.clone()), name, branch: None, base: None };
    let created = client.call::<CreateWorkspace>(params).await?;
    let info = created.workspace.info;
    for warning in &created.warnings {
        print_stderr(format!("nuncio: {}\n", output_line(warning)));
    }
    let (name, path) = (output_line(&info.name), output_line(&info.path.to_string_lossy()));
    print_stderr(format!("workspace {name}: {path}; to take over its changes: nuncio workspaces apply {name}\n"));
    Ok(NewSessionParams::in_directory(info.path))
}

/// Adds the directory of the server and the flags of this command, which the server does not know.
async fn on_server(client: &SessionClient, params: NewSessionParams, overrides: &Overrides) -> Result<NewSessionParams> {
    let status = client.call::<GetStatus>(NoParams {}).await?;
    let no_access = || {
        let error = Error::invalid_params("the token has no access to the directory of the server");
        error.hint("continue a session: --resume ID")
    };
    let Overrides { model, mode, thinking, agents, .. } = overrides;
    let (model, agent) = (model.clone(), agents.first().cloned());
    let place = NewSessionParams::in_directory(status.cwd.ok_or_else(no_access)?).place;
    Ok(NewSessionParams { place, model, agent, mode: *mode, thinking: *thinking, ..params })
}

/// Applies the flags of this command, which take precedence over the session's stored values.
async fn adopt_flags(client: &SessionClient, id: &SessionId, overrides: &Overrides) -> Result<()> {
    let model = overrides.model.as_deref().map(|model| ("model", model));
    let thinking = overrides.thinking.map(|level| ("thinking", level.as_str()));
    for (option, value) in model.into_iter().chain(thinking) {
        client.call::<SetConfigOption>(SetOptionParams::new(id, option, value)).await?;
    }
    if let Some(mode) = overrides.mode {
        client.call::<SetMode>(SetModeParams { session_id: id.clone(), mode_id: mode.id().into() }).await?;
    }
    Ok(())
}

/// Finds the session whose id is `given` or starts with it; on a server elsewhere, the newest one.
pub(in crate::cli) async fn find(client: &SessionClient, given: &str) -> Result<SessionId> {
    if client.server().is_none() {
        return resolve(client.app().sessions().await?, given).await;
    }
    let params = ListSessionsParams { empty: true, ..ListSessionsParams::default() };
    let found = first(client, params, |session| session.session_id.as_str().starts_with(given)).await?;
    found.map(|session| session.session_id).ok_or_else(|| unknown(given))
}

/// Returns the session that was updated last, of those that a person began: in this directory, or
/// of a server elsewhere.
async fn last_of_user(client: &SessionClient) -> Result<ListedSession> {
    let cwd = client.server().is_none().then(|| client.app().cwd.clone());
    let message = match &cwd {
        Some(cwd) => format!("no session in {} to continue", cwd.display()),
        None => "the server has no session to continue".into(),
    };
    let params = ListSessionsParams { cwd, ..ListSessionsParams::default() };
    let last = first(client, params, |session| session.activity.origin().is_none_or(|origin| origin == BACKGROUND)).await?;
    last.ok_or_else(|| Error::not_found(message).hint("another session: nuncio run --resume ID (nuncio sessions list)"))
}

/// Returns the first listed session for which `is_wanted` returns true.
async fn first(
    client: &SessionClient,
    mut params: ListSessionsParams,
    is_wanted: impl Fn(&ListedSession) -> bool,
) -> Result<Option<ListedSession>> {
    for _ in 0..PAGES_MAX {
        let page = client.call::<ListSessions>(params.clone()).await?;
        let found = page.sessions.into_iter().find(&is_wanted);
        if found.is_some() || page.next_cursor.is_none() {
            return Ok(found);
        }
        params.cursor = page.next_cursor;
    }
    Ok(None)
}
