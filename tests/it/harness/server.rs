//! A running `nuncio serve`. The harness asserts that the server exits with 0 after a signal and
//! that no process is left.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use super::{Agent, Ask, Bridge, Home, bounded, gone};
use crate::marker::{marked, marker};

pub struct Server {
    bridge: Bridge,
    child: Child,
    pub pid: u32,
    stdout: BufReader<ChildStdout>,
    stderr: PathBuf,
    marker: String,
    ended: bool,
}

impl Deref for Server {
    type Target = Bridge;

    fn deref(&self) -> &Bridge {
        &self.bridge
    }
}

impl Home {
    /// Starts `nuncio serve` with these flags, on a free port.
    pub async fn serve(&self, flags: &[&str]) -> Server {
        self.serve_at("127.0.0.1:0", flags).await
    }

    /// Starts the server at an address.
    pub async fn serve_at(&self, address: &str, flags: &[&str]) -> Server {
        self.serve_by(self.command(&["serve", "--http", address]), flags).await
    }

    /// Starts the server in a mount namespace in which this directory is empty. `None` if this user
    /// cannot do that.
    pub async fn serve_without(&self, directory: &Path, flags: &[&str]) -> Option<Server> {
        let hidden = "mount -t tmpfs tmpfs \"$0\" && exec \"$@\"";
        let arguments = [OsStr::new("--mount"), "sh".as_ref(), "-c".as_ref(), hidden.as_ref(), directory.as_os_str()];
        let tried = Command::new("unshare").args(arguments).arg("true").output().await;
        if !tried.is_ok_and(|tried| tried.status.success()) {
            return None;
        }
        let server = self.command(&["serve", "--http", "127.0.0.1:0"]);
        let mut command = Command::new("unshare");
        command.args(arguments).arg(server.as_std().get_program()).args(server.as_std().get_args());
        command.env_clear().envs(server.as_std().get_envs().filter_map(|(name, value)| Some((name, value?)))).kill_on_drop(true);
        Some(self.serve_by(command, flags).await)
    }

    async fn serve_by(&self, mut command: Command, flags: &[&str]) -> Server {
        let marker = marker();
        let stderr = self.data().join(format!("stderr-{marker}"));
        command.args(flags).env("NUNCIO_TEST", &marker).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        bounded("the address", stdout.read_line(&mut line)).await.unwrap();
        line += &std::fs::read_to_string(&stderr).unwrap();
        let bridge = Bridge { address: address(&line), token: self.token() };
        Server { bridge, pid: child.id().unwrap(), child, stdout, stderr, marker, ended: false }
    }

    /// Starts `nuncio serve` with a scripted model.
    pub async fn serve_script(&self, steps: Value, flags: &[&str]) -> Server {
        let model = self.script(steps);
        self.serve(&[&["--model", &model], flags].concat()).await
    }

    /// Starts `nuncio acp --http` with these flags. Returns the client and the bridge.
    pub async fn start_with_bridge(&self, flags: &[&str]) -> (Agent, Bridge) {
        let marker = marker();
        let mut command = self.command(&["acp", "--http", "127.0.0.1:0"]);
        command.args(flags).env("NUNCIO_TEST", &marker).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        bounded("the address", stderr.read_line(&mut line)).await.unwrap();
        // The rest of standard error is read and discarded.
        tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await });
        let bridge = Bridge { address: address(&line), token: self.token() };
        (Agent::new(child, marker), bridge)
    }

    /// The owner's token.
    pub fn token(&self) -> String {
        std::fs::read_to_string(self.data().join("token")).unwrap().trim().into()
    }
}

/// The address in the first line. The whole text is part of the panic message.
fn address(said: &str) -> SocketAddr {
    let url = said.lines().next().and_then(|line| line.strip_prefix("nuncio listens on "));
    let address = url.and_then(|url| url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")));
    address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("no address: {said}"))
}

impl Server {
    pub fn process(&self) -> Pid {
        Pid::from_raw(self.pid as i32).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.process(), signal).unwrap();
    }

    /// Ends the server with SIGTERM, as a service manager does. Returns its output.
    pub async fn stop(self) -> String {
        self.signal(Signal::TERM);
        self.end().await
    }

    /// Waits for the end of the server; asserts exit code 0 and that no process is left. Returns
    /// the text of standard error and standard output.
    pub async fn end(mut self) -> String {
        let status = bounded("the exit", self.child.wait()).await.unwrap();
        self.ended = true;
        assert_eq!(marked(&self.marker), Vec::<u32>::new(), "left running");
        let mut said = std::fs::read_to_string(&self.stderr).unwrap();
        self.stdout.read_to_string(&mut said).await.unwrap();
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }

    /// Kills the server with SIGKILL and asserts that no process is left.
    pub async fn kill(mut self) {
        self.child.start_kill().unwrap();
        bounded("the end of a killed server", self.child.wait()).await.unwrap();
        self.ended = true;
        gone(&self.marker).await;
    }

    /// Resident memory in KiB, without the pages of the program and of other files.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.ended && !std::thread::panicking() {
            panic!("a server has to be stopped or killed");
        }
    }
}

/// Requests that many tests make.
impl Bridge {
    pub async fn new_session(&self, home: &Home) -> String {
        let made = self.post("/v1/sessions", &json!({"cwd": home.work()})).expect(201).await;
        made["sessionId"].as_str().unwrap().into()
    }

    /// A prompt request that is answered at the end of the turn.
    pub fn prompt(&self, session: &str, text: &str) -> Ask {
        self.post(&format!("/v1/sessions/{session}/prompt"), &json!({"prompt": [{"type": "text", "text": text}]}))
    }

    /// Starts a turn and returns its id.
    pub async fn begin(&self, session: &str, text: &str) -> String {
        let began = self.prompt(session, text).header("prefer", "respond-async").expect(202).await;
        began["turnId"].as_str().unwrap().into()
    }

    pub fn follow(&self, session: &str) -> Ask {
        self.get(&format!("/v1/sessions/{session}/events"))
    }
}
