//! Corrects misspelled argument names if their meaning is unambiguous.

use rapidfuzz::distance::levenshtein;
use serde_json::{Map, Value};

/// Minimum normalized similarity (0 to 1) at which an unknown argument name is taken for the name
/// of a required property.
const SIMILAR: f64 = 0.7;

/// Renames arguments to the schema's properties, ignoring case and separators: `filePath`,
/// `file-path` and `FILE_PATH` become `file_path`.
pub(crate) fn normalize(input: &mut Map<String, Value>, schema: &Value) {
    rename(input, schema, |name, property| normalized(name) == normalized(property));
}

/// Renames arguments to missing required properties that are similar or share a word. Returns false
/// if nothing was renamed.
pub(crate) fn fuzzy_match(input: &mut Map<String, Value>, schema: &Value) -> bool {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    rename(input, schema, |name, property| {
        required.iter().any(|field| field == property) && (share_a_word(name, property) || is_similar(name, property))
    })
}

/// Describes the arguments of a tool in one line: `file_path: string, offset?: integer`.
pub(crate) fn describe(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let field = |(name, property): (&String, &Value)| {
        let optional = if required.is_some_and(|required| required.iter().any(|field| field == name)) { "" } else { "?" };
        let kind = match (property.get("enum").and_then(Value::as_array), property.get("type").and_then(Value::as_str)) {
            (Some(options), _) => options.iter().map(Value::to_string).collect::<Vec<_>>().join("|"),
            (None, kind) => kind.unwrap_or("any").to_owned(),
        };
        format!("{name}{optional}: {kind}")
    };
    properties(schema).map(field).collect::<Vec<_>>().join(", ")
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Renames each unknown argument if its name fits exactly one absent property, and no other unknown
/// argument fits that property.
fn rename(input: &mut Map<String, Value>, schema: &Value, fits: impl Fn(&str, &str) -> bool) -> bool {
    let absent: Vec<&String> = properties(schema).map(|(name, _)| name).filter(|name| !input.contains_key(*name)).collect();
    let unknown: Vec<String> =
        input.keys().filter(|name| properties(schema).all(|(property, _)| property != *name)).cloned().collect();
    let mut renamed = false;
    for name in &unknown {
        let meant: Vec<&&String> = absent.iter().filter(|property| fits(name, property)).collect();
        let [property] = meant.as_slice() else { continue };
        if unknown.iter().filter(|other| fits(other, property)).count() == 1
            && let Some(value) = input.remove(name)
        {
            input.insert((**property).clone(), value);
            renamed = true;
        }
    }
    renamed
}

fn normalized(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

fn is_similar(name: &str, property: &str) -> bool {
    levenshtein::normalized_similarity(normalized(name).chars(), normalized(property).chars()) >= SIMILAR
}

/// Returns whether two names have a word in common, such as `target_file` and `file_path`.
fn share_a_word(name: &str, property: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        let mut split = String::new();
        for character in name.chars() {
            if character.is_ascii_uppercase() {
                split.push('_');
            }
            split.push(character.to_ascii_lowercase());
        }
        split.split(['_', '-', ' ', '.']).filter(|word| word.len() > 2).map(str::to_owned).collect()
    };
    let property = words(property);
    words(name).iter().any(|word| property.contains(word))
}
