//! Reading a file of a session's directory, for a client that shows the places that a conversation
//! names.

use std::io;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Mode;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::files::FileView;
use crate::config::{AccessKind, Policy, Rule};
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::permission::rules::{AccessRequest, Rules, decide};
use crate::runtime::access_path;
use crate::task;
use crate::workspace::{Workspace, decoded, image_type, read_resolved};

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Maximum length of a path, in bytes.
const PATH_BYTES_MAX: usize = 4 << 10;
/// The tool whose rules apply.
const READ_TOOL: &str = "read";

/// Names a file.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReadFileParams {
    pub session_id: SessionId,
    /// Absolute, or relative to the session's directory.
    pub path: String,
}

pub(crate) struct ReadFile;

impl Method for ReadFile {
    type Params = ReadFileParams;
    type Result = FileView;
    const NAME: &'static str = "_nuncio/file/read";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "path": "src/main.rs"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/files/content")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns a text file or an image of at most 2 MiB in the session's directories or in `allowed_paths`, unless a rule about \
         `read` denies it or asks.";

    async fn call(cx: CallContext, ReadFileParams { session_id, path }: ReadFileParams) -> Result<Reply<FileView>> {
        if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
            return Err(Error::invalid_params("path: not a path"));
        }
        let session = cx.open_read_only(&session_id).await?;
        let place = session.log.state(|state| SessionFilesPlace {
            id: session_id.clone(),
            cwd: state.cwd.clone(),
            directories: state.additional_directories().to_vec(),
            rules: state.rules.clone(),
        });
        drop(session);
        let content = task::blocking("reading a file", move || read(&cx, &place, &path)).await??;
        Ok(Reply::new(content))
    }
}

/// The facts that decide which files of a session can be read.
struct SessionFilesPlace {
    id: SessionId,
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    /// Rules of answers in the session.
    rules: Vec<Rule>,
}

/// Reads a file that the client, the rules of the directory and those of the session allow.
fn read(cx: &CallContext, place: &SessionFilesPlace, path: &str) -> Result<FileView> {
    let (services, places) = (&cx.app.services, &cx.app.places);
    let loaded = services.settings(&place.cwd)?;
    let roots = place.directories.iter().chain(&loaded.settings.allowed_paths).cloned();
    let workspace =
        Workspace::new(&place.cwd, roots, &places.artifacts(place.id.as_str())).home(places.home.clone()).private(places.private());
    let file = access_path(workspace.resolve(path), AccessKind::Read, &workspace);
    let real = file.real.clone();
    // A workspace of nuncio is in its private directory.
    let is_private = workspace.private.iter().any(|private| real.starts_with(private) && !workspace.cwd.starts_with(private));
    if !file.inside || is_private {
        return Err(Error::new(Kind::Forbidden, format!("{path} is outside of the session's directory")));
    }
    cx.client.require_dir(&real)?;
    let request = AccessRequest { paths: vec![file], ..AccessRequest::new(READ_TOOL, AccessKind::Read) };
    if decide(&Rules::new(&loaded, place.rules.clone()), Mode::Ask, Policy::Ask, &request).policy != Policy::Allow {
        return Err(Error::new(Kind::Forbidden, format!("a permission rule does not allow to read {path}")));
    }
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("{path} does not exist")),
        _ => Error::invalid_params(format!("{path} cannot be shown: {error}")),
    };
    // Without links, so that the file is the one that was checked.
    let bytes = read_resolved(&real, FILE_BYTES_MAX).map_err(failed)?;
    if image_type(&bytes).is_some() {
        return Ok(FileView::new(real.display().to_string(), &bytes, None));
    }
    let text = decoded(&bytes);
    if text.contains('\0') {
        return Err(Error::invalid_params(format!("{path} is neither text nor an image")));
    }
    Ok(FileView::new(real.display().to_string(), &bytes, Some(text.into_owned())))
}
