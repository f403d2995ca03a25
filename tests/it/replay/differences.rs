//! What a replay says about the parts that differ.

use serde_json::json;

use super::{export, recorded, replay, repository, session, steps};
use harness::Home;
use harness::steps::{bash, calls_one};

/// Replaces a text in a file of the recording.
fn change(home: &Home, file: &str, from: &str, to: &str) {
    let path = format!("../recording/{file}");
    let text = home.get(&path).unwrap_or_else(|| panic!("{file} is missing"));
    assert!(text.contains(from), "{file}: {text}");
    home.put(&path, &text.replacen(from, to, 1));
}

/// A changed part of the expectations is named, with its lines; `--update` accepts it.
#[tokio::test]
async fn each_changed_part_is_named() {
    needs_linux!("sandbox");
    let (home, _) = recorded(steps()).await;
    // The file, its text and the changed one, and what the replay prints.
    let cases = [
        ("expected/system-1.md", "You are nuncio", "You were nuncio", "request 1, system prompt\n  - You were nuncio"),
        ("expected/tools-1.json", "\"name\":\"grep\"", "\"name\":\"grap\"", "request 1, tool, which is missing: grap"),
        (
            "expected/requests.json",
            "Make it print 4.",
            "Make it print 5.",
            "request 1, message 1 (user), part 3\n  - Make it print 5.\n  + Make it print 4.",
        ),
        ("expected/requests.json", "echo 3 # mine", "echo 3 # yours", "request 2, message 3 (tool), part 1, call_1\n  - "),
        ("expected/results.json", "\"status\": \"completed\"", "\"status\": \"failed\"", "result of call_1 (read)"),
        ("expected/results.json", "\"end_turn\"", "\"refusal\"", "end of turn 1"),
        ("expected/results.json", "The start of the session", "Another start", "repository: commits\n  - Another start"),
        ("expected/files/total.sh", "echo 4", "echo 5", "file total.sh differs\n  - echo 5 # mine\n  + echo 4 # mine"),
        ("start/commit/AGENTS.md", "briefly", "at length", "request 1, system prompt\n  - Answer briefly.\n  + Answer at length."),
    ];
    for (file, from, to, named) in cases {
        change(&home, file, from, to);
        let ran = replay(&home, &[]).await;
        assert_eq!(ran.code, 1, "{file} {ran:?}");
        assert!(ran.stdout.starts_with("DIFFERS ../recording\n") && ran.stdout.contains(named), "{file}: {named}: {}", ran.stdout);
        let updated = replay(&home, &["--update"]).await;
        assert!(updated.code == 0 && updated.stdout.starts_with("updated ../recording\n"), "{file} {updated:?}");
        assert_eq!(replay(&home, &[]).await.code, 0, "{file}");
    }
}

/// A difference that all later requests repeat is named once.
#[tokio::test]
async fn repeated_difference_is_named_once() {
    needs_linux!("sandbox");
    let (home, _) = recorded(steps()).await;
    change(&home, "expected/system-1.md", "You are nuncio", "You were nuncio");
    let ran = replay(&home, &[]).await;
    assert_eq!(ran.stdout.matches("system prompt").count(), 1, "{ran:?}");
}

/// A rule that denies a call is a difference of the result and of the message.
#[tokio::test]
async fn changed_rule_is_named() {
    needs_linux!("sandbox");
    let (home, _) = recorded(json!([bash("echo one"), {"text": "ok"}])).await;
    home.put("../recording/settings.toml", "[permissions]\nrules = [{ tool = \"bash\", policy = \"deny\" }]\n");
    let ran = replay(&home, &[]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("result of call_1 (bash)") && ran.stdout.contains("+     \"by\": \"rule\""), "{ran:?}");
}

/// A script with fewer or more answers than requests is a difference, not a hang.
#[tokio::test]
async fn missing_answer_is_a_difference() {
    needs_linux!("sandbox");
    let (home, _) = recorded(json!([bash("echo one"), {"text": "ok"}])).await;
    let script = json!({"steps": [calls_one("bash", json!({"command": "echo one"}))]});
    home.put("../recording/script.json", &script.to_string());
    let ran = replay(&home, &[]).await;
    assert!(ran.code == 1 && ran.stdout.contains("end of turn 1"), "{ran:?}");
}

/// Dates, ids and paths of the session are names in the recording.
#[tokio::test]
async fn recording_has_no_date_id_and_path() {
    needs_linux!("sandbox");
    let home = repository();
    let id = session(&home, steps(), &[]).await;
    export(&home, &id).await;
    let requests = home.get("../recording/expected/requests.json").unwrap();
    assert!(
        requests.contains("Date: <@date> (UTC)") && requests.contains("\"<@cwd>\"") && requests.contains("<@time>"),
        "{requests}"
    );
    for (path, text) in super::files(&home.work().join("../recording")) {
        assert!(!text.contains(&id) && !text.contains(home.work().to_str().unwrap()), "{path:?}: {text}");
    }
}
