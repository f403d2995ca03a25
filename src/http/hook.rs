//! `POST /hook`: the hooks of Claude Code in terminals that users started themselves, and the
//! status of other programs. The response is always empty: nuncio has no opinion about the call.

use std::time::Instant;

use axum::Extension;
use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::Value;

use super::params;
use super::response::ApiError;
use super::state::{ClientExtension, StateExtension};
use crate::api::ClientRole;
use crate::error::{Error, Kind};
use crate::hub::{StatusReport, TerminalReport, workspace_of_header};
use crate::json;
use crate::task;

/// Maximum size of a hook request of a terminal client, in bytes.
const HOOK_BYTES_MAX: usize = 4 << 20;

pub(crate) const PATH: &str = "/hook";

/// The header with the directory in which the agent works.
const WORKSPACE: &str = "x-workspace-path";

/// Applies a hook.
pub(crate) async fn answer(
    Extension(state): StateExtension,
    Extension(client): ClientExtension,
    request: Request,
) -> Result<StatusCode, ApiError> {
    client.require_role(ClientRole::Controller)?;
    let header = request.headers().get(WORKSPACE).map(|value| value.as_bytes().to_vec());
    let header = header.ok_or_else(|| Error::invalid_params("the header X-Workspace-Path is missing"))?;
    params::is_plain_json(request.headers())?;
    let bytes = params::bytes(&state, request.into_body()).await?;
    if bytes.len() > HOOK_BYTES_MAX {
        return Err(Error::new(Kind::TooLarge, format!("the body is longer than {} bytes", HOOK_BYTES_MAX)).into());
    }
    let body: Value =
        json::from_slice(&bytes).map_err(|error| Error::invalid_params(format!("the body is not a hook: {error}")))?;
    let report = TerminalReport::read(body)?;
    let terminals = state.app.terminals.clone();
    let (cwd, may) = task::blocking("resolving a directory", move || workspace_of_header(&header))
        .await?
        .map(|cwd| (cwd.clone(), client.require_dir(&cwd)))
        .ok_or_else(|| Error::invalid_params("X-Workspace-Path: not the absolute path of an existing directory"))?;
    may?;
    let apply = move || match report {
        TerminalReport::Status(StatusReport { session_id, status, title, .. }) => {
            let title = title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
            terminals.on_report(cwd, session_id, status.status(), title, Instant::now());
        }
        TerminalReport::Hook(hook) => terminals.on_hook(cwd, hook, Instant::now()),
    };
    task::blocking("applying a hook", apply).await?;
    Ok(StatusCode::OK)
}
