//! Agents in terminals that no longer report.

use std::time::{Duration, Instant};

use nuncio::internal::hub::{TERMINAL_KEPT, TERMINAL_SILENT, TerminalHook, TerminalSessions};
use serde_json::json;

/// Hooks of Claude Code with the status that the agent has after them.
const BUSY: (&str, &str) = ("UserPromptSubmit", "busy");
const WAITING: (&str, &str) = ("PermissionRequest", "waiting");
const IDLE: (&str, &str) = ("Stop", "idle");

#[test]
fn silent_agents_become_idle_and_are_forgotten() {
    let now = Instant::now();
    let cases = [
        (BUSY, Duration::ZERO, Some("busy")),
        (BUSY, TERMINAL_SILENT, Some("idle")),
        (WAITING, TERMINAL_SILENT, Some("waiting")),
        (WAITING, TERMINAL_KEPT, None),
        (IDLE, TERMINAL_KEPT, None),
    ];
    for ((hook, status), silent, expected) in cases {
        let terminals = TerminalSessions::default();
        let hook: TerminalHook = serde_json::from_value(json!({"hook_event_name": hook, "session_id": "id"})).unwrap();
        terminals.on_hook("/w".into(), hook, now);
        let found = |at| {
            let listed = terminals.list(at).into_iter().find(|terminal| terminal.agent_session == "id");
            listed.map(|terminal| json!(terminal.status))
        };
        assert_eq!(found(now), Some(json!(status)));
        assert_eq!(found(now + silent), expected.map(|status| json!(status)), "{status} {silent:?}");
    }
}
