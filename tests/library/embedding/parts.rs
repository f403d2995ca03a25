//! Tools, hooks, models and the callback of the embedding program.

use std::path::Path;
use std::sync::Arc;

use nuncio::event::{Body, ToolEnd};
use nuncio::{Agent, Decision, Kind, Mode, Output, Tool, ToolAccess, ToolContext, ToolError};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{builder, events, outputs};
use harness::steps::bash;
use harness::{Home, UNCONFINED};

/// Repeats a word.
#[derive(Deserialize, JsonSchema)]
struct Word {
    /// The word, or the path of a file.
    word: String,
}

struct Repeat {
    name: &'static str,
    access: ToolAccess,
}

impl Tool for Repeat {
    type Input = Word;

    fn name(&self) -> &str {
        self.name
    }

    fn access(&self) -> ToolAccess {
        self.access
    }

    fn resources(&self, input: &Word) -> Vec<String> {
        vec![input.word.clone()]
    }

    async fn run(&self, input: Word, context: &ToolContext<'_>) -> Result<Output, ToolError> {
        context.progress("working");
        if input.word == "fail" {
            return Err(ToolError::new("it failed"));
        }
        assert!(context.directory().is_absolute() && context.resolve("a").ends_with("a"));
        Ok(Output::text(format!("{0} {0}", input.word)).with_details(json!({"length": input.word.len()})))
    }
}

fn call(name: &str, word: Value) -> Value {
    json!({"tool_calls": [{"name": name, "input": {"word": word}}]})
}

/// Calls of a tool by its access, in the mode `ask`: which ones a program without a callback runs.
#[tokio::test]
async fn access_of_an_own_tool_decides_about_permissions() {
    let cases = [
        (ToolAccess::Nothing, "a", true),
        (ToolAccess::Read, "a", true),
        (ToolAccess::Read, "/etc/hostname", false),
        (ToolAccess::Write, "a", false),
        (ToolAccess::Network, "https://example.com/", false),
        (ToolAccess::Service, "a", false),
    ];
    for (access, word, runs) in cases {
        let home = Home::new();
        let steps = json!([call("repeat", word.into()), {"text": "done"}]);
        let agent = builder(&home, steps).tool(Repeat { name: "repeat", access }).build().await.unwrap();
        let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
        let output = outputs(&events(&mut turn).await.unwrap()).concat();
        assert_eq!(output == format!("{word} {word}"), runs, "{access:?} {word}: {output}");
        agent.close().await.unwrap();
    }
}

#[tokio::test]
async fn own_tool_reports_errors_and_details() {
    let home = Home::new();
    let steps =
        json!([call("repeat", json!({"a": 1})), call("repeat", "fail".into()), call("repeat", "a".into()), {"text": "done"}]);
    let tool = || Repeat { name: "repeat", access: ToolAccess::Nothing };
    let agent = builder(&home, steps).tool(tool()).build().await.unwrap();
    let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
    let all = events(&mut turn).await.unwrap();
    let outputs = outputs(&all);
    assert!(outputs[0].contains("word"), "{outputs:?}");
    assert_eq!(outputs[1..], ["it failed", "a a"]);
    let details = all.iter().find_map(|event| match &event.body {
        Body::ToolCompleted(ToolEnd { details: Some(details), .. }) if details["length"] == 1 => Some(details.clone()),
        _ => None,
    });
    assert_eq!(details, Some(json!({"length": 1})));
    agent.close().await.unwrap();

    for name in ["bash", "", "a b", &"a".repeat(65)] {
        let name = String::leak(name.to_owned());
        let refused = builder(&home, json!([])).tool(Repeat { name, access: ToolAccess::Nothing }).build().await;
        assert_eq!(refused.err().unwrap().kind, Kind::InvalidParams, "{name}");
    }
    let twice = builder(&home, json!([])).tool(tool()).tool(tool()).build().await;
    assert_eq!(twice.err().unwrap().message, "there is another tool repeat");
}

#[tokio::test]
async fn callback_decides_about_each_question() {
    // The command, and whether it starts with `echo a` as a permission rule sees it.
    let cases = [
        ("echo a", true),
        ("echo  a b", true),
        ("echo a && echo a c", true),
        ("echo ab", false),
        ("echo a; echo b", false),
        ("echo a $(echo b)", false),
        ("echo a > file", false),
        ("env -S 'echo a' echo b", false),
    ];
    let home = Home::new();
    let mut steps: Vec<Value> = cases.iter().map(|(command, _)| bash(command)).collect();
    steps.push(json!({"text": "done"}));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let agent = builder(&home, json!(steps))
        .decide(move |question| {
            let starts = question.command_starts_with("echo a");
            seen.lock().push((question.command().unwrap().to_owned(), starts));
            async move { if starts { Decision::Once } else { Decision::Deny("not this one".into()) } }
        })
        .build()
        .await
        .unwrap();
    // A session that is not held is asked about, too.
    let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
    let outputs = outputs(&events(&mut turn).await.unwrap());
    assert_eq!(*asked.lock(), cases.map(|(command, starts)| (command.to_owned(), starts)));
    for ((command, runs), output) in cases.iter().zip(&outputs) {
        assert_eq!(output.contains("not this one"), !runs, "{command}: {output}");
    }
    agent.close().await.unwrap();
}

#[tokio::test]
async fn always_is_remembered_and_a_panic_denies() {
    let home = Home::new();
    let steps = json!([bash("touch a"), bash("touch a"), bash("touch b"), {"text": "done"}]);
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let agent = builder(&home, steps)
        .decide(move |question| {
            *count.lock() += 1;
            async move {
                assert!(question.command() == Some("touch a"), "a question that the program does not expect");
                Decision::Always
            }
        })
        .build()
        .await
        .unwrap();
    agent.session().await.unwrap().prompt("go").await.unwrap().finish().await.unwrap();
    assert_eq!((*asked.lock(), home.get("a").is_some(), home.get("b").is_some()), (2, true, false));
    agent.close().await.unwrap();
}

#[tokio::test]
async fn closures_run_before_and_after_tool_calls() {
    let home = Home::new();
    let steps = json!([bash("echo one"), bash("echo two"), bash("echo three"), {"text": "done"}]);
    let agent = builder(&home, steps)
        .settings(UNCONFINED)
        .mode(Mode::Auto)
        .before_tool(|call| async move {
            let blocked = call.name == "bash" && call.input["command"] == "echo one";
            if blocked { Err("no ones".to_owned()) } else { Ok(()) }
        })
        .after_tool(|call| async move {
            let blocked = call.output.is_some_and(|output| output.contains("two"));
            if blocked { Err("no twos".to_owned()) } else { Ok(()) }
        })
        .build()
        .await
        .unwrap();
    let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
    let outputs = outputs(&events(&mut turn).await.unwrap());
    let contain = |output: &str, text: &str| assert!(output.contains(text), "{output}");
    contain(&outputs[0], "no ones");
    contain(&outputs[1], "no twos");
    contain(&outputs[2], "three");
    agent.close().await.unwrap();
}

/// Also files whose change is too large to show, and all files of a patch.
#[tokio::test]
async fn question_names_the_changed_files() {
    let home = Home::new();
    for file in ["old.txt", "gone.txt", "moved.txt"] {
        home.put(file, "one\n");
    }
    let tool = |name: &str, input: Value| json!({"tool_calls": [{"name": name, "input": input}]});
    let patch = "*** Begin Patch\n*** Delete File: gone.txt\n*** Update File: moved.txt\n*** Move to: there.txt\n@@\n-one\n+two\n\
                 *** End Patch\n";
    let cases: [(Value, &[&str]); 6] = [
        (tool("write", json!({"file_path": "new.txt", "content": "new\n"})), &["new.txt"]),
        (tool("edit", json!({"file_path": "old.txt", "old_string": "one", "new_string": "two"})), &["old.txt"]),
        (
            json!({"tool_calls": [
                {"name": "read", "input": {"file_path": "gone.txt"}},
                {"name": "apply_patch", "input": {"patch": patch}},
            ]}),
            &["gone.txt", "moved.txt", "there.txt"],
        ),
        (tool("read", json!({"file_path": "/etc/hostname"})), &[]),
        (bash("touch file"), &[]),
        (tool("write", json!({"file_path": "large.txt", "content": "long line\n".repeat(30_000)})), &["large.txt"]),
    ];
    let mut steps: Vec<Value> = cases.iter().map(|(step, _)| step.clone()).collect();
    steps.push(json!({"text": "done"}));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let agent = builder(&home, json!(steps))
        .decide(move |question| {
            seen.lock().push(question.changed_files().into_iter().map(Path::to_owned).collect::<Vec<_>>());
            async move { Decision::Deny("no".into()) }
        })
        .build()
        .await
        .unwrap();
    let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
    let outputs = outputs(&events(&mut turn).await.unwrap());
    let expected: Vec<Vec<_>> = cases.iter().map(|(_, files)| files.iter().map(|file| home.work().join(file)).collect()).collect();
    assert_eq!(*asked.lock(), expected, "{outputs:?}");
    agent.close().await.unwrap();
}

/// A relative root is below the directory of the agent.
#[tokio::test]
async fn agent_has_access_to_its_roots_only() {
    let home = Home::new();
    let other = home.data().join("other");
    let inner = home.work().join("inner");
    for (directory, text) in [(&other, "from other"), (&inner, "from inner"), (&home.work().join("sibling"), "from sibling")] {
        std::fs::create_dir_all(directory).unwrap();
        std::fs::write(directory.join("a.txt"), text).unwrap();
    }
    let read = |path: &Path| json!({"tool_calls": [{"name": "read", "input": {"file_path": path.join("a.txt")}}]});
    let cases = [(Some(other.clone()), [true, false]), (Some("../sibling".into()), [false, true]), (None, [false, false])];
    for (root, allowed) in cases {
        let steps = json!([read(&other), read(&home.work().join("sibling")), read(&inner), {"text": "done"}]);
        let mut agent = Agent::builder(&inner)
            .helper(harness::program())
            .environment([("TMPDIR".to_owned(), home.data().display().to_string())])
            .model(home.script(steps));
        if let Some(root) = &root {
            agent = agent.root(root);
        }
        let agent = agent.build().await.unwrap();
        let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
        let outputs = outputs(&events(&mut turn).await.unwrap());
        let read = |index: usize, text: &str| outputs[index].contains(text);
        assert_eq!([read(0, "from other"), read(1, "from sibling")], allowed, "{root:?}: {outputs:?}");
        assert!(read(2, "from inner"), "{outputs:?}");
        agent.close().await.unwrap();
    }
    let missing = builder(&home, json!([])).root("none").build().await;
    assert_eq!(missing.err().unwrap().kind, Kind::InvalidParams);
}
