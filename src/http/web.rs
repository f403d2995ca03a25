//! The web console: embedded static files. The files contain no user data; the page loads that over
//! the API with the user's token.

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// A file and its URL path.
struct File {
    path: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const fn file(path: &'static str, media: &'static str, bytes: &'static [u8]) -> File {
    File { path, media, bytes }
}

const FILES: &[File] = &[
    file("/", HTML, include_bytes!("web/index.html")),
    file("/console/style.css", CSS, include_bytes!("web/style.css")),
    file("/console/conversation.css", CSS, include_bytes!("web/conversation.css")),
    file("/console/icon.svg", "image/svg+xml", include_bytes!("web/icon.svg")),
    file("/console/manifest.webmanifest", "application/manifest+json", include_bytes!("web/manifest.webmanifest")),
    file("/console/app.js", SCRIPT, include_bytes!("web/app.js")),
    file("/console/actions.js", SCRIPT, include_bytes!("web/actions.js")),
    file("/console/api.js", SCRIPT, include_bytes!("web/api.js")),
    file("/console/transport.js", SCRIPT, include_bytes!("web/transport.js")),
    file("/console/texts.js", SCRIPT, include_bytes!("web/texts.js")),
    file("/console/state.js", SCRIPT, include_bytes!("web/state.js")),
    file("/console/host.js", SCRIPT, include_bytes!("web/host.js")),
    file("/console/file.js", SCRIPT, include_bytes!("web/file.js")),
    file("/console/find.js", SCRIPT, include_bytes!("web/find.js")),
    file("/console/live.js", SCRIPT, include_bytes!("web/live.js")),
    file("/console/sessions.js", SCRIPT, include_bytes!("web/sessions.js")),
    file("/console/groups.js", SCRIPT, include_bytes!("web/groups.js")),
    file("/console/scroll.js", SCRIPT, include_bytes!("web/scroll.js")),
    file("/console/view.js", SCRIPT, include_bytes!("web/view.js")),
    file("/console/tool.js", SCRIPT, include_bytes!("web/tool.js")),
    file("/console/places.js", SCRIPT, include_bytes!("web/places.js")),
    file("/console/ask.js", SCRIPT, include_bytes!("web/ask.js")),
    file("/console/review.js", SCRIPT, include_bytes!("web/review.js")),
    file("/console/composer.js", SCRIPT, include_bytes!("web/composer.js")),
    file("/console/completion.js", SCRIPT, include_bytes!("web/completion.js")),
    file("/console/notify.js", SCRIPT, include_bytes!("web/notify.js")),
    file("/console/worker.js", SCRIPT, include_bytes!("web/worker.js")),
    file("/console/phone.js", SCRIPT, include_bytes!("web/phone.js")),
    file("/console/qr.js", SCRIPT, include_bytes!("web/qr.js")),
    file("/console/queue.js", SCRIPT, include_bytes!("web/queue.js")),
    file("/console/comparisons.js", SCRIPT, include_bytes!("web/comparisons.js")),
    file("/console/workspaces.js", SCRIPT, include_bytes!("web/workspaces.js")),
    file("/console/context.js", SCRIPT, include_bytes!("web/context.js")),
    file("/console/mentions.js", SCRIPT, include_bytes!("web/mentions.js")),
    file("/console/settings.js", SCRIPT, include_bytes!("web/settings.js")),
    file("/console/menu.js", SCRIPT, include_bytes!("web/menu.js")),
    file("/console/markdown.js", SCRIPT, include_bytes!("web/markdown.js")),
    file("/console/tokens.js", SCRIPT, include_bytes!("web/tokens.js")),
    file("/console/vendor/markdown-it.js", SCRIPT, include_bytes!("web/vendor/markdown-it.js")),
    file("/console/highlight.js", SCRIPT, include_bytes!("web/highlight.js")),
    file("/console/diff.js", SCRIPT, include_bytes!("web/diff.js")),
    file("/console/patch.js", SCRIPT, include_bytes!("web/patch.js")),
    file("/console/changes.js", SCRIPT, include_bytes!("web/changes.js")),
    file("/console/export.js", SCRIPT, include_bytes!("web/export.js")),
    file("/console/results.js", SCRIPT, include_bytes!("web/results.js")),
    file("/console/fields.js", SCRIPT, include_bytes!("web/fields.js")),
    file("/console/dom.js", SCRIPT, include_bytes!("web/dom.js")),
];

/// Content security policy: the page loads files from this server, connects to it and shows images.
/// It cannot create scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
     manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types nuncio-worker; worker-src 'self'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "no-cache"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Returns true if the path is a file of the console.
pub(crate) fn is_file(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

/// Adds the routes of the console's files.
pub(crate) fn add_to(router: Router) -> Router {
    FILES
        .iter()
        .fold(router, |router, file| router.route(file.path, get(move |headers: HeaderMap| async move { answer(file, &headers) })))
}

/// Responds with the file, or with 304 if the client's copy is current (RFC 9110, section 13.1.2).
fn answer(file: &File, headers: &HeaderMap) -> Response {
    let tag = format!("\"{:016x}\"", fingerprint(file.bytes));
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let same = known.flat_map(|value| value.split(',')).any(|one| one.trim().trim_start_matches("W/") == tag);
    let mut response = match same {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, file.media)], Body::from(file.bytes)).into_response(),
    };
    let headers = response.headers_mut();
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Computes the FNV-1a hash (64 bits), which distinguishes versions of a file. It is not a security
/// measure.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
