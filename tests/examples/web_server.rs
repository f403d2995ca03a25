//! The HTTP interface and the web console inside a program, until a line arrives on standard input.
//!
//! `cargo run --example web_server`

#![allow(clippy::print_stdout)]

use nuncio::Agent;

#[tokio::main]
async fn run() -> nuncio::Result<()> {
    let agent = Agent::builder(".").environment(std::env::vars()).build().await?;
    let server = agent.listen("127.0.0.1:0").await?;
    println!("{}/#token={}", server.url(), server.token());
    let line = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    // An error is the end of the input, too.
    let _ = line.await;
    server.stop().await;
    Ok(())
}

fn main() -> nuncio::Result<()> {
    nuncio::init();
    run()
}
