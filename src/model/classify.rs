//! Classifies the errors of providers by status, error codes and message. Providers do not agree on
//! codes, so most rules are patterns of messages; tests/library/cases/errors.jsonl has an example
//! of each.

use regex::Regex;

use super::error::Cause;

/// Returns the cause of a failure. `text` contains the error codes and the message in lower case.
pub(crate) fn classify(status: Option<u16>, text: &str) -> Cause {
    let is = |patterns: &[&str]| matches(patterns, text);
    if is(QUOTA) || status == Some(402) {
        return Cause::Quota;
    }
    if let Some(cause) = overflow(status, text) {
        return cause;
    }
    if is(CONTENT_FILTER) {
        return Cause::ContentFilter;
    }
    if is(UNKNOWN_MODEL) {
        return Cause::UnknownModel;
    }
    if is(AUTHENTICATION) || matches!(status, Some(401 | 403)) {
        return Cause::Authentication;
    }
    if status == Some(429) || status.is_none_or(|status| status < 429) && is(RATE_LIMIT) {
        return Cause::RateLimit;
    }
    if is(OVERLOADED) || matches!(status, Some(503 | 529)) {
        return Cause::Overloaded;
    }
    if is(RATE_LIMIT) {
        return Cause::RateLimit;
    }
    if is(INVALID_ANSWER) {
        return Cause::InvalidAnswer;
    }
    match status {
        Some(408 | 409 | 500..) => Cause::Other,
        Some(300..) => Cause::BadRequest,
        Some(_) | None if is(BAD_REQUEST) => Cause::BadRequest,
        Some(_) | None => Cause::Other,
    }
}

/// Returns [`Cause::ContextOverflow`] or, if only the requested output is too long, a bad request.
fn overflow(status: Option<u16>, text: &str) -> Option<Cause> {
    let too_large = status == Some(413) && !matches(ATTACHMENT, text) || matches(OVERFLOW, text);
    if !too_large || matches(THROTTLED, text) && !text.contains("request too large") {
        return None;
    }
    let request_tokens = number(REQUEST_TOKENS, text);
    let context_window = number(CONTEXT_WINDOW, text);
    let fits = request_tokens.zip(context_window).is_some_and(|(request, window)| request < window / 2);
    Some(if fits { Cause::BadRequest } else { Cause::ContextOverflow { request_tokens, context_window } })
}

/// Returns whether one of the patterns matches. Patterns are compiled for each error, because
/// errors are rare.
fn matches(patterns: &[&str], text: &str) -> bool {
    pattern(&patterns.join("|")).is_match(text)
}

/// Returns the number that the first matching pattern captures as `#`.
fn number(patterns: &[&str], text: &str) -> Option<u64> {
    let pattern = |number: &&str| pattern(&number.replace('#', "([0-9][0-9,_]*)"));
    let captured = patterns.iter().map(pattern).find_map(|pattern| Some(pattern.captures(text)?.get(1)?.as_str()));
    captured?.replace([',', '_'], "").parse().ok()
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// A conversation or a request that is too large.
const OVERFLOW: &[&str] = &[
    // Error codes.
    "context_?(length|window|size)_?exceeded",
    "exceed_context_size",
    "max_prompt_tokens_exceeded",
    "tokens_limit_reached",
    "request_too_large",
    "(input|prompt)_too_(long|large)",
    // Messages that name the context.
    "context (length|window|size|limit) (has been |was |is |has )?(exceed|only|too small|overflow)",
    "(exceed|surpass|overflow)[a-z]*( the| this| your| its| of| a)?[a-z0-9' ()]{0,40} context (length|window|size|limit)",
    "context (length|window|size|limit) exceed",
    "max(imum)? (context|prompt|sequence|model|allowed input|allowed prompt) (length|size|window|limit)",
    "(greater|larger|longer) than the [a-z' ]{0,30}(context|model) (length|size|window)",
    "configured context size is",
    "supports only [0-9a-z]+ context",
    "exceeded model token limit",
    "loaded with context length of",
    "exceed max message tokens",
    // Messages that name the prompt or the input.
    "prompt (is |was )?too (long|large)",
    "(prompt|input) tokens? (is |are )?too (long|large|many)",
    "(input|request|conversation|messages) (is |are |length )?too long",
    "length of (all )?(the )?messages is too long",
    "prompt exceeds (the )?max",
    "exceeds (the )?max(imum)? (context|prompt|input) (length|size|tokens)",
    "token count (of )?[0-9(][^a-z]*exceeds",
    "input token count",
    "(number of )?input tokens exceeds? ",
    "input length[ 0-9()]* exceeds",
    "range of input length should be",
    "exceeds? (the )?maximum number of (input )?tokens",
    "exceeds (the )?max_(model_len|seq_len|position_embeddings)",
    "reduce (the )?(length of|number of tokens in) (the |your |either)?(one|messages|prompt|input|conversation)?",
    "reduce your (prompt|message size)",
    "tokens in the prompt cannot exceed",
    "too many (input |prompt )?tokens",
    "too many total text bytes",
    "`?inputs`? tokens \\+ `?max_new_tokens`? must be",
    "`?inputs`? must have less than",
    "invalid '(messages|input|contents|prompt)[^']*': string too long",
    "kv cache (has|is) (insufficient|too small|full)",
    // Messages that name the request.
    "(request|payload|entity|body)( body| entity)?( is)? too large",
    "request( size)? exceeds the (maximum|max)",
    "输入长度超|超过最大长度|超出最大长度|上下文长度|上下文窗口|超长",
];

/// Limits of size that do not concern the conversation's text.
const ATTACHMENT: &[&str] = &["image", "attachment", "file size", "audio", "pdf"];

/// Limits per time, which some providers report in the words of an overflow.
const THROTTLED: &[&str] = &[
    "please wait",
    "per[ -](second|minute|hour|day|month)",
    "rate[ _-]?limit",
    "too many requests",
    "throttl",
    "daily",
    "monthly",
];

/// The size of the context window in the message of an overflow.
const CONTEXT_WINDOW: &[&str] = &[
    "\"n_ctx\":#",
    "n_ctx: #",
    "> # maximum",
    "context limit: .*> #",
    "with # maximum context length",
    "max(?:imum)? (?:allowed )?(?:context|prompt|input|sequence|model) (?:length|size|window|limit|tokens)(?: of| is|:)*[ (]*#",
    "context (?:length|size|window|limit)(?: of| is| only|:)*[ (]*#",
    "tokens allowed \\(#",
    "token limit: #",
    "maximum length(?: of)? #",
    "max size: #",
    "limit(?: of| is)? #",
    "must be <= #",
    "less than # tokens",
    "should be \\[[0-9]+, ?#\\]",
    "cannot exceed #",
    "supports up to #",
];

/// The size of the request in the message of an overflow.
const REQUEST_TOKENS: &[&str] = &[
    "\"n_prompt_tokens\":#",
    "n_keep: #",
    "too long: #",
    "resulted in #",
    "\\(# (?:in (?:the|your) (?:messages|prompt)|of text input)",
    "# tokens from the input",
    "(?:has|contains|passed|contain)(?: at least)? # (?:input )?tokens",
    "(?:request|input|prompt) \\((?:length )?# ?(?:tokens)?\\)",
    "(?:prompt|input|current) length(?: is)? \\(?#",
    "token count(?: of| is|:)? \\(?#",
    "requested tokens \\(#",
    "given: #",
    "received #",
    "context limit: # \\+",
    "requested:? (?:about |a total of )?#",
];

/// No credit is left.
const QUOTA: &[&str] = &[
    "insufficient[_ ](quota|balance|credits?|funds)",
    "credit balance is too low",
    "credits? (are |is |have been )?(exhausted|depleted|used up)",
    "billing[_ ](error|hard_limit|not|limit|issue)",
    "payment[_ ]required",
    "exceeded_current_quota",
    "check your plan and billing",
    "requires more credits",
    "extra usage is required",
    "spending limit",
    "余额不足|欠费",
];

/// The content of the request is not allowed.
const CONTENT_FILTER: &[&str] = &[
    "content[_ ]filter",
    "content[_ ](management[_ ])?policy",
    "responsibleaipolicyviolation",
    "data_inspection_failed|inappropriate content",
    "requires moderation|flagged (by|as|for)",
    "safety (system|filter|policy)",
    "sensitive_words_detected|content_exists_risk|content exists risk",
];

/// The model or deployment does not exist.
const UNKNOWN_MODEL: &[&str] = &[
    "model_?not_?found|unknown_?model|invalid_?model|deploymentnotfound|model_not_supported|model_not_available",
    "model:? [^\\n]{0,100}(not found|does not exist|not exist|is not available)",
    "(invalid|unknown|unsupported|no such|unrecognized) model",
    "not a valid model",
    "model identifier is invalid",
    "unable to access model",
    "models/[^ ]+ is not found",
    "not_found_error\\s+model: ",
    "no (model|endpoints?) found|no endpoints found",
    "deployment for this resource does not exist",
    "模型不存在",
];

/// The key is refused.
const AUTHENTICATION: &[&str] = &[
    "^authentication|^unauthenticated|^unauthorized|^permission|\\n(authentication|permission)_",
    "invalid_api_key|api_key_invalid|no_api_key",
    "(invalid|incorrect|missing|wrong|expired|no) (x-)?api[- ]key",
    "api key (is )?(not valid|invalid|expired|not found|required)",
    "unrecognizedclientexception|expiredtoken|security token included in the request is invalid",
];

/// Too many requests.
const RATE_LIMIT: &[&str] =
    &["rate[ _-]?limit", "too[ _]many[ _]requests", "throttl", "resource[_ ]exhausted", "requests per (second|minute)"];

/// The server cannot answer now.
const OVERLOADED: &[&str] = &[
    "overloaded",
    "loading model|model is (currently )?(loading|being loaded|starting)",
    "(^|\\n)unavailable|service[_ ]?unavailable|temporarily unavailable",
    "no (available )?slots? (is |are )?(currently )?(available|free)|slot unavailable",
    "server (is )?(currently )?(busy|overwhelmed)|system_busy|engine_busy",
    "at capacity|over capacity|capacity (exceeded|reached)|insufficient_system_resource",
    "high (demand|load)|model_busy|modelnotready",
];

/// The model wrote an answer that the server cannot read.
const INVALID_ANSWER: &[&str] = &[
    "peg-native|peg-[a-z]+ format|output that does not match the expected",
    "grammar",
    "failed to parse|parse error|error parsing tool call|invalid diff",
    "jinja|chat template|template exception",
    "malformed function call|tool_use_failed|failed_generation",
];

/// The request is invalid; used only for errors without a status.
const BAD_REQUEST: &[&str] =
    &["(^|\\n)(invalid|not_found|failed_precondition|unsupported|bad_?request|validation)", "invalid_request|invalid_argument"];
