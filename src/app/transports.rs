//! Serves ACP on the standard streams, and HTTP.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::select_all;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Bootstrap, build_with};
use crate::api::App;
use crate::config::{LoadedSettings, Overrides};
use crate::error::Result;
use crate::http::{HttpOptions, HttpServer};
use crate::process::{leave_streams, leave_terminal};
use crate::session::Capacity;
use crate::workspace::real_path;

/// Serves ACP on standard input and output, until the input ends or a signal arrives. Calls
/// `not_json` if the first byte of the input cannot start a JSON-RPC message.
pub(crate) async fn acp(app: Arc<App>, not_json: impl FnOnce() + Unpin) -> Result<()> {
    acp_until(app, || (), async {}, || (), not_json).await
}

/// Serves ACP on standard input and output. Calls `ready` when signal handlers are installed. Waits
/// for `others` to finish before the turns are cancelled. Calls `leaves` if turns go on without the
/// client.
async fn acp_until(
    app: Arc<App>,
    ready: impl FnOnce(),
    others: impl Future<Output = ()>,
    leaves: impl FnOnce(),
    not_json: impl FnOnce() + Unpin,
) -> Result<()> {
    let stop = CancellationToken::new();
    let signalled = crate::task::spawn(on_signal(stop.clone()));
    ready();
    let (input, output) = crate::acp::standard();
    let input = FirstByte { input, not_json: Some(not_json) };
    let gone = || {
        leaves();
        // A signal to the programs of the client is not for this process any more.
        leave_terminal();
        if let Err(error) = leave_streams() {
            tracing::warn!(%error, "leaving the streams of the client failed");
        }
    };
    let served = crate::acp::serve(app, input, output, stop, others, gone).await;
    signalled.abort();
    served
}

/// A reader that passes input on unchanged, and checks that its first non-whitespace byte can start
/// a JSON-RPC message.
struct FirstByte<R, F> {
    input: R,
    /// Called once, if the check fails.
    not_json: Option<F>,
}

impl<R: AsyncRead + Unpin, F: FnOnce() + Unpin> AsyncRead for FirstByte<R, F> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.input).poll_read(cx, buffer);
        let first = buffer.filled()[before..].iter().find(|byte| !byte.is_ascii_whitespace());
        let Some(first) = first else { return read };
        if let Some(not_json) = self.not_json.take().filter(|_| !matches!(first, b'{' | b'[')) {
            not_json();
        }
        read
    }
}

/// Returns the directories to which clients of a server have access: its own directory, those of
/// `--root` and of the settings.
pub(crate) fn server_roots(cwd: &Path, overrides: &Overrides, user: &LoadedSettings) -> Vec<PathBuf> {
    let more = overrides.roots.iter().chain(&user.settings.allowed_paths).map(PathBuf::as_path);
    std::iter::once(cwd).chain(more).map(real_path).collect()
}

/// Builds the application and its HTTP server, which listens but does not accept connections yet.
pub(crate) async fn http_server(bootstrap: Bootstrap, options: HttpOptions) -> Result<(Arc<App>, HttpServer)> {
    let http = &bootstrap.loaded.settings.http;
    let capacity = Capacity { sessions: http.max_sessions, turns: http.max_turns };
    let app = build_with(bootstrap, capacity)?;
    let server = http_server_of(app.clone(), options).await?;
    Ok((app, server))
}

/// Creates the HTTP server of an application; see [`http_server`].
pub(crate) async fn http_server_of(app: Arc<App>, options: HttpOptions) -> Result<HttpServer> {
    let options = HttpOptions { roots: server_roots(&app.cwd, &app.services.overrides, &app.services.user), ..options };
    HttpServer::open(app, options).await
}

/// Serves ACP and HTTP on the same sessions, until the input ends or a signal arrives. `ready`
/// reports the address of the HTTP server.
pub(crate) async fn acp_and_http(app: Arc<App>, server: HttpServer, ready: impl FnOnce()) -> Result<()> {
    let stop = CancellationToken::new();
    // The next process of the client needs the address.
    let leaves = CancellationToken::new();
    let serving = crate::task::spawn(server.serve(stop.clone(), leaves.clone()));
    // Let the turns of HTTP clients finish when the editor disconnects.
    let http_ends = async {
        stop.cancel();
        let _ = serving.await;
    };
    acp_until(app, ready, http_ends, move || leaves.cancel(), || ()).await
}

/// Serves HTTP until a signal arrives. `ready` reports the address. It is called after signal
/// handlers are installed, because the process that reads the address may send a signal
/// immediately.
pub(crate) async fn serve(server: HttpServer, ready: impl FnOnce() -> Result<()>) -> Result<()> {
    let stop = CancellationToken::new();
    let signalled = crate::task::spawn(on_signal(stop.clone()));
    ready()?;
    server.serve(stop, CancellationToken::new()).await;
    signalled.abort();
    Ok(())
}

/// Cancels `stop` on SIGINT, SIGTERM or SIGHUP. From this call on, these signals no longer
/// terminate the process by default.
pub(crate) fn on_signal(stop: CancellationToken) -> impl Future<Output = ()> + Send + use<> {
    on_one_of(stop, &[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()])
}

/// Cancels `stop` as [`on_signal`] does, but not on SIGINT.
pub(crate) fn on_termination(stop: CancellationToken) -> impl Future<Output = ()> + Send + use<> {
    on_one_of(stop, &[SignalKind::terminate(), SignalKind::hangup()])
}

fn on_one_of(stop: CancellationToken, kinds: &[SignalKind]) -> impl Future<Output = ()> + Send + use<> {
    let listening: std::io::Result<Vec<Signal>> = kinds.iter().map(|kind| signal(*kind)).collect();
    async move {
        match listening {
            Ok(mut signals) => {
                select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
                stop.cancel();
            }
            Err(error) => tracing::warn!(%error, "cannot listen for signals"),
        }
    }
}
