//! Authors of turns, messages and decisions in JSON.

use nuncio::event::Actor;
use serde_json::json;

/// The words of the causes. A client with such a name cannot be told from the cause in the log.
const CAUSES: [(&str, Actor); 14] = [
    ("terminal", Actor::Terminal),
    ("task", Actor::Task),
    ("opencode-tui", Actor::OpencodeTerminal),
    ("rule", Actor::Rule),
    ("mode", Actor::Mode),
    ("hook", Actor::Hook),
    ("verify.auto", Actor::VerifyAuto),
    ("repeated", Actor::Repeated),
    ("nobody", Actor::Nobody),
    ("unasked", Actor::Unasked),
    ("deadline", Actor::Deadline),
    ("disconnect", Actor::Disconnect),
    ("cancel", Actor::Cancel),
    ("interrupted", Actor::Interrupted),
];

#[test]
fn causes_and_clients_are_strings() {
    let clients = ["acp", "terminal-0192", "alice", "Rule", ""];
    let clients = clients.map(|name| (name, Actor::Client(name.into())));
    for (word, actor) in CAUSES.into_iter().chain(clients) {
        assert_eq!(json!(actor), json!(word));
        assert_eq!(serde_json::from_value::<Actor>(json!(word)).unwrap(), actor, "{word}");
    }
}
