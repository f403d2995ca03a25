//! Tools that read and change files, called with `nuncio tool`.

use harness::Home;
use serde_json::Value;

mod brackets;
mod existing_files;
mod git_names;
mod ignored_files;
mod leading_errors;
mod line_breaks;
mod long_lines;
mod look_alikes;
mod overwrites;
mod pasted_numbers;
mod read_only;
mod stale;
mod table;
mod text_form;

/// Calls a tool in mode auto. Returns the text for the model, with `error: ` before an error.
async fn told(home: &Home, tool: &str, input: &Value) -> String {
    let ran = home.run(&["tool", tool, "--mode", "auto", &input.to_string()], "").await;
    let result = ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}"));
    let text = result["output"].as_str().unwrap_or_else(|| panic!("{ran:?}"));
    if result["ok"] == true { text.to_owned() } else { format!("error: {text}") }
}
