//! The program of docs/LIBRARY.md: a callback answers permission requests.
//!
//! `cargo run --example approval`

#![allow(clippy::print_stdout)]

use nuncio::{Agent, Decision, Mode};

fn main() -> nuncio::Result<()> {
    // This program also runs the commands of the agent, in a process of its own.
    nuncio::init();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let agent = Agent::builder(".")
            .environment(std::env::vars())
            .mode(Mode::Ask)
            .decide(|question| async move {
                match question.command_starts_with("cargo test") {
                    true => Decision::Once,
                    false => Decision::Deny("only the tests may run".into()),
                }
            })
            .build()
            .await?;
        let mut turn = agent.session().await?.prompt("Repair the failing test").await?;
        while let Some(event) = turn.next().await {
            if let Some(text) = event?.text() {
                print!("{text}");
            }
        }
        println!("\n{:?}, {} tokens", turn.stop(), turn.usage().total());
        agent.close().await
    })
}
