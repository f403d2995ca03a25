//! The smallest program with an agent: sends the arguments as a prompt, prints the answer.
//!
//! `cargo run --example minimal -- "What does this project do?"`

#![allow(clippy::print_stdout)]

use nuncio::{Agent, Mode};

#[tokio::main]
async fn run() -> nuncio::Result<()> {
    let prompt: Vec<String> = std::env::args().skip(1).collect();
    let agent = Agent::builder(".").environment(std::env::vars()).mode(Mode::Plan).build().await?;
    let mut turn = agent.session().await?.prompt(prompt.join(" ")).await?;
    while let Some(event) = turn.next().await {
        if let Some(text) = event?.text() {
            print!("{text}");
        }
    }
    println!("\n{:?}, {} tokens", turn.stop(), turn.usage().total());
    agent.close().await
}

fn main() -> nuncio::Result<()> {
    nuncio::init();
    run()
}
