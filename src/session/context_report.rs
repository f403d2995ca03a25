//! The report of the tokens in the context window of a session's model.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Tokens of the next request, by source. All numbers are estimates; `tokens` follows the usage
/// that the provider reported for the last request, if `measured` is true.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextReport {
    /// `PROVIDER/NAME`.
    pub model: String,
    /// Context window of the model in tokens; 0 if it is unknown.
    pub context_window: u64,
    /// Tokens of the next request without a new message.
    pub tokens: u64,
    pub measured: bool,
    /// The number of tokens at which the conversation is compacted. Missing if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_at: Option<u64>,
    pub sources: ContextSources,
}

/// Tokens by source. The sum of all except `free` is `tokens` of the report.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextSources {
    /// The system prompt without instruction files.
    pub system: u64,
    /// The descriptions of the tools.
    pub tools: u64,
    /// Instruction files, such as AGENTS.md.
    pub instructions: u64,
    /// Documents and images that clients attached.
    pub files: u64,
    /// Results of tool calls.
    pub tool_results: u64,
    /// Messages of users and answers of models.
    pub messages: u64,
    /// The rest of the context window.
    pub free: u64,
}

impl ContextSources {
    /// Returns the names and tokens of all sources.
    fn rows(&self) -> [(&'static str, u64); 7] {
        [
            ("System prompt", self.system),
            ("Tools", self.tools),
            ("Instructions", self.instructions),
            ("Files", self.files),
            ("Tool results", self.tool_results),
            ("Messages", self.messages),
            ("Free", self.free),
        ]
    }
}

impl fmt::Display for ContextReport {
    /// Formats the report as a Markdown table.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.context_window > 0 { format!(" of {}", self.context_window) } else { String::new() };
        writeln!(formatter, "{}: about {}{of} tokens\n\n| source | tokens |\n|---|---:|", self.model, self.tokens)?;
        for (name, tokens) in self.sources.rows() {
            writeln!(formatter, "| {name} | {tokens} |")?;
        }
        match self.compact_at {
            Some(tokens) => write!(formatter, "\nThe conversation is compacted at {tokens} tokens."),
            None => write!(formatter, "\nThe conversation is compacted on request only (`/compact`)."),
        }
    }
}
