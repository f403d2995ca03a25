//! Benchmarks of the HTTP API: the built binary over sockets. Prints a table. Times are medians of
//! one run on a machine with other load.

#![allow(clippy::print_stdout)]

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn main() {
    // `cargo test --benches` passes `--test` and only checks that the benchmark starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        start().await;
        requests().await;
        streams().await;
        idle_readers().await;
        many_turns().await;
        large().await;
    });
}

fn row(what: &str, figure: String) {
    println!("{what:58} {figure}");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The value at `part` of the sorted times, in milliseconds.
fn at(times: &mut [Duration], part: f64) -> f64 {
    times.sort();
    ms(times[((times.len() - 1) as f64 * part) as usize])
}

async fn start() {
    let (mut times, mut resident) = (Vec::new(), 0);
    for _ in 0..20 {
        let world = World::new(&json!([]));
        let began = Instant::now();
        let server = world.start();
        let mut connection = server.connect().await;
        connection.get("/health").await;
        times.push(began.elapsed());
        resident = server.resident_kib();
    }
    row("start -> /health answers, p50", format!("{:.1} ms", at(&mut times, 0.5)));
    row("resident after start", format!("{:.1} MiB", resident as f64 / 1024.0));
}

async fn requests() {
    let world = World::new(&json!([]));
    let server = world.start();
    let mut connection = server.connect().await;
    let path = format!("/v1/sessions/{}", connection.session().await);
    let mut times = Vec::new();
    for _ in 0..3_000 {
        let began = Instant::now();
        connection.get(&path).await;
        times.push(began.elapsed());
    }
    row("GET a session, 1 connection, p50", format!("{:.3} ms", at(&mut times, 0.5)));
    row("GET a session, 1 connection, p99", format!("{:.3} ms", at(&mut times, 0.99)));
    let (began, cpu) = (Instant::now(), server.cpu());
    let mut clients = JoinSet::new();
    for _ in 0..64 {
        let (mut connection, path) = (server.connect().await, path.clone());
        clients.spawn(async move {
            let mut count = 0;
            while began.elapsed() < Duration::from_secs(3) {
                connection.get(&path).await;
                count += 1;
            }
            count
        });
    }
    let count: u64 = clients.join_all().await.into_iter().sum();
    let took = began.elapsed().as_secs_f64();
    row(
        "GET a session, 64 connections",
        format!("{:.0} /s (server {:.2} cores)", count as f64 / took, (server.cpu() - cpu) / took),
    );
}

/// Deltas from a model without delays, to one reader and to many readers.
async fn streams() {
    let world = World::new(&json!([
        { "text": "twelve chars".repeat(20_000) },
        { "text": "twelve chars".repeat(5_000) },
        { "text": "twelve chars".repeat(5_000) },
    ]));
    for (count, readers, step) in [(20_000, 1, 0), (5_000, 8, 1), (5_000, 200, 2)] {
        let mut best: Vec<(f64, f64)> = Vec::new();
        for _ in 0..5 {
            let server = world.start();
            let mut connection = server.connect().await;
            let session = connection.session().await;
            for _ in 0..step {
                connection.prompt(&session).await;
            }
            let mut following = JoinSet::new();
            for _ in 0..readers {
                let mut events = server.connect().await;
                events.follow(&format!("/v1/sessions/{session}/events")).await;
                events.until("event: synced").await;
                following.spawn(async move {
                    events.until("\"turn.completed\"").await;
                    Instant::now()
                });
            }
            let (began, cpu) = (Instant::now(), server.cpu());
            connection.prompt(&session).await;
            let last = following.join_all().await.into_iter().max().expect("readers");
            best.push((f64::from(count) / (last - began).as_secs_f64(), server.cpu() - cpu));
        }
        best.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (rate, cpu) = best[best.len() / 2];
        row(&format!("{count} deltas to {readers} readers"), format!("{rate:.0} /s, CPU {cpu:.2} s"));
    }
}

async fn idle_readers() {
    let world = World::new(&json!([]));
    let server = world.start();
    let session = server.connect().await.session().await;
    let before = server.resident_kib();
    let mut readers = Vec::new();
    for _ in 0..1_000 {
        let mut events = server.connect().await;
        events.follow(&format!("/v1/sessions/{session}/events")).await;
        events.until("event: synced").await;
        readers.push(events);
    }
    let after = server.resident_kib();
    row("resident with 1,000 idle readers", format!("{:.1} MiB ({:.1} before)", after as f64 / 1024.0, before as f64 / 1024.0));
}

async fn many_turns() {
    let world = World::new(&json!([]));
    let server = world.start();
    let mut clients = JoinSet::new();
    for _ in 0..32 {
        let mut connection = server.connect().await;
        let session = connection.session().await;
        clients.spawn(async move {
            let (began, mut count) = (Instant::now(), 0);
            while began.elapsed() < Duration::from_secs(3) {
                connection.prompt(&session).await;
                count += 1;
            }
            count
        });
    }
    let count: u64 = clients.join_all().await.into_iter().sum();
    row("32 sessions prompting at once", format!("{:.0} turns/s", count as f64 / 3.0));
}

/// The list of many sessions, and pages of a long session.
async fn large() {
    let world = World::new(&json!([]));
    let server = world.start();
    let mut connection = server.connect().await;
    for _ in 0..2_000 {
        connection.session().await;
    }
    let mut times = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        connection.get("/v1/sessions").await;
        times.push(began.elapsed());
    }
    row("list of 2,000 sessions, a page, p95", format!("{:.2} ms", at(&mut times, 0.95)));
    let session = connection.session().await;
    drop(connection);
    // A turn without tools appends five or six facts and some deltas.
    let mut connection = server.connect().await;
    let mut head = 0;
    while head < 100_000 {
        for _ in 0..500 {
            connection.prompt(&session).await;
        }
        let view: Value = serde_json::from_slice(&connection.get(&format!("/v1/sessions/{session}")).await).expect("JSON");
        head = view["head"].as_u64().expect("a seq");
    }
    let mut times = Vec::new();
    let mut cursor = String::new();
    for _ in 0..200 {
        let path = format!("/v1/sessions/{session}/messages?limit=50{cursor}");
        let began = Instant::now();
        let page: Value = serde_json::from_slice(&connection.get(&path).await).expect("JSON");
        times.push(began.elapsed());
        cursor = page["nextCursor"].as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
    }
    row(&format!("a page of a session with {head} events, p95"), format!("{:.2} ms", at(&mut times, 0.95)));
}

struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new(steps: &Value) -> World {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["home", "work"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        std::fs::write(dir.path().join("home/token"), TOKEN).expect("a token");
        std::fs::write(dir.path().join("home/config.toml"), "[http]\nmax_sessions = 5000\n").expect("settings");
        std::fs::write(dir.path().join("script.json"), json!({ "steps": steps }).to_string()).expect("a script");
        World { dir }
    }

    fn start(&self) -> Server {
        Server::start(self.dir.path())
    }
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(dir: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nuncio"))
            .args(["serve", "--http", "127.0.0.1:0", "--model"])
            .arg(format!("scripted:{}", dir.join("script.json").display()))
            .env("NUNCIO_HOME", dir.join("home"))
            .current_dir(dir.join("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("nuncio");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        std::io::BufReader::new(stdout).read_line(&mut line).expect("an address");
        let address = line.trim().rsplit('/').next().expect("an address").to_string();
        Server { child, address }
    }

    async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).await.expect("a connection");
        stream.set_nodelay(true).expect("nodelay");
        Connection { stream, address: self.address.clone(), buffer: Vec::new() }
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("a process")
    }

    fn resident_kib(&self) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// CPU time in seconds, with a resolution of 1/100 s.
    fn cpu(&self) -> f64 {
        let stat = self.proc("stat");
        let fields: VecDeque<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().map(|field| fields[*field].parse::<u64>().expect("ticks")).sum();
        ticks as f64 / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection {
    stream: TcpStream,
    address: String,
    buffer: Vec<u8>,
}

impl Connection {
    async fn send(&mut self, method: &str, path: &str, body: &str) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.write_all(head.as_bytes()).await.expect("sent");
    }

    /// Reads a response with a `content-length` and returns its body.
    async fn answer(&mut self) -> Vec<u8> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).to_lowercase();
                assert!(head.starts_with("http/1.1 20"), "{head}");
                let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                let length: usize = length.and_then(|length| length.trim().parse().ok()).expect("a length");
                if self.buffer.len() >= end + 4 + length {
                    let rest = self.buffer.split_off(end + 4 + length);
                    let answer = std::mem::replace(&mut self.buffer, rest);
                    return answer[end + 4..].to_vec();
                }
            }
            assert!(self.stream.read_buf(&mut self.buffer).await.expect("read") > 0, "the server hung up");
        }
    }

    async fn get(&mut self, path: &str) -> Vec<u8> {
        self.send("GET", path, "").await;
        self.answer().await
    }

    async fn session(&mut self) -> String {
        self.send("POST", "/v1/sessions", "{}").await;
        let made: Value = serde_json::from_slice(&self.answer().await).expect("JSON");
        made["sessionId"].as_str().expect("an id").into()
    }

    async fn prompt(&mut self, session: &str) {
        let body = r#"{"prompt":[{"type":"text","text":"hi"}]}"#;
        self.send("POST", &format!("/v1/sessions/{session}/prompt"), body).await;
        self.answer().await;
    }

    async fn follow(&mut self, path: &str) {
        self.send("GET", path, "").await;
    }

    /// Reads up to and including `words`.
    async fn until(&mut self, words: &str) {
        let mut seen = 0;
        loop {
            if let Some(place) = find(&self.buffer[seen..], words.as_bytes()) {
                self.buffer.drain(..seen + place + words.len());
                return;
            }
            seen = self.buffer.len().saturating_sub(words.len());
            self.buffer.drain(..seen);
            seen = 0;
            assert!(self.stream.read_buf(&mut self.buffer).await.expect("read") > 0, "the server hung up");
        }
    }
}

fn find(text: &[u8], words: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, words)
}
