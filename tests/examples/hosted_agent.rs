//! Another agent behind the same interface: a program that speaks the Agent Client Protocol.
//!
//! `cargo run --example hosted_agent -- nuncio acp`

#![allow(clippy::print_stdout)]

use nuncio::Agent;

#[tokio::main]
async fn run() -> nuncio::Result<()> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let settings = format!("[agents]\nallowed = [\"other\"]\n[agents.other]\nkind = \"acp\"\ncommand = {command:?}\n");
    let agent =
        Agent::builder(".").environment(std::env::vars()).settings(settings).agent("other").trust_directory().build().await?;
    let mut turn = agent.session().await?.prompt("Who are you?").await?;
    println!("{}", turn.finish().await?);
    agent.close().await
}

fn main() -> nuncio::Result<()> {
    nuncio::init();
    run()
}
