//! Tools called through the tool table, as the agent calls them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nuncio::content::{Part, ToolContent, plain_text};
use nuncio::internal::process::ProcessLauncher;
use nuncio::internal::toolkit::{Shell, ToolContext, ToolError, ToolOutput};
use nuncio::internal::tools::Tools;
use nuncio::internal::workspace::Workspace;
use serde_json::{Value, json};
use tempfile::TempDir;

mod bash;
mod diagram;
mod edits;
mod fetch;
mod files;
mod git;
mod git_remotes;
mod git_trust;
mod hostile_files;
mod ignores;
mod jobs;
mod patches;
mod random_calls;
mod repo_map;
mod roots;
mod sandbox;
mod search;
mod transactions;
mod variables;

/// A temporary workspace with all native tools.
struct World {
    directory: TempDir,
    tools: Tools,
    context: ToolContext,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("work");
        std::fs::create_dir(&root).unwrap();
        let workspace = Arc::new(Workspace::new(&root, [], &directory.path().join("artifacts")));
        let context =
            ToolContext::new(workspace.clone(), Arc::new(Shell::new(&workspace)), ProcessLauncher::new(harness::program()));
        World { directory, tools: Tools::native(), context }
    }

    fn with_files(files: &[(&str, &str)]) -> World {
        let world = World::new();
        for (path, content) in files {
            world.put(path, content);
        }
        world
    }

    fn path(&self, path: &str) -> PathBuf {
        self.context.workspace.cwd.join(path)
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).unwrap()
    }

    async fn call(&self, name: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let start = self.context.shell.start(&self.context.workspace);
        let context = ToolContext { start, ..self.context.clone() };
        self.tools.prepare(name, input, &context)?.run(&context).await
    }

    /// The text that the model receives for a call, prefixed with `ok` or `error`.
    async fn told(&self, name: &str, input: Value) -> String {
        match self.call(name, input).await {
            Ok(output) => format!("ok {}", plain_text(&output.parts)),
            Err(error) => format!("error {error}"),
        }
    }
}

#[test]
fn tool_specifications_have_the_common_form() {
    let specs = Tools::native().specs();
    let told: Vec<Value> = specs
        .iter()
        .map(|spec| json!({"name": spec.name, "description": spec.description, "input_schema": spec.input_schema}))
        .collect();
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("null") && !text.contains("$") && !text.contains("\"format\""), "{text}");
    for spec in specs.iter() {
        assert!(!spec.description.is_empty(), "{}", spec.name);
        assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
        assert!(spec.input_schema["properties"].is_object(), "{}", spec.name);
    }
    let read = specs.iter().find(|spec| spec.name == "read").unwrap();
    insta::assert_snapshot!(serde_json::to_string(&read.input_schema).unwrap(), @r#"{"type":"object","properties":{"file_path":{"type":"string","description":"Absolute, or relative to the session's directory (not bash's)."},"offset":{"type":"integer","description":"First line, from 1."},"limit":{"type":"integer","description":"Lines to read, default 2000, at most 5000."},"skip_bytes":{"type":"integer","description":"Bytes to skip in the first line."}},"required":["file_path"]}"#);
}

#[tokio::test]
async fn tool_aliases_resolve() {
    let tools = Tools::native();
    let names = [
        ("fs_read", "read"),
        ("fs_write", "write"),
        ("fs_edit", "edit"),
        ("fs_glob", "glob"),
        ("fs_grep", "grep"),
        ("fs_list", "list"),
        ("read_file", "read"),
        ("write_file", "write"),
        ("str_replace", "edit"),
        ("search", "grep"),
        ("search_files", "glob"),
        ("repo_tree", "list"),
        ("list_dir", "list"),
        ("shell", "bash"),
        ("execute", "bash"),
        ("run_command", "bash"),
        ("todo_write", "plan"),
        ("update_plan", "plan"),
        ("patch", "apply_patch"),
        ("read", "read"),
    ];
    for (name, tool) in names {
        assert_eq!(tools.get(name).map(|tool| tool.name()), Some(tool), "{name}");
    }
    assert!(tools.get("nothing").is_none());
}

#[tokio::test]
async fn small_deviations_in_input_are_accepted() {
    let world = World::new();
    world.put("a", (1..=201).map(|number| format!("{number}\n")).collect::<String>());
    let two_and_three = "ok      2\t2\n     3\t3\n[truncated: lines 2 to 3 of 201; read on with offset 4]";
    let takes = "it takes file_path: string, offset?: integer, limit?: integer, skip_bytes?: integer";
    let told = |error: &str| format!("error read: {error}; {takes}");
    let cases = [
        (json!({"file_path": "a", "offset": 2, "limit": 2}), two_and_three.into()),
        (json!({"file_path": "a", "offset": "2", "limit": "2"}), two_and_three.into()),
        (json!({"path": "a", "offset": 2.0, "limit": 2, "description": "the middle"}), two_and_three.into()),
        (json!({"path": "a", "start_line": 2}), told("there is no argument start_line")),
        (json!("{\"file_path\": \"a\", \"offset\": 2, \"limit\": 2}"), two_and_three.into()),
        (json!({"file_path": "a", "offset": 201, "limit": null}), "ok    201\t201\n".into()),
        // Misspelled argument names.
        (json!({"filePath": "a", "Offset": 201}), "ok    201\t201\n".into()),
        (json!({"file-path": "a", "OFFSET": 201}), "ok    201\t201\n".into()),
        (json!({"target_file": "a", "offset": 201}), "ok    201\t201\n".into()),
        (json!({"file_pth": "a", "offset": 201}), "ok    201\t201\n".into()),
        (json!({"filename": "a", "what": "a"}), told("missing field `file_path`")),
        (json!({"first_file": "a", "second_file": "b"}), told("missing field `file_path`")),
        (json!({}), told("missing field `file_path`")),
        (json!(null), told("missing field `file_path`")),
        (json!([]), "error read: the input must be a JSON object with file_path: string, offset?: integer, limit?: integer, skip_bytes?: integer".into()),
        (
            json!("a"),
            "error read: the input must be a JSON object with file_path: string, offset?: integer, limit?: integer, skip_bytes?: integer".into(),
        ),
        (json!({"file_path": null}), told("file_path: invalid type: null, expected a string")),
        (json!({"file_path": "a", "offset": "two"}), told("offset: invalid type: string \"two\", expected an integer")),
        (json!({"file_path": "a", "offset": -1}), told("offset: invalid value: integer `-1`, expected an integer")),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("read", input.clone()).await, told, "{input}");
    }
    let entries = json!({"entries": "[{\"content\": \"one\"}]"});
    assert_eq!(world.told("plan", entries).await, "ok plan updated: 0 of 1 done");
    let told = world.told("nothing", json!({})).await;
    assert!(told.starts_with("error there is no tool nothing; available: apply_patch, bash, "), "{told}");
}

#[tokio::test]
async fn titles_are_short_and_relative() {
    let world = World::new();
    let outside = world.directory.path().join("x").display().to_string();
    let cases = [
        ("read", json!({"file_path": world.path("src/a.rs")}), "Read src/a.rs".to_owned()),
        ("read", json!({"file_path": "src/../b.rs", "offset": 3}), "Read b.rs from line 3".into()),
        ("read", json!({"file_path": "b.rs", "offset": 3, "limit": 10}), "Read b.rs lines 3-12".into()),
        ("read", json!({"file_path": "../x"}), format!("Read {outside}")),
        ("write", json!({"file_path": "a", "content": ""}), "Write a".into()),
        ("edit", json!({"file_path": "a", "old_string": "", "new_string": ""}), "Edit a".into()),
        ("bash", json!({"command": "cargo test"}), "`cargo test`".into()),
        ("bash", json!({"command": "cd a\ncargo test"}), "`cd a …`".into()),
        ("bash", json!({"command": "cargo run", "background": true}), "`cargo run` in background".into()),
        ("bash_output", json!({}), "List background jobs".into()),
        ("bash_output", json!({"job": "1"}), "Output of job 1".into()),
        ("bash_kill", json!({"job": "1"}), "End job 1".into()),
        ("grep", json!({"pattern": "foo", "path": "src"}), "Search \"foo\" in src".into()),
        ("grep", json!({"pattern": "foo"}), "Search \"foo\"".into()),
        ("glob", json!({"pattern": "*.rs"}), "Find *.rs".into()),
        ("list", json!({}), "List .".into()),
        ("repo_map", json!({"path": "src"}), "Map src".into()),
        ("plan", json!({"entries": []}), "Update the plan".into()),
        ("apply_patch", json!({"patch": "*** Begin Patch\n*** Delete File: ./a\n*** End Patch"}), "Patch a".into()),
        ("apply_patch", json!({"patch": "--- a/a\n+++ b/a\n@@\n-a\n--- a/b\n+++ b/b\n@@\n-a\n"}), "Patch a and 1 more".into()),
        ("apply_patch", json!({"patch": "none"}), "Apply a patch".into()),
        ("diagram", json!({"source": ""}), "Draw a diagram".into()),
        ("fetch", json!({"url": "HTTPS://Docs.rs/a/../b"}), "Fetch https://docs.rs/b".into()),
        ("git_status", json!({}), "Git status".into()),
        ("git_diff", json!({"staged": true, "path": "./a"}), "Git diff of staged changes in a".into()),
        ("git_log", json!({"path": "src/../b"}), "Git log of b".into()),
        ("git_commit", json!({"message": "Fix it\n\nbody"}), "Commit \"Fix it\"".into()),
        ("git_branch", json!({"action": "list"}), "List branches".into()),
        ("git_branch", json!({"action": "switch", "name": "x"}), "Switch to branch x".into()),
    ];
    for (name, input, title) in cases {
        assert_eq!(world.tools.prepare(name, input, &world.context).map_err(|error| error.0).unwrap().title, title);
    }
}

#[tokio::test]
async fn plan_details_contain_all_entries() {
    let world = World::new();
    let entries = json!([{"content": "one", "status": "completed"}, {"content": "two", "priority": "high"}]);
    let output = world.call("plan", json!({ "entries": entries })).await.unwrap();
    let whole = json!([
        {"content": "one", "priority": "medium", "status": "completed"},
        {"content": "two", "priority": "high", "status": "pending"},
    ]);
    assert_eq!(output.details, json!({ "entries": whole }));
}
