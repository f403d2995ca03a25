//! Checks a value against a JSON Schema (draft 2020-12, draft 7 where they agree). Covers the
//! keywords that describe answers of models; a schema with a keyword that constrains values in a
//! way that is not covered is refused. `format` is an annotation, as the specification says.

mod coverage;
mod values;

use serde_json::{Map, Value};

use coverage::{check_schema, resolve};
use values::{has_type, is_integer, list_of, matches_pattern, same, shown};

/// Maximum number of mismatches that are reported.
const MISMATCHES_MAX: usize = 10;
/// Maximum nesting of subschemas that are applied. References can form a cycle.
const DEPTH_MAX: usize = 200;
/// A keyword that limits numbers, whether a number keeps a limit, and the limit in words.
type NumberRule = (&'static str, fn(f64, f64) -> bool, &'static str);

const NUMBER_RULES: &[NumberRule] = &[
    ("minimum", |number, limit| number >= limit, "at least"),
    ("exclusiveMinimum", |number, limit| number > limit, "more than"),
    ("maximum", |number, limit| number <= limit, "at most"),
    ("exclusiveMaximum", |number, limit| number < limit, "less than"),
    ("multipleOf", |number, limit| is_integer(number / limit), "a multiple of"),
];

/// A JSON Schema.
pub(super) struct JsonSchema(Value);

impl JsonSchema {
    /// Creates a schema. The error names the place in the schema and the problem.
    pub(super) fn new(schema: Value) -> Result<JsonSchema, String> {
        check_schema(&schema, &schema, "")?;
        Ok(JsonSchema(schema))
    }

    /// Returns the schema as JSON.
    pub(super) fn json(&self) -> &Value {
        &self.0
    }

    /// Returns the first mismatches of a value, each with the place in the value: `/items/0: …`.
    pub(super) fn mismatches(&self, value: &Value) -> Vec<String> {
        let mut found = Mismatches { root: &self.0, path: String::new(), depth: 0, found: Vec::new() };
        found.check(&self.0, value);
        found.found
    }
}

/// The mismatches of a value, and where the check is.
struct Mismatches<'a> {
    root: &'a Value,
    /// A JSON pointer to the value that is checked.
    path: String,
    depth: usize,
    found: Vec<String>,
}

impl<'a> Mismatches<'a> {
    fn check(&mut self, schema: &'a Value, value: &Value) {
        let object = match schema {
            Value::Bool(false) => return self.add("must be absent"),
            Value::Object(object) if self.found.len() < MISMATCHES_MAX => object,
            _ => return,
        };
        if self.depth == DEPTH_MAX {
            return self.add("the schema nests too deeply to check it");
        }
        self.depth += 1;
        self.check_any(object, value);
        match value {
            Value::Number(number) => self.check_number(object, number.as_f64().unwrap_or_default()),
            Value::String(text) => self.check_text(object, text),
            Value::Array(items) => self.check_items(object, items),
            Value::Object(properties) => self.check_properties(object, properties),
            Value::Null | Value::Bool(_) => {}
        }
        self.depth -= 1;
    }

    /// Checks keywords for values of all types.
    fn check_any(&mut self, schema: &'a Map<String, Value>, value: &Value) {
        let types = list_of(schema.get("type"));
        if !types.is_empty() && !types.iter().any(|kind| has_type(kind.as_str().unwrap_or_default(), value)) {
            let names: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
            self.add(format!("expected {}, got {}", names.join(" or "), shown(value)));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array)
            && !values.iter().any(|known| same(known, value))
        {
            let names: Vec<String> = values.iter().map(shown).collect();
            self.add(format!("expected one of {}, got {}", names.join(", "), shown(value)));
        }
        if let Some(known) = schema.get("const").filter(|known| !same(known, value)) {
            self.add(format!("expected {}, got {}", shown(known), shown(value)));
        }
        if let Some(referenced) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(self.root, reference)) {
            self.check(referenced, value);
        }
        self.check_combinations(schema, value);
    }

    fn check_combinations(&mut self, schema: &'a Map<String, Value>, value: &Value) {
        let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
        list("allOf").into_iter().flatten().for_each(|schema| self.check(schema, value));
        if let Some(schemas) = list("anyOf") {
            let failed: Vec<Vec<String>> = schemas.iter().map(|schema| self.attempt(schema, value)).collect();
            self.add_alternatives(failed);
        }
        if let Some(schemas) = list("oneOf") {
            let failed: Vec<Vec<String>> = schemas.iter().map(|schema| self.attempt(schema, value)).collect();
            match failed.iter().filter(|failed| failed.is_empty()).count() {
                0 => self.add_alternatives(failed),
                1 => {}
                matching => self.add(format!("matches {matching} of the schemas of oneOf, expected one")),
            }
        }
        if schema.get("not").is_some_and(|schema| self.attempt(schema, value).is_empty()) {
            self.add(format!("{} is excluded by the schema of not", shown(value)));
        }
        if let Some(condition) = schema.get("if") {
            let keyword = if self.attempt(condition, value).is_empty() { "then" } else { "else" };
            if let Some(schema) = schema.get(keyword) {
                self.check(schema, value);
            }
        }
    }

    fn check_number(&mut self, schema: &Map<String, Value>, number: f64) {
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        for (keyword, holds, words) in NUMBER_RULES {
            if let Some(limit) = limit(keyword).filter(|limit| !holds(number, *limit)) {
                self.add(format!("expected {words} {limit}, got {number}"));
            }
        }
    }

    fn check_text(&mut self, schema: &Map<String, Value>, text: &str) {
        self.check_count(schema, ("minLength", "maxLength"), text.chars().count(), "characters");
        let pattern = schema.get("pattern").and_then(Value::as_str);
        if let Some(pattern) = pattern.filter(|pattern| !matches_pattern(pattern, text)) {
            self.add(format!("{} does not match the pattern {pattern}", shown(&Value::from(text))));
        }
    }

    fn check_items(&mut self, schema: &'a Map<String, Value>, items: &[Value]) {
        self.check_count(schema, ("minItems", "maxItems"), items.len(), "items");
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.get(index).or(schema.get("items")) {
                self.within(&index.to_string(), |this| this.check(schema, item));
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true))
            && (1..items.len()).any(|index| items[..index].iter().any(|other| same(other, &items[index])))
        {
            self.add("its items must be different");
        }
        if let Some(contained) = schema.get("contains") {
            let count = items.iter().filter(|item| self.attempt(contained, item).is_empty()).count();
            let least = schema.get("minContains").and_then(Value::as_u64).unwrap_or(1) as usize;
            let most = schema.get("maxContains").and_then(Value::as_u64).map_or(usize::MAX, |most| most as usize);
            if !(least..=most).contains(&count) {
                self.add(format!("{count} items match the schema of contains"));
            }
        }
    }

    fn check_properties(&mut self, schema: &'a Map<String, Value>, properties: &Map<String, Value>) {
        self.check_count(schema, ("minProperties", "maxProperties"), properties.len(), "properties");
        let object = |keyword: &str| schema.get(keyword).and_then(Value::as_object);
        self.require(schema.get("required"), properties);
        for (name, names) in object("dependentRequired").into_iter().flatten() {
            if properties.contains_key(name) {
                self.require(Some(names), properties);
            }
        }
        for (name, dependent) in object("dependentSchemas").into_iter().flatten() {
            if properties.contains_key(name) {
                let value = Value::Object(properties.clone());
                self.check(dependent, &value);
            }
        }
        for (name, value) in properties {
            let named = object("properties").and_then(|known| known.get(name));
            let patterns = object("patternProperties").into_iter().flatten();
            let mut schemas: Vec<&Value> =
                patterns.filter(|(pattern, _)| matches_pattern(pattern, name)).map(|(_, schema)| schema).collect();
            schemas.extend(named);
            match schema.get("additionalProperties").filter(|_| schemas.is_empty()) {
                Some(Value::Bool(false)) => self.add(format!("unknown property {name:?}")),
                additional => schemas.extend(additional),
            }
            self.within(name, |this| schemas.into_iter().for_each(|schema| this.check(schema, value)));
            if let Some(schema) = schema.get("propertyNames") {
                self.check(schema, &Value::from(name.as_str()));
            }
        }
    }

    fn require(&mut self, names: Option<&Value>, properties: &Map<String, Value>) {
        let names = names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let missing: Vec<&str> = names.filter(|name| !properties.contains_key(*name)).collect();
        missing.into_iter().for_each(|name| self.add(format!("the property {name:?} is missing")));
    }

    fn check_count(&mut self, schema: &Map<String, Value>, (least, most): (&str, &str), count: usize, what: &str) {
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        if let Some(least) = limit(least).filter(|least| (count as f64) < *least) {
            self.add(format!("expected at least {least} {what}, got {count}"));
        }
        if let Some(most) = limit(most).filter(|most| count as f64 > *most) {
            self.add(format!("expected at most {most} {what}, got {count}"));
        }
    }

    /// Returns the mismatches with a schema that need not match.
    fn attempt(&self, schema: &'a Value, value: &Value) -> Vec<String> {
        let mut attempt = Mismatches { root: self.root, path: self.path.clone(), depth: self.depth, found: Vec::new() };
        attempt.check(schema, value);
        attempt.found
    }

    /// Adds the mismatches of the alternative that matches best, unless one matches.
    fn add_alternatives(&mut self, failed: Vec<Vec<String>>) {
        let best = failed.into_iter().min_by_key(Vec::len).unwrap_or_default();
        best.into_iter().for_each(|mismatch| self.push(mismatch));
    }

    fn within(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        check(self);
        self.path.truncate(length);
    }

    fn add(&mut self, problem: impl AsRef<str>) {
        let place = if self.path.is_empty() { "the value" } else { &self.path };
        self.push(format!("{place}: {}", problem.as_ref()));
    }

    fn push(&mut self, mismatch: String) {
        if self.found.len() < MISMATCHES_MAX && !self.found.contains(&mismatch) {
            self.found.push(mismatch);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Asserts that a schema accepts and refuses these values, as the crate `jsonschema` does.
    #[track_caller]
    fn check(schema: Value, accepted: Value, refused: Value) {
        let ours = JsonSchema::new(schema.clone()).expect("a schema");
        let theirs = jsonschema::draft202012::new(&schema).expect("a schema");
        for (values, expected) in [(accepted, true), (refused, false)] {
            for value in values.as_array().expect("a list of values") {
                assert_eq!(theirs.is_valid(value), expected, "the crate: {schema} {value}");
                assert_eq!(ours.mismatches(value).is_empty(), expected, "{schema} {value}");
            }
        }
    }

    #[test]
    fn values_are_checked_as_the_specification_says() {
        check(json!(true), json!([null, 1, "a"]), json!([]));
        check(json!({"type": "integer"}), json!([1, 1.0, -3]), json!([1.5, "1", null, []]));
        check(json!({"type": ["string", "null"]}), json!(["a", null]), json!([1, {}]));
        check(json!({"enum": [1, "a", {"b": [1]}]}), json!([1, 1.0, "a", {"b": [1.0]}]), json!([2, "b", {"b": [1], "c": 1}]));
        check(json!({"const": {"a": 1, "b": 2}}), json!([{"a": 1, "b": 2.0}]), json!([{"a": 1}, 1]));
        check(json!({"minimum": 1, "exclusiveMaximum": 3}), json!([1, 2.9, "0"]), json!([0, 3]));
        check(json!({"multipleOf": 0.1}), json!([0.3, 1, 12]), json!([0.35]));
        check(json!({"minLength": 2, "maxLength": 3}), json!(["äö", "abc", 1]), json!(["ä", "abcd"]));
        check(json!({"pattern": "^\\d+$"}), json!(["12", 1]), json!(["a1"]));
        let strict = json!({"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
        check(strict, json!([{"a": "x"}, "no object"]), json!([{}, {"a": 1}, {"a": "x", "b": 1}]));
        let patterns = json!({"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": {"type": "string"}});
        check(patterns, json!([{"x-a": 1, "b": "c"}]), json!([{"x-a": "1"}, {"b": 1}]));
        check(json!({"propertyNames": {"maxLength": 1}, "minProperties": 1}), json!([{"a": 1}]), json!([{}, {"ab": 1}]));
        check(json!({"dependentRequired": {"a": ["b"]}}), json!([{"a": 1, "b": 1}, {"b": 1}]), json!([{"a": 1}]));
        check(json!({"dependentSchemas": {"a": {"required": ["b"]}}}), json!([{"a": 1, "b": 1}]), json!([{"a": 1}]));
        check(json!({"items": {"type": "integer"}, "uniqueItems": true}), json!([[], [1, 2]]), json!([["a"], [1, 1.0]]));
        check(json!({"prefixItems": [{"type": "string"}], "items": false}), json!([[], ["a"]]), json!([[1], ["a", 1]]));
        check(json!({"contains": {"const": 1}, "maxContains": 1}), json!([[1, 2]]), json!([[], [1, 1]]));
    }

    #[test]
    fn schemas_are_combined() {
        let either = json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5}]});
        check(either, json!(["a", 5]), json!([4, null]));
        check(json!({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}), json!([2, 3]), json!([6, 7]));
        check(json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!([1, 2]), json!([0, 3]));
        check(json!({"not": {"type": "null"}}), json!([1]), json!([null]));
        let condition = json!({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "integer"}});
        check(condition, json!(["ab", 1]), json!(["a", null]));
        let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {
            "type": "object", "properties": {"children": {"items": {"$ref": "#/$defs/node"}}},
        }}});
        check(tree, json!([{"children": [{"children": []}]}]), json!([{"children": [{"children": [1]}]}]));
    }

    #[test]
    fn mismatches_name_their_place() {
        let schema = json!({"properties": {"a/b": {"items": {"type": "integer"}}}, "required": ["c"]});
        let found = JsonSchema::new(schema).expect("a schema").mismatches(&json!({"a/b": [1, "x"]}));
        assert_eq!(found, ["the value: the property \"c\" is missing", "/a~1b/1: expected integer, got \"x\""]);
        let cycle = JsonSchema::new(json!({"$ref": "#"})).expect("a schema").mismatches(&json!(1));
        assert!(cycle[0].contains("nests too deeply"), "{cycle:?}");
    }

    #[test]
    fn schemas_that_are_not_covered_are_refused() {
        let cases = [
            (json!([]), "expected an object or a boolean"),
            (json!({"properties": {"a": {"type": "text"}}}), "#/properties/a/type: unknown type"),
            (json!({"$ref": "https://example.com/schema"}), "is not in this schema"),
            (json!({"items": {"pattern": "(?=a)"}}), "#/items: the pattern"),
            (json!({"unevaluatedProperties": false}), "unevaluatedProperties is not supported"),
        ];
        for (schema, expected) in cases {
            let problem = JsonSchema::new(schema).err().unwrap_or_default();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
