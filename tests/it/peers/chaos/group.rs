//! Two editors and a server that share a home, with proxies before their sockets.

use serde_json::{Value, json};

use super::super::{editor, says, sockets};
use harness::{Agent, Direction, Home, Proxy, Random, Server};

/// The processes of many histories, one history after the other.
pub struct ProcessGroup {
    pub home: Home,
    model: String,
    editors: [Option<Agent>; 2],
    server: Option<Server>,
    /// Proxies, each with the id of the process behind it.
    proxies: Vec<(u32, Proxy)>,
}

/// Returns the steps of a model: short and long answers, tool calls and failures.
fn steps(random: &mut Random) -> Value {
    let streams = |chunks: usize| json!({"text": "word".repeat(chunks), "chunk_chars": 4, "delay_ms": 6});
    let lists = json!({"text": "I look.", "tool_calls": [{"name": "list"}, {"name": "list"}]});
    let fails = json!({"text": "too late", "error": {"status": 400}});
    let step = |_| match random.below(12) {
        0..=3 => vec![says("short")],
        4..=6 => vec![streams(8)],
        7 => vec![streams(40)],
        8 => vec![fails.clone()],
        // The model may not repeat its calls.
        _ => vec![lists.clone(), says("I looked.")],
    };
    (0..400).flat_map(step).collect()
}

impl ProcessGroup {
    pub async fn start(random: &mut Random) -> ProcessGroup {
        let home = Home::new();
        let model = home.script(steps(random));
        let editors = [Some(start_editor(&home, &model).await), Some(start_editor(&home, &model).await)];
        let server = Some(home.serve(&["--model", &model, "--mode", "auto"]).await);
        ProcessGroup { home, model, editors, server, proxies: Vec::new() }
    }

    pub fn editor(&mut self, number: usize) -> &mut Agent {
        self.editors[number].as_mut().expect("the editor runs")
    }

    /// Returns both editors.
    pub fn both(&mut self) -> (&mut Agent, &mut Agent) {
        let [first, second] = &mut self.editors;
        (first.as_mut().expect("the editor runs"), second.as_mut().expect("the editor runs"))
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("the server runs")
    }

    /// Returns the arguments of a `run` that works on a session.
    pub fn run_arguments<'a>(&'a self, session: &'a str) -> [&'a str; 8] {
        ["run", "--model", &self.model, "--mode", "auto", "--resume", session, "--json"]
    }

    /// Kills an editor with SIGKILL, starts another one and loads the session in it.
    pub async fn replace_editor(&mut self, number: usize, session: &str) -> Vec<Value> {
        let killed = self.editors[number].take().expect("the editor runs");
        self.proxies.retain(|(pid, _)| *pid != killed.pid);
        let frames = killed.kill().await;
        let mut agent = start_editor(&self.home, &self.model).await;
        agent.load(&self.home, session).await;
        self.editors[number] = Some(agent);
        frames
    }

    /// Kills the server with SIGKILL and starts another one.
    pub async fn replace_server(&mut self) {
        let killed = self.server.take().expect("the server runs");
        self.proxies.retain(|(pid, _)| *pid != killed.pid);
        killed.kill().await;
        self.server = Some(self.home.serve(&["--model", &self.model, "--mode", "auto"]).await);
    }

    /// Puts a proxy before each socket that has none. Later connections use the proxy.
    pub fn add_proxies(&mut self) {
        for socket in sockets(&self.home) {
            let name = socket.file_name().unwrap().to_str().unwrap();
            let pid: u32 = name.split_once('-').unwrap().0.parse().unwrap();
            let editors = self.editors.iter().flatten().map(|editor| editor.pid);
            let runs = editors.chain(self.server.iter().map(|server| server.pid)).any(|process| process == pid);
            if runs && self.proxies.iter().all(|(behind, _)| *behind != pid) {
                let moved = self.home.data().join(format!("behind-{pid}"));
                self.proxies.push((pid, Proxy::start(&socket, &moved)));
            }
        }
    }

    /// Holds the calls to the processes, or their answers.
    pub fn hold(&self, direction: Direction) {
        self.proxies.iter().for_each(|(_, proxy)| proxy.hold(direction));
    }

    pub fn release(&self) {
        self.proxies.iter().for_each(|(_, proxy)| proxy.release());
    }

    /// Cuts the connections between the processes.
    pub fn cut(&self) {
        self.proxies.iter().for_each(|(_, proxy)| proxy.cut());
    }

    /// Ends the processes, and asserts that each of them ends correctly.
    pub async fn finish(mut self) {
        for editor in &mut self.editors {
            editor.take().expect("the editor runs").finish().await;
        }
        self.server.take().expect("the server runs").stop().await;
    }
}

async fn start_editor(home: &Home, model: &str) -> Agent {
    let agent = editor(home, model, &["--mode", "auto"]).await;
    agent.narrow_output();
    agent
}
