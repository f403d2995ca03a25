//! The system prompt that a client sends with a session: ACP's field `systemPrompt`, and
//! `_meta.systemPrompt` of earlier clients.

use serde_json::Value;

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

impl SystemPromptChange {
    /// Reads the field `systemPrompt`. Without the field, reads `_meta.systemPrompt` as in
    /// claude-agent-acp: a text that replaces the system prompt, or `{"append": text}`; other
    /// shapes are ignored.
    pub(in crate::api) fn read(field: Option<acp::SystemPrompt>, meta: Option<&acp::Meta>) -> Result<SystemPromptChange> {
        if let Some(prompt) = field {
            return SystemPromptChange::from_field(prompt);
        }
        let given = meta.and_then(|meta| meta.get("systemPrompt"));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(String::from);
        let append = text(given.and_then(|given| given.get("append")));
        Ok(SystemPromptChange { replace: text(given), append })
    }

    fn from_field(prompt: acp::SystemPrompt) -> Result<SystemPromptChange> {
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
