//! Parameters that Gemini refuses.

use crate::rules::model;
use crate::rules::refusal::Refusals;
use crate::rules::view::View;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let config = &view.body["generationConfig"];
    let thinking = &config["thinkingConfig"];
    let (budget, level) = (thinking["thinkingBudget"].as_i64(), thinking["thinkingLevel"].as_str());
    let Some(version) = model::version(view.model, "gemini-") else { return };
    let mut refuse = |name: &str, words: String| refused.add(38, format!("generation_config.{name}"), words);
    if budget.is_some() && level.is_some() {
        let words = "You can only set only one of thinking budget and thinking level.";
        refuse("thinking_config", words.into());
    } else if level.is_some() && version < (3, 0) {
        refuse("thinking_config.thinking_level", "Thinking level is not supported for this model.".into());
    } else if budget.is_some() && version >= (3, 0) {
        refuse("thinking_config.thinking_budget", "Thinking budget is not supported for this model.".into());
    }
    // -1 lets the model decide.
    if let Some(budget) = budget.filter(|budget| *budget != -1 && version == (2, 5)) {
        let (least, most) = if view.is_model(&["pro"]) { (128, 32_768) } else { (0, 24_576) };
        if !(least..=most).contains(&budget) {
            let words = format!("The thinking budget ({budget}) is invalid. Please choose a value between {least} and {most}.");
            refuse("thinking_config.thinking_budget", words);
        }
    }
    let without_minimal = view.is_model(&["gemini-3-pro", "gemini-3.1-pro", "gemini-3.7-flash", "gemini-3.8-flash"]);
    if level.is_some_and(|level| level.eq_ignore_ascii_case("minimal")) && without_minimal {
        refuse("thinking_config.thinking_level", "Thinking level MINIMAL is not supported for this model.".into());
    }
    for name in ["presencePenalty", "frequencyPenalty"] {
        if !config[name].is_null() && version >= (3, 0) {
            refuse(name, "Penalty is not enabled for this model".into());
        }
    }
}
