//! One client, whatever the process it talks to: `nuncio acp` over stdio, `nuncio serve` over REST
//! or /rpc, `nuncio run` over its JSON lines.

use serde_json::{Map, Value, json};

use super::{editor, prompt};
use harness::{Agent, Bridge, Events, Home, RunningCommand, Server, Socket, bounded};

/// How a client reaches a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Stdio,
    Rest,
    Rpc,
    Run,
}

/// A process, and a client of it.
pub enum Peer {
    Stdio(Box<Agent>),
    Rest(Server, Vec<Events>),
    /// The first socket makes the calls, the others follow sessions.
    Rpc(Server, Vec<Socket>),
    Run(RunningCommand),
}

impl Peer {
    /// Starts a process. A `run` starts with its session.
    pub async fn start(kind: Kind, home: &Home, model: &str, flags: &[&str]) -> Peer {
        let flags = [&["--model", model], flags].concat();
        match kind {
            Kind::Stdio => Peer::Stdio(Box::new(editor(home, model, &flags[2..]).await)),
            Kind::Rest => Peer::Rest(home.serve(&flags).await, Vec::new()),
            Kind::Rpc => {
                let server = home.serve(&flags).await;
                let sockets = vec![server.socket().await];
                Peer::Rpc(server, sockets)
            }
            Kind::Run => Peer::Run(RunningCommand::start(home, &[&["run", "--json", "-"], flags.as_slice()].concat())),
        }
    }

    /// Creates a session, and runs the turn of the prompt "base" to its end.
    pub async fn new_session(&mut self, home: &Home) -> String {
        if let Peer::Run(run) = self {
            run.say(json!({"type": "message", "content": "base"})).await;
            return run.until("turn.completed").await["sessionId"].as_str().unwrap().into();
        }
        let made = self.call("session/new", json!({"cwd": home.work(), "mcpServers": []})).await;
        let session = made["sessionId"].as_str().unwrap();
        let answer = self.call("session/prompt", prompt(session, "base")).await;
        assert_eq!(answer["stopReason"], "end_turn");
        session.into()
    }

    /// Follows a session, so that its permission requests can be answered.
    pub async fn attend(&mut self, home: &Home, session: &str) {
        match self {
            Peer::Stdio(agent) => drop(agent.load(home, session).await),
            Peer::Rest(server, streams) => streams.push(server.follow(session).events().await),
            Peer::Rpc(server, sockets) => {
                let mut socket = server.socket().await;
                socket.call("_nuncio/events/follow", json!({"sessionId": session})).await;
                sockets.push(socket);
            }
            Peer::Run(_) => panic!("run attends no session"),
        }
    }

    /// Calls a method. None if the transport does not serve it.
    pub async fn request(&mut self, method: &str, params: Value) -> Option<Result<Value, Value>> {
        match self {
            Peer::Stdio(agent) if method == "session/cancel" => {
                agent.notify(method, params).await;
                Some(Ok(Value::Null))
            }
            Peer::Stdio(agent) => Some(agent.request(method, params).await),
            Peer::Rest(server, _) => rest(server, method, params).await,
            Peer::Rpc(_, sockets) if method == "session/cancel" => {
                sockets[0].raw(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
                Some(Ok(Value::Null))
            }
            Peer::Rpc(_, sockets) if method == "_nuncio/events/follow" => Some(follow(&mut sockets[0], params).await),
            Peer::Rpc(_, sockets) => Some(sockets[0].request(method, params).await),
            Peer::Run(_) => panic!("run serves no methods"),
        }
    }

    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let result = self.request(method, params).await.unwrap_or_else(|| panic!("{method} is not served"));
        result.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    pub async fn view(&mut self, session: &str) -> Value {
        self.call("_nuncio/session/get", json!({"sessionId": session})).await
    }

    /// Waits until the view of a session fits, and returns the view.
    pub async fn until(&mut self, session: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let wait = async {
            loop {
                last = self.view(session).await;
                if fits(&last) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(harness::LIMIT, wait).await;
        assert!(waited.is_ok(), "{session} is not {what}: {last:#}");
        last
    }

    /// Waits for an open permission request of a session, and returns it.
    pub async fn asked(&mut self, session: &str) -> Value {
        let ask = async {
            loop {
                let open = self.call("_nuncio/permission/list", json!({"sessionId": session})).await;
                if let Some(first) = open["permissions"].get(0) {
                    return first.clone();
                }
            }
        };
        bounded("a permission request", ask).await
    }

    /// The HTTP API of a `serve`.
    pub fn bridge(&self) -> &Bridge {
        match self {
            Peer::Rest(server, _) | Peer::Rpc(server, _) => server,
            Peer::Stdio(_) | Peer::Run(_) => panic!("not a server"),
        }
    }

    /// Ends the process; asserts that no process is left.
    pub async fn finish(self) {
        match self {
            Peer::Stdio(agent) => drop(agent.finish().await),
            Peer::Rest(server, streams) => {
                drop(streams);
                server.stop().await;
            }
            Peer::Rpc(server, sockets) => {
                drop(sockets);
                server.stop().await;
            }
            // The code is 4 if a call was denied, and 1 if the last turn failed.
            Peer::Run(run) => assert!(run.end().await >= 0, "killed by a signal"),
        }
    }

    /// Kills the process with SIGKILL.
    pub async fn kill(self) {
        match self {
            Peer::Stdio(agent) => drop(agent.kill().await),
            Peer::Rest(server, _) => server.kill().await,
            Peer::Rpc(server, _) => server.kill().await,
            Peer::Run(run) => drop(run.kill().await),
        }
    }
}

/// Calls a method by its REST route. Params that are not in the path are the query or the body.
async fn rest(server: &Server, method: &str, params: Value) -> Option<Result<Value, Value>> {
    let (verb, route) = harness::route(method)?;
    let Value::Object(mut params) = params else { panic!("not an object: {params}") };
    let mut path = String::new();
    for part in route.split('/').skip(1) {
        let field = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        path += "/";
        path += &field.map_or(part.to_string(), |field| plain(&params.remove(field).unwrap_or_default()));
    }
    if method == "_nuncio/events/follow" {
        let mut events = server.get(&path).events().await;
        let history = events.history().await;
        return Some(Ok(history.into_iter().map(|shown| shown.event).collect()));
    }
    let ask = match verb {
        "GET" | "DELETE" => server.ask(verb, &format!("{path}{}", query(&params))),
        verb => server.ask(verb, &path).json(&Value::Object(params)),
    };
    let answer = ask.header("accept", "application/json").send().await;
    let body = if answer.body.is_empty() { Value::Null } else { answer.json() };
    if answer.status < 400 {
        return Some(Ok(body));
    }
    let mut error = body["error"].clone();
    error.as_object_mut().unwrap_or_else(|| panic!("{method}: {answer:?}")).remove("requestId");
    error["status"] = json!(answer.status);
    Some(Err(error))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or(value.to_string(), String::from)
}

fn query(params: &Map<String, Value>) -> String {
    let fields: Vec<String> = params.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    if fields.is_empty() { String::new() } else { format!("?{}", fields.join("&")) }
}

/// The history of a subscription.
async fn follow(socket: &mut Socket, params: Value) -> Result<Value, Value> {
    let subscription = socket.request("_nuncio/events/follow", params).await?;
    let mut events = Vec::new();
    loop {
        let told = socket.told("_nuncio/events/event", &subscription).await.expect("the socket stays open");
        if told.get("synced").is_some() {
            return Ok(events.into());
        }
        events.push(told["event"].clone());
    }
}
