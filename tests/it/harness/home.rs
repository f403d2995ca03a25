//! The directories of one test: settings and data, a work directory, scripts for the model.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::store::PostgresDatabase;
use super::{Agent, POSIX, Watch, WatchFlags, bounded};
use crate::marker::marker;
use crate::written_requests::WrittenRequests;

pub struct Home {
    dir: TempDir,
    scripts: AtomicU32,
    environment: Mutex<Vec<(String, String)>>,
    database: OnceLock<Option<Arc<PostgresDatabase>>>,
    requests: Mutex<WrittenRequests>,
}

/// The output and exit code of a command.
#[derive(Debug)]
pub struct CommandResult {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandResult {
    /// Standard output as JSON lines.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"))).collect()
    }
}

/// Settings of all tests where nothing confines commands: mode auto runs them.
pub const UNCONFINED: &str = if POSIX { "sandbox.mode = \"off\"\n" } else { "" };

impl Home {
    pub fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let requests = Mutex::new(WrittenRequests::new(dir.path()));
        let home = Home { dir, scripts: AtomicU32::new(0), environment: Mutex::default(), database: OnceLock::new(), requests };
        if !UNCONFINED.is_empty() {
            home.config("");
        }
        home
    }

    /// The directory of nuncio's settings and data.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The work directory of sessions.
    pub fn work(&self) -> PathBuf {
        std::fs::canonicalize(self.dir.path()).unwrap().join("work")
    }

    /// Writes a file below the work directory (or next to the directory: `../x`). Returns the path.
    pub fn put(&self, path: &str, content: &str) -> PathBuf {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Text of a file of the work directory; none if the file does not exist.
    pub fn get(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.work().join(path)).ok()
    }

    /// Waits for a file of the work directory.
    pub async fn appears(&self, name: &str) {
        bounded(name, async {
            let watch = Watch::new(&self.work(), WatchFlags::CREATE);
            while self.get(name).is_none() {
                watch.next().await;
            }
        })
        .await;
    }

    /// Writes the user's settings.
    pub fn config(&self, toml: &str) {
        let unconfined = if toml.contains("sandbox") { "" } else { UNCONFINED };
        std::fs::write(self.data().join("config.toml"), [unconfined, toml].concat()).unwrap();
    }

    /// Writes the user's settings exactly so, for tests of their text.
    pub fn exact_config(&self, toml: &str) {
        std::fs::write(self.data().join("config.toml"), toml).unwrap();
    }

    /// The settings of the user, as written by [`Home::config`]; empty without a file.
    pub fn config_text(&self) -> String {
        let text = std::fs::read_to_string(self.data().join("config.toml")).unwrap_or_default();
        text.strip_prefix(UNCONFINED).unwrap_or(&text).to_owned()
    }

    /// Writes a scripted model, an array of steps. Returns the value for `--model`.
    pub fn script(&self, steps: Value) -> String {
        let number = self.scripts.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.path().join(format!("script-{number}.json"));
        std::fs::write(&path, json!({ "steps": steps }).to_string()).unwrap();
        format!("scripted:{}", path.display())
    }

    /// Sets an environment variable for all processes of nuncio that are started later.
    pub fn env(&self, name: &str, value: &str) {
        self.environment.lock().unwrap().push((name.into(), value.into()));
    }

    /// The database of the home in PostgreSQL, which is created here; none if the store is SQLite.
    pub(super) fn database(&self) -> Option<&PostgresDatabase> {
        self.database.get_or_init(|| PostgresDatabase::create().map(Arc::new)).as_deref()
    }

    /// Another home with the same database of PostgreSQL.
    pub fn another_node(&self) -> Home {
        self.database();
        let mut home = Home::new();
        home.database = self.database.clone();
        home
    }

    /// The environment variables that name the directory and the store of the home to nuncio, and
    /// the file of the requests to scripted models.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let store = self.database().map(|database| ("NUNCIO_STORE", database.url().into()));
        let (requests, file) = self.requests.lock().unwrap().variable();
        [("NUNCIO_HOME", self.data().into_os_string()), (requests, file.into())].into_iter().chain(store).collect()
    }

    /// Turns off rules of [`rules::RULES`](crate::rules::RULES) for the requests to scripted
    /// models, whose steps are what no provider sends: `reason`.
    pub fn lax(&self, rules: &[u8], reason: &str) {
        assert!(!reason.is_empty(), "a reason");
        self.requests.lock().unwrap().lax(rules);
    }

    /// The requests to scripted models so far, as the providers would receive them: an object per
    /// line.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().lines()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(super::program());
        command.args(arguments).current_dir(self.work()).env_clear().kill_on_drop(true);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.dir.path()).env("TMPDIR", self.dir.path()).envs(self.variables());
        command.envs(self.environment.lock().unwrap().iter().cloned());
        command
    }

    /// Starts `nuncio acp` with these flags.
    pub async fn start(&self, flags: &[&str]) -> Agent {
        let marker = marker();
        let mut command = self.command(&["acp"]);
        command.args(flags).env("NUNCIO_TEST", &marker).stdin(Stdio::piped()).stdout(Stdio::piped());
        Agent::new(command.spawn().unwrap(), marker)
    }

    /// Starts `nuncio acp` with a scripted model and more flags, initializes it and creates a
    /// session.
    pub async fn session(&self, steps: Value, flags: &[&str]) -> (Agent, String) {
        self.initialized(steps, flags, json!({"protocolVersion": 1})).await
    }

    /// Starts a session as [`Home::session`] does, for a client without a person: its permission
    /// requests have a deadline.
    pub async fn session_of_program(&self, steps: Value, flags: &[&str]) -> (Agent, String) {
        self.initialized(steps, flags, json!({"protocolVersion": 1, "_meta": {"nuncio": {"interactive": false}}})).await
    }

    async fn initialized(&self, steps: Value, flags: &[&str], params: Value) -> (Agent, String) {
        let model = self.script(steps);
        let mut agent = self.start(&[&["--model", &model], flags].concat()).await;
        agent.call("initialize", params).await;
        let session = agent.new_session(self).await;
        (agent, session)
    }

    /// Runs a command of nuncio to its end.
    pub async fn run(&self, arguments: &[&str], input: &str) -> CommandResult {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let write = async {
            // A command that does not read its input may have ended.
            let _ = stdin.write_all(input.as_bytes()).await;
            drop(stdin);
        };
        let (_, output) = bounded(&format!("nuncio {arguments:?}"), async { tokio::join!(write, child.wait_with_output()) }).await;
        let output = output.unwrap();
        let code = output.status.code().unwrap_or(-1);
        CommandResult { code, stdout: String::from_utf8(output.stdout).unwrap(), stderr: String::from_utf8(output.stderr).unwrap() }
    }

    /// Runs a command to its end as a user with read access and without write access to the home.
    pub async fn run_without_writing(&self, arguments: &[&str]) -> CommandResult {
        let entries = everything(self.dir.path());
        let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let before: Vec<u32> = entries.iter().map(|path| path.metadata().unwrap().permissions().mode()).collect();
        entries.iter().for_each(|path| mode(path, if path.is_dir() { 0o555 } else { 0o444 }));
        let mut command = self.command(arguments);
        if rustix::process::geteuid().is_root() {
            // File permissions do not apply to root.
            command.uid(65_534).gid(65_534);
        }
        let output = bounded(&format!("nuncio {arguments:?}"), command.stdin(Stdio::null()).output()).await.unwrap();
        entries.iter().zip(before).for_each(|(path, before)| mode(path, before));
        let code = output.status.code().unwrap_or(-1);
        CommandResult { code, stdout: String::from_utf8(output.stdout).unwrap(), stderr: String::from_utf8(output.stderr).unwrap() }
    }

    /// Runs nuncio without input, with pipes for its output that no process reads. Returns the exit
    /// code.
    pub async fn run_without_reader(&self, arguments: &[&str]) -> i32 {
        let closed = || std::io::pipe().unwrap().1;
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(closed()).stderr(closed());
        bounded("the exit of nuncio", command.status()).await.unwrap().code().unwrap()
    }

    /// Starts a command with pipes. The command is killed on drop.
    pub fn spawn(&self, arguments: &[&str]) -> tokio::process::Child {
        self.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
    }

    /// The log of a session, read by another process.
    pub async fn log(&self, session: &str) -> Vec<Value> {
        let ran = self.run(&["sessions", "show", session, "--json"], "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.lines()
    }
}

/// Fails the test if a provider would refuse a request to a scripted model.
impl Drop for Home {
    fn drop(&mut self) {
        // A second panic would end the process and hide the first.
        if !std::thread::panicking() {
            let refused = self.requests.get_mut().unwrap().refusals();
            assert!(refused.is_empty(), "providers would refuse these requests:\n{}", refused.join("\n"));
        }
    }
}

/// `path` and all entries below it.
fn everything(path: &Path) -> Vec<PathBuf> {
    let below = std::fs::read_dir(path).into_iter().flatten().flatten().flat_map(|entry| everything(&entry.path()));
    below.chain([path.to_path_buf()]).collect()
}
