//! Code shared by attachments and artifacts: params, the JSON view of a file, and blocking file
//! access.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::id::SessionId;
use crate::task;
use crate::workspace::media_type;

/// Selects the files of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FilesParams {
    pub session_id: SessionId,
}

/// Selects a file of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FileParams {
    pub session_id: SessionId,
    pub name: String,
}

/// A file. `size` is in bytes, `data` is base64.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileView {
    pub name: String,
    pub mime_type: String,
    size: u64,
    pub data: String,
    /// The text of an attachment, if it is a text or a document with a text. Long texts are
    /// truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl FileView {
    pub(crate) fn new(name: String, bytes: &[u8], text: Option<String>) -> FileView {
        let (mime_type, size) = (media_type(bytes).into(), bytes.len() as u64);
        FileView { name, mime_type, size, data: STANDARD.encode(bytes), text }
    }
}

/// Runs blocking file operations on a thread of the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    task::blocking("a file operation", work).await?
}
