//! Thinking and tool calls that a model writes as text, because its server does not decode them:
//! `<think>…</think>` or `[THINK]…[/THINK]` at the start of an answer, and
//! `<tool_call>…</tool_call>` at its end. Such a text elsewhere is an example or a quotation.

use std::sync::Arc;

use super::code_fences::CodeFences;
use super::written_call;
use crate::model::endpoint::Endpoint;
use crate::model::request::ToolSpec;

/// Parts of the names of models that write these tags.
const FAMILIES: &[&str] = &[
    "qwen",
    "qwq",
    "deepseek",
    "glm",
    "hermes",
    "minimax",
    "smollm",
    "nemotron",
    "kimi",
    "exaone",
    "cogito",
    "granite",
    "magistral",
    "ministral",
];

/// Parts of the names of models whose prompt ends with `<think>`: their answers contain only
/// `</think>`.
const OPENED_BY_PROMPT: &[&[&str]] = &[&["deepseek-r1"], &["qwq"], &["qwen3", "thinking"]];

/// The tags around thinking.
const THINKING: &[(&str, &str)] = &[("<think>", "</think>"), ("[THINK]", "[/THINK]")];

const CALL: (&str, &str) = ("<tool_call>", "</tool_call>");

/// Separates the tags from the text of one answer.
pub(crate) struct TagReader {
    state: State,
    /// Received text that may be the start of a tag, or the content of an incomplete call.
    held: String,
    tools: Arc<[ToolSpec]>,
    fences: CodeFences,
    /// The last calls, unless text follows.
    calls: Vec<TextPart>,
    calls_text: String,
    /// The prompt may have opened the thinking.
    opened_by_prompt: bool,
    /// The text that was returned as thinking without its opening tag, which is the answer if no
    /// closing tag follows.
    assumed: String,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nothing but white space was received.
    Start,
    /// Thinking until this tag.
    Thinking(&'static str),
    /// Thinking that the prompt opened, until this tag.
    Assumed(&'static str),
    Text,
    /// Directly after thinking: white space is skipped.
    AfterThinking,
    Call,
    /// After a call: white space, another call, or text.
    AfterCall,
}

/// A part of an answer.
pub(crate) enum TextPart {
    Text(String),
    Thinking(String),
    Call { name: String, arguments: String },
}

impl TagReader {
    /// Creates a reader. Returns `None` if the model does not write tags.
    pub(crate) fn new(endpoint: &Endpoint, tools: Arc<[ToolSpec]>) -> Option<TagReader> {
        let model = endpoint.model.to_lowercase();
        let known = FAMILIES.iter().any(|family| model.contains(family));
        let opened_by_prompt = OPENED_BY_PROMPT.iter().any(|parts| parts.iter().all(|part| model.contains(part)));
        known.then(|| TagReader {
            state: State::Start,
            held: String::new(),
            tools,
            fences: CodeFences::default(),
            calls: Vec::new(),
            calls_text: String::new(),
            opened_by_prompt,
            assumed: String::new(),
        })
    }

    /// Stops assuming that the prompt opened the thinking. Called when the server separates
    /// thinking from text.
    pub(crate) fn expect_no_thinking(&mut self) {
        self.opened_by_prompt = false;
    }

    /// Returns the number of buffered bytes and of buffered calls.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.held.len() + self.assumed.len() + self.calls_text.len(), self.calls.len())
    }

    /// Adds text, and returns the parts that are complete. Calls are returned at the end.
    pub(crate) fn read(&mut self, text: &str) -> Vec<TextPart> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Returns the rest of the answer.
    pub(crate) fn end(&mut self) -> Vec<TextPart> {
        let rest = std::mem::take(&mut self.held);
        let part = match self.state {
            State::Thinking(_) => TextPart::Thinking(rest),
            State::Assumed(_) => TextPart::Text(std::mem::take(&mut self.assumed) + &rest),
            State::Call => match self.call(&rest) {
                Some(call) => {
                    self.calls.push(call);
                    return std::mem::take(&mut self.calls);
                }
                None => TextPart::Text(std::mem::take(&mut self.calls_text) + CALL.0 + &rest),
            },
            State::AfterCall if rest.trim().is_empty() => return std::mem::take(&mut self.calls),
            State::AfterThinking if rest.trim().is_empty() => return Vec::new(),
            State::AfterCall => TextPart::Text(std::mem::take(&mut self.calls_text) + &rest),
            State::Start | State::Text | State::AfterThinking => TextPart::Text(rest),
        };
        vec![part]
    }

    /// Decodes the next part. Returns false if more text is needed.
    fn step(&mut self, parts: &mut Vec<TextPart>) -> bool {
        match self.state {
            State::Start => {
                let text = self.held.trim_start();
                for (open, close) in THINKING {
                    if let Some(thought) = text.strip_prefix(open) {
                        (self.held, self.state) = (thought.to_owned(), State::Thinking(close));
                        return true;
                    }
                }
                if THINKING.iter().any(|(open, _)| open.starts_with(text)) || CALL.0.starts_with(text) {
                    return false;
                }
                let assumed = self.opened_by_prompt && !text.starts_with(CALL.0);
                self.state = if assumed { State::Assumed(THINKING[0].1) } else { State::Text };
                true
            }
            State::AfterThinking => {
                let text = self.held.trim_start();
                if text.is_empty() {
                    return false;
                }
                (self.held, self.state) = (text.to_owned(), State::Text);
                true
            }
            State::Thinking(close) | State::Assumed(close) => {
                let (thought, found) = self.take_until(close);
                if matches!(self.state, State::Assumed(_)) {
                    self.assumed.push_str(&thought);
                }
                parts.push(TextPart::Thinking(thought));
                if found {
                    self.state = State::AfterThinking;
                }
                found
            }
            State::Text => {
                let (text, found) = self.take_until(CALL.0);
                parts.push(self.text(text));
                if found && self.fences.at_start_of_line() {
                    self.state = State::Call;
                } else if found {
                    parts.push(self.text(CALL.0.to_owned()));
                }
                found
            }
            State::Call => self.read_call(parts),
            State::AfterCall => self.read_after_call(parts),
        }
    }

    fn read_call(&mut self, parts: &mut Vec<TextPart>) -> bool {
        let Some((text, rest)) = self.held.split_once(CALL.1) else { return false };
        if let Some(call) = self.call(text) {
            self.calls.push(call);
            self.calls_text.extend([CALL.0, text, CALL.1]);
            (self.held, self.state) = (rest.to_owned(), State::AfterCall);
        } else {
            self.calls_text.push_str(CALL.0);
            parts.push(self.no_calls());
        }
        true
    }

    fn read_after_call(&mut self, parts: &mut Vec<TextPart>) -> bool {
        let text = self.held.trim_start();
        if let Some(rest) = text.strip_prefix(CALL.0) {
            self.calls_text.push_str(&self.held[..self.held.len() - text.len()]);
            (self.held, self.state) = (rest.to_owned(), State::Call);
            return true;
        }
        if CALL.0.starts_with(text) {
            return false;
        }
        parts.push(self.no_calls());
        true
    }

    /// Creates a text part of the answer, and tracks the code fences in it.
    fn text(&mut self, text: String) -> TextPart {
        self.fences.read(&text);
        TextPart::Text(text)
    }

    /// Converts the calls back to text, because other text follows or a call is malformed.
    fn no_calls(&mut self) -> TextPart {
        self.calls.clear();
        self.state = State::Text;
        let text = std::mem::take(&mut self.calls_text);
        self.text(text)
    }

    /// Removes the text before `tag` and the tag. Without the tag, removes all text that cannot be
    /// the start of the tag.
    fn take_until(&mut self, tag: &str) -> (String, bool) {
        if let Some((before, after)) = self.held.split_once(tag) {
            let (before, after) = (before.to_owned(), after.to_owned());
            self.held = after;
            return (before, true);
        }
        let starts = (1..tag.len()).rev().find(|length| self.held.ends_with(&tag[..*length])).unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - starts);
        (std::mem::replace(&mut self.held, rest), false)
    }

    fn call(&self, text: &str) -> Option<TextPart> {
        written_call::parse(text, &self.tools).map(|(name, arguments)| TextPart::Call { name, arguments })
    }
}
