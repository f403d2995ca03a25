//! `nuncio chat` of the built binary on a pseudo terminal: time to the first frame, from a key to the
//! screen while text and code stream, and to coloured code; CPU while idle; memory with a long session.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod process;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use process::{anonymous_kib, binary, cpu, resident_kib, wakeups};
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
        let limit = Instant::now() + LIMIT;
        while !self.shown[start..].windows(words.len()).any(|window| window == words.as_bytes()) {
            assert!(Instant::now() < limit, "no {words:?}");
            self.read();
        }
    }

    /// Waits for output.
    fn read(&mut self) {
        let mut bytes = [0; 65536];
        let count = self.terminal.read(&mut bytes).unwrap();
        self.shown.extend_from_slice(&bytes[..count]);
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

    keys_while_code_streams();
    coloured_blocks();
    idle();
    long_session();
}

/// Presses 300 keys, one each time that another part of 200,000 deltas of text and code was shown.
fn keys_while_code_streams() {
    const KEYS: usize = 300;
    const DELTAS: usize = 200_000;
    let word = |number: usize| match number % 100 {
        0 => format!("word{number:06}\n\n```rust\n"),
        99 => format!("word{number:06}\n```\n\n"),
        rest if rest % 8 == 7 => format!("word{number:06}\n"),
        _ => format!("word{number:06} "),
    };
    let text: String = (0..DELTAS).map(word).collect();
    let (dir, model) = world(&json!([{ "text": text, "chunk_chars": 11 }]));
    let mut chat = Chat::start(dir.path(), &["chat", "--model", &model]);
    chat.until("/help", 0);
    chat.terminal.write_all(b"go\r").unwrap();
    // The last word that was shown, and the bytes that were searched for it.
    let (mut times, mut last, mut searched) = (Vec::new(), 0, 0);
    let streamed = Instant::now();
    for number in 0..KEYS {
        loop {
            let shown = String::from_utf8_lossy(&chat.shown[searched..]).into_owned();
            let words = shown.split("word").skip(1).filter_map(|rest| rest.get(..6)?.parse::<usize>().ok());
            last = words.max().unwrap_or(0).max(last);
            searched = chat.shown.len().saturating_sub("word000000".len());
            if last >= number * (DELTAS - 2_000) / KEYS {
                break;
            }
            chat.read();
        }
        let (start, letter) = (chat.shown.len(), [b'A' + (number % 26) as u8]);
        let started = Instant::now();
        chat.terminal.write_all(&letter).unwrap();
        chat.until(std::str::from_utf8(&letter).unwrap(), start);
        times.push(started.elapsed());
        if number % 50 == 49 {
            // Ctrl-U: a text of several rows would take longer.
            chat.terminal.write_all(b"\x15").unwrap();
        }
    }
    let (half, most) = median(times);
    let seconds = streamed.elapsed().as_secs_f64();
    println!("key to screen          {half:8.1} ms   p95 {most:.1}   ({KEYS} keys in {seconds:.1} s, up to delta {last})");
    chat.until("tokens in", 0);
    chat.end();
}

/// Compares answers that consist of a block of code, with and without a language.
fn coloured_blocks() {
    let block = |language: &str, name: &str| {
        let lines: String =
            (0..100).map(|line| format!("let value_{line}: u32 = compute(\"{name}\", {line}); // a line\n")).collect();
        json!({ "text": format!("```{language}\n{lines}fn end_{name}() {{}}\n```\n"), "chunk_chars": 20_000 })
    };
    let names = ["warm", "plain", "first", "second", "third"];
    let languages = ["", "", "rust", "rust", "rust"];
    let steps: Vec<Value> = names.iter().zip(languages).map(|(name, language)| block(language, name)).collect();
    let (dir, model) = world(&json!(steps));
    let mut chat = Chat::start(dir.path(), &["chat", "--model", &model]);
    chat.until("/help", 0);
    let mut times = Vec::new();
    for name in names {
        let start = chat.shown.len();
        let started = Instant::now();
        chat.terminal.write_all(b"go\r").unwrap();
        chat.until(&format!("end_{name}"), start);
        times.push(started.elapsed().as_secs_f64() * 1e3);
        chat.until("tokens in", start);
        chat.until("? keys", start);
    }
    let [_, plain, first, second, third] = times[..] else { unreachable!() };
    println!("100 lines of code      {plain:8.1} ms without colours; first {first:.1}, then {second:.1} and {third:.1} with them");
    chat.end();
}

fn idle() {
    let (dir, model) = world(&json!([]));
    let mut chat = Chat::start(dir.path(), &["chat", "--model", &model]);
    chat.until("/help", 0);
    // Threads of the start end after 10 s.
    std::thread::sleep(Duration::from_secs(12));
    let (before, woken) = (cpu(&chat.child), wakeups(&chat.child));
    std::thread::sleep(Duration::from_secs(10));
    // A thread that ended in the meantime takes its number with it.
    let (time, woken) = ((cpu(&chat.child) - before) * 1e3, wakeups(&chat.child).saturating_sub(woken));
    println!("idle for 10 s          {time:8.0} ms CPU, threads woke {woken} times");
    chat.end();
}

fn long_session() {
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
    let (resident, anonymous) = (resident_kib(&chat.child) as f64 / 1024.0, anonymous_kib(&chat.child) as f64 / 1024.0);
    println!("resident with them     {resident:8.1} MiB   anonymous {anonymous:.1}");
    chat.end();
}
