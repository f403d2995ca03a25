//! The tools that a model is offered in its requests. A tool that is not offered still runs if the
//! model calls it.

use crate::model::Model;
use crate::model::providers::provider;

/// The tools of a local model whose context window is small.
const FOR_SMALL_WINDOW: [&str; 7] = ["bash", "edit", "glob", "grep", "list", "read", "write"];
/// The context window below which a local model has few tools, in tokens.
const SMALL_WINDOW: u64 = 32_768;

/// Beginnings of the names of models that were trained to write patches.
const PATCHING: [&str; 6] = ["gpt", "chatgpt", "codex", "o1", "o3", "o4"];

/// A choice among the built-in tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToolOffer {
    /// All of them: a list of tools was set.
    #[default]
    All,
    /// The tools but `edit`.
    Patching,
    /// The tools but `apply_patch`.
    Editing,
    /// The tools for a small context window.
    Few,
}

impl ToolOffer {
    /// Returns the default for the model `id`, as `PROVIDER/NAME`. `model` is the model once it is
    /// open.
    pub(crate) fn of_model(id: &str, model: Option<&dyn Model>) -> ToolOffer {
        let (provider_name, name) = id.split_once('/').unwrap_or(("", id));
        let is_local = provider(provider_name).is_some_and(|provider| provider.local);
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        if is_local && model.is_some_and(|model| model.context_window() < SMALL_WINDOW) {
            ToolOffer::Few
        } else if PATCHING.iter().any(|start| name.starts_with(start)) {
            ToolOffer::Patching
        } else {
            ToolOffer::Editing
        }
    }

    /// Returns whether a built-in tool is offered.
    pub(crate) fn has(self, name: &str) -> bool {
        match self {
            ToolOffer::All => true,
            ToolOffer::Patching => name != "edit",
            ToolOffer::Editing => name != "apply_patch",
            ToolOffer::Few => FOR_SMALL_WINDOW.contains(&name),
        }
    }
}
