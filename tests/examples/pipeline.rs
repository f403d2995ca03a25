//! Two agents with different settings in one program: the first writes a plan, the second works on
//! it.
//!
//! `cargo run --example pipeline -- "Add a test for the parser"`

#![allow(clippy::print_stdout)]

use nuncio::{Agent, Mode};

#[tokio::main]
async fn run() -> nuncio::Result<()> {
    let task: Vec<String> = std::env::args().skip(1).collect();
    let planner = Agent::builder(".")
        .environment(std::env::vars())
        .mode(Mode::Plan)
        .system_prompt("You plan changes to a program. Answer with a numbered list of steps.")
        .build()
        .await?;
    let worker = Agent::builder(".").environment(std::env::vars()).mode(Mode::AcceptEdits).build().await?;
    let plan = planner.session().await?.prompt(task.join(" ")).await?.finish().await?;
    println!("plan: {plan}");
    println!("{}", worker.session().await?.prompt(format!("Carry out this plan:\n{plan}")).await?.finish().await?);
    planner.close().await?;
    worker.close().await
}

fn main() -> nuncio::Result<()> {
    nuncio::init();
    run()
}
