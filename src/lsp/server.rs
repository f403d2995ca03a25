//! One running language server: started, watched over, restarted when it crashes, and ended politely when nobody needs it.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::Client;
use crate::limits;
use crate::process::{Child, Command, Ending, Sandbox, Supervisor};

/// A server that is used; the last one who drops it ends it.
pub struct Server {
    state: watch::Receiver<State>,
    _stop: DropGuard,
}

#[derive(Clone)]
enum State {
    Starting,
    Ready(Arc<Client>),
    GivenUp(GivenUp),
}

/// Why a server is not started again.
#[derive(Clone, Debug)]
pub struct GivenUp {
    pub why: String,
    /// It had worked before.
    pub worked: bool,
}

impl Server {
    /// The server, and the work of keeping it, which ends when it is dropped or given up.
    pub fn new(
        launch: Launch,
        supervisor: Supervisor,
        stop: CancellationToken,
    ) -> (Server, impl Future<Output = ()> + Send + use<>) {
        let (sender, state) = watch::channel(State::Starting);
        let server = Server { state, _stop: stop.clone().drop_guard() };
        (server, launch.keep(supervisor, sender, stop))
    }

    /// The conversation with it, once it has begun. None: it has not in time.
    pub async fn client(&self, until: Instant) -> Result<Option<Arc<Client>>, GivenUp> {
        let mut state = self.state.clone();
        let begun = timeout_at(until, state.wait_for(|state| !matches!(state, State::Starting))).await;
        match begun {
            Err(_) => Ok(None),
            Ok(Ok(state)) => match &*state {
                State::Ready(client) => Ok(Some(client.clone())),
                State::GivenUp(given_up) => Err(given_up.clone()),
                State::Starting => Ok(None),
            },
            Ok(Err(_)) => Err(GivenUp { why: "it was ended".into(), worked: true }),
        }
    }

    /// The conversation with it, if it goes on now.
    pub fn client_now(&self) -> Option<Arc<Client>> {
        match &*self.state.borrow() {
            State::Ready(client) => Some(client.clone()),
            State::Starting | State::GivenUp(_) => None,
        }
    }
}

/// What is started, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// The program and its arguments, at least the program.
    pub command: Vec<String>,
    pub root: PathBuf,
    /// What it is confined to: that of the session which needs it, so that only sessions with the same one share it.
    pub sandbox: Option<Sandbox>,
}

/// The exit status of a supervisor that found no such program (as env(1) has it).
const NOT_FOUND: i32 = 127;

enum End {
    Stopped,
    NotFound,
    Crashed(String),
}

impl Launch {
    async fn keep(self, supervisor: Supervisor, state: watch::Sender<State>, stop: CancellationToken) {
        let name = &self.command[0];
        let mut worked = false;
        let mut why = String::new();
        for _ in 0..=limits::LSP_RESTARTS_MAX {
            match self.run(&supervisor, &state, &stop, &mut worked).await {
                End::Stopped => return,
                End::NotFound => {
                    why = format!("there is no {name}");
                    break;
                }
                End::Crashed(crash) => {
                    tracing::debug!(server = name, %crash, "a language server crashed");
                    why = format!("{name} was started {} times; the last time {crash}", limits::LSP_RESTARTS_MAX + 1);
                }
            }
        }
        state.send_replace(State::GivenUp(GivenUp { why, worked }));
    }

    /// One life of the server.
    async fn run(&self, supervisor: &Supervisor, state: &watch::Sender<State>, stop: &CancellationToken, worked: &mut bool) -> End {
        let command = Command::program(&self.command, &self.root).sandbox(self.sandbox.clone());
        let (Child { output, mut ending }, input) = match supervisor.spawn_piped(&command) {
            Ok(spawned) => spawned,
            Err(error) => return End::Crashed(error.to_string()),
        };
        let (client, mut queue) = Client::new(&self.root);
        let mut talk = Box::pin(client.talk(output, input, &mut queue));
        let begin = async {
            let begun = client.initialize(Instant::now() + limits::LSP_START).await;
            if begun.is_ok() {
                state.send_replace(State::Ready(client.clone()));
            }
            begun
        };
        let crashed = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            ended = &mut talk => Some(ended),
            begun = begin => match begun {
                Err(why) => Some(Err(format!("it could not begin: {why}"))),
                Ok(()) => {
                    *worked = true;
                    tokio::select! {
                        () = stop.cancelled() => None,
                        ended = &mut talk => Some(ended),
                    }
                }
            },
        };
        let Some(crashed) = crashed else {
            let goodbye = async {
                let said = client.say_goodbye(Instant::now() + limits::LSP_GOODBYE).await;
                if said.is_ok() {
                    // What it still says while it ends is read, so that it does not wait for us.
                    let _ = ending.wait().await;
                }
            };
            let goodbye = timeout(limits::LSP_GOODBYE, goodbye);
            tokio::select! {
                _ = goodbye => {}
                _ = &mut talk => {}
            }
            end(ending).await;
            return End::Stopped;
        };
        drop(talk);
        // Who waits for an answer is told that there will be none once nobody else can ask this one.
        state.send_replace(State::Starting);
        drop(queue);
        let status = end(ending).await;
        match (crashed, status) {
            (_, Some(NOT_FOUND)) => End::NotFound,
            (Ok(()), Some(code)) => End::Crashed(format!("it ended with exit code {code}")),
            (Ok(()), None) => End::Crashed("it stopped talking".into()),
            (Err(why), _) => End::Crashed(why),
        }
    }
}

/// Ends what is left of it, within a bound; gives its exit status.
async fn end(mut ending: Ending) -> Option<i32> {
    ending.cut();
    let ended = timeout(limits::END_WAIT, ending.wait()).await;
    ended.ok()?.ok().map(|status| status.code)
}
