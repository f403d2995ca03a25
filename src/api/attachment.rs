//! Attachments: files that clients upload for messages, kept as long as their session. A prompt
//! refers to an attachment by its URI.

use std::os::unix::ffi::OsStrExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::{FileParams, FileView, FilesParams, blocking};
use super::method::{Method, Reply};
use super::route::Route;
use super::{CallContext, ClientRole};
use crate::content::{PDF, Part};
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::session::files::SessionFiles;
use crate::workspace::media_type;

/// A file to store with a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AddAttachmentParams {
    session_id: SessionId,
    /// A file name: no `/`, no `..`, no leading dot, at most 255 bytes. If the name is taken, a
    /// number is added to it.
    name: String,
    /// The file in base64 (RFC 4648, section 4), at most 10 MiB when decoded.
    data: String,
    /// Ignored: the media type is detected from the content.
    #[allow(dead_code)]
    mime_type: Option<String>,
}

/// A stored attachment. A `resource_link` in a message refers to it by `uri`. `size` is in bytes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Added")]
pub(crate) struct AttachmentView {
    name: String,
    mime_type: String,
    size: u64,
    uri: String,
}

/// Stores a file as an attachment of a session.
async fn add_attachment(cx: &CallContext, session: &SessionId, name: String, bytes: Vec<u8>) -> Result<AttachmentView> {
    cx.authorize(session).await?;
    let files = attachments(cx, session);
    blocking(move || {
        let name = files.add(&name, &bytes)?;
        let uri = uri(&files, &name);
        Ok(AttachmentView { name, mime_type: media_type(&bytes).into(), size: bytes.len() as u64, uri })
    })
    .await
}

fn attachments(cx: &CallContext, session: &SessionId) -> SessionFiles {
    SessionFiles::new(cx.app.places.attachments(session.as_str()))
}

/// The characters to percent-encode in a path: all except the unreserved characters (RFC 3986) and
/// `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The `file:` URI of an attachment (RFC 8089).
fn uri(files: &SessionFiles, name: &str) -> String {
    format!("file://{}", percent_encode(files.path(name).as_os_str().as_bytes(), PATH))
}

/// Replaces each link to an attachment of the session by the attachment's content, if it is an
/// image or a short text. Returns [`Kind::TooLarge`] if the linked attachments exceed
/// [`limits::MESSAGE_ATTACHMENTS_BYTES_MAX`] in total.
pub(crate) fn with_attachments(cx: &CallContext, session: &SessionId, parts: Vec<Part>) -> Result<Vec<Part>> {
    let mut remaining = limits::MESSAGE_ATTACHMENTS_BYTES_MAX;
    let files = attachments(cx, session);
    let prefix = uri(&files, "");
    let mut expand = |part: Part| {
        let Part::ResourceLink { uri: named, .. } = &part else { return Ok(part) };
        // The caller checks only later that the session exists. Until then, an id with `/` could
        // lead out of the attachments directory, so links with such an id are not replaced.
        let Some(name) = named.strip_prefix(&prefix).filter(|_| !session.as_str().contains('/')) else {
            return Ok(part);
        };
        let found = percent_decode_str(name).decode_utf8().ok().and_then(|name| files.get(&name).ok());
        let Some(bytes) = found else { return Ok(part) };
        let most = limits::MESSAGE_ATTACHMENTS_BYTES_MAX;
        let too_large = || Error::new(Kind::TooLarge, format!("the linked attachments exceed {most} bytes in total"));
        remaining = remaining.checked_sub(bytes.len()).ok_or_else(too_large)?;
        Ok(content(named, bytes).unwrap_or(part))
    };
    parts.into_iter().map(&mut expand).collect()
}

/// Returns a message part with the content of an attachment. None if the model has to read the
/// attachment with a tool.
fn content(uri: &str, bytes: Vec<u8>) -> Option<Part> {
    match media_type(&bytes) {
        kind if kind.starts_with("image/") && bytes.len() <= limits::IMAGE_BYTES_MAX => {
            Some(Part::Image { mime_type: kind.into(), data: STANDARD.encode(bytes) })
        }
        kind @ PDF if bytes.len() <= limits::MESSAGE_ATTACHMENTS_BYTES_MAX => {
            let name = uri.rsplit('/').next().map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned());
            Some(Part::Document { mime_type: kind.into(), name, data: STANDARD.encode(bytes), text: None })
        }
        kind if kind.starts_with("audio/") => Some(Part::Audio { mime_type: kind.into(), data: STANDARD.encode(bytes) }),
        kind @ "text/plain" if bytes.len() <= limits::READ_BYTES_MAX => {
            Some(Part::Resource { uri: uri.into(), mime_type: Some(kind.into()), text: String::from_utf8(bytes).ok()? })
        }
        _ => None,
    }
}

/// The method `_nuncio/attachment/add`.
pub(crate) struct AddAttachment;

impl Method for AddAttachment {
    type Params = AddAttachmentParams;
    type Result = AttachmentView;
    const NAME: &'static str = "_nuncio/attachment/add";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "name": "note.txt", "data": "aGVsbG8K"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/attachments").status(201).takes_file()];
    const DOC: &'static str = "Stores a file with a session. A resource_link with its uri in a message sends it to the model.";

    async fn call(cx: CallContext, params: AddAttachmentParams) -> Result<Reply<AttachmentView>> {
        let bytes = STANDARD.decode(&params.data).map_err(|error| Error::invalid_params(format!("data: not base64: {error}")))?;
        add_attachment(&cx, &params.session_id, params.name, bytes).await.map(Reply::new)
    }
}

/// The method `_nuncio/attachment/get`.
pub(crate) struct GetAttachment;

impl Method for GetAttachment {
    type Params = FileParams;
    type Result = FileView;
    const NAME: &'static str = "_nuncio/attachment/get";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "name": "note.txt"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/attachments/{name}").gives_file()];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns an attachment of a session.";

    async fn call(cx: CallContext, params: FileParams) -> Result<Reply<FileView>> {
        let files = attachments(&cx, &params.session_id);
        FileView::read(&cx, files, params).await.map(Reply::new)
    }
}

/// Attachments of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Attachments {
    attachments: Vec<AttachmentView>,
}

/// The method `_nuncio/attachment/list`.
pub(crate) struct ListAttachments;

impl Method for ListAttachments {
    type Params = FilesParams;
    type Result = Attachments;
    const NAME: &'static str = "_nuncio/attachment/list";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/attachments")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the attachments of a session, sorted by name.";

    async fn call(cx: CallContext, params: FilesParams) -> Result<Reply<Attachments>> {
        cx.authorize(&params.session_id).await?;
        let files = attachments(&cx, &params.session_id);
        let list = blocking(move || {
            let found = files.list()?.into_iter();
            let view = |file: crate::session::files::SessionFile| AttachmentView {
                uri: uri(&files, &file.name),
                name: file.name,
                mime_type: file.mime_type.into(),
                size: file.size,
            };
            Ok(found.map(view).collect())
        });
        Ok(Reply::new(Attachments { attachments: list.await? }))
    }
}
