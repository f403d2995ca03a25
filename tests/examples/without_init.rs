//! The error of a program that does not call `nuncio::init()`: nuncio starts the program again as
//! the helper of its commands, and it would work as an agent instead.
//!
//! `cargo run --example without_init`

#![allow(clippy::print_stdout)]

use nuncio::Agent;

#[tokio::main]
async fn main() -> nuncio::Result<()> {
    println!("the program starts");
    let agent = Agent::builder(".").environment(std::env::vars()).build().await?;
    println!("the agent is built");
    agent.close().await
}
