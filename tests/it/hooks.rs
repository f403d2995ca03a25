//! Hooks: commands that change tool calls and model requests.

mod document;
mod effects;
mod hostile;
mod requests;
mod scripts;
mod trust;

use serde_json::{Value, json};

use harness::Home;

/// A hook in the settings whose command is a shell script, which runs in the workspace. `more` has
/// further settings.
fn hook(event: &str, script: &str, more: &str) -> String {
    let script = format!("cd \"$NUNCIO_WORKSPACE\"; {script}");
    format!("[[hooks]]\nevent = \"{event}\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n{more}\n")
}

/// A home with these settings and the files `a.txt` (alpha) and `b.txt` (beta).
fn home(settings: &str) -> Home {
    let home = Home::new();
    home.config(settings);
    home.put("a.txt", "alpha\n");
    home.put("b.txt", "beta\n");
    home
}

/// The events of a prompt with a scripted model in the mode `auto`, and the exit code.
struct Events {
    code: i32,
    events: Vec<Value>,
}

impl Events {
    async fn from_run(home: &Home, steps: Value, more: &[&str]) -> Events {
        let model = home.script(steps);
        let flags = [&["run", "--json", "--mode", "auto", "--model", &model], more, &["go"]].concat();
        let ran = home.run(&flags, "").await;
        Events { code: ran.code, events: ran.lines() }
    }

    /// The bodies of all events of a type.
    fn all(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().map(|event| &event["body"]).filter(|body| body["type"] == kind).collect()
    }

    /// The outcomes of the hooks, in order.
    fn outcomes(&self) -> Vec<&str> {
        self.all("hook.completed").iter().map(|body| body["outcome"].as_str().unwrap()).collect()
    }

    /// The status and the output of the first tool call.
    fn result(&self) -> (&str, String) {
        let completed = self.all("tool.completed")[0];
        let parts = completed["output"].as_array().unwrap();
        let texts: Vec<&str> = parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect();
        (completed["status"].as_str().unwrap(), texts.join("\n"))
    }
}

/// The steps of a model that makes one call; its second request must contain `expected`.
fn one_call(name: &str, input: &Value, expected: Option<&str>) -> Value {
    json!([{"tool_calls": [{"name": name, "input": input}]}, {"text": "the end", "expect": expected}])
}

/// Reads `a.txt`.
fn read_a(expected: Option<&str>) -> Value {
    one_call("read", &json!({"file_path": "a.txt"}), expected)
}
