//! Values of the reasoning effort at OpenAI.

use crate::provider::Protocol;
use crate::rules::model;
use crate::rules::refusal::Refusals;
use crate::rules::view::View;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let (name, value) = match view.protocol {
        Protocol::OpenaiChat => ("reasoning_effort", &view.body["reasoning_effort"]),
        _ => ("reasoning.effort", &view.body["reasoning"]["effort"]),
    };
    let Some(effort) = value.as_str() else { return };
    if !model::reasons(view.model) {
        if view.is_model(&["gpt-3", "gpt-4", "chatgpt"]) {
            let words = format!("Unsupported parameter: '{name}' is not supported with this model.");
            refused.add_code(38, "unsupported_parameter", name, words);
        }
        return;
    }
    let Some(known) = efforts(view) else { return };
    if !known.contains(&effort) {
        let listed: Vec<String> = known.iter().map(|known| format!("'{known}'")).collect();
        let words = format!(
            "Unsupported value: '{effort}' is not supported with the '{}' model. Supported values are: {}.",
            view.model,
            listed.join(", ")
        );
        refused.add_code(38, "unsupported_value", name, words);
    }
}

/// Returns the values that a model takes, from the lowest.
fn efforts(view: &View<'_>) -> Option<Vec<&'static str>> {
    if view.is_model(&["chat-latest"]) {
        return Some(vec!["medium"]);
    }
    let all = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let (first, last) = match model::version(view.model, "gpt-")? {
        (5, 0) => ("minimal", "high"),
        (5, 1) if view.is_model(&["codex"]) => ("low", "high"),
        (5, 1) => ("none", "high"),
        (5, _) => ("none", "xhigh"),
        (6, _) => ("none", "max"),
        _ => return None,
    };
    let start = all.iter().position(|effort| *effort == first)?;
    let end = all.iter().position(|effort| *effort == last)?;
    let refused = |effort: &&str| first != "minimal" && *effort == "minimal" || *effort == "none" && view.is_model(&["-pro"]);
    // The largest effort of 5.1-codex-max is documented nowhere: any may be right.
    (!view.is_model(&["codex-max"])).then(|| all[start..=end].iter().copied().filter(|effort| !refused(effort)).collect())
}
