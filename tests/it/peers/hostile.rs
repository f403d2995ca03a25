//! Hostile peers of the local socket, and hostile files in its place: refused and logged, and
//! nothing is lost.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::{assert_complete, editor, prompt, says, sockets};
use harness::{Agent, Home, LIMIT, Server, bounded};

/// The only socket of the home.
fn socket(home: &Home) -> PathBuf {
    let all = sockets(home);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

/// A server that owns a session, and its socket.
async fn owner(home: &Home) -> (Server, String, PathBuf) {
    let steps: Vec<Value> = (0..40).map(|number| says(&format!("answer {number}"))).collect();
    let server = home.serve_script(json!(steps), &[]).await;
    let session = server.new_session(home).await;
    server.prompt(&session, "base").expect(200).await;
    let path = socket(home);
    (server, session, path)
}

/// An editor of another process prompts the session of the server.
async fn assert_forwards(home: &Home, session: &str) {
    let mut agent = editor(home, &home.script(json!([says("taken over")])), &[]).await;
    agent.load(home, session).await;
    let (stop, updates) = agent.turn(session, "go").await;
    let said = harness::text(&updates, "agent_message_chunk");
    assert!(stop == "end_turn" && said.starts_with("answer"), "{said}");
    agent.finish().await;
}

#[tokio::test]
async fn directory_is_private_and_socket_is_removed_at_exit() {
    let home = Home::new();
    let (server, session, path) = owner(&home).await;
    let directory = std::fs::metadata(home.data().join("run")).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(&format!("{}-", server.pid)), "{name}");
    // The claim names the process, the socket and the version.
    let lock = home.owner(&session);
    let words: Vec<&str> = lock.split_whitespace().collect();
    assert_eq!(words.len(), 3, "{lock:?}");
    assert_eq!(words[0], server.pid.to_string());
    assert!(words[1].ends_with(name), "{lock:?}");
    server.stop().await;
    assert_eq!(sockets(&home), Vec::<PathBuf>::new());

    // All processes: an editor at the end of its input, and a command.
    let mut agent = editor(&home, &home.script(json!([])), &[]).await;
    agent.load(&home, &session).await;
    agent.turn(&session, "go").await;
    assert_eq!(sockets(&home).len(), 1);
    agent.finish().await;
    assert_eq!(home.run(&["run", "--model", &home.script(json!([])), "go"], "").await.code, 0);
    assert_eq!(sockets(&home), Vec::<PathBuf>::new());
}

/// A directory with loose permissions, left by an earlier version or by hand, is made private.
#[tokio::test]
async fn loose_directory_is_made_private() {
    let home = Home::new();
    let run = home.data().join("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (server, session, _) = owner(&home).await;
    assert_eq!(std::fs::metadata(&run).unwrap().permissions().mode() & 0o777, 0o700);
    assert_forwards(&home, &session).await;
    server.stop().await;
}

/// The stale socket of a dead process is removed by the next process, and prevents nothing.
#[tokio::test]
async fn stale_socket_of_a_dead_process_is_removed() {
    let home = Home::new();
    let (server, session, path) = owner(&home).await;
    server.kill().await;
    assert!(path.exists());
    // Names that belong to no live process, and a file that is no socket.
    let stale = home.data().join("run/4194304-0123456789abcdef.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let (server, other, _) = {
        let server = home.serve_script(json!([says("base"), says("answer")]), &[]).await;
        let other = server.new_session(&home).await;
        server.prompt(&other, "base").expect(200).await;
        (server, other, ())
    };
    assert!(!path.exists() && !stale.exists(), "{:?}", sockets(&home));
    assert_eq!(sockets(&home).len(), 1);
    // The session of the dead process is free.
    server.prompt(&session, "go").expect(200).await;
    assert_ne!(session, other);
    server.stop().await;
    assert_complete(&home.log(&session).await);
}

/// Sends bytes on a new connection and returns everything that the server writes before it closes
/// the connection.
async fn sends(path: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    // The server may close the connection before all is written.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = bounded("the end of a hostile connection", stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The first message of a real client, captured by a socket in the place of the owner's.
async fn handshake(home: &Home, session: &str, path: &Path) -> String {
    let kept = path.with_extension("kept");
    std::fs::rename(path, &kept).unwrap();
    let listener = tokio::net::UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut agent = editor(home, &home.script(json!([])), &[]).await;
    let id = agent.prompt(session, "captured").await;
    let handshake = async {
        loop {
            // A connection without a message checks whether the owner listens.
            let (stream, _) = listener.accept().await.unwrap();
            if let Some(line) = BufReader::new(stream).lines().next_line().await.unwrap() {
                return line;
            }
        }
    };
    let first = bounded("the handshake", handshake).await;
    drop(listener);
    std::fs::remove_file(path).unwrap();
    std::fs::rename(&kept, path).unwrap();
    // The call fails or reaches the real owner: it is answered in any case.
    let _ = agent.answer(&id).await;
    agent.finish().await;
    first
}

#[tokio::test]
async fn garbage_and_too_long_frames_are_refused_and_logged() {
    let home = Home::new();
    let (server, session, path) = owner(&home).await;
    let hello = handshake(&home, &session, &path).await;
    let long = "x".repeat(34 << 20);
    let call = |method: &str, params: &Value| json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let prompted = call("session/prompt", &prompt(&session, "forged"));
    let cases: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"\n\n\n".to_vec(),
        b"garbage\n".to_vec(),
        b"\0\0\0\0\xff\xfe\n".to_vec(),
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        b"Content-Length: 5\r\n\r\nhello".to_vec(),
        b"{\"jsonrpc\":\"2.0\"".to_vec(),
        format!("{}\n", "[".repeat(1 << 20)).into_bytes(),
        format!("{long}\n").into_bytes(),
        // Calls without a handshake.
        format!("{prompted}\n").into_bytes(),
        format!("{}\n", call("session/delete", &json!({"sessionId": session}))).into_bytes(),
        // A valid handshake, then garbage.
        format!("{hello}\ngarbage\n").into_bytes(),
        format!("{hello}\n{long}\n").into_bytes(),
        format!("{hello}\n{hello}\n{hello}\n").into_bytes(),
        format!("{hello}\n{}\n", call("no/such", &json!({}))).into_bytes(),
        format!("{hello}\n{}\n", call("initialize", &json!(7))).into_bytes(),
    ];
    for case in &cases {
        let answer = sends(&path, case).await;
        assert!(!answer.contains("end_turn"), "{:?}: {answer}", String::from_utf8_lossy(&case[..case.len().min(80)]));
    }
    // Connections that say nothing, or half of a message, block no other.
    let mut idle = Vec::new();
    for number in 0..50 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(&hello.as_bytes()[..number]).await.unwrap();
        }
        idle.push(stream);
    }
    assert_forwards(&home, &session).await;
    drop(idle);
    assert!(server.resident_kib() < 80 << 10, "{} KiB", server.resident_kib());
    let said = server.stop().await;
    let warnings: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["level"].as_str().is_some_and(|level| level.eq_ignore_ascii_case("warn")))
        .collect();
    assert!(!warnings.is_empty(), "nothing was logged: {said}");
    assert!(!said.contains("panicked"), "{said}");
    let log = home.log(&session).await;
    assert!(!log.iter().any(|event| event["body"]["parts"][0]["text"] == "forged"), "a forged prompt ran");
    assert_complete(&log);
}

/// A client of another protocol version is refused with a hint. Reading still works.
#[tokio::test]
async fn other_version_is_refused_with_a_hint() {
    let home = Home::new();
    let (server, session, path) = owner(&home).await;
    let hello = handshake(&home, &session, &path).await;
    // The server refuses a handshake with another number in the place of each number.
    let value: Value = serde_json::from_str(&hello).unwrap();
    let other = with_other_version(&value);
    assert_ne!(other, value, "no version in {hello}");
    let answer = sends(&path, format!("{other}\n").as_bytes()).await;
    assert!(answer.contains("version"), "{answer:?}");
    // The client refuses an owner of another version: the claim names it.
    let written = home.owner(&session);
    let (rest, _) = written.trim_end().rsplit_once(' ').unwrap();
    home.set_owner(&session, &format!("{rest} 999"));
    let mut agent = editor(&home, &home.script(json!([])), &[]).await;
    let replayed = agent.load(&home, &session).await;
    assert!(!replayed.is_empty());
    let error = agent.request("session/prompt", prompt(&session, "go")).await.unwrap_err();
    assert!(error.to_string().contains("version"), "{error}");
    assert!(error["data"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
    agent.call("_nuncio/session/messages", json!({"sessionId": session})).await;
    agent.finish().await;
    home.set_owner(&session, &written);
    assert_forwards(&home, &session).await;
    let said = server.stop().await;
    assert!(said.contains("version"), "the refused handshake is not logged: {said}");
    assert_complete(&home.log(&session).await);
}

/// Replaces each field whose name contains `version`.
fn with_other_version(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let other = match name.to_lowercase().contains("version") {
                    true => {
                        if value.is_number() {
                            json!(999)
                        } else {
                            json!("999")
                        }
                    }
                    false => with_other_version(value),
                };
                (name.clone(), other)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// A process of another user that reaches the socket is refused.
#[tokio::test]
async fn peer_of_another_user_is_refused() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: not root");
        return;
    }
    let home = Home::new();
    let (server, session, path) = owner(&home).await;
    let hello = handshake(&home, &session, &path).await;
    // Let the other user reach the socket.
    for directory in path.ancestors().skip(1).take_while(|directory| directory.starts_with(home.data().parent().unwrap())) {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": prompt(&session, "forged")});
    let program = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(20)\ns.connect(sys.argv[1])\nprint('connected')\ntry:\n  s.sendall(sys.stdin.buffer.read())\n  print(s.makefile().read())\nexcept OSError as error:\n  print(error)\n";
    let mut command = Command::new("python3");
    command.args(["-c", program, path.to_str().unwrap()]).uid(65_534).gid(65_534);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{hello}\n{call}\n").as_bytes()).unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = bounded("the other user", output).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("connected") && !said.contains("end_turn"), "{said} {output:?}");
    let mut agent = editor(&home, &home.script(json!([says("taken over")])), &[]).await;
    agent.load(&home, &session).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
    let stderr = server.stop().await;
    assert!(stderr.contains("65534"), "the refused user is not logged: {stderr}");
    let log = home.log(&session).await;
    assert!(!log.iter().any(|event| event["body"]["parts"][0]["text"] == "forged"), "another user's prompt ran");
    assert_complete(&log);
}

/// A link or another file in the place of the owner's socket is not followed.
#[tokio::test]
async fn replaced_socket_is_refused() {
    for replaced in ["link to another socket", "dangling link", "file", "directory", "pipe"] {
        let home = Home::new();
        let (server, session, path) = owner(&home).await;
        let elsewhere = home.work().join("elsewhere.sock");
        let listener = tokio::net::UnixListener::bind(&elsewhere).unwrap();
        let kept = home.data().join("kept.sock");
        std::fs::rename(&path, &kept).unwrap();
        match replaced {
            "link to another socket" => std::os::unix::fs::symlink(&elsewhere, &path).unwrap(),
            "dangling link" => std::os::unix::fs::symlink(home.work().join("nothing"), &path).unwrap(),
            "file" => std::fs::write(&path, "x").unwrap(),
            "directory" => std::fs::create_dir(&path).unwrap(),
            _ => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap(),
        }
        let mut agent = editor(&home, &home.script(json!([says("taken over")])), &[]).await;
        let before = home.log(&session).await;
        let answered = tokio::select! {
            answer = refused(&mut agent, &session) => answer,
            _ = listener.accept() => panic!("{replaced}: the prompt went to another socket"),
        };
        assert!(["session_busy", "forbidden"].map(Value::from).contains(&answered["data"]["code"]), "{replaced}: {answered}");
        assert_eq!(home.log(&session).await, before, "{replaced}");
        agent.finish().await;
        match replaced {
            "directory" => std::fs::remove_dir(&path).unwrap(),
            _ => std::fs::remove_file(&path).unwrap(),
        }
        std::fs::rename(&kept, &path).unwrap();
        // The owner works on, and with its own socket in place calls are forwarded again.
        server.prompt(&session, "go").expect(200).await;
        assert_forwards(&home, &session).await;
        server.stop().await;
        assert_complete(&home.log(&session).await);
    }
}

async fn refused(agent: &mut Agent, session: &str) -> Value {
    agent.request("session/prompt", prompt(session, "go")).await.unwrap_err()
}

/// A live process in the place of the owner that accepts and never answers: the call ends.
#[tokio::test]
async fn silent_socket_in_the_place_of_the_owner_does_not_hang_the_caller() {
    let home = Home::new();
    let (server, session, path) = owner(&home).await;
    std::fs::remove_file(&path).unwrap();
    let _silent = tokio::net::UnixListener::bind(&path).unwrap();
    let mut agent = editor(&home, &home.script(json!([])), &[]).await;
    let id = agent.prompt(&session, "go").await;
    let answer = tokio::time::timeout(LIMIT, agent.answer(&id)).await.expect("the call ends");
    answer.expect_err("nothing was prompted");
    agent.finish().await;
    server.prompt(&session, "go").expect(200).await;
    server.stop().await;
}
