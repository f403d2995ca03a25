//! The cost of a request, in events, turns, sessions, over ACP and on the command line.

use serde_json::{Value, json};

use super::in_nanos;
use harness::log::bodies;
use harness::provider::Exchange;
use harness::provider::session;
use harness::wires::WIRES;
use harness::{Home, session_updates};

pub const PRICE: &str = "[models.\"scripted:*\"]\nprice = { input = 3.0, output = 15.0 }\n";

/// The cost of the tokens in a body, in nano-dollars, with the price of [`PRICE`].
fn nanos(body: &Value) -> i64 {
    let tokens = |name: &str| body[name].as_i64().unwrap();
    3_000 * tokens("inputTokens") + 15_000 * tokens("outputTokens")
}

/// The total of the last `usage_update` of a session.
fn shown(frames: &[Value], session: &str) -> Value {
    let updates = session_updates(frames, session);
    updates.iter().rfind(|update| update["sessionUpdate"] == "usage_update").unwrap()["cost"].clone()
}

#[tokio::test]
async fn cost_is_recorded_per_request_turn_and_session() {
    let home = Home::new();
    home.config(PRICE);
    let plan = json!({"name": "plan", "input": {"entries": [{"content": "look"}]}});
    let steps = json!([{"text": "a", "tool_calls": [plan]}, {"text": "b"}, {"text": "c"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let mut ended = Vec::new();
    for prompt in ["one", "two"] {
        let id = agent.prompt(&session, prompt).await;
        ended.push(agent.answer(&id).await.unwrap());
    }
    let (turns, view) =
        (agent.call("_nuncio/session/turns", json!({"sessionId": session})).await["turns"].clone(), agent.view(&session).await);
    let listed = agent.call("session/list", json!({})).await["sessions"][0]["_meta"]["nuncio"].clone();
    let live = shown(&agent.frames, &session);
    let before = agent.frames.len();
    agent.load(&home, &session).await;
    let replayed: Vec<Value> = session_updates(&agent.frames[before..], &session);
    let replayed: Vec<i64> = replayed
        .iter()
        .filter(|update| update["sessionUpdate"] == "usage_update")
        .map(|update| in_nanos(&update["cost"]["amount"]))
        .collect();
    agent.finish().await;

    let log = home.log(&session).await;
    let costs: Vec<i64> = bodies(&log, "usage.updated").into_iter().map(nanos).collect();
    assert_eq!(costs.len(), 3);
    for kind in ["usage.updated", "step.completed"] {
        let recorded: Vec<i64> = bodies(&log, kind).iter().map(|body| in_nanos(&body["cost"])).collect();
        assert_eq!(recorded, costs, "{kind}");
    }
    let of_turns = [costs[0] + costs[1], costs[2]];
    for (number, cost) in of_turns.into_iter().enumerate() {
        assert_eq!(in_nanos(&turns[number]["cost"]), cost, "{turns}");
        assert_eq!(in_nanos(&ended[number]["_meta"]["nuncio"]["cost"]), cost, "{ended:?}");
        assert_eq!(turns[number]["usage"]["inputTokens"], ended[number]["usage"]["inputTokens"], "{turns}");
    }
    let total: i64 = costs.iter().sum();
    for cost in [&view["cost"], &listed["cost"], &live["amount"]] {
        assert_eq!(in_nanos(cost), total);
    }
    assert_eq!(live["currency"], "USD");
    assert_eq!(replayed, [costs[0], costs[0] + costs[1], total]);
    let sum = |name: &str| bodies(&log, "usage.updated").iter().map(|body| body[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (&view["usage"]["inputTokens"], &view["usage"]["outputTokens"]),
        (&json!(sum("inputTokens")), &json!(sum("outputTokens")))
    );

    let list = home.run(&["sessions", "list"], "").await;
    assert!(list.stdout.trim_end().ends_with(&format!("  ${:.4}", total as f64 / 1e9)), "{list:?} {total}");
    let json = home.run(&["sessions", "list", "--json"], "").await;
    assert_eq!(in_nanos(&json.lines()[0]["cost"]), total);
    let show = home.run(&["sessions", "show", &session], "").await;
    let tokens = format!("Tokens: {} in, {} out, $", sum("inputTokens"), sum("outputTokens"));
    assert!(format!("{}{}", show.stdout, show.stderr).contains(&tokens), "{show:?}");
}

/// The cost is absent, and not 0, if the price is unknown.
#[tokio::test]
async fn unknown_price_gives_no_cost() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "a"}]), &[]).await;
    let id = agent.prompt(&session, "go").await;
    let ended = agent.answer(&id).await.unwrap();
    let turns = agent.call("_nuncio/session/turns", json!({"sessionId": session})).await;
    let view = agent.view(&session).await;
    assert!(shown(&agent.frames, &session).is_null());
    agent.finish().await;
    let log = home.log(&session).await;
    for found in
        [&ended["_meta"]["nuncio"], &turns["turns"][0], &view, bodies(&log, "usage.updated")[0], bodies(&log, "step.completed")[0]]
    {
        assert_eq!(found.get("cost"), None, "{found}");
    }
}

/// The tokens that a provider reports before an answer ends count, if the turn is cancelled or the
/// process is killed.
#[tokio::test]
async fn price_of_catalogue_and_cached_tokens() {
    // Input 10, of which 4 are read from the cache and 1 is written to it; output 2.
    let wire = &WIRES[0];
    for (settings, cost) in [
        ("", None),
        ("[models.\"test/*\"]\nprice = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }\n", Some(49_950)),
        ("[models.\"test/*\"]\nprice = { input = 3.0, output = 15.0 }\n", Some(60_000)),
    ] {
        let (home, provider, _) = session::home(wire, vec![Exchange::events(wire.plain)]).await;
        home.config(&format!("{}{settings}", home.config_text()));
        let ran = home.run(&["run", "--json", "go"], "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines = ran.lines();
        let body = bodies(&lines, "step.completed")[0];
        assert_eq!(body.get("cost").map(in_nanos), cost, "{settings} {body}");
        provider.finish().await;
    }
}

/// A killed process leaves a request without an end. The tokens known until then count.
#[tokio::test]
async fn interrupted_request_counts_what_is_known() {
    let home = Home::new();
    home.config(PRICE);
    // The first request is complete; the second one is interrupted without usage.
    let list = json!({"name": "list", "input": {}});
    let steps = json!([{"tool_calls": [list]}, {"text": "word ".repeat(2000), "chunk_chars": 1, "delay_ms": 20}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    agent.kill().await;
    let (mut agent, _) = home.session(json!([]), &[]).await;
    let known = in_nanos(&agent.view(&session).await["cost"]);
    agent.load(&home, &session).await;
    let turns = agent.call("_nuncio/session/turns", json!({"sessionId": session})).await;
    assert_eq!(in_nanos(&turns["turns"][0]["cost"]), known);
    assert_eq!(in_nanos(&shown(&agent.frames, &session)["amount"]), known);
    agent.finish().await;
    let log = home.log(&session).await;
    let ends = bodies(&log, "step.completed");
    assert_eq!((in_nanos(&ends[0]["cost"]), &ends[1]["outcome"], ends[1].get("cost")), (known, &json!("interrupted"), None));
}
