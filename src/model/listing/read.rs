//! Reads a list of models. The formats of the providers differ in the names of their fields; an
//! entry is read by the fields that it has.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::config::{Ability, Price};
use crate::model::catalog::ModelLimits;
use crate::options::Thinking;

/// Maximum length of a model's name, in characters. Models with longer names are left out.
const MODEL_LIST_TEXT_CHARS_MAX: usize = 200;

/// A model in the list of a provider. An absent property is one that the list does not state.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ListedModel {
    /// The name in requests.
    pub name: String,
    pub display_name: Option<String>,
    #[serde(flatten)]
    pub limits: ModelLimits,
    pub tools: Option<bool>,
    pub images: Option<bool>,
    pub pdf: Option<bool>,
    pub audio: Option<bool>,
    pub thinking: Option<bool>,
    /// The thinking levels that the list names; empty if it names none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Thinking>,
}

impl ListedModel {
    /// Returns whether the model has each ability. `None`: the list does not state it.
    pub(crate) fn abilities(&self) -> [(Ability, Option<bool>); 4] {
        [(Ability::Tools, self.tools), (Ability::Images, self.images), (Ability::Pdf, self.pdf), (Ability::Audio, self.audio)]
    }
}

/// Words in the names of models that are not for chat.
#[rustfmt::skip]
const OTHER_PURPOSES: &[&str] = &[
    "aqa", "audio", "babbage", "bge", "dall", "davinci", "diffusion", "embed", "flux", "guard", "image", "images", "imagen",
    "imagine", "lyria", "minilm", "moderation", "ocr", "orpheus", "realtime", "rerank", "reranker", "sora", "speech",
    "transcribe", "tts", "veo", "whisper",
];

/// Values of `type` for models that are not for chat.
#[rustfmt::skip]
const OTHER_TYPES: &[&str] = &[
    "audio", "embedding", "embeddings", "image", "moderation", "rerank", "reranking", "speech", "transcribe", "transcription",
    "tts", "video",
];

/// Returns whether the response is a list of models.
pub(super) fn is_list(list: &Value) -> bool {
    entries(list).is_some()
}

/// Returns the chat models of a list, in the order of the list. Skips entries without a name.
pub(super) fn models(list: &Value) -> Vec<ListedModel> {
    entries(list).into_iter().flatten().filter_map(model).collect()
}

/// Returns the entries: from `data` (OpenAI, Anthropic and most others), from `models` (Google,
/// Ollama), or from the list itself (Together).
fn entries(list: &Value) -> Option<&Vec<Value>> {
    [&list["data"], &list["models"], list].into_iter().find_map(Value::as_array)
}

fn model(entry: &Value) -> Option<ListedModel> {
    let name = text(&entry["id"]).or_else(|| text(&entry["name"]))?;
    let name = name.strip_prefix("models/").unwrap_or(&name).to_owned();
    if !is_chat(entry).unwrap_or_else(|| !has_other_purpose(&name)) {
        return None;
    }
    let display_name = ["display_name", "displayName", "name"].iter().find_map(|field| text(&entry[*field]));
    Some(ListedModel {
        display_name: display_name.filter(|shown| *shown != name && !shown.starts_with("models/")),
        limits: ModelLimits {
            context_window: context_window(entry),
            max_output_tokens: max_output_tokens(entry),
            price: price(&entry["pricing"]),
        },
        tools: tools(entry),
        images: images(entry),
        pdf: supported(&entry["capabilities"]["pdf_input"]).or_else(|| modality(entry, "file")),
        audio: modality(entry, "audio"),
        thinking: thinking(entry),
        levels: levels(&entry["capabilities"]["effort"]),
        name,
    })
}

/// Returns a text without surrounding blanks. Returns `None` if it is empty, longer than
/// [`MODEL_LIST_TEXT_CHARS_MAX`], or contains control characters.
fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    let fits = !text.is_empty() && text.chars().count() <= MODEL_LIST_TEXT_CHARS_MAX && !text.contains(char::is_control);
    fits.then(|| text.to_owned())
}

/// Returns whether the model is for chat, if the entry states it.
fn is_chat(entry: &Value) -> Option<bool> {
    let stated = |value: &Value| value.as_bool();
    let capabilities = &entry["capabilities"];
    let chat = stated(&capabilities["completion_chat"])
        .or_else(|| stated(&capabilities["chat_completion"]))
        .or_else(|| stated(&entry["supports_chat"]));
    let kind = entry["type"].as_str().unwrap_or_default();
    let methods = entry["supportedGenerationMethods"].as_array();
    let families = [&entry["details"]["family"], &entry["details"]["families"][0]];
    let unsuitable = chat == Some(false)
        || entry["active"] == false
        || OTHER_TYPES.contains(&kind)
        || methods.is_some_and(|methods| !methods.iter().any(|method| method == "generateContent"))
        || families.iter().any(|family| family.as_str().is_some_and(|family| family.contains("bert")))
        || modalities(entry, "output").is_some_and(|modalities| !contains(modalities, &["text"]));
    let suitable = chat == Some(true) || ["chat", "language", "llm", "vlm"].contains(&kind);
    if unsuitable { Some(false) } else { suitable.then_some(true) }
}

fn has_other_purpose(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|character: char| !character.is_ascii_alphanumeric());
    name == "gpt-3.5-turbo-instruct" || words.any(|word| word.starts_with("embed") || OTHER_PURPOSES.contains(&word))
}

/// Parses a positive number of tokens.
fn tokens(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.filter(|tokens| *tokens > 0)
}

fn context_window(entry: &Value) -> Option<u64> {
    let fields = [
        // The window that a local server has allocated precedes the maximum of the model.
        &entry["meta"]["n_ctx"],
        &entry["loaded_context_length"],
        &entry["max_model_len"],
        &entry["context_length"],
        &entry["context_window"],
        &entry["max_context_length"],
        &entry["max_input_tokens"],
        &entry["inputTokenLimit"],
        &entry["limits"]["max_input_tokens"],
    ];
    fields.into_iter().find_map(tokens)
}

fn max_output_tokens(entry: &Value) -> Option<u32> {
    let fields = [
        &entry["top_provider"]["max_completion_tokens"],
        &entry["max_completion_tokens"],
        &entry["max_output_length"],
        &entry["outputTokenLimit"],
        &entry["max_output_tokens"],
        &entry["limits"]["max_output_tokens"],
        &entry["max_tokens"],
    ];
    fields.into_iter().find_map(tokens).map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX))
}

/// Parses the prices of an entry. Texts are prices per token (OpenRouter), numbers are prices per
/// million tokens (Together).
fn price(pricing: &Value) -> Option<Price> {
    let dollars = |names: &[&str]| {
        let value = names.iter().map(|name| &pricing[*name]).find(|value| !value.is_null())?;
        let dollars = match value.as_str() {
            // Rounded, because the factor makes errors of binary fractions visible.
            Some(text) => (text.parse::<f64>().ok()? * 1e12).round() / 1e6,
            None => value.as_f64()?,
        };
        // A negative price stands for one that depends on the request.
        Some(dollars).filter(|dollars| dollars.is_finite() && *dollars >= 0.0)
    };
    Some(Price {
        input: dollars(&["prompt", "input"])?,
        output: dollars(&["completion", "output"])?,
        cache_read: dollars(&["input_cache_read", "input_cache_reads"]),
        cache_write: dollars(&["input_cache_write", "input_cache_writes"]),
        above: None,
    })
}

/// Returns the abilities that an entry lists as words: OpenRouter's parameters, GitHub's and LM
/// Studio's capabilities, or Vercel's tags.
fn words(entry: &Value) -> Option<&Vec<Value>> {
    let fields = ["supported_parameters", "supported_features", "capabilities", "tags"];
    fields.iter().find_map(|field| entry[*field].as_array()).filter(|words| !words.is_empty())
}

fn contains(words: &[Value], any: &[&str]) -> bool {
    words.iter().any(|word| word.as_str().is_some_and(|word| any.contains(&word)))
}

fn tools(entry: &Value) -> Option<bool> {
    let stated = [&entry["capabilities"]["function_calling"], &entry["supports_tools"]].into_iter().find_map(Value::as_bool);
    stated.or_else(|| words(entry).map(|words| contains(words, &["tools", "tool_use", "tool-use", "tool-calling"])))
}

fn thinking(entry: &Value) -> Option<bool> {
    let stated = [&entry["thinking"], &entry["supports_reasoning"], &entry["capabilities"]["reasoning"]];
    let stated = stated.into_iter().find_map(Value::as_bool).or_else(|| supported(&entry["capabilities"]["thinking"]));
    stated.or_else(|| Some(contains(entry["supported_parameters"].as_array()?, &["reasoning"])))
}

/// Returns the thinking levels that Anthropic's `effort` supports: `{"low":{"supported":true},…}`.
fn levels(effort: &Value) -> Vec<Thinking> {
    Thinking::ALL.into_iter().filter(|level| supported(&effort[level.as_str()]) == Some(true)).collect()
}

fn images(entry: &Value) -> Option<bool> {
    let stated = [&entry["capabilities"]["vision"], &entry["supports_image_input"], &entry["supports_image_in"]];
    let stated = stated.into_iter().find_map(Value::as_bool).or_else(|| supported(&entry["capabilities"]["image_input"]));
    stated.or_else(|| modality(entry, "image")).or_else(|| (entry["type"] == "vlm").then_some(true))
}

fn supported(capability: &Value) -> Option<bool> {
    capability["supported"].as_bool()
}

/// Returns the modalities of the direction `input` or `output`, from OpenRouter's or GitHub's
/// field.
fn modalities<'a>(entry: &'a Value, direction: &str) -> Option<&'a Vec<Value>> {
    let fields = [&entry["architecture"][format!("{direction}_modalities")], &entry[format!("supported_{direction}_modalities")]];
    fields.into_iter().find_map(Value::as_array)
}

fn modality(entry: &Value, name: &str) -> Option<bool> {
    modalities(entry, "input").map(|modalities| contains(modalities, &[name]))
}
