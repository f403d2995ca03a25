//! The search for files of a session's directory by a part of their path, for the completion in a
//! client's composer.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::directories::{Place, place};
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::config;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::task;
use crate::workspace::{FileSearch, Walk, real_path};

/// Default number of paths.
const PATHS: usize = 20;
/// Maximum number of paths.
const PATHS_MAX: usize = 200;
/// Maximum length of a query, in bytes.
const QUERY_BYTES_MAX: usize = 1 << 10;

/// Selects files of a session's directory.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SearchFilesParams {
    pub session_id: Option<SessionId>,
    /// The directory in which a session will be created, in place of `sessionId`.
    pub cwd: Option<PathBuf>,
    /// Characters of the path in their order, for example `srcmain` for `src/main.rs`. Upper case
    /// matches only upper case. If it is empty, the first paths are returned.
    #[serde(default)]
    pub query: String,
    /// Maximum number of paths: 1 to 200; 20 when it is missing.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<usize>,
}

impl SearchFilesParams {
    pub(crate) fn in_session(id: &SessionId, query: &str, limit: usize) -> SearchFilesParams {
        SearchFilesParams { session_id: Some(id.clone()), cwd: None, query: query.into(), limit: Some(limit) }
    }
}

/// The paths that match best, relative to the session's directory. A directory ends with a slash.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FoundFiles {
    pub paths: Vec<String>,
    /// The directory has more files than are searched.
    truncated: bool,
}

pub(crate) struct SearchFiles;

impl Method for SearchFiles {
    type Params = SearchFilesParams;
    type Result = FoundFiles;
    const NAME: &'static str = "_nuncio/file/search";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "query": "srcmain"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/files")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Searches the files and directories of a session's directory, or of `cwd`, by characters of their path, best match \
         first. Skips hidden and git-ignored files.";

    async fn call(cx: CallContext, params: SearchFilesParams) -> Result<Reply<FoundFiles>> {
        let SearchFilesParams { session_id, cwd, query, limit } = params;
        let limit = limit.unwrap_or(PATHS);
        if !(1..=PATHS_MAX).contains(&limit) {
            return Err(Error::invalid_params(format!("limit: must be 1 to {PATHS_MAX}")));
        }
        if query.len() > QUERY_BYTES_MAX {
            return Err(Error::invalid_params(format!("query: longer than {QUERY_BYTES_MAX} bytes")));
        }
        let cwd = match place(&cx, session_id, cwd)? {
            Place::Session(id) => cx.authorize(&id).await?.cwd(&id).await?,
            Place::Directory(cwd) => cwd,
        };
        // Dropped with the call, which stops the walk.
        let cancel = CancellationToken::new();
        let _stop = cancel.clone().drop_guard();
        let excludes = config::excludes(&cx.app.services.environment);
        let search = move || {
            let root = real_path(&cwd);
            FileSearch::run(&Walk::new(&root, cancel).excludes(excludes), &root, &query, limit)
        };
        let FileSearch { paths, truncated } = task::blocking("searching files", search).await?;
        Ok(Reply::new(FoundFiles { paths, truncated }))
    }
}
