//! The list of tools that models receive: names, filters, changes, the search tool.

use serde_json::{Value, json};

use super::{calls, setting, text};
use harness::provider::Exchange;
use harness::provider::session;
use harness::steps::calls_one;
use harness::wires::WIRES;
use harness::{Home, notices, tool};

/// Runs one prompt, and returns the names of the tools in its request.
async fn offered(config: &str) -> Vec<String> {
    let wire = &WIRES[0];
    let (home, provider, _) = session::home(wire, vec![Exchange::events(wire.plain)]).await;
    home.config(&(home.config_text() + config));
    let ran = home.run(&["run", "go"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let body = provider.finish().await[0].body.clone();
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap().to_owned();
    body["tools"].as_array().unwrap().iter().map(name).collect()
}

fn of_servers(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).filter(|name| name.starts_with("mcp")).collect()
}

#[tokio::test]
async fn names_are_sanitized_distinct_and_sorted() {
    let names = offered(&setting("\"my docs\"", &["names=a.b,a_b"])).await;
    let ours = of_servers(&names);
    let native = &names[..names.len() - ours.len()];
    assert!(native.is_sorted() && native.contains(&"bash".to_owned()), "{native:?}");
    assert!(ours.is_sorted(), "{ours:?}");
    let similar: Vec<&&str> = ours.iter().filter(|name| name.starts_with("mcp__my_docs__a_b")).collect();
    assert_eq!(similar.len(), 2, "{ours:?}");
    assert_ne!(similar[0], similar[1]);
}

#[tokio::test]
async fn tool_filters_hide_tools() {
    let names = offered(&(setting("docs", &[]) + "tools = [\"e*\", \"add\"]\nhidden_tools = [\"env*\"]\n")).await;
    assert_eq!(of_servers(&names), ["mcp__docs__add", "mcp__docs__echo"]);
    let names = offered(&(setting("docs", &[]) + "enabled = false\n")).await;
    assert_eq!(of_servers(&names), Vec::<&str>::new());
}

#[tokio::test]
async fn large_lists_are_replaced_by_a_search_tool() {
    let config = setting("docs", &["many=200"]);
    assert_eq!(of_servers(&offered(&config).await), ["mcp_call", "mcp_search"]);
    let home = Home::new();
    home.config(&(config + "[[permissions.rules]]\ntool = \"mcp__docs__tool_001\"\npolicy = \"deny\"\n"));
    let steps = [
        calls_one("mcp_search", json!({"query": "add numbers"})),
        calls_one("mcp_call", json!({"tool": "mcp__docs__add", "arguments": {"a": 1, "b": 2}})),
        calls_one("mcp_call", json!({"tool": "mcp__docs__tool_001"})),
        calls_one("mcp_call", json!({"tool": "mcp__docs__none"})),
        calls_one("mcp_search", json!({"query": "zebra"})),
    ];
    let finished = calls(&home, &steps).await;
    let found = text(&finished[0]);
    assert!(found.starts_with("mcp__docs__add: Adds two numbers.\ninput schema: {"), "{found}");
    assert_eq!((text(&finished[1]).as_str(), &finished[1]["title"]), (r#"{"sum":3}"#, &json!(r#"docs: add {"a":1,"b":2}"#)));
    assert!(text(&finished[2]).contains("denied"), "{}", finished[2]);
    assert!(text(&finished[3]).contains("there is no tool mcp__docs__none"), "{}", finished[3]);
    assert!(text(&finished[4]).contains("no tool matches; there are 211 tools of the servers docs"), "{}", finished[4]);
}

#[tokio::test]
async fn changed_list_adds_tools_in_the_next_turn_and_tells_the_model() {
    let home = super::home(&[]);
    let mut last = calls_one("mcp__docs__gr_own", json!({}));
    last["expect"] = json!("new tools: mcp__docs__gr_own");
    let steps = json!([calls_one("mcp__docs__grow", json!({"name": "gr\nown"})), calls_one("mcp__docs__gr_own", json!({})), {"text": "end"}, last]);
    let (mut agent, session) = super::session(&home, steps).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(text(&tool(&updates, 0)), "grown");
    assert!(text(&tool(&updates, 1)).contains("there is no tool mcp__docs__gr_own"), "the list is stable during a turn");
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(notices(&updates), ["MCP server docs changed its tools"]);
    assert_eq!(text(&tool(&updates, 0)), "called gr\nown");
    agent.finish().await;
}

#[tokio::test]
async fn new_tool_that_the_settings_hide_is_not_reported() {
    let home = Home::new();
    home.config(&(setting("docs", &[]) + "hidden_tools = [\"grown\"]\n"));
    let steps = json!([calls_one("mcp__docs__grow", json!({})), {"text": "end"}, {"text": "end"}]);
    let (mut agent, session) = super::session(&home, steps).await;
    agent.turn(&session, "go").await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(notices(&updates), Vec::<&str>::new());
    agent.finish().await;
}

#[tokio::test]
async fn server_that_always_changes_its_list_is_not_asked_all_the_time() {
    let home = Home::new();
    let log = home.put("../server.log", "");
    home.config(&setting("docs", &["restless", &format!("log={}", log.display())]));
    let steps: Vec<_> = (0..200).map(|number| calls_one("mcp__docs__echo", json!({"text": number.to_string()}))).collect();
    calls(&home, &steps).await;
    let log = std::fs::read_to_string(&log).unwrap();
    let count = |line: &str| log.lines().filter(|one| *one == line).count();
    assert!(count("tools/call") == 200 && count("tools/list") < 100, "{} lists", count("tools/list"));
}

#[tokio::test]
async fn search_results_are_bounded() {
    let home = Home::new();
    home.config(&setting("docs", &["many=50", "wide=1000"]));
    let finished = calls(&home, &[calls_one("mcp_search", json!({"query": "tool_00"}))]).await;
    let found = text(&finished[0]);
    assert!(found.len() < 60_000 && found.contains("more tools match]"), "{} bytes", found.len());
}

/// Hooks for a tool apply also if the model calls it through another one.
#[tokio::test]
async fn hooks_get_the_name_and_the_input_of_the_called_tool() {
    let hook = |tool: &str, input: &str| {
        let command = format!("cat >> \"$NUNCIO_WORKSPACE/seen.json\"; echo '{{\"input\":{input}}}'");
        format!("[[hooks]]\nevent = \"tool.execute.before\"\nmatch = \"{tool}\"\ncommand = [\"sh\", \"-c\", '''{command}''']\n")
    };
    let home = Home::new();
    let other = r#"{"server":"docs","uri":"test://two"}"#;
    let hooks = hook("mcp__docs__a*", r#"{"a":5,"b":6}"#) + &hook("mcp__docs__read_resource", other);
    home.config(&(setting("docs", &["many=200", "resources"]) + &hooks));
    let steps = [
        calls_one("mcp_call", json!({"tool": "mcp__docs__add", "arguments": {"a": 1, "b": 2}})),
        calls_one("mcp_resource", json!({"server": "docs", "uri": "test://one"})),
    ];
    let finished = calls(&home, &steps).await;
    assert!(text(&finished[0]).starts_with(r#"{"sum":11}"#), "{}", finished[0]);
    assert!(finished[1]["content"].to_string().contains("text of test://two"), "{}", finished[1]);
    let seen = home.get("seen.json").unwrap();
    let seen: Vec<Value> = serde_json::Deserializer::from_str(&seen).into_iter().map(Result::unwrap).collect();
    let tools: Vec<_> = seen.iter().map(|request| (&request["tool"]["name"], &request["tool"]["input"])).collect();
    let [add, resource] = [json!("mcp__docs__add"), json!("mcp__docs__read_resource")];
    assert_eq!(tools, [(&add, &json!({"a": 1, "b": 2})), (&resource, &json!({"server": "docs", "uri": "test://one"}))]);
}

#[tokio::test]
async fn subagent_gets_the_tools_of_its_definition_from_a_large_list() {
    let home = Home::new();
    home.config(&setting("docs", &["many=200"]));
    let steps = json!([calls_one("mcp__docs__add", json!({"a": 1, "b": 2})), {"expect": "sum", "text": "it is three"}]);
    harness::subagents::define(&home, "adder", "tools: mcp__docs__add\n", steps);
    let task = json!({"tool_calls": [harness::steps::task("adder", "add")]});
    let (mut agent, session) = home.session(json!([task, {"expect": "it is three", "text": "end"}]), &["--mode", "auto"]).await;
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!(stop, "end_turn", "{updates:?}");
    assert_eq!(text(&tool(&updates, 0)), "it is three");
    agent.finish().await;
}
