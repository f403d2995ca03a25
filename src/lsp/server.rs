//! One language server process: starts it, restarts it after crashes, and shuts it down when it is
//! no longer used.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::{LSP, LanguageClient};
use crate::config::ProjectProgram;
use crate::limits;
use crate::process::{Child, ChildExit, Command, ProcessLauncher, Sandbox};

/// Maximum number of restarts of a language server that crashes. After that, the server is not
/// restarted.
const LSP_RESTARTS_MAX: u32 = 3;
/// Timeout for the initialization of a language server.
const LSP_START: Duration = Duration::from_secs(60);
/// Timeout for the shutdown of a language server.
const LSP_SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// Handle to a language server. Dropping it stops the server.
pub(crate) struct Server {
    state: watch::Receiver<State>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

#[derive(Clone)]
enum State {
    Starting,
    Ready(Arc<LanguageClient>),
    Failed(ServerFailure),
}

/// The reason why a server is not restarted.
#[derive(Clone, Debug)]
pub(crate) struct ServerFailure {
    /// The cause, for people.
    pub why: String,
    /// True if the server was initialized successfully at least once.
    pub worked: bool,
}

impl Server {
    /// Returns the handle, and a future that supervises the process. The future ends when the
    /// handle is dropped or the server fails.
    pub(crate) fn new(
        launch: Launch,
        launcher: ProcessLauncher,
        stop: CancellationToken,
    ) -> (Server, impl Future<Output = ()> + Send + use<>) {
        let (sender, state) = watch::channel(State::Starting);
        let server = Server { state, stop: stop.clone(), _stop_on_drop: stop.clone().drop_guard() };
        (server, launch.supervise(launcher, sender, stop))
    }

    /// Stops the server, also for other sessions that use it.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the server is initialized and returns its client, or `None` on timeout.
    pub(crate) async fn client(&self, until: Instant) -> Result<Option<Arc<LanguageClient>>, ServerFailure> {
        let mut state = self.state.clone();
        let ready = timeout_at(until, state.wait_for(|state| !matches!(state, State::Starting))).await;
        match ready {
            Err(_) => Ok(None),
            Ok(Ok(state)) => match &*state {
                State::Ready(client) => Ok(Some(client.clone())),
                State::Failed(failure) => Err(failure.clone()),
                State::Starting => Ok(None),
            },
            Ok(Err(_)) => Err(ServerFailure { why: "it was stopped".into(), worked: true }),
        }
    }

    /// Returns the client if the server is ready now.
    pub(crate) fn client_now(&self) -> Option<Arc<LanguageClient>> {
        match &*self.state.borrow() {
            State::Ready(client) => Some(client.clone()),
            State::Starting | State::Failed(_) => None,
        }
    }
}

/// The command, root and confinement of a server, which together identify the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Launch {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// The directory in which the server runs.
    pub root: PathBuf,
    /// Only sessions with an equal confinement share the server.
    pub confinement: Option<Confinement>,
    /// Set if a project's settings name the server: it starts only while the project is trusted.
    pub project: Option<ProjectProgram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Confinement {
    pub sandbox: Sandbox,
    /// Environment variables.
    pub variables: Vec<(&'static str, OsString)>,
    /// A sentence for messages about failures.
    pub hint: String,
}

/// Exit status of the supervisor if the program does not exist, as in env(1).
const NOT_FOUND: i32 = 127;

enum End {
    Stopped,
    NotFound,
    Crashed(String),
}

impl Launch {
    /// Returns whether both start the same program in the same directory, confined or not.
    pub(super) fn is_same_program(&self, other: &Launch) -> bool {
        (&self.command, &self.root) == (&other.command, &other.root)
    }

    fn confined_command(&self) -> Command {
        let command = Command { project: self.project.clone(), ..Command::program(&self.command, &self.root) };
        let Some(Confinement { sandbox, variables, .. }) = &self.confinement else { return command };
        let variables = variables.iter().cloned();
        variables.fold(command, |command, (name, value)| command.env(name, value)).sandbox(Some(sandbox.clone()))
    }

    async fn supervise(self, launcher: ProcessLauncher, state: watch::Sender<State>, stop: CancellationToken) {
        let name = &self.command[0];
        let mut worked = false;
        let mut why = String::new();
        for _ in 0..=LSP_RESTARTS_MAX {
            match self.run(&launcher, &state, &stop, &mut worked).await {
                End::Stopped => return,
                End::NotFound => {
                    why = format!("{name} was not found");
                    break;
                }
                End::Crashed(crash) => {
                    tracing::debug!(server = name, %crash, "a language server crashed");
                    why = format!("{name} failed {} times; last error: {crash}", LSP_RESTARTS_MAX + 1);
                }
            }
        }
        state.send_replace(State::Failed(ServerFailure { why, worked }));
    }

    /// Runs the server process once, until it exits or must stop.
    async fn run(
        &self,
        launcher: &ProcessLauncher,
        state: &watch::Sender<State>,
        stop: &CancellationToken,
        worked: &mut bool,
    ) -> End {
        let (Child { output, mut ending }, input) = match launcher.spawn_piped(&self.confined_command()) {
            Ok(spawned) => spawned,
            Err(error) => return End::Crashed(error.to_string()),
        };
        let (connection, reader, mut writer) = crate::rpc::connection(LSP);
        let client = Arc::new(LanguageClient::new(&self.root, connection));
        let mut transfer = Box::pin(client.run(output, input, &reader, &mut writer));
        let initialize = async {
            let initialized = client.initialize(Instant::now() + LSP_START).await;
            if initialized.is_ok() {
                state.send_replace(State::Ready(client.clone()));
            }
            initialized
        };
        let crashed = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            ended = &mut transfer => Some(ended),
            initialized = initialize => match initialized {
                Err(why) => Some(Err(format!("initialization failed: {why}"))),
                Ok(()) => {
                    *worked = true;
                    tokio::select! {
                        () = stop.cancelled() => None,
                        ended = &mut transfer => Some(ended),
                    }
                }
            },
        };
        let Some(crashed) = crashed else {
            let shutdown = async {
                let sent = client.shutdown(Instant::now() + LSP_SHUTDOWN_GRACE).await;
                if sent.is_ok() {
                    // The transfer continues to read output concurrently, so that the server does
                    // not block on writing.
                    let _ = ending.wait().await;
                }
            };
            let shutdown = timeout(LSP_SHUTDOWN_GRACE, shutdown);
            tokio::select! {
                _ = shutdown => {}
                _ = &mut transfer => {}
            }
            terminate(ending).await;
            return End::Stopped;
        };
        drop(transfer);
        // Leave the state `Ready` before closing the connection: waiting requests must fail only
        // when new callers can no longer get this client.
        state.send_replace(State::Starting);
        drop(writer);
        let status = terminate(ending).await;
        let why = match (crashed, status) {
            (_, Some(NOT_FOUND)) => return End::NotFound,
            (Ok(()), Some(code)) => format!("exit code {code}"),
            (Ok(()), None) => "it closed its output".into(),
            (Err(why), _) => why,
        };
        End::Crashed(self.confinement.iter().fold(why, |why, confinement| format!("{why} ({})", confinement.hint)))
    }
}

/// Kills the remaining processes and returns the exit status, or `None` after a timeout.
async fn terminate(mut ending: ChildExit) -> Option<i32> {
    ending.cut();
    let ended = timeout(limits::END_WAIT, ending.wait()).await;
    ended.ok()?.ok().map(|status| status.code)
}
