//! Arguments under almost the right names: put right where only one thing can be meant.

use rapidfuzz::distance::levenshtein;
use serde_json::{Map, Value};

/// How alike a name must be to one that is required, of 1.
const ALIKE: f64 = 0.7;

/// Gives arguments the names of the schema's properties: `filePath`, `file-path` and `FILE_PATH` are `file_path`.
pub fn spell(input: &mut Map<String, Value>, schema: &Value) {
    rename(input, schema, |name, property| plain(name) == plain(property));
}

/// The same for names that are alike or share a word, where a required one is missing. False: nothing could be put right.
pub fn guess(input: &mut Map<String, Value>, schema: &Value) -> bool {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    rename(input, schema, |name, property| {
        required.iter().any(|field| field == property) && (share_a_word(name, property) || alike(name, property))
    })
}

/// What a tool takes, in one line: `file_path: string, offset?: integer`.
pub fn told(schema: &Value) -> String {
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

/// Renames an argument that is none to the only property that it fits, if that is absent and no other argument fits it.
fn rename(input: &mut Map<String, Value>, schema: &Value, fits: impl Fn(&str, &str) -> bool) -> bool {
    let absent: Vec<&String> = properties(schema).map(|(name, _)| name).filter(|name| !input.contains_key(*name)).collect();
    let strange: Vec<String> =
        input.keys().filter(|name| properties(schema).all(|(property, _)| property != *name)).cloned().collect();
    let mut renamed = false;
    for name in &strange {
        let meant: Vec<&&String> = absent.iter().filter(|property| fits(name, property)).collect();
        let [property] = meant.as_slice() else { continue };
        if strange.iter().filter(|other| fits(other, property)).count() == 1
            && let Some(value) = input.remove(name)
        {
            input.insert((**property).clone(), value);
            renamed = true;
        }
    }
    renamed
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

fn alike(name: &str, property: &str) -> bool {
    levenshtein::normalized_similarity(plain(name).chars(), plain(property).chars()) >= ALIKE
}

/// `target_file` and `file_path`.
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
