//! `nuncio run --output-schema`: the last message must be JSON that matches a schema.

use std::path::{Path, PathBuf};

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::json;
use crate::workspace::read_small;

/// Maximum number of mismatches that are reported.
const MISMATCHES_MAX: usize = 10;

/// The schema of the last message.
pub(super) struct AnswerSchema {
    path: PathBuf,
    schema: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// Reads the schema from a file. The error names the file.
    pub(super) fn read(path: &Path) -> Result<AnswerSchema> {
        let wrong = |problem: String| Error::invalid_params(format!("--output-schema {}: {problem}", path.display()));
        let text = read_small(path).map_err(|error| wrong(error.to_string()))?;
        let schema: Value = json::from_slice(&text).map_err(|error| wrong(format!("not JSON: {error}")))?;
        let validator = jsonschema::validator_for(&schema);
        let validator = validator.map_err(|error| wrong(described(&error)))?;
        Ok(AnswerSchema { path: path.to_owned(), schema, validator })
    }

    /// Returns a prompt with the request for an answer that matches the schema.
    pub(super) fn add_to(&self, prompt: &str) -> String {
        let schema = &self.schema;
        format!(
            "{prompt}\n\nEnd with a message that is only JSON, without any other text, and that matches this JSON Schema:\n\n\
             ```json\n{schema:#}\n```"
        )
    }

    /// Returns the JSON of the last message, which one code block may surround. The error lists the
    /// mismatches, one per line.
    pub(super) fn parse(&self, message: &str) -> Result<Value, String> {
        let value: Value = json::from_str(without_fence(message)).map_err(|error| format!("- the message is not JSON: {error}"))?;
        let mismatches = self.validator.iter_errors(&value).take(MISMATCHES_MAX);
        let mismatches: Vec<String> = mismatches.map(|mismatch| format!("- {}", described(&mismatch))).collect();
        if mismatches.is_empty() { Ok(value) } else { Err(mismatches.join("\n")) }
    }

    /// Returns the prompt after a message that did not match.
    pub(super) fn correction(&self, mismatches: &str) -> String {
        format!("Your last message does not match the JSON Schema:\n{mismatches}\n\nReply with only the corrected JSON.")
    }

    /// Creates the error for a message that does not match after the correction.
    pub(super) fn failed(&self, mismatches: &str) -> Error {
        let message = format!("the last message does not match {}:\n{mismatches}", self.path.display());
        Error::new(Kind::ModelError, message)
    }
}

/// Describes a mismatch with its place: `/items/0: …`.
fn described(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
}

/// Returns the JSON of a message: the text inside a code block, if the message consists of one.
pub(super) fn without_fence(message: &str) -> &str {
    let message = message.trim();
    let inside = message.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inside.and_then(|inside| inside.split_once('\n')) {
        Some((language, inside)) if matches!(language.trim(), "" | "json" | "JSON") => inside.trim(),
        _ => message,
    }
}
