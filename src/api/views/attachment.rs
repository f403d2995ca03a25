//! Attachments: files that clients upload for messages, kept as long as their session. A prompt
//! refers to an attachment by its URI.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, percent_decode_str, percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::{FileParams, FileView, FilesParams, blocking};
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::content::{HTML, PDF, Part};
use crate::documents::DocumentKind;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::process::ProcessLauncher;
use crate::protocol::content::UNRESERVED;
use crate::session::files::{ATTACHMENT_TEXTS, SessionFiles};
use crate::session::shared_files::{ATTACHMENTS, SharedFiles, TEXTS};
use crate::workspace::media_type;

/// Maximum length of the preview of an attachment, in characters.
const PREVIEW_CHARS_MAX: usize = 300;

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
    /// Identifies the attachment in messages of its session. Its path is that of the REST route.
    uri: String,
    /// The beginning of the text, for a text or a document with a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

/// The attachments of a session, and the texts that were extracted from them.
#[derive(Clone)]
struct Attachments {
    session: SessionId,
    files: Arc<SessionFiles>,
    /// Texts under the names of their attachments.
    texts: Arc<SessionFiles>,
    launcher: ProcessLauncher,
}

impl Attachments {
    fn new(cx: &CallContext, session: &SessionId) -> Attachments {
        let dir = cx.app.places.attachments(session.as_str());
        let texts = SessionFiles::new(dir.join(ATTACHMENT_TEXTS));
        let launcher = cx.app.services.launcher.clone();
        Attachments { session: session.clone(), files: SessionFiles::new(dir).into(), texts: texts.into(), launcher }
    }

    /// Returns the attachments of a session with those that were added at other nodes, after
    /// checking that the caller has access to the session.
    async fn of(cx: &CallContext, session: &SessionId) -> Result<Attachments> {
        cx.authorize(session).await?.shared_files().fetch(session, Some(DIRECTORIES)).await?;
        Ok(Attachments::new(cx, session))
    }

    /// Stores a file with its text.
    async fn add(self, shared: &SharedFiles, name: String, bytes: Vec<u8>) -> Result<AttachmentView> {
        let text = if bytes.len() <= limits::ATTACHMENT_BYTES_MAX { self.read(&bytes).await } else { None };
        let (files, bytes) = (self.files.clone(), Arc::new(bytes));
        let written = bytes.clone();
        let name = blocking(move || files.add(&name, &written)).await?;
        match shared.add(&self.session, ATTACHMENTS, &name, &bytes).await {
            Ok(true) => {}
            not_added => {
                self.files.remove(&name);
                not_added?;
                let message = format!("another node has added an attachment named {name}");
                return Err(Error::new(Kind::SessionBusy, message).hint("retry"));
            }
        }
        if let Some(text) = &text {
            shared.add(&self.session, TEXTS, &name, text.as_bytes()).await?;
        }
        blocking(move || {
            text.map(|text| self.texts.add(&name, text.as_bytes())).transpose()?;
            Ok(self.view(name, media_type(&bytes), bytes.len() as u64))
        })
        .await
    }

    fn view(&self, name: String, mime_type: &str, size: u64) -> AttachmentView {
        let (uri, preview) = (self.uri(&name), self.preview(&name, mime_type));
        AttachmentView { name, mime_type: mime_type.into(), size, uri, preview }
    }

    /// Returns the URI of an attachment, which contains no path of this machine.
    fn uri(&self, name: &str) -> String {
        let encoded = |text: &str| percent_encode(text.as_bytes(), UNRESERVED).to_string();
        format!("nuncio:///v1/sessions/{}/attachments/{}", encoded(self.session.as_str()), encoded(name))
    }

    fn preview(&self, name: &str, mime_type: &str) -> Option<String> {
        // A character has at most four bytes.
        let most = 4 * PREVIEW_CHARS_MAX as u64;
        let text = self.texts.read(name, most);
        let text = if mime_type == TEXT { text.or_else(|_| self.files.read(name, most)) } else { text };
        let preview: String = String::from_utf8_lossy(&text.ok()?).trim().chars().take(PREVIEW_CHARS_MAX).collect();
        Some(preview.trim_end_matches('\u{fffd}').into())
    }

    /// Returns the text of an attachment with this content.
    async fn text(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let kind = media_type(bytes);
        if kind == TEXT {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limits::DOCUMENT_TEXT_BYTES_MAX)]);
            return Some(text.into_owned());
        }
        match self.stored_text(name) {
            // An older version of nuncio stored the attachment.
            None => self.read(bytes).await,
            stored => stored,
        }
    }

    /// Reads the text of a document. `None` if it has none or cannot be read.
    async fn read(&self, bytes: &[u8]) -> Option<String> {
        let kind = DocumentKind::from_media_type(media_type(bytes))?;
        self.launcher.read_document(kind, bytes).await.ok()
    }

    fn stored_text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.texts.get(name).ok()?).ok()
    }

    /// Returns the name of the attachment that a URI identifies.
    fn named(&self, uri: &str) -> Option<String> {
        // The caller checks only later that the session exists. Until then, an id with `/` could
        // lead out of the attachments directory.
        if self.session.as_str().contains('/') {
            return None;
        }
        // Older versions of nuncio used file URIs.
        let file = format!("file://{}", percent_encode(self.files.path("").as_os_str().as_bytes(), PATH));
        let name = uri.strip_prefix(&self.uri("")).or_else(|| uri.strip_prefix(&file))?;
        percent_decode_str(name).decode_utf8().ok().map(Into::into)
    }

    /// Returns the part of a message for the attachment `name`: its content if a model reads it, or
    /// the link with the path, which the model's tools read.
    fn part(&self, uri: String, name: &str, link: (String, Option<String>), bytes: Vec<u8>) -> Part {
        let kind = media_type(&bytes);
        match kind {
            _ if kind.starts_with("image/") && bytes.len() <= limits::IMAGE_BYTES_MAX => {
                return Part::Image { mime_type: kind.into(), data: STANDARD.encode(bytes) };
            }
            PDF if bytes.len() <= limits::MESSAGE_ATTACHMENTS_BYTES_MAX => {
                return Part::Document {
                    mime_type: kind.into(),
                    name: Some(name.into()),
                    data: STANDARD.encode(bytes),
                    text: None,
                };
            }
            _ if kind.starts_with("audio/") => return Part::Audio { mime_type: kind.into(), data: STANDARD.encode(bytes) },
            _ => {}
        }
        let text = match kind {
            TEXT | HTML if bytes.len() <= limits::TEXT_BYTES_MAX => String::from_utf8(bytes).ok(),
            TEXT | HTML => None,
            _ => self.stored_text(name),
        };
        if let Some(text) = text {
            return Part::Resource { uri, mime_type: Some(kind.into()), text };
        }
        let place = format!("stored as {}", self.files.path(name).display());
        let description = Some(link.1.map_or_else(|| place.clone(), |description| format!("{description} ({place})")));
        Part::ResourceLink { uri, name: link.0, mime_type: Some(kind.into()), description }
    }
}

/// The directories of the files of this module that nodes share.
const DIRECTORIES: &[&str] = &[ATTACHMENTS, TEXTS];

const TEXT: &str = "text/plain";

/// The characters to percent-encode in a path.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Replaces each link to an attachment of the session by the attachment's content, if a model reads
/// it, and each note by text, because a client sends the parts. Returns [`Kind::TooLarge`] if the
/// linked attachments exceed [`limits::MESSAGE_ATTACHMENTS_BYTES_MAX`] in total.
pub(crate) async fn with_attachments(cx: &CallContext, session: &SessionId, parts: Vec<Part>) -> Result<Vec<Part>> {
    let mut remaining = limits::MESSAGE_ATTACHMENTS_BYTES_MAX;
    let attachments = Attachments::new(cx, session);
    let is_attachment = |part: &Part| matches!(part, Part::ResourceLink { uri, .. } if attachments.named(uri).is_some());
    if parts.iter().any(is_attachment)
        && let Some(sessions) = cx.app.sessions_now()
    {
        sessions.shared_files().fetch(session, Some(DIRECTORIES)).await?;
    }
    let mut expand = |part: Part| {
        let Part::ResourceLink { uri, name: title, description, .. } = &part else { return Ok(part) };
        let found = attachments.named(uri).and_then(|name| attachments.files.get(&name).ok().map(|bytes| (name, bytes)));
        let Some((name, bytes)) = found else { return Ok(part) };
        let most = limits::MESSAGE_ATTACHMENTS_BYTES_MAX;
        let too_large = || Error::new(Kind::TooLarge, format!("the linked attachments exceed {most} bytes in total"));
        remaining = remaining.checked_sub(bytes.len()).ok_or_else(too_large)?;
        Ok(attachments.part(uri.clone(), &name, (title.clone(), description.clone()), bytes))
    };
    parts.into_iter().map(Part::untagged).map(&mut expand).collect()
}

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
        let attachments = Attachments::of(&cx, &params.session_id).await?;
        attachments.add(cx.app.sessions().await?.shared_files(), params.name, bytes).await.map(Reply::new)
    }
}

pub(crate) struct GetAttachment;

impl Method for GetAttachment {
    type Params = FileParams;
    type Result = FileView;
    const NAME: &'static str = "_nuncio/attachment/get";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "name": "note.txt"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/attachments/{name}").gives_file()];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns an attachment of a session; as JSON also its text, if it is a text, a PDF, HTML, Word, Excel or OpenDocument file.";

    async fn call(cx: CallContext, params: FileParams) -> Result<Reply<FileView>> {
        let FileParams { session_id, name } = params;
        let attachments = Attachments::of(&cx, &session_id).await?;
        let (files, named) = (attachments.files.clone(), name.clone());
        let bytes = blocking(move || files.get(&named)).await?;
        let text = attachments.text(&name, &bytes).await;
        Ok(Reply::new(FileView::new(name, &bytes, text)))
    }
}

/// Attachments of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Attachments")]
pub(crate) struct AttachmentList {
    attachments: Vec<AttachmentView>,
}

pub(crate) struct ListAttachments;

impl Method for ListAttachments {
    type Params = FilesParams;
    type Result = AttachmentList;
    const NAME: &'static str = "_nuncio/attachment/list";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/attachments")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the attachments of a session, sorted by name.";

    async fn call(cx: CallContext, params: FilesParams) -> Result<Reply<AttachmentList>> {
        let attachments = Attachments::of(&cx, &params.session_id).await?;
        let list = blocking(move || {
            let found = attachments.files.list()?.into_iter();
            Ok(found.map(|file| attachments.view(file.name, file.mime_type, file.size)).collect())
        });
        Ok(Reply::new(AttachmentList { attachments: list.await? }))
    }
}
