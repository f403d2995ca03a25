//! Benchmark of hosting: nuncio that hosts nuncio over ACP, compared with nuncio alone. Both use
//! the scripted model. The runs alternate; prints medians.

#![allow(clippy::print_stdout)]

mod client;
mod process;

use std::time::{Duration, Instant};

use client::{Client, World};
use serde_json::{Value, json};

const ROUNDS: usize = 300;
const DELTAS: usize = 20_000;
const SESSIONS: usize = 50;

/// A world whose settings have nuncio as the hosted agent `inner`, with the same script.
fn world(script: &Value) -> World {
    let world = World::new(script);
    let (program, script) = (process::binary().into_string().expect("a path"), world.dir().join("script.json"));
    let settings = format!(
        "[agents]\nallowed = [\"inner\"]\n[agents.inner]\nkind = \"fake\"\ncommand = {}\nconfig = {}\n",
        json!([program]),
        json!(script)
    );
    std::fs::write(world.dir().join("home/config.toml"), settings).expect("settings");
    let trusted = std::process::Command::new(process::binary())
        .arg("trust")
        .env("NUNCIO_HOME", world.dir().join("home"))
        .current_dir(world.work())
        .output()
        .expect("nuncio");
    assert!(trusted.status.success(), "{trusted:?}");
    world
}

fn session(client: &mut Client, world: &World, agent: Option<&str>) -> String {
    let ours = agent.map_or(json!({}), |agent| json!({ "nuncio": { "agent": agent } }));
    let made = client.call("session/new", json!({ "cwd": world.work(), "mcpServers": [], "_meta": ours }));
    made["sessionId"].as_str().expect("an id").into()
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn round_trips() {
    let world = world(&json!({ "steps": vec![json!({ "text": "ok", "chunk_chars": 2 }); ROUNDS + 1] }));
    let mut client = world.client();
    let (own, hosted) = (session(&mut client, &world, None), session(&mut client, &world, Some("inner")));
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..=ROUNDS {
        for (times, session) in times.iter_mut().zip([&own, &hosted]) {
            let time = timed(|| drop(client.prompt(session, "go")));
            // The first prompt starts the hosted process.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let [own, hosted] = times.map(median);
    println!("prompt round trip: {own:?} alone, {hosted:?} hosted, above {:?}", hosted.saturating_sub(own));
    let lists = (0..ROUNDS).map(|_| timed(|| drop(client.call("_nuncio/agent/list", json!({}))))).collect();
    let statuses = (0..ROUNDS).map(|_| timed(|| drop(client.call("_nuncio/status", json!({}))))).collect();
    println!("agent list {:?}, status {:?}", median(lists), median(statuses));
}

fn deltas() {
    let text = "x".repeat(DELTAS * 4);
    let world = world(&json!({ "steps": vec![json!({ "text": text, "chunk_chars": 4 }); 8] }));
    let mut client = world.client();
    let (own, hosted) = (session(&mut client, &world, None), session(&mut client, &world, Some("inner")));
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..7 {
        for (times, session) in times.iter_mut().zip([&own, &hosted]) {
            times.push(timed(|| drop(client.prompt(session, "go"))));
        }
    }
    let [own, hosted] = times.map(|times| DELTAS as f64 / median(times).as_secs_f64());
    println!("deltas per second: {own:.0} alone, {hosted:.0} hosted");
}

fn memory() {
    let world = world(&json!({ "steps": vec![json!({ "text": "ok" }); 4] }));
    let mut client = world.client();
    let first = session(&mut client, &world, Some("inner"));
    client.prompt(&first, "go");
    let before = client.resident_kib();
    for _ in 0..SESSIONS {
        let session = session(&mut client, &world, Some("inner"));
        client.prompt(&session, "go");
    }
    let each = client.resident_kib().saturating_sub(before) as f64 / SESSIONS as f64;
    println!("resident for each of {SESSIONS} idle hosted sessions: {each:.0} KiB");
}

fn main() {
    round_trips();
    deltas();
    memory();
}
