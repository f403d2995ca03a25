//! ACP client for benchmarks: runs the built binary and exchanges JSON lines. Reads have no
//! timeout.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    line: String,
}

/// A home directory, a working directory, and a script for the model.
pub struct World {
    dir: TempDir,
}

impl World {
    pub fn new(script: &Value) -> World {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["home", "work"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        std::fs::write(dir.path().join("work/file.txt"), "a line of text\n".repeat(20)).expect("a file");
        std::fs::write(dir.path().join("script.json"), script.to_string()).expect("a script");
        World { dir }
    }

    pub fn work(&self) -> std::path::PathBuf {
        self.dir.path().join("work")
    }

    /// Spawns and initializes a client.
    pub fn client(&self) -> Client {
        let mut client = Client::spawn(self.dir.path());
        client.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        client
    }

    #[allow(dead_code)]
    pub fn spawn(&self) -> Client {
        Client::spawn(self.dir.path())
    }
}

impl Client {
    fn spawn(dir: &Path) -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nuncio"))
            .args(["acp", "--mode", "auto", "--model"])
            .arg(format!("scripted:{}", dir.join("script.json").display()))
            .env("NUNCIO_HOME", dir.join("home"))
            .current_dir(dir.join("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("nuncio");
        let output = BufReader::with_capacity(1 << 18, child.stdout.take().expect("piped"));
        Client { input: child.stdin.take(), output, child, next: 0, line: String::new() }
    }

    /// Returns the result; notifications before the result are skipped.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let request = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.input.as_mut().expect("open").write_all(request.as_bytes()).expect("written");
        loop {
            self.line.clear();
            assert!(self.output.read_line(&mut self.line).expect("read") > 0, "nuncio ended");
            if self.line.starts_with("{\"jsonrpc\":\"2.0\",\"method\"") {
                continue;
            }
            let mut answer: Value = serde_json::from_str(&self.line).expect("JSON");
            assert_eq!(answer["id"], id, "{answer}");
            assert!(answer.get("error").is_none(), "{answer}");
            return answer["result"].take();
        }
    }

    pub fn new_session(&mut self, world: &World) -> String {
        let made = self.call("session/new", json!({ "cwd": world.work(), "mcpServers": [] }));
        made["sessionId"].as_str().expect("an id").into()
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.call("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }))
    }

    /// Resident memory, in KiB.
    #[allow(dead_code)]
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
