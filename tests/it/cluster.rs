//! Calls between the nodes of a cluster: each node answers for the sessions of the others.

mod ending;
mod gateway;
mod greeting;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use harness::steps::bash;
use harness::{Agent, Bridge, Home, Reply, Server, changing_calls, on_postgres, pause, reading_paths, text};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const NEW_SECRET: &str = "fedcba9876543210fedcba9876543210";

/// A node that other nodes can call, with a session, and a node that calls it.
struct Cluster {
    first: Home,
    second: Home,
    owner: Agent,
    other: Server,
    session: String,
}

impl Cluster {
    /// Starts the owner with this model and these secrets, and the other node. `None` if the store is
    /// SQLite.
    async fn start(steps: Value, secrets: [&str; 2]) -> Option<Cluster> {
        if !on_postgres() {
            eprintln!("skipped: {}: an SQLite store has no nodes", module_path!());
            return None;
        }
        let first = Home::new();
        let second = first.another_node();
        let certificate = certificate(&first.data());
        configure(&first, secrets[0], &format!("name = \"first\"\naddress = \"https://127.0.0.1\"\n{certificate}"));
        configure(&second, secrets[1], "name = \"second\"\n");
        let (mut owner, _) = first.start_with_bridge(&["--model", &first.script(steps)]).await;
        owner.call("initialize", json!({"protocolVersion": 1})).await;
        let session = owner.new_session(&first).await;
        let other = second.serve_script(json!([]), &["--root", first.work().to_str().unwrap()]).await;
        Some(Cluster { first, second, owner, other, session })
    }

    /// Starts it with one secret.
    async fn with_model(steps: Value) -> Option<Cluster> {
        Cluster::start(steps, [SECRET; 2]).await
    }

    /// The error of a prompt at the other node.
    async fn refused(&self) -> String {
        self.other.prompt(&self.session, "go").expect(409).await["error"].to_string()
    }

    /// Creates a token with this role and root. Returns a client of the other node that uses it.
    async fn token(&self, role: &str, root: &str) -> Bridge {
        let name = format!("{role}-{}", root.len());
        let made = self.second.run(&["token", "new", &name, "--role", role, "--root", root], "").await;
        assert_eq!(made.code, 0, "{made:?}");
        self.other.with_token(made.stdout.trim())
    }

    async fn finish(self) {
        self.owner.finish().await;
        self.other.stop().await;
    }
}

/// Writes a certificate. Returns the settings that name it.
fn certificate(dir: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let (certificate, key) = (dir.join("chain.pem"), dir.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    format!("[http]\ntls_certificate = {certificate:?}\ntls_key = {key:?}\n")
}

fn write_secret(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

/// Writes the secrets and the settings of a node.
fn configure(home: &Home, secrets: &str, cluster: &str) {
    write_secret(&home.data().join("cluster.secret"), secrets);
    let file = if secrets.is_empty() { "" } else { "secret_file = \"cluster.secret\"\n" };
    home.config(&format!("[cluster]\n{file}{cluster}"));
}

/// A prompt, a permission request and a cancellation at another node.
#[tokio::test]
async fn session_is_used_from_another_node() {
    let endless = "word ".repeat(5000);
    let cancelled = json!({"text": endless, "chunk_chars": 5, "delay_ms": 20});
    let Some(mut cluster) = Cluster::with_model(json!([{"text": "one"}, bash("touch made"), {"text": "two"}, cancelled])).await
    else {
        return;
    };
    cluster.owner.otherwise = Reply::Never;
    let (other, session) = (&cluster.other, &cluster.session);
    other.prompt(session, "go").expect(200).await;
    let turn = other.begin(session, "ask").await;
    let mut events = other.follow(session).events().await;
    let asked = events.until("permission.requested").await.pop().unwrap();
    let permission = asked.event["body"]["permissionId"].as_str().unwrap();
    let answer = json!({"outcome": "allow_once"});
    other.post(&format!("/v1/permissions/{permission}"), &answer).expect(200).await;
    let events_of_turn = events.until("turn.completed").await;
    assert_eq!(events_of_turn.last().unwrap().event["turnId"], json!(turn));
    assert!(cluster.first.get("made").is_some(), "the command did not run");
    other.begin(session, "wait").await;
    events.until("step.started").await;
    other.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200).await;
    events.until("turn.cancelled").await;
    drop(events);
    let log = cluster.first.log(session).await;
    let answers = log.iter().filter(|event| event["body"]["role"] == "assistant");
    let said: Vec<&str> = answers.filter_map(|event| event["body"]["parts"][0]["text"].as_str()).collect();
    // The cancelled answer has as much text as the model had sent.
    assert_eq!(said[..2], ["one", "two"]);
    assert!(said.len() <= 3 && said[2..].iter().all(|part| endless.starts_with(part)), "{said:?}");
    cluster.finish().await;
}

/// The owner's client sees what another node's client does, and the other way round.
#[tokio::test]
async fn clients_of_two_nodes_see_the_same_turns() {
    let Some(mut cluster) = Cluster::with_model(json!([{"text": "one"}, {"text": "two"}])).await else { return };
    let model = cluster.second.script(json!([]));
    let mut editor = cluster.second.start(&["--model", &model]).await;
    editor.call("initialize", json!({"protocolVersion": 1})).await;
    editor.load(&cluster.first, &cluster.session).await;
    let (stop, updates) = editor.turn(&cluster.session, "go").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "one"));
    let (stop, updates) = cluster.owner.turn(&cluster.session, "go on").await;
    // They begin with those of the other turn.
    assert!(stop == "end_turn" && text(&updates, "agent_message_chunk").ends_with("two"), "{updates:?}");
    editor.until("the turn of the owner", |frame| frame.to_string().contains("two")).await;
    editor.finish().await;
    cluster.finish().await;
}

/// While the secret is being changed, nodes have two. A node with another secret, or without one,
/// is refused with the reason.
#[tokio::test]
async fn nodes_need_a_common_secret() {
    let both = format!("{SECRET}\n{NEW_SECRET}\n");
    let swapped = format!("{NEW_SECRET}\n{SECRET}\n");
    let cases = [
        ([SECRET, &both], None),
        ([&both, SECRET], None),
        ([&swapped, SECRET], Some("has another cluster secret")),
        ([&both, &swapped], None),
        ([NEW_SECRET, &swapped], None),
        ([SECRET, NEW_SECRET], Some("has another cluster secret")),
        ([SECRET, ""], Some("set cluster.secret_file")),
        (["", SECRET], Some("has no address")),
    ];
    for (secrets, refused) in cases {
        let Some(cluster) = Cluster::start(json!([{"text": "one"}]), secrets).await else { return };
        match refused {
            None => drop(cluster.other.prompt(&cluster.session, "go").expect(200).await),
            Some(reason) => {
                let error = cluster.refused().await;
                assert!(error.contains(reason), "{secrets:?}: {error}");
            }
        }
        cluster.finish().await;
    }
}

/// A wrong address, certificate or version of a node in the store is an error of the call.
#[tokio::test]
async fn address_in_the_store_is_checked() {
    let Some(cluster) = Cluster::with_model(json!([{"text": "one"}])).await else { return };
    let cases = [
        ("certificate = 'ab'", "another certificate"),
        ("address = '127.0.0.1:1'", "connecting to 127.0.0.1:1"),
        ("process = replace(process, ' 3', ' 1')", "version 1 of the local protocol"),
        ("address = NULL", "has no address"),
    ];
    let before = cluster.first.sql("SELECT process, address, certificate FROM nodes WHERE address IS NOT NULL").remove(0);
    let [process, address, certificate] = before.split('|').collect::<Vec<_>>().try_into().unwrap();
    for (change, reason) in cases {
        cluster.first.sql(&format!("UPDATE nodes SET {change} WHERE name = 'first'"));
        let error = cluster.refused().await;
        assert!(error.contains(reason), "{change}: {error}");
        cluster.first.sql(&format!(
            "UPDATE nodes SET process = '{process}', address = '{address}', certificate = '{certificate}' WHERE name = 'first'"
        ));
    }
    // The previous version, from which nodes are updated.
    cluster.first.sql("UPDATE nodes SET process = replace(process, ' 3', ' 2') WHERE name = 'first'");
    cluster.other.prompt(&cluster.session, "go").expect(200).await;
    cluster.finish().await;
}

/// Each route × role × root at a node that forwards the calls: as at the owner's node.
#[tokio::test]
async fn rights_of_another_nodes_tokens_apply() {
    let Some(mut cluster) = Cluster::with_model(json!([{"text": "one"}, bash("touch made")])).await else { return };
    cluster.owner.otherwise = Reply::Never;
    let session = cluster.session.clone();
    cluster.other.prompt(&session, "go").expect(200).await;
    cluster.other.begin(&session, "ask").await;
    let mut events = cluster.other.follow(&session).events().await;
    let asked = events.until("permission.requested").await.pop().unwrap();
    let permission = asked.event["body"]["permissionId"].as_str().unwrap().to_owned();
    let before = cluster.first.log(&session).await;
    let work = cluster.first.work().to_str().unwrap().to_owned();
    for (role, root, reads) in [("observer", &*work, true), ("observer", "/usr", false), ("controller", "/usr", false)] {
        let client = cluster.token(role, root).await;
        for path in reading_paths(&session) {
            assert_eq!(is_allowed(&client, "GET", &path, &Value::Null).await, reads, "{role} {root} {path}");
        }
        for (method, path, body) in changing_calls(&session, &permission) {
            // The role is checked first. A permission request outside the roots is not found.
            let hidden = role == "controller" && path.contains(&permission);
            let answer = client.ask(method, &path).json(&body).send().await;
            let expected = if hidden { (404, "not_found".into()) } else { (403, "forbidden".into()) };
            assert_eq!(answer.error(), expected, "{role} {root} {method} {path}");
        }
        assert_eq!(cluster.first.log(&session).await, before, "{role} {root}");
    }
    let client = cluster.token("controller", &work).await;
    client.post(&format!("/v1/permissions/{permission}"), &json!({"outcome": "reject_once"})).expect(200).await;
    events.until("turn.completed").await;
    drop(events);
    for path in reading_paths(&session) {
        assert!(is_allowed(&client, "GET", &path, &Value::Null).await, "{path}");
    }
    for (method, path, body) in changing_calls(&session, &permission) {
        assert!(is_allowed(&client, method, &path, &body).await, "{method} {path}");
    }
    client.get(&format!("/v1/sessions/{session}")).expect(404).await;
    cluster.finish().await;
}

/// Returns whether the role and the roots of the client allow the call.
async fn is_allowed(client: &Bridge, method: &str, path: &str, body: &Value) -> bool {
    let ask = client.ask(method, path);
    let ask = if body.is_null() { ask } else { ask.json(body) };
    let mut connection = ask.open().await;
    let head = connection.head().await.unwrap();
    assert!(head.status < 500 && head.status != 401, "{method} {path}: {head:?}");
    head.status != 403
}

/// A prompt goes to a node that has the directory of the session.
#[tokio::test]
async fn session_runs_at_a_node_that_has_its_directory() {
    let Some(mut cluster) = Cluster::with_model(json!([{"text": "one"}])).await else { return };
    let work = cluster.first.work();
    let project = work.join("project");
    std::fs::create_dir(&project).unwrap();
    let created = cluster.owner.call("session/new", json!({"cwd": project, "mcpServers": []})).await;
    let session = created["sessionId"].as_str().unwrap();
    let model = cluster.second.script(json!([]));
    let flags = ["--root", work.to_str().unwrap(), "--model", &model];
    let Some(without) = cluster.second.serve_without(&work, &flags).await else {
        eprintln!("skipped: {}: this user cannot mount file systems", module_path!());
        return cluster.finish().await;
    };
    let view = async || without.get(&format!("/v1/sessions/{session}")).expect(200).await;
    let close = json!({"sessionId": session});
    cluster.owner.call("session/close", close.clone()).await;
    assert_eq!((&view().await["status"], &view().await["unavailable"]), (&json!("none"), &Value::Null));
    // A client that opens the session before its prompt does not bind it to this node.
    without.post(&format!("/v1/sessions/{session}/resume"), &json!({})).expect(200).await;
    without.prompt(session, "go").expect(200).await;
    assert_eq!(view().await["status"], "idle", "no node owns the session");
    // Now no node has it.
    cluster.owner.call("session/close", close).await;
    std::fs::rename(&project, project.with_extension("away")).unwrap();
    let reason = format!("no running node has the directory {}", project.display());
    assert_eq!((&view().await["status"], &view().await["unavailable"]), (&json!("none"), &json!(reason)));
    let refused = without.prompt(session, "go").expect(409).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains(&reason), "{refused}");
    without.stop().await;
    cluster.finish().await;
}

/// Wrong settings are refused when the server starts.
#[tokio::test]
async fn wrong_settings_have_one_clear_error() {
    let home = Home::new();
    let tls = certificate(&home.data());
    let cases = [
        ("secret_file = \"missing\"\n", "", "missing: No such file"),
        ("secret_file = \"short\"\n", "", "at least 32 characters"),
        ("address = \"https://127.0.0.1\"\n", "", "requires TLS and a PostgreSQL database"),
        (
            "secret_file = \"good\"\naddress = \"http://127.0.0.1\"\n",
            &tls,
            if on_postgres() { "https://HOST:PORT" } else { "PostgreSQL" },
        ),
    ];
    write_secret(&home.data().join("short"), "short");
    write_secret(&home.data().join("good"), SECRET);
    for (cluster, http, message) in cases {
        home.config(&format!("[cluster]\n{cluster}{http}"));
        let ran = home.run(&["serve", "--http", "127.0.0.1:0"], "").await;
        assert!(ran.code == 2 && ran.stderr.contains(message), "{cluster}: {ran:?}");
    }
}

/// A prompt that was forwarded to a node that is then stopped is answered when its lease ends.
#[tokio::test]
async fn prompt_at_a_stopped_node_is_answered() {
    let endless = json!({"text": "word ".repeat(5000), "chunk_chars": 5, "delay_ms": 20});
    let Some(cluster) = Cluster::with_model(json!([endless])).await else { return };
    // A process is a node from its first session on.
    cluster.other.new_session(&cluster.first).await;
    let mut waiting = cluster.other.prompt(&cluster.session, "go").open().await;
    cluster.other.follow(&cluster.session).events().await.until("step.started").await;
    let pid = Pid::from_raw(cluster.owner.pid as i32).unwrap();
    pause(pid).await;
    cluster.first.sql("UPDATE nodes SET lease_until = clock_timestamp() WHERE name = 'first'");
    let answer = waiting.answer("POST").await;
    assert!(answer.status == 499 && answer.json()["error"]["message"].as_str().unwrap().contains("exited"), "{answer:?}");
    kill_process(pid, Signal::CONT).unwrap();
    cluster.finish().await;
}
