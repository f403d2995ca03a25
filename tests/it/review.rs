//! The review of a turn's changes: accepted, rejected, by file, by hunk, with the user's own text.

mod answers;
mod calls;
mod no_answer;
mod other_changes;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use harness::Home;
use harness::log::bodies;
use harness::steps::{call, calls, replace, write};

/// Thirty lines, of which `change` replaces some.
fn lines(change: &[(usize, &str)]) -> String {
    let line = |number: usize| match change.iter().find(|(at, _)| *at == number) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("line {number}\n"),
    };
    (1..=30).map(line).collect()
}

const SCRIPT: &str = "#!/bin/sh\necho old\n";

/// A home with `a.txt` and the executable `gone.sh`, and the setting `review.mode`.
fn home(mode: &str) -> Home {
    let home = Home::new();
    home.config(&format!("[review]\nmode = \"{mode}\"\n"));
    home.put("a.txt", &lines(&[]));
    let script = home.put("gone.sh", SCRIPT);
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o754)).unwrap();
    home
}

/// A turn that changes two places in `a.txt`, deletes `gone.sh` and creates `new/dir/n.txt`.
fn steps() -> Vec<Value> {
    vec![
        replace("a.txt", "first attempt\n"),
        write("a.txt", &lines(&[(3, "THREE"), (25, "TWENTY-FIVE")])),
        calls(&[
            call("read", json!({"file_path": "gone.sh"})),
            call("apply_patch", json!({"patch": "*** Begin Patch\n*** Delete File: gone.sh\n*** End Patch\n"})),
        ]),
        write("new/dir/n.txt", "new\n"),
        json!({"text": "done"}),
    ]
}

/// The content of `a.txt`, the mode of `gone.sh`, the content of `n.txt`, and whether `new` exists.
fn state(home: &Home) -> (Option<String>, Option<u32>, Option<String>, bool) {
    let mode = std::fs::metadata(home.work().join("gone.sh")).ok().map(|metadata| metadata.permissions().mode() & 0o777);
    assert!(home.get("gone.sh").is_none_or(|text| text == SCRIPT));
    (home.get("a.txt"), mode, home.get("new/dir/n.txt"), home.work().join("new").exists())
}

fn as_written() -> (Option<String>, Option<u32>, Option<String>, bool) {
    (Some(lines(&[(3, "THREE"), (25, "TWENTY-FIVE")])), None, Some("new\n".into()), true)
}

fn as_before() -> (Option<String>, Option<u32>, Option<String>, bool) {
    (Some(lines(&[])), Some(0o754), None, false)
}

/// The automatic call that shows the review, as it completed.
fn review(events: &[Value]) -> &Value {
    let started: Vec<_> = bodies(events, "tool.started").into_iter().filter(|body| body["name"] == "review").collect();
    let [started] = started.as_slice() else { panic!("not one review: {events:#?}") };
    assert_eq!(started["automatic"], true);
    let completed = bodies(events, "tool.completed");
    completed.into_iter().find(|body| body["toolCallId"] == started["toolCallId"]).expect("the review ends")
}
