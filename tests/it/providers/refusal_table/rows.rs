//! The refusals of providers, with the words of each dialect.

pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A text of the user in the history.
pub const TEXT: &str = "odd words of the user";

/// The text that a request is never refused for: the dialect does not send the part.
pub const ABSENT: &str = "(absent)";

/// What becomes of a turn whose request is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It is sent again without the refused part, which no later request contains.
    Repaired,
    /// It is sent again as it was.
    Repeated,
    /// The turn fails with the words of the provider.
    Failed,
    /// The conversation is summarized.
    Compacted,
}
use self::Outcome::{Compacted, Failed, Repaired, Repeated};

/// A kind of refusal. Lists are in the order of `WIRES`: Anthropic, Chat Completions, Responses,
/// Gemini, Ollama.
pub struct Row {
    pub name: &'static str,
    pub outcome: Outcome,
    /// The request is refused while it contains this text; empty: always.
    pub needles: [&'static str; 5],
    pub status: [u16; 5],
    /// The provider's code or type of the error.
    pub code: &'static str,
    /// The provider's words. `{place}` is the place of the text, `{tool}` the index of the tool
    /// `grep`.
    pub words: [&'static str; 5],
    /// The model reasons in a turn before, so that the refused part is its own.
    pub reasons: bool,
    /// The repair is kept for the model: other sessions do not send the part, either.
    pub kept: bool,
}

const ROW: Row = Row {
    name: "",
    outcome: Failed,
    needles: [""; 5],
    status: [400; 5],
    code: "invalid_request_error",
    words: [""; 5],
    reasons: false,
    kept: false,
};

pub const ROWS: &[Row] = &[
    Row {
        name: "schema",
        outcome: Repaired,
        kept: true,
        needles: [r#""name":"grep""#; 5],
        words: [
            "tools.{tool}.custom.input_schema: JSON schema is invalid.",
            "Invalid schema for function 'grep': array schema missing items",
            "Invalid schema for function 'grep': array schema missing items",
            "* GenerateContentRequest.tools[0].function_declarations[{tool}].parameters: schema is too deep",
            "invalid tool 'grep': unknown type",
        ],
        ..ROW
    },
    Row { name: "text", outcome: Repaired, needles: [TEXT; 5], words: ["{place}: text is not allowed"; 5], ..ROW },
    Row {
        name: "call",
        outcome: Repaired,
        needles: ["fn_1", "fn_1", "fn_1", "toolu_1", "fn_1"],
        words: [
            "{place}: unexpected `tool_use_id` found in `tool_result` blocks: fn_1",
            "tool call id fn_1 is not known",
            "No tool output found for function call fn_1.",
            "the id toolu_1 is not known",
            "tool call id fn_1 is not known",
        ],
        ..ROW
    },
    Row { name: "image", outcome: Repaired, needles: [PNG; 5], words: ["{place}: Could not process image"; 5], ..ROW },
    Row {
        name: "images",
        outcome: Repaired,
        needles: [PNG; 5],
        words: [
            "image exceeds 5 MB maximum",
            "Failed to load image or audio file",
            "The image data you provided does not represent a valid image.",
            "Unable to process input image. Please retry or report in",
            "this model does not support image input",
        ],
        ..ROW
    },
    Row {
        name: "reasoning",
        outcome: Repaired,
        needles: ["SIG=", "Two files.", "ENC=", "SIG=", r#""thinking":"Two files.""#],
        words: [
            "{place}: Invalid `signature` in `thinking` block",
            "'{place}' : property 'reasoning_content' is unsupported",
            "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
            "Thought signature is not valid.",
            "thinking is not accepted in messages",
        ],
        reasons: true,
        ..ROW
    },
    Row {
        name: "parameter",
        outcome: Repaired,
        kept: true,
        needles: ["output_config", "stream_options", "prompt_cache_key", "thinkingConfig", ABSENT],
        words: [
            "output_config: Extra inputs are not permitted",
            "property 'stream_options' is unsupported",
            "Unknown parameter: 'prompt_cache_key'.",
            "Invalid JSON payload received. Unknown name \"thinkingConfig\" at 'generation_config': Cannot find field.",
            "",
        ],
        ..ROW
    },
    Row {
        name: "too_large",
        outcome: Repaired,
        needles: [PNG; 5],
        status: [413; 5],
        words: ["Request Entity Too Large: the images exceed the maximum size"; 5],
        ..ROW
    },
    Row {
        name: "overflow",
        outcome: Compacted,
        words: [
            "prompt is too long: 15546 tokens > 8192 maximum",
            "request (15546 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 15546 tokens.",
            "The input token count (15546) exceeds the maximum number of tokens allowed (8192).",
            "the prompt is longer than the context length currently available to the model",
        ],
        code: "context_length_exceeded",
        ..ROW
    },
    Row { name: "rate", outcome: Repeated, status: [429; 5], code: "rate_limit_error", words: ["slow down"; 5], ..ROW },
    Row {
        name: "overload",
        outcome: Repeated,
        status: [529, 503, 503, 503, 503],
        code: "overloaded_error",
        words: ["Overloaded"; 5],
        ..ROW
    },
    Row {
        name: "quota",
        status: [400, 429, 429, 402, 402],
        code: "insufficient_quota",
        words: ["Your credit balance is too low: you exceeded your current quota, check your plan and billing details"; 5],
        ..ROW
    },
    Row {
        name: "auth",
        status: [401, 401, 401, 403, 401],
        code: "authentication_error",
        words: ["messages.0: the key is not valid"; 5],
        ..ROW
    },
    Row { name: "model", status: [404; 5], code: "model_not_found", words: ["The model does not exist"; 5], ..ROW },
    Row {
        name: "filter",
        code: "content_filter",
        words: ["messages.0: Output blocked by content filtering policy: content_filter"; 5],
        ..ROW
    },
];
