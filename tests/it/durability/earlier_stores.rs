//! Stores that programs of earlier dates wrote: sessions with edits, refused and cancelled calls, a
//! plan, a compaction, a fork, a subagent and a failed turn.

use regex::Regex;
use rusqlite::Connection;
use serde_json::{Value, json};

use harness::provider::session::messages;
use harness::{Home, package};

/// The dates of the programs. For each, `cases/stores` has the database that it wrote, its own
/// answers about each session to `_nuncio/session/get` and `_nuncio/session/messages`, and the
/// messages of the request that the program of the last date then made for the prompt "next".
const DATES: &[&str] = &["2026-11-23", "2026-11-27"];
/// The directory in which they worked.
const WORK: &str = "/srv/nuncio";

/// Returns the places where `now` lacks something of `then`, or differs from it. New members are no
/// difference.
fn differences(place: &str, then: &Value, now: &Value) -> Vec<String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then
            .iter()
            .flat_map(|(name, value)| differences(&format!("{place}/{name}"), value, now.get(name).unwrap_or(&Value::Null)))
            .collect(),
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            let pairs = then.iter().zip(now).enumerate();
            pairs.flat_map(|(index, (then, now))| differences(&format!("{place}/{index}"), then, now)).collect()
        }
        _ if then == now => Vec::new(),
        _ => vec![format!("{place}: {then} was told, now {now}")],
    }
}

/// Removes the texts of a request that the program adds and that may differ between programs: the
/// description of a mode, the note that nobody answers, and the date, which older logs do not have.
fn from_log(value: &Value) -> Value {
    let words = Regex::new(r"\[mode: [^]]*\]|\[No one can answer[^]]*\]\\n|Date: [0-9-]+").unwrap();
    serde_json::from_str(&words.replace_all(&value.to_string(), "")).unwrap()
}

/// Puts the store of a program into the home, whose work directory takes the place of the
/// program's. Returns what the program said about the sessions.
fn restored(home: &Home, date: &str) -> Value {
    let (stores, work) = (package("tests/it/cases/stores"), home.work().to_str().unwrap().to_owned());
    let told = std::fs::read_to_string(stores.join(format!("{date}.json"))).unwrap().replace(WORK, &work);
    let told: Value = serde_json::from_str(&told).unwrap();
    for session in told.as_object().unwrap().values() {
        std::fs::create_dir_all(session["session"]["cwd"].as_str().unwrap()).unwrap();
    }
    // The directory of locks tells the own database from a copy, of which modes are not believed.
    std::fs::create_dir_all(home.data().join("locks")).unwrap();
    let file = home.data().join("nuncio.db");
    std::fs::copy(stores.join(format!("{date}.db")), &file).unwrap();
    let db = Connection::open(file).unwrap();
    for (table, column) in [("events", "body"), ("sessions", "cwd")] {
        db.execute(&format!("UPDATE {table} SET {column} = replace({column}, ?1, ?2)"), [WORK, &work]).unwrap();
    }
    told
}

#[tokio::test]
async fn sessions_of_earlier_stores_have_the_same_state_messages_and_requests() {
    needs_sqlite!("databases of earlier programs");
    for date in DATES {
        let home = Home::new();
        let told = restored(&home, date);
        let (mut agent, _) = home.session(json!([]), &[]).await;
        let mut found = Vec::new();
        for (session, then) in told.as_object().unwrap() {
            let messages = agent.call("_nuncio/session/messages", json!({"sessionId": session, "limit": 200})).await;
            found.push((session, then, json!({"session": agent.view(session).await, "messages": messages["messages"]})));
        }
        agent.finish().await;
        for (session, then, mut now) in found {
            home.config("");
            let mut request = messages(&home, session).await;
            request.retain(|message| message["role"] != "system");
            now["request"] = request.into();
            assert_eq!(differences("", &from_log(then), &from_log(&now)), [""; 0], "{date}, {session}");
        }
    }
}
