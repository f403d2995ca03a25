//! The server of OpenCode (`opencode serve`): its process, the requests to it, and the servers that
//! sessions share.

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::config::AGENT_PORT_VARIABLE;
use crate::error::{Error, Result};
use crate::hex::hex;
use crate::hub::process::{AgentProcess, LineHandler, ProgramStart, lost, unavailable};
use crate::hub::refusal::AgentRefusal;
use crate::json;
use crate::limits;
use crate::process::CommandKind;
use crate::web::{Destination, causes};

/// Maximum time of one request that finds out whether the server of a hosted agent answers.
const AGENT_PROBE: Duration = Duration::from_millis(500);
/// Number of ports that are tried for the server of a hosted agent.
const AGENT_PORTS_MAX: usize = 5;
/// Maximum size of a response of an agent's server, in bytes.
const AGENT_RESPONSE_BYTES_MAX: usize = 32 << 20;

/// User name for the server's basic authentication.
const USER: &str = "opencode";

/// Environment variable with the server's password.
const PASSWORD: &str = "OPENCODE_SERVER_PASSWORD";

const PORTS: Range<u16> = 20_000..32_000;

/// The beginning of the line that the server prints when it listens.
const READY: &str = "opencode server listening on ";

/// A running server that works in one directory. Dropping the value ends its process.
pub(super) struct OpencodeServer {
    name: String,
    process: AgentProcess,
    client: reqwest::Client,
    port: u16,
    directory: String,
    password: String,
}

/// Detects the line that the server prints when it listens.
struct ReadyLine(watch::Sender<bool>);

impl LineHandler for ReadyLine {
    fn message(&self, _message: Value, _bytes: usize) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn text(&self, line: &str) {
        if line.starts_with(READY) {
            self.0.send_replace(true);
        }
    }

    fn exits_after_input(&self) -> bool {
        false
    }
}

impl OpencodeServer {
    /// Starts a server on `port` if it is free, else on another port.
    async fn start(start: &ProgramStart, mut port: Option<u16>) -> Result<OpencodeServer> {
        let mut attempt = 1;
        loop {
            let (server, ready) = OpencodeServer::spawn(start, port.take())?;
            let Err(error) = server.get_ready(ready).await else { return Ok(server) };
            let port_is_used = server.process.has_ended() && server.process.stderr().contains("ServeError");
            server.process.end().await;
            if !port_is_used || attempt == AGENT_PORTS_MAX {
                return Err(error);
            }
            attempt += 1;
        }
    }

    fn spawn(start: &ProgramStart, port: Option<u16>) -> Result<(OpencodeServer, watch::Receiver<bool>)> {
        let port = port.map_or_else(free_port, Ok)?;
        let password = hex(&random::<32>()?);
        let mut command = start.command.clone().env(PASSWORD, &password).env(AGENT_PORT_VARIABLE, port.to_string());
        if let CommandKind::Program(arguments) = &mut command.kind {
            arguments.extend(["serve", "--port", &port.to_string(), "--hostname", "127.0.0.1"].map(Into::into));
        }
        let client = start.web.client(Destination::HostedAgent).map_err(|error| unavailable(&start.name, causes(&error)))?;
        let directory = command.cwd.to_string_lossy().into_owned();
        let (ready, listening) = watch::channel(false);
        let process = AgentProcess::start(&ProgramStart { command, ..start.clone() }, Arc::new(ReadyLine(ready)))?;
        Ok((OpencodeServer { name: start.name.clone(), process, client, port, directory, password }, listening))
    }

    /// Waits until the server answers, and checks that it is this server.
    async fn get_ready(&self, mut listening: watch::Receiver<bool>) -> Result<()> {
        let answers = async {
            // The receiver fails if the process has ended.
            if listening.wait_for(|ready| *ready).await.is_err() {
                return Err(self.process.ended_error(self.process.ended().await));
            }
            // A server that just began to listen may never answer its first requests.
            while !matches!(timeout(AGENT_PROBE, self.health(true)).await, Ok(Ok(StatusCode::OK))) {
                sleep(limits::AGENT_RECONNECT).await;
            }
            match timeout(limits::AGENT_REQUEST, self.health(false)).await {
                Ok(Ok(StatusCode::UNAUTHORIZED)) => Ok(()),
                _ => Err(unavailable(&self.name, "its server does not ask for the password")),
            }
        };
        let bounded = timeout(limits::AGENT_START, answers);
        tokio::select! {
            biased;
            ready = bounded => match ready {
                Ok(ready) => ready,
                Err(_) => Err(unavailable(&self.name, format_args!("its server is not ready after {} s", limits::AGENT_START.as_secs()))),
            },
            error = self.process.start_failure() => Err(error),
        }
    }

    /// Sends a request for the server's health, with or without the password. Returns the status of
    /// the response.
    async fn health(&self, with_password: bool) -> reqwest::Result<StatusCode> {
        let mut request = self.client.get(self.url("/global/health", &[]));
        if with_password {
            request = request.basic_auth(USER, Some(&self.password));
        }
        request.send().await.map(|response| response.status())
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = Url::parse("http://127.0.0.1").expect("a constant");
        // Cannot fail for an HTTP address.
        let _ = url.set_port(Some(self.port));
        url.set_path(path);
        url.query_pairs_mut().append_pair("directory", &self.directory).extend_pairs(query);
        url
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        self.client.request(method, self.url(path, query)).basic_auth(USER, Some(&self.password))
    }

    /// Sends `GET path` and returns the JSON of the response.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.call(path, self.request(Method::GET, path, query), limits::AGENT_REQUEST).await
    }

    /// Sends `POST path` with a JSON body and returns the JSON of the response.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.post_within(path, body, limits::AGENT_REQUEST).await
    }

    /// Sends a request like [`OpencodeServer::post`], with `bound` as the maximum time.
    pub(super) async fn post_within(&self, path: &str, body: &Value, bound: Duration) -> Result<Value> {
        let request = self.request(Method::POST, path, &[]).header("content-type", "application/json");
        self.call(path, request.body(body.to_string()), bound).await
    }

    /// Sends a request. The source of an error is an [`AgentRefusal`] if there was a response.
    async fn call(&self, path: &str, request: RequestBuilder, bound: Duration) -> Result<Value> {
        let failed = |error: &reqwest::Error| unavailable(&self.name, format_args!("{path}: {}", causes(error)));
        let answer = async {
            let mut response = request.send().await.map_err(|error| failed(&error))?;
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
                body.extend_from_slice(&piece);
                if body.len() > AGENT_RESPONSE_BYTES_MAX {
                    return Err(unavailable(&self.name, format_args!("{path}: the response is too large")));
                }
            }
            Ok((response.status(), body))
        };
        let late = |_| unavailable(&self.name, format_args!("no response to {path} within {} s", bound.as_secs()));
        let (status, body) = tokio::select! {
            biased;
            answer = timeout(bound, answer) => answer.map_err(late)??,
            why = self.process.ended() => return Err(self.process.ended_error(why)),
        };
        let value = json::from_slice::<Value>(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(value);
        }
        let message = value["data"]["message"].as_str().or(value["message"].as_str()).unwrap_or("no message");
        let error = unavailable(&self.name, format_args!("{path}: status {}: {message}", status.as_u16()));
        Err(error.details(json!({ "status": status.as_u16() })).source(AgentRefusal::Status(status.as_u16())))
    }

    /// Opens the stream of the events of the directory.
    pub(super) async fn events(&self) -> Result<Response> {
        let request = self.request(Method::GET, "/event", &[]).send();
        let failed = |why: &dyn std::fmt::Display| unavailable(&self.name, format_args!("/event: {why}"));
        let response = timeout(limits::AGENT_REQUEST, request).await.map_err(|_| failed(&"timed out"))?;
        let response = response.map_err(|error| failed(&causes(&error)))?;
        if response.status() == StatusCode::OK { Ok(response) } else { Err(failed(&response.status())) }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn password(&self) -> &str {
        &self.password
    }

    pub(super) fn process(&self) -> &AgentProcess {
        &self.process
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Finds a port of 127.0.0.1 that no program uses now. It is below the ports that the system
/// chooses for connections: such a connection could take the port before the server listens on it.
fn free_port() -> Result<u16> {
    let mut last = None;
    for _ in 0..AGENT_PORTS_MAX {
        let [high, low] = random::<2>()?;
        let port = PORTS.start + u16::from_be_bytes([high, low]) % (PORTS.end - PORTS.start);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(Error::internal(format!("no free port: {}", last.map(|error| error.to_string()).unwrap_or_default())))
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::internal("the system's random number generator failed"))?;
    Ok(bytes)
}

/// The servers of this process, by directory or session.
#[derive(Default)]
pub(in crate::hub) struct OpencodeServers(Mutex<HashMap<String, Arc<Slot>>>);

type Slot = tokio::sync::Mutex<SlotState>;

/// A slot for a shared server.
#[derive(Default)]
struct SlotState {
    server: Weak<OpencodeServer>,
    /// The port of the last server, which the next one uses if it is free.
    port: Option<u16>,
}

pub(super) struct ServerLease {
    pub server: Arc<OpencodeServer>,
    slot: Arc<Slot>,
}

impl OpencodeServers {
    /// Returns the running server with this key, or starts one. Without a key, the server is not
    /// shared.
    pub(super) async fn lease(&self, key: Option<&str>, start: ProgramStart) -> Result<ServerLease> {
        let slot = key.map(|key| self.slots().entry(key.into()).or_default().clone()).unwrap_or_default();
        let mut place = slot.lock().await;
        if let Some(server) = place.server.upgrade().filter(|server| !server.process.has_ended()) {
            drop(place);
            return Ok(ServerLease { server, slot });
        }
        let server = Arc::new(OpencodeServer::start(&start, place.port).await?);
        (place.server, place.port) = (Arc::downgrade(&server), Some(server.port));
        drop(place);
        Ok(ServerLease { server, slot })
    }

    /// Registers a server that was started without a key under this key.
    pub(super) fn remember(&self, key: String, lease: &ServerLease) {
        self.slots().entry(key).or_insert_with(|| lease.slot.clone());
    }

    /// Returns the slots by key. If there are more than [`limits::AGENT_ITEMS_MAX`], removes the
    /// unused ones.
    fn slots(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        let mut slots = self.0.lock();
        if slots.len() > limits::AGENT_ITEMS_MAX {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        slots
    }
}

impl ServerLease {
    /// Ends the server if no other session uses it.
    pub(super) async fn release(&self) {
        // Hold the lock, so that no other session takes the server.
        let _place = self.slot.lock().await;
        if Arc::strong_count(&self.server) == 1 {
            self.server.process.end().await;
        }
    }
}

/// Converts the error of a request about the session itself: another client may have deleted it.
pub(super) fn about_session(name: &str, error: Error) -> Error {
    match AgentRefusal::of(&error) {
        Some(AgentRefusal::Status(404)) => lost(name, error.message),
        _ => error,
    }
}
