//! What attachments and artifacts have in common: params, a file as it is shown, work that blocks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::id::SessionId;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilesParams {
    pub session_id: SessionId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileParams {
    pub session_id: SessionId,
    pub name: String,
}

/// `size` in bytes, `data` as base64.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    name: String,
    mime_type: String,
    size: u64,
    data: String,
}

impl FileView {
    pub fn of(name: String, mime_type: &str, bytes: &[u8]) -> FileView {
        FileView { name, mime_type: mime_type.into(), size: bytes.len() as u64, data: STANDARD.encode(bytes) }
    }
}

/// Runs what waits for the disk.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::internal("working with files panicked"))?
}
