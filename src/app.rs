//! Wires the house: settings, models, agents, doors. The only place beside `cli` that knows all.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::agent::{Models, NativeAgents};
use crate::api::Nuncio;
use crate::config::{Environment, Loaded, Overrides, Places, load_project, load_user};
use crate::error::{Error, Result};
use crate::http::{self, Bridge};
use crate::permission::rules::{MODES, Mode};
use crate::process::Supervisor;
use crate::session::Room;
use crate::tools::Tools;

/// What the command line says about all commands.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub overrides: Overrides,
    pub config: Option<PathBuf>,
    pub data: Option<PathBuf>,
    pub cwd: Option<PathBuf>,
}

/// Settings and places, with nothing opened.
pub struct Ground {
    pub environment: Environment,
    pub places: Places,
    pub loaded: Loaded,
    pub overrides: Overrides,
    pub cwd: PathBuf,
    /// Names of the environment variables that hold keys and tokens.
    pub secrets: Vec<String>,
}

pub fn ground(environment: Environment, setup: Setup) -> Result<Ground> {
    let here = std::env::current_dir().map_err(|error| Error::io("finding the current directory", error))?;
    let cwd = match &setup.cwd {
        Some(cwd) => absolute_directory(&here, cwd)?,
        None => here.clone(),
    };
    let mut overrides = setup.overrides;
    for root in &mut overrides.roots {
        *root = absolute_directory(&here, root)?;
    }
    if let Some(mode) = &overrides.mode {
        Mode::parse(mode).ok_or_else(|| {
            let known: Vec<&str> = MODES.iter().map(|row| row.id).collect();
            Error::invalid_params(format!("there is no mode {mode}")).hint(format!("there are {}", known.join(", ")))
        })?;
    }
    let mut places = Places::new(&environment, setup.data.as_deref())?;
    places.file = setup.config.as_ref().map(|file| here.join(file)).unwrap_or(places.file);
    let loaded = load_user(&places, setup.config.is_some(), &environment, &overrides)?;
    loaded.check_tools(&Tools::native().known(), &places, &cwd)?;
    // From here on they are known here alone: what we start inherits none of them, and nobody reads them in /proc.
    let project = load_project(&loaded, &places, &cwd, &environment, &overrides).unwrap_or_else(|_| loaded.clone());
    let secrets = Models::secret_names(&project.settings);
    environment.hide(&secrets);
    Ok(Ground { environment, places, loaded, overrides, cwd, secrets })
}

fn absolute_directory(here: &Path, dir: &Path) -> Result<PathBuf> {
    let dir = here.join(dir);
    std::fs::canonicalize(&dir).map_err(|error| Error::invalid_params(format!("{}: {error}", dir.display())))
}

/// The house, with its store still closed.
pub fn nuncio(ground: Ground) -> Result<Arc<Nuncio>> {
    house(ground, Room::default())
}

fn house(ground: Ground, room: Room) -> Result<Arc<Nuncio>> {
    let Ground { environment, places, loaded, overrides, cwd, secrets } = ground;
    let mut supervisor = Supervisor::of_this_binary().without(secrets);
    // Each open session holds a lock, which is an open file; commands get the limit that we were given.
    match crate::process::raise_open_files() {
        Ok(before) => supervisor = supervisor.open_files(before),
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
    let models = Arc::new(Models::new(environment.clone(), overrides.base_url.clone(), supervisor.clone(), cwd.clone()));
    let mode = overrides.mode.clone().unwrap_or_else(|| Mode::Ask.id().into());
    let agents = NativeAgents::new(loaded, places, environment, overrides, models, supervisor);
    Ok(Nuncio::new(agents, cwd, mode, room))
}

/// The ACP door on standard input and output, until the input ends or a signal comes. `not_json` is called if the input begins with
/// something that cannot be a message.
pub async fn acp(nuncio: Arc<Nuncio>, not_json: impl FnOnce() + Unpin) -> Result<()> {
    acp_beside(nuncio, || (), async {}, not_json).await
}

async fn acp_beside(
    nuncio: Arc<Nuncio>,
    tell: impl FnOnce(),
    others: impl Future<Output = ()>,
    not_json: impl FnOnce() + Unpin,
) -> Result<()> {
    let stop = CancellationToken::new();
    let signalled = tokio::spawn(on_signal(stop.clone()));
    tell();
    let (input, output) = crate::stdio::standard();
    let input = FirstByte { input, not_json: Some(not_json) };
    let served = crate::stdio::serve(nuncio, input, output, stop, others).await;
    signalled.abort();
    served
}

/// Input that is passed on as it is; its first byte that is no blank tells whether it can be JSON-RPC.
struct FirstByte<R, F> {
    input: R,
    /// Called once, if it cannot.
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

/// What the command line says of the bridge.
pub struct BridgeFlags {
    pub address: String,
    pub public: bool,
    pub behind_proxy: bool,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
}

/// The house with a bridge that listens and does not answer yet.
pub async fn bridge(ground: Ground, flags: BridgeFlags) -> Result<(Arc<Nuncio>, Bridge)> {
    let address = tokio::net::lookup_host(&flags.address).await.ok().and_then(|mut found| found.next()).ok_or_else(|| {
        Error::invalid_params(format!("--http: {} is no address", flags.address)).hint("give a host and a port: 127.0.0.1:8686")
    })?;
    let mut roots = vec![ground.cwd.clone()];
    roots.extend(ground.overrides.roots.iter().chain(&ground.loaded.settings.allowed_paths).cloned());
    let roots = roots.into_iter().map(|root| std::fs::canonicalize(&root).unwrap_or(root)).collect();
    let http = &ground.loaded.settings.http;
    let room = Room { sessions: http.max_sessions, turns: http.max_turns };
    let nuncio = house(ground, room)?;
    let options = http::Options {
        address,
        public: flags.public,
        behind_proxy: flags.behind_proxy,
        hosts: flags.hosts,
        origins: flags.origins,
        roots,
    };
    let bridge = Bridge::open(nuncio.clone(), options).await?;
    Ok((nuncio, bridge))
}

/// Both doors on the same sessions, until the input ends or a signal comes. `tell` says where the bridge listens.
pub async fn acp_and_bridge(nuncio: Arc<Nuncio>, bridge: Bridge, tell: impl FnOnce()) -> Result<()> {
    let stop = CancellationToken::new();
    let serving = tokio::spawn(bridge.serve(stop.clone()));
    // The bridge's turns get their time, whatever becomes of the editor.
    let bridge_ends = async {
        stop.cancel();
        let _ = serving.await;
    };
    acp_beside(nuncio, tell, bridge_ends, || ()).await
}

/// The bridge, until a signal comes. `tell` says where it listens: whoever knows may send a signal.
pub async fn serve(bridge: Bridge, tell: impl FnOnce() -> Result<()>) -> Result<()> {
    let stop = CancellationToken::new();
    let signalled = tokio::spawn(on_signal(stop.clone()));
    tell()?;
    bridge.serve(stop).await;
    signalled.abort();
    Ok(())
}

/// Cancels `stop` at SIGINT, SIGTERM or SIGHUP, which end nothing by themselves from this call on.
pub fn on_signal(stop: CancellationToken) -> impl Future<Output = ()> + Send + use<> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = || -> std::io::Result<_> {
        Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?))
    };
    let listening = listen();
    async move {
        match listening {
            Ok((mut interrupt, mut terminate, mut hangup)) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                stop.cancel();
            }
            Err(error) => tracing::warn!(%error, "cannot listen for signals"),
        }
    }
}
