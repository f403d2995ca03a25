//! Artifacts: files that tools saved in a session, such as the complete output of a command.

use schemars::JsonSchema;
use serde::Serialize;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::files::{FileParams, FileView, FilesParams, blocking};
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::session::files::SessionFiles;
use crate::session::shared_files::ARTIFACTS;

/// Returns the artifacts of a session, after checking that the caller has access to it.
async fn artifacts(cx: &CallContext, session: &SessionId) -> Result<SessionFiles> {
    cx.authorize(session).await?.shared_files().fetch(session, Some(&[ARTIFACTS])).await?;
    Ok(SessionFiles::new(cx.app.places.artifacts(session.as_str())))
}

/// Returns a hint that describes how long artifacts are kept.
fn retention() -> String {
    let (days, mib) = (limits::ARTIFACTS_KEPT.as_secs() / 86_400, limits::ARTIFACTS_BYTES_MAX >> 20);
    format!(
        "artifacts are removed {days} days after the last event of their session; the oldest are removed earlier when all exceed {mib} MiB"
    )
}

/// An artifact. `size` is in bytes, `modifiedAtMs` in milliseconds since the Unix epoch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Artifact")]
pub(crate) struct ArtifactView {
    name: String,
    size: u64,
    mime_type: String,
    modified_at_ms: u64,
}

/// Artifacts of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Artifacts {
    artifacts: Vec<ArtifactView>,
}

pub(crate) struct ListArtifacts;

impl Method for ListArtifacts {
    type Params = FilesParams;
    type Result = Artifacts;
    const NAME: &'static str = "_nuncio/artifact/list";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/artifacts")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the artifacts of a session, sorted by name.";

    async fn call(cx: CallContext, params: FilesParams) -> Result<Reply<Artifacts>> {
        let files = artifacts(&cx, &params.session_id).await?;
        let found = blocking(move || files.list()).await?.into_iter();
        let artifacts = found.map(|file| ArtifactView {
            name: file.name,
            size: file.size,
            mime_type: file.mime_type.into(),
            modified_at_ms: file.modified_ms,
        });
        Ok(Reply::new(Artifacts { artifacts: artifacts.collect() }))
    }
}

pub(crate) struct GetArtifact;

impl Method for GetArtifact {
    type Params = FileParams;
    type Result = FileView;
    const NAME: &'static str = "_nuncio/artifact/get";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "name": "call_01.txt"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/artifacts/{name}").gives_file()];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns an artifact of a session.";

    async fn call(cx: CallContext, params: FileParams) -> Result<Reply<FileView>> {
        let files = artifacts(&cx, &params.session_id).await?;
        let missing = |error: Error| match error.kind {
            Kind::NotFound if error.hint.is_none() => error.hint(retention()),
            _ => error,
        };
        let read = blocking(move || Ok(FileView::new(params.name.clone(), &files.get(&params.name)?, None)));
        read.await.map(Reply::new).map_err(missing)
    }
}
