//! The socket of this process and its connections to other processes.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::address::{PROTOCOL_VERSION, PeerAddress, common_version};
use super::connection::PeerConnection;
use super::files::{self, SocketFile};
use crate::cluster::Cluster;
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::store::NodeRow;
use crate::task::TaskTracker;

/// Starts to serve the calls of other processes.
pub type ServePeers = Box<dyn Fn(PeerListener) + Send + Sync>;

/// The listening socket of this process.
pub struct PeerListener {
    pub listener: UnixListener,
    /// Cancelled when the process no longer serves other processes.
    pub stop: CancellationToken,
    /// The tasks that serve connections.
    pub tasks: TaskTracker,
}

/// The processes that share a data directory: the socket of this process and the connections to the
/// others.
pub(crate) struct Peers {
    /// The directory of the sockets.
    dir: PathBuf,
    /// The result of [`Peers::home`], once it was computed.
    home: OnceLock<String>,
    serve: Option<ServePeers>,
    /// The socket; `None` if this process does not accept calls.
    socket: OnceLock<Option<SocketFile>>,
    connections: Mutex<HashMap<String, Arc<PeerConnection>>>,
    /// The connections to nodes, by incarnation.
    nodes: Mutex<HashMap<i64, Arc<PeerConnection>>>,
    /// The place of this process in its cluster.
    cluster: Option<Arc<Cluster>>,
    stop: CancellationToken,
    /// The tasks that serve the connections of other processes.
    tasks: TaskTracker,
}

impl Peers {
    /// Creates the state for the processes that use the data directory `data`. `serve` is called
    /// when this process takes its first session; without it, the process accepts no calls.
    pub(crate) fn new(data: &Path, serve: Option<ServePeers>, cluster: Option<Arc<Cluster>>) -> Peers {
        Peers {
            dir: data.join("run"),
            home: OnceLock::new(),
            serve,
            socket: OnceLock::new(),
            connections: Mutex::default(),
            nodes: Mutex::default(),
            cluster,
            stop: CancellationToken::new(),
            tasks: TaskTracker::default(),
        }
    }

    /// Returns the address of this process. The first call creates the socket and starts to serve
    /// it, and must be made in a Tokio runtime. If that fails, the address has no socket.
    pub(crate) fn address(&self) -> PeerAddress {
        let socket = self.socket.get_or_init(|| {
            let serve = self.serve.as_ref()?;
            let listening = files::listen(&self.dir).and_then(|(listener, file)| {
                let listener = UnixListener::from_std(listener).map_err(|error| Error::io("using a local socket", error))?;
                serve(PeerListener { listener, stop: self.stop.clone(), tasks: self.tasks.clone() });
                Ok(file)
            });
            let warned = |error: &Error| tracing::warn!(%error, "other processes cannot reach the sessions of this process");
            listening.inspect_err(warned).ok()
        });
        let socket = socket.as_ref().map(|file| file.name.clone());
        PeerAddress { pid: std::process::id(), socket, version: self.version(), remote: None }
    }

    /// Returns a connection to another process. Returns `session_busy` with the reason if the
    /// process cannot serve calls, and `not_found` if it no longer listens.
    pub(crate) fn connect(&self, address: &PeerAddress) -> Result<Arc<PeerConnection>> {
        let unreachable = |why: &str| Error::new(Kind::SessionBusy, format!("process {} {why}", address.pid));
        let version = common_version(address.version, self.version()).ok_or_else(|| {
            let versions =
                format!("uses version {} of the local protocol, this process version {}", address.version, self.version());
            unreachable(&versions).hint("use the same version of nuncio, or close the session there")
        });
        if let Some(node) = &address.remote {
            return self.connect_to_node(address, node, version?);
        }
        let Some(socket) = &address.socket else { return Err(unreachable("does not accept calls of other processes")) };
        let version = version?;
        let mut connections = self.connections.lock();
        connections.retain(|_, connection| !connection.is_closed());
        if let Some(connection) = connections.get(socket) {
            return Ok(connection.clone());
        }
        let stream = self.open(socket)?;
        let connection = PeerConnection::start(address.clone(), std::future::ready(Ok(stream)), version);
        connections.insert(socket.clone(), connection.clone());
        Ok(connection)
    }

    /// Connects to the socket of another process with the same data directory. Returns
    /// `session_busy` if the socket must not be used, and `not_found` if the process no longer
    /// listens.
    pub(crate) fn open(&self, socket: &str) -> Result<UnixStream> {
        let stream = files::connect_to(&self.dir, socket).inspect_err(|error| match error.kind {
            Kind::Forbidden => tracing::warn!(%error, "a local socket was refused"),
            _ => tracing::debug!(%error, "another process does not listen"),
        });
        let stream = stream.map_err(|error| match error.kind {
            Kind::Forbidden => Error { kind: Kind::SessionBusy, ..error },
            _ => Error { kind: Kind::NotFound, ..error },
        })?;
        UnixStream::from_std(stream).map_err(|error| Error::io("using a local socket", error))
    }

    /// Returns a connection to a node, which may not be open yet. Returns `session_busy` if there
    /// can be none.
    #[cfg(feature = "postgres")]
    fn connect_to_node(&self, process: &PeerAddress, node: &NodeRow, version: u32) -> Result<Arc<PeerConnection>> {
        let unreachable = |why: &str, hint: &str| Error::new(Kind::SessionBusy, format!("node {} {why}", node.name)).hint(hint);
        let Some(cluster) = self.cluster.clone() else {
            return Err(unreachable("is on another machine", "set cluster.secret_file on both machines"));
        };
        let (address, socket) = match (&node.address, &node.gateway, &process.socket) {
            (Some(own), ..) => (own.clone(), None),
            (None, Some(gateway), Some(socket)) => (gateway.clone(), Some(socket.clone())),
            (None, ..) => {
                let hint = "run nuncio serve with cluster.address and the same data directory there";
                return Err(unreachable("is on another machine and has no address", hint));
            }
        };
        let mut nodes = self.nodes.lock();
        nodes.retain(|_, connection| !connection.is_closed());
        let connection = nodes.entry(node.incarnation).or_insert_with(|| {
            let open = async move { crate::cluster::connect(&cluster, &address, socket).await };
            PeerConnection::start(process.clone(), open, version)
        });
        Ok(connection.clone())
    }

    /// Returns `session_busy`: a build without PostgreSQL has no other nodes.
    #[cfg(not(feature = "postgres"))]
    fn connect_to_node(&self, _: &PeerAddress, node: &NodeRow, _: u32) -> Result<Arc<PeerConnection>> {
        Err(Error::new(Kind::SessionBusy, format!("node {} is on another machine", node.name)))
    }

    /// Closes the connections to other nodes than these: their leases have ended, and calls in them
    /// have no result any more, even if they run.
    pub(crate) fn close_ended(&self, live: &[NodeRow]) {
        self.nodes.lock().retain(|incarnation, connection| {
            let lives = live.iter().any(|node| node.incarnation == *incarnation);
            if !lives {
                connection.close();
            }
            lives
        });
    }

    /// Returns the place of this process in its cluster.
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.as_ref()
    }

    /// Returns the version of the messages with which this process talks.
    pub(crate) fn version(&self) -> u32 {
        self.cluster.as_ref().and_then(|cluster| cluster.version()).unwrap_or(PROTOCOL_VERSION)
    }

    /// Returns the token that is cancelled when this process no longer serves other processes, and
    /// the tasks that serve connections.
    pub(crate) fn serving(&self) -> (CancellationToken, TaskTracker) {
        (self.stop.clone(), self.tasks.clone())
    }

    /// Returns a name of the directory of the sockets that no other directory of any machine has,
    /// until this machine is restarted. `None` if there is no such name.
    pub(crate) fn home(&self) -> Option<String> {
        if let Some(home) = self.home.get() {
            return Some(home.clone());
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let dir = std::fs::metadata(&self.dir).ok()?;
        Some(self.home.get_or_init(|| format!("{} {} {}", boot.trim(), dir.dev(), dir.ino())).clone())
    }

    /// Returns whether other processes may use the data directory.
    pub(crate) fn has_others(&self) -> bool {
        let own = self.address().socket;
        let sockets = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        sockets.map(|entry| entry.file_name()).any(|name| own.as_deref().is_none_or(|own| name != own))
    }

    /// Returns whether a process still runs. A process with another data directory counts as alive.
    pub(crate) fn is_alive(&self, address: &PeerAddress) -> bool {
        self.is_own(address) || address.remote.is_some() || files::is_alive(&self.dir, address.socket.as_deref(), address.pid)
    }

    /// Returns whether the address is the one of this process.
    pub(crate) fn is_own(&self, address: &PeerAddress) -> bool {
        let socket = self.socket.get().and_then(Option::as_ref).map(|file| &file.name);
        address.remote.is_none() && address.pid == std::process::id() && address.socket.as_ref() == socket
    }

    /// Stops to serve other processes, waits up to [`limits::PEER_DRAIN`] until their calls are
    /// answered, and closes the connections to them.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(limits::PEER_DRAIN, self.tasks.wait()).await.is_err() {
            tracing::warn!("calls of other processes were not answered in time");
        }
        self.connections.lock().clear();
        self.nodes.lock().clear();
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
