//! The committed schemas and the tables of the library agree.

use serde_json::Value;

/// The list of known event types and the event schema name the same types.
#[test]
fn known_event_types_are_those_of_the_schema() {
    let path = harness::package("schema/event.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let variants = schema["$defs"]["Body"]["oneOf"].as_array().unwrap();
    let names: Vec<&str> = variants.iter().map(|variant| variant["properties"]["type"]["const"].as_str().unwrap()).collect();
    assert_eq!(names, nuncio::event::TYPES);
}

/// `schema/methods.json` has no methods that stream. `peers::matrix` names them.
#[test]
fn one_method_streams() {
    let listed: Value = serde_json::from_str(include_str!("../../schema/methods.json")).unwrap();
    let names = nuncio::internal::api::METHODS.iter().map(|row| row.name);
    assert_eq!(names.filter(|name| listed.get(name).is_none()).collect::<Vec<_>>(), ["_nuncio/events/follow"]);
}
