//! Events with text of the answer and nothing else, as most events of an answer are, read in one
//! pass without the types of other events.

use std::borrow::Cow;

use serde::Deserialize;
use serde_with::apply;

/// An event with text of the answer and nothing else that the reader reads, as most events are. Any
/// other value of such a field is an error, so that the event is read as a whole.
#[apply(() => #[serde(default)])]
#[derive(Deserialize)]
#[expect(dead_code, reason = "the fields are null")]
struct TextEvent<'a> {
    #[serde(borrow)]
    choices: (TextChoice<'a>,),
    usage: (),
    x_groq: (),
    error: (),
}

#[apply(() => #[serde(default)])]
#[derive(Deserialize)]
#[expect(dead_code, reason = "the fields are null")]
struct TextChoice<'a> {
    #[serde(borrow)]
    delta: TextDelta<'a>,
    message: (),
    finish_reason: (),
    usage: (),
    error: (),
}

#[apply(() => #[serde(default)])]
#[derive(Deserialize)]
#[expect(dead_code, reason = "the fields are null")]
struct TextDelta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    reasoning_content: (),
    reasoning: (),
    reasoning_details: (),
    refusal: (),
    tool_calls: (),
    function_call: (),
}

/// Returns the text of such an event. `None`: it must be read as a whole.
pub(super) fn read(data: &str) -> Option<String> {
    let TextEvent { choices: (choice,), .. } = serde_json::from_str(data).ok()?;
    Some(choice.delta.content.into_owned())
}
