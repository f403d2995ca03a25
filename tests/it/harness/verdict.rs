//! Permission verdicts of `nuncio tool`.

use serde_json::Value;

use super::Home;

/// The permission verdict for a `nuncio tool` call. Without a terminal, `nuncio tool` denies calls
/// that require permission; the error message distinguishes `Ask` from `Deny`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// Runs a tool and returns the verdict for its call.
pub async fn verdict(home: &Home, mode: &str, tool: &str, input: &Value) -> Verdict {
    let input = input.to_string();
    let ran = home.run(&["tool", tool, "--mode", mode, &input], "").await;
    let line = ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}"));
    let said = line["output"].as_str().unwrap();
    match ran.code {
        0 if line["ok"] == true => Verdict::Allow,
        4 if said.contains("requires permission") => Verdict::Ask,
        4 if line["ok"] == false => Verdict::Deny,
        _ => panic!("{mode} {tool} {input}: {ran:?}"),
    }
}
