//! `nuncio chat` of the built binary on a pseudo terminal: time to the first frame, time from a key
//! to the screen while text streams, CPU while idle, resident memory with a long session.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod process;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use process::{binary, cpu, resident_kib};
use serde_json::{Value, json};

/// Maximum time until expected output.
const LIMIT: Duration = Duration::from_secs(60);

/// A chat with its terminal.
struct Chat {
    child: Child,
    terminal: File,
    shown: Vec<u8>,
}

impl Chat {
    fn start(home: &std::path::Path, arguments: &[&str]) -> Chat {
        let (mut master, mut slave) = (-1, -1);
        let size = libc::winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: openpty(3) writes two descriptors, reads the size and accepts null for the rest.
        let opened = unsafe {
            libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null_mut(), (&raw const size).cast_mut())
        };
        assert_eq!(opened, 0);
        // SAFETY: both descriptors are new and have no other owner.
        let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(home).env_clear().env("PATH", "/usr/bin:/bin").env("TERM", "xterm");
        command.env("NUNCIO_HOME", home.join("home")).env("HOME", home);
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = command.spawn().unwrap();
        Chat { child, terminal: master.into(), shown: Vec::new() }
    }

    /// Reads until the output after its first `start` bytes contains the words.
    fn until(&mut self, words: &str, start: usize) {
        let (limit, mut bytes) = (Instant::now() + LIMIT, [0; 65536]);
        while !self.shown[start..].windows(words.len()).any(|window| window == words.as_bytes()) {
            assert!(Instant::now() < limit, "no {words:?}");
            let count = self.terminal.read(&mut bytes).unwrap();
            self.shown.extend_from_slice(&bytes[..count]);
        }
    }

    fn end(mut self) {
        self.terminal.write_all(b"\x15\x04").unwrap();
        let mut bytes = [0; 65536];
        while self.terminal.read(&mut bytes).is_ok_and(|count| count > 0) {}
        self.child.wait().unwrap();
    }
}

/// A directory with a scripted model. Returns it with the value of `--model`.
fn world(steps: &Value) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("home")).unwrap();
    let script = dir.path().join("script.json");
    std::fs::write(&script, json!({ "steps": steps }).to_string()).unwrap();
    let model = format!("scripted:{}", script.display());
    (dir, model)
}

fn median(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let ms = |at: usize| times[at].as_secs_f64() * 1e3;
    (ms(times.len() / 2), ms(times.len() * 95 / 100))
}

fn main() {
    // `cargo test --benches` passes `--test` and only checks that the benchmark starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let (dir, model) = world(&json!([]));
    let first_frame = |_| {
        let started = Instant::now();
        let mut chat = Chat::start(dir.path(), &["chat", "--model", &model]);
        chat.until("/help", 0);
        let time = started.elapsed();
        chat.end();
        time
    };
    let (half, most) = median((0..40).map(first_frame).collect());
    println!("first frame            {half:8.1} ms   p95 {most:.1}");

    // 200,000 deltas, so that they last longer than the keys, one every 10 ms.
    let text: String = (0..200_000).map(|number| format!("word{number:06} ")).collect();
    let (dir, model) = world(&json!([{ "text": text, "chunk_chars": 11 }]));
    let mut chat = Chat::start(dir.path(), &["chat", "--model", &model]);
    chat.until("/help", 0);
    chat.terminal.write_all(b"go\r").unwrap();
    chat.until("word000010", 0);
    let mut times = Vec::new();
    for number in 0..60 {
        let (start, letter) = (chat.shown.len(), [b'A' + (number % 26) as u8]);
        let started = Instant::now();
        chat.terminal.write_all(&letter).unwrap();
        chat.until(std::str::from_utf8(&letter).unwrap(), start);
        times.push(started.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    let streaming = !chat.shown.windows(10).any(|window| window == b"word199999");
    let (half, most) = median(times);
    println!("key to screen          {half:8.1} ms   p95 {most:.1}   (still streaming at the end: {streaming})");
    chat.until("tokens in", 0);
    chat.end();

    let (dir, model) = world(&json!([]));
    let mut chat = Chat::start(dir.path(), &["chat", "--model", &model]);
    chat.until("/help", 0);
    std::thread::sleep(Duration::from_secs(2));
    let before = cpu(&chat.child);
    std::thread::sleep(Duration::from_secs(10));
    println!("CPU while idle for 10 s {:6.0} ms", (cpu(&chat.child) - before) * 1e3);
    chat.end();

    // 5,000 turns: 10,000 messages.
    let steps: Vec<Value> = (0..5_000).map(|number| json!({ "text": format!("answer {number}") })).collect();
    let (dir, model) = world(&json!(steps));
    let lines: String =
        (0..5_000).map(|number| format!("{}\n", json!({ "type": "message", "content": format!("prompt {number}") }))).collect();
    let mut run = Command::new(binary());
    run.args(["run", "--json", "--model", &model, "-"]).current_dir(dir.path()).env_clear();
    run.env("PATH", "/usr/bin:/bin").env("NUNCIO_HOME", dir.path().join("home")).env("HOME", dir.path());
    let mut run = run.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    run.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(run.wait().unwrap().success());
    let started = Instant::now();
    let mut chat = Chat::start(dir.path(), &["chat", "-c"]);
    chat.until("answer 4999", 0);
    println!("open 10,000 messages   {:8.1} ms", started.elapsed().as_secs_f64() * 1e3);
    println!("resident with them     {:8.1} MiB", resident_kib(&chat.child) as f64 / 1024.0);
    chat.end();
}
