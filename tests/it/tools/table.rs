//! The table in docs/TOOLS.md about what the tools that change files keep and refuse: each cell is
//! tried.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use harness::steps::{bash, calls_one};
use harness::{Home, package};

const TOOLS: [&str; 3] = ["write", "edit", "apply_patch"];

/// Rows of the table: the name, the file, its mode, and the file after `one` became `two`.
const ROWS: &[(&str, &[u8], u32, &[u8])] = &[
    ("line endings", b"one\r\nmore\r\n", 0o644, b"two\r\nmore\r\n"),
    ("byte order mark", b"\xef\xbb\xbfone\nmore\n", 0o644, b"\xef\xbb\xbftwo\nmore\n"),
    ("UTF-16", b"\xff\xfeo\0n\0e\0\n\0", 0o644, b"\xff\xfet\0w\0o\0\n\0"),
    ("other encodings", b"one\n\xe9\n", 0o644, b"two\n\xe9\n"),
    ("mode", b"one\nmore\n", 0o751, b"two\nmore\n"),
    ("hard links", b"one\nmore\n", 0o644, b"two\nmore\n"),
    ("file without a write bit", b"one\nmore\n", 0o444, b"two\nmore\n"),
    ("file changed since it was read", b"one\nmore\n", 0o644, b"two\nmore\n"),
    ("file that the session has not read whole", b"one\nmore\n", 0o644, b"two\nmore\n"),
    ("existing file at the path of a new one", b"one\nmore\n", 0o644, b"two\nmore\n"),
];

/// Returns the input of a call that changes `one` to `two` in the file, or creates it if `creates`.
fn input(tool: &str, row: &str, before: &[u8]) -> Value {
    let creates = row.starts_with("existing");
    let rest = if before.windows(4).any(|part| part == b"more") { "more\n" } else { "" };
    match tool {
        "write" => json!({"file_path": "f", "content": format!("two\n{rest}")}),
        "edit" if creates => json!({"file_path": "f", "old_string": "", "new_string": "two\nmore\n"}),
        "edit" => json!({"file_path": "f", "old_string": "one", "new_string": "two"}),
        _ if creates => json!({"patch": "*** Begin Patch\n*** Add File: f\n+two\n+more\n*** End Patch"}),
        _ => json!({"patch": "*** Begin Patch\n*** Update File: f\n@@\n-one\n+two\n*** End Patch"}),
    }
}

/// Makes the call, and returns how it treats the property of the row, in the words of the table.
async fn treatment(tool: &str, (row, before, mode, after): (&str, &[u8], u32, &[u8])) -> &'static str {
    let home = Home::new();
    let file = home.work().join("f");
    std::fs::write(&file, before).unwrap();
    set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    if row == "hard links" {
        std::fs::hard_link(&file, home.work().join("other")).unwrap();
    }
    let changed = row.starts_with("file changed");
    let command = if changed { "echo more >> f" } else { "true" };
    let first = if row.ends_with("not read whole") { "none" } else { "f" };
    let steps = [
        calls_one("read", json!({"file_path": first})),
        bash(command),
        calls_one(tool, input(tool, row, before)),
        json!({"text": "ok"}),
    ];
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    agent.otherwise = harness::Reply::Pick("reject_once");
    agent.turn(&session, "go").await;
    let asked = agent.questions() > 0;
    agent.finish().await;
    let log = home.log(&session).await;
    let end = harness::log::bodies(&log, "tool.completed")[2].clone();
    let now = std::fs::read(&file).unwrap();
    let is_unchanged = now == before || changed && now == [before, b"more\n"].concat();
    let text = end["output"].to_string();
    match end["status"].as_str().unwrap() {
        "failed" if is_unchanged && asked => "asks",
        "failed" if is_unchanged => "refuses",
        "completed" if text.contains("hard link") || text.contains("was not UTF-8") => "says",
        "completed" if row.starts_with("existing") && now == after => "replaces",
        "completed" if now == after && file.metadata().unwrap().mode() & 0o777 == mode => "keeps",
        _ => panic!("{tool} {row}: {text} {now:?}"),
    }
}

#[tokio::test]
async fn table_says_what_each_tool_keeps_and_refuses() {
    let page = std::fs::read_to_string(package("docs/TOOLS.md")).unwrap();
    let table = page.split("| property of the file |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<Vec<&str>> =
        table.lines().skip(2).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ROWS.iter().map(|row| row.0).collect::<Vec<_>>());
    for (cells, row) in rows.iter().zip(ROWS) {
        for (tool, cell) in TOOLS.iter().zip(&cells[1..]) {
            let said = cell.split([':', ' ', ',']).next().unwrap();
            assert_eq!(treatment(tool, *row).await, said, "{tool}, {}", row.0);
        }
    }
}
