//! The tools that a model is offered, and what its system prompt says of them.

use serde_json::{Value, json};

use harness::provider::session::{connect, home};
use harness::provider::{Exchange, KEY, Protocol};
use harness::wires::WIRES;

/// The lines of the system prompt that name tools, by a word that is only in them.
const NAMING: [(&str, &str); 4] = [
    ("repo_map", "begin with repo_map"),
    ("plan", "with the plan tool"),
    ("verify", "verify runs"),
    ("write", "write for new ones"),
];

/// Settings of the model, flags, and the names of the offered tools (none: all).
const CASES: [(&str, &[&str], &[&str]); 6] = [
    ("", &[], &[]),
    ("tools = [\"read\", \"bash\"]", &[], &["bash", "read"]),
    ("", &["--tools", "read,edit,write,plan"], &["edit", "plan", "read", "write"]),
    ("tools = [\"read\"]", &["--tools", "git_*"], &["git_branch", "git_commit", "git_diff", "git_log", "git_status"]),
    ("tools = [\"read\"]", &["--tools", "*"], &[]),
    ("tools = [\"nothing\"]", &[], &["nothing"]),
];

#[tokio::test]
async fn model_is_offered_the_named_tools_and_told_of_no_other() {
    let wire = &WIRES[0];
    for (settings, flags, names) in CASES {
        let (home, provider, _) = home(wire, Vec::new()).await;
        let file = home.data().join("config.toml");
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{before}\n[models.\"test/*\"]\n{settings}\n")).unwrap();
        provider.respond(|_| Exchange::events(wire.plain));
        let ran = home.run(&[&["run"], flags, &["go"]].concat(), "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let received = provider.finish().await;
        let body = &received[0].body;
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let name =
            |tool: &Value| [&tool["name"], &tool["function"]["name"]].into_iter().find_map(Value::as_str).unwrap().to_owned();
        let offered: Vec<String> = tools.iter().map(name).collect();
        if names.is_empty() {
            assert!(offered.len() > 15, "{settings} {flags:?}: {offered:?}");
        } else {
            let names: Vec<&str> = names.iter().copied().filter(|name| *name != "nothing").collect();
            assert_eq!(json!(offered), json!(names), "{settings} {flags:?}");
        }
        for (tool, words) in NAMING {
            let is_offered =
                offered.iter().any(|name| name == tool) && (tool != "write" || offered.iter().any(|name| name == "edit"));
            assert_eq!(received[0].text.contains(words), is_offered, "{settings} {flags:?}: {words}");
        }
        assert!(!received[0].text.contains("- ["), "a marker of the prompt is left: {}", received[0].text);
    }
}

/// A change of the session's tools changes the prompt of its next turn.
#[tokio::test]
async fn changed_tools_change_the_prompt_of_the_next_turn() {
    let wire = &WIRES[0];
    let (home, provider, _) = home(wire, Vec::new()).await;
    provider.respond(|_| Exchange::events(wire.plain));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "one").await;
    for tools in [json!(["read"]), json!(["*"])] {
        agent.call("_nuncio/session/configure", json!({"sessionId": session, "tools": tools})).await;
        agent.turn(&session, "next").await;
    }
    agent.finish().await;
    let received = provider.finish().await;
    let told: Vec<bool> = received.iter().map(|received| received.text.contains("with the plan tool")).collect();
    assert_eq!(told, [true, false, true]);
}

#[tokio::test]
async fn misspelled_tool_is_an_error() {
    let home = harness::Home::new();
    let model = home.script(json!([{"text": "ok"}]));
    for (list, wrong) in [("raed", "raed"), ("read,gerp,bash", "gerp"), ("", ""), ("x*", "x*")] {
        let ran = home.run(&["run", "--tools", list, "--model", &model, "go"], "").await;
        assert_eq!(ran.code, 2, "{list}: {ran:?}");
        assert!(ran.stderr.contains(&format!("--tools: no tool is called {wrong:?}")), "{list}: {ran:?}");
    }
    let ran = home.run(&["run", "--tools", "read,mcp__docs__*", "--model", &model, "go"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// The model, its settings, flags, tools that it is offered, and tools that it is not offered.
type Offer = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);
const OFFERS: [Offer; 9] = [
    ("test/gpt-6.1-sol", "", &[], &["apply_patch", "write", "bash_output"], &["edit"]),
    ("test/openai/gpt-oss-120b", "", &[], &["apply_patch"], &["edit"]),
    ("test/o4-mini", "", &[], &["apply_patch"], &["edit"]),
    ("test/claude-sonnet", "", &[], &["edit", "write", "bash_output"], &["apply_patch"]),
    ("test/not-gpt", "", &[], &["edit"], &["apply_patch"]),
    ("test/gpt-6.1-sol", "", &["--tools", "edit,read"], &["edit", "read"], &["apply_patch"]),
    ("llamacpp/small", "context_window = 16384", &[], &FEW, &["apply_patch", "bash_output", "git_commit", "plan"]),
    ("llamacpp/large", "context_window = 65536", &[], &["edit", "plan", "git_commit"], &["apply_patch"]),
    ("llamacpp/small", "context_window = 16384\ntools = [\"*\"]", &[], &["edit", "apply_patch", "plan"], &[]),
];
const FEW: [&str; 7] = ["bash", "edit", "glob", "grep", "list", "read", "write"];

#[tokio::test]
async fn model_is_offered_the_tools_that_fit_it() {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).unwrap();
    for (model, settings, flags, offered, missing) in OFFERS {
        let (home, provider, _) = home(wire, Vec::new()).await;
        let key = format!("api_key_command = [\"echo\", \"{KEY}\"]");
        let local =
            format!("[providers.llamacpp]\nbase_url = \"{}\"\n{key}\n[models.\"{model}\"]\n{settings}\n", provider.base_url);
        home.config(&format!("{}\n{local}", home.config_text()));
        provider.respond(|_| Exchange::events(wire.plain));
        let ran = home.run(&[&["run", "--model", model], flags, &["go"]].concat(), "").await;
        assert_eq!(ran.code, 0, "{model}: {ran:?}");
        let received = provider.finish().await.into_iter().find(|received| received.body["messages"].is_array()).unwrap();
        let tools: Vec<&str> =
            received.body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        let case = format!("{model} {settings} {flags:?}: {tools:?}");
        assert!(offered.iter().all(|name| tools.contains(name)), "{case}");
        assert!(!missing.iter().any(|name| tools.contains(name)), "{case}");
        if offered == FEW {
            assert_eq!(tools, FEW, "{case}");
        }
        // No text names a way whose other half is missing.
        assert_eq!(received.text.contains("background"), tools.contains(&"bash_output"), "{case}");
        assert_eq!(
            received.text.contains("Use apply_patch for"),
            tools.contains(&"apply_patch") && tools.contains(&"write"),
            "{case}"
        );
    }
}
