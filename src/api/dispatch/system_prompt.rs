//! The system prompt that a client sends with a session: a text that replaces nuncio's own, or an
//! object of one of these forms: `{"append": TEXT}`, which adds a text, and ACP's `systemPrompt`.

use serde_json::{Value, json};

use crate::api::dispatch::params::decode;
use crate::error::{Error, Result};
use crate::event::SessionChange;
use crate::protocol::acp;
use crate::session::SessionState;

/// The part of the system prompt that a client sets.
#[derive(Debug, Default)]
pub(in crate::api) struct SystemPromptChange {
    /// Replaces nuncio's own system prompt.
    pub replace: Option<String>,
    /// Added to the system prompt.
    pub append: Option<String>,
}

/// Returns whether a value of `_meta.systemPrompt` is a system prompt as in claude-agent-acp. Other
/// values there are ignored.
pub(in crate::api) fn is_valid(value: &Value) -> bool {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    is_text(value) || is_text(&value["append"])
}

/// Replaces the text of a system prompt, and keeps what it appends.
pub(in crate::api) fn replaced(given: Value, text: Value) -> Result<Value> {
    let append = SystemPromptChange::read(Some(given))?.append;
    Ok(match append {
        Some(append) => json!({ "replace": text, "append": append }),
        None => text,
    })
}

impl SystemPromptChange {
    /// Reads the field `systemPrompt`.
    pub(in crate::api) fn read(field: Option<Value>) -> Result<SystemPromptChange> {
        match field {
            None | Some(Value::Null) => Ok(SystemPromptChange::default()),
            Some(prompt) if prompt.get("content").is_some() || prompt.get("mode").is_some() => {
                SystemPromptChange::from_acp(decode("systemPrompt", prompt)?)
            }
            Some(Value::Object(mut parts)) => {
                let mut text =
                    |name: &str| parts.remove(name).map(|text| decode(&format!("systemPrompt.{name}"), text)).transpose();
                Ok(SystemPromptChange { replace: text("replace")?, append: text("append")? })
            }
            Some(text) => Ok(SystemPromptChange { replace: decode("systemPrompt", text)?, append: None }),
        }
    }

    fn from_acp(prompt: acp::SystemPrompt) -> Result<SystemPromptChange> {
        let mut texts = Vec::new();
        for (index, block) in prompt.content.into_iter().enumerate() {
            let acp::ContentBlock::Text(text) = block else {
                return Err(Error::invalid_params(format!("systemPrompt.content[{index}]: only text is supported")));
            };
            texts.push(text.text);
        }
        let text = texts.join("\n\n");
        if text.is_empty() {
            return Err(Error::invalid_params("systemPrompt.content: must contain text"));
        }
        match prompt.mode {
            acp::SystemPromptMode::Append => Ok(SystemPromptChange { append: Some(text), replace: None }),
            acp::SystemPromptMode::Override => Ok(SystemPromptChange { append: None, replace: Some(text) }),
            _ => Err(Error::invalid_params("systemPrompt.mode: must be append or override")),
        }
    }

    /// Returns the change that gives a session this prompt. Clients repeat the prompt when they
    /// load the session, which then changes nothing.
    pub(in crate::api) fn difference(self, state: &SessionState) -> SessionChange {
        SessionChange {
            system_prompt: self.replace.filter(|prompt| state.settings.system_prompt.as_ref() != Some(prompt)),
            system_prompt_append: self.append.filter(|prompt| state.settings.system_prompt_append.as_ref() != Some(prompt)),
            ..SessionChange::default()
        }
    }
}
