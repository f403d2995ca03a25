//! Readers of logs: lists of events as `nuncio sessions show --json` writes them.

use serde_json::Value;

/// The bodies of the events of a type.
pub fn bodies<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().map(|event| &event["body"]).filter(|body| body["type"] == kind).collect()
}

/// The types of the events.
pub fn types(log: &[Value]) -> Vec<&str> {
    log.iter().map(|event| event["body"]["type"].as_str().unwrap()).collect()
}

pub fn assert_gap_free(log: &[Value]) {
    let seqs: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}
