//! What a composer completes: slash commands and files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::refused;
use harness::Home;

#[tokio::test]
async fn commands_of_a_session_are_listed() {
    let home = Home::new();
    home.put(".nuncio/commands/ship.md", "---\ndescription: Ship it\nargument-hint: VERSION\n---\nShip $1.");
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let listed = agent.call("_nuncio/command/list", json!({"sessionId": session})).await;
    let commands = listed["commands"].as_array().unwrap();
    let names: Vec<&str> = commands.iter().map(|command| command["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["compact", "context", "init", "review", "ship"]);
    assert_eq!(commands[4], json!({"name": "ship", "description": "Ship it", "hint": "VERSION"}));
    assert_eq!(commands[1].get("hint"), None);
    refused(&mut agent, &[("_nuncio/command/list", json!({"sessionId": "sess_no"}), -32002, "not found")]).await;
    agent.finish().await;
}

#[tokio::test]
async fn files_are_found_by_characters_of_their_path() {
    let home = Home::new();
    home.put(".gitignore", "built/\n");
    for file in ["src/main.rs", "src/lib.rs", "src/mail/server.rs", "built/main.rs", ".hidden/main.rs", "README.md", "a b.txt"] {
        home.put(file, "");
    }
    let (mut agent, session) = home.session(json!([]), &[]).await;
    // Query, limit, paths.
    let cases: &[(&str, usize, &[&str])] = &[
        ("smain", 5, &["src/main.rs"]),
        ("main.rs", 5, &["src/main.rs"]),
        ("src/", 2, &["src/", "src/mail/"]),
        ("readme", 5, &["README.md"]),
        ("ReadMe", 5, &[]),
        ("a\\ b", 5, &["a b.txt"]),
        ("", 3, &["README.md", "a b.txt", "src/"]),
        ("zzz", 5, &[]),
    ];
    for (query, limit, paths) in cases {
        let params = json!({"sessionId": session, "query": query, "limit": limit});
        let found = agent.call("_nuncio/file/search", params).await;
        assert_eq!(found, json!({"paths": paths, "truncated": false}), "{query:?}");
    }
    let search = |query: Value, limit: Value| json!({"sessionId": session, "query": query, "limit": limit});
    refused(
        &mut agent,
        &[
            ("_nuncio/file/search", search(json!("a"), json!(0)), -32602, "limit"),
            ("_nuncio/file/search", search(json!("a"), json!(201)), -32602, "limit"),
            ("_nuncio/file/search", search(json!("a".repeat(1025)), json!(1)), -32602, "query"),
            ("_nuncio/file/search", json!({"sessionId": "sess_no", "query": "a"}), -32002, "not found"),
        ],
    )
    .await;
    agent.finish().await;
}

/// Before the first session of a directory.
#[tokio::test]
async fn commands_and_files_of_a_directory_are_completed() {
    let home = Home::new();
    home.put(".nuncio/commands/ship.md", "---\ndescription: Ship it\n---\nShip.");
    home.put("src/main.rs", "");
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let listed = agent.call("_nuncio/command/list", json!({"cwd": home.work()})).await;
    assert!(listed["commands"].as_array().unwrap().iter().any(|command| command["name"] == "ship"), "{listed}");
    let found = agent.call("_nuncio/file/search", json!({"cwd": home.work(), "query": "main"})).await;
    assert_eq!(found["paths"], json!(["src/main.rs"]));
    for method in ["_nuncio/command/list", "_nuncio/file/search"] {
        let both = json!({"cwd": home.work(), "sessionId": "sess_no"});
        refused(
            &mut agent,
            &[
                (method, json!({"cwd": "/nowhere"}), -32602, "not a directory"),
                (method, json!({}), -32602, "either sessionId or cwd"),
                (method, both, -32602, "either sessionId or cwd"),
            ],
        )
        .await;
    }
    agent.finish().await;
}

/// A client may read what the session may: its additional directories, and what its answers allow.
#[tokio::test]
async fn files_are_read_in_all_directories_of_the_session() {
    let home = Home::new();
    let other = home.put("../other/a.txt", "other\n").canonicalize().unwrap();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let directory = other.parent().unwrap();
    let params = json!({"cwd": home.work(), "mcpServers": [], "additionalDirectories": [directory]});
    let session = agent.call("session/new", params).await["sessionId"].clone();
    let found = agent.call("_nuncio/file/read", json!({"sessionId": session, "path": other})).await;
    assert_eq!(found["text"], "other\n");
    let without = agent.new_session(&home).await;
    refused(&mut agent, &[("_nuncio/file/read", json!({"sessionId": without, "path": other}), -32011, "outside")]).await;
    agent.finish().await;
}

#[tokio::test]
async fn files_are_read_within_the_directory_and_the_rules() {
    let home = Home::new();
    home.config("[[permissions.rules]]\ntool = \"read\"\npath = \"secret/**\"\npolicy = \"ask\"\n");
    home.put("src/main.rs", "fn main() {}\n");
    home.put("secret/key.txt", "key");
    home.put("data.bin", "\0\0\0a\0b");
    home.put("large.txt", &"x".repeat((2 << 20) + 1));
    std::os::unix::fs::symlink("/etc/passwd", home.work().join("link")).unwrap();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let read = |path: &str| json!({"sessionId": session, "path": path});
    let found = agent.call("_nuncio/file/read", read("src/main.rs")).await;
    assert_eq!((&found["text"], &found["size"]), (&json!("fn main() {}\n"), &json!(13)));
    assert!(found["name"].as_str().unwrap().ends_with("/src/main.rs"), "{found}");
    refused(
        &mut agent,
        &[
            ("_nuncio/file/read", read("secret/key.txt"), -32011, "rule"),
            ("_nuncio/file/read", read("/etc/passwd"), -32011, "outside"),
            ("_nuncio/file/read", read("../elsewhere"), -32011, "outside"),
            ("_nuncio/file/read", read("link"), -32011, "outside"),
            ("_nuncio/file/read", read("none.txt"), -32002, "does not exist"),
            ("_nuncio/file/read", read("src"), -32602, "cannot be shown"),
            ("_nuncio/file/read", read("data.bin"), -32602, "neither text"),
            ("_nuncio/file/read", read("large.txt"), -32602, "larger"),
            ("_nuncio/file/read", read("a\0b"), -32602, "path"),
            ("_nuncio/file/read", read(""), -32602, "path: not a path"),
        ],
    )
    .await;
    agent.finish().await;
}

/// A directory that becomes a link to another one between the check and the read opens nothing.
#[tokio::test]
async fn link_that_replaces_a_directory_reads_nothing_outside() {
    let home = Home::new();
    home.put("inside/file.txt", "inside");
    let outside = home.put("../outside/file.txt", "outside");
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let (here, kept, ended) = (home.work().join("inside"), home.work().join("kept"), Arc::new(AtomicBool::new(false)));
    let stop = ended.clone();
    let swaps = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::fs::rename(&here, &kept).unwrap();
            std::os::unix::fs::symlink(outside.parent().unwrap(), &here).unwrap();
            std::fs::remove_file(&here).unwrap();
            std::fs::rename(&kept, &here).unwrap();
        }
    });
    let (mut read, mut refused) = (0, 0);
    while read < 20 || refused < 20 || read + refused < 1000 {
        match agent.request("_nuncio/file/read", json!({"sessionId": session, "path": "inside/file.txt"})).await {
            Ok(found) => {
                assert_eq!(found["text"], "inside");
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    ended.store(true, Ordering::Relaxed);
    swaps.join().unwrap();
    agent.finish().await;
}
