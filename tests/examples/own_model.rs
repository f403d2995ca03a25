//! A model of the program. This one repeats the prompt; a real one would send the request to a
//! server and pass on the chunks of the answer.
//!
//! `cargo run --example own_model -- "Hello"`

#![allow(clippy::print_stdout)]

use futures_util::{StreamExt, stream};
use nuncio::content::{Part, StopReason};
use nuncio::{Agent, Chunk, ChunkStream, Message, Model, ModelRequest};

struct Echo;

impl Model for Echo {
    fn id(&self) -> &str {
        "example/echo"
    }

    fn context_window(&self) -> u64 {
        100_000
    }

    fn stream(&self, request: ModelRequest) -> ChunkStream {
        let user = request.messages.iter().rev().find_map(|message| match &**message {
            Message::User(parts) => Some(parts.iter().map(Part::as_text).collect::<Vec<_>>().join("\n")),
            _ => None,
        });
        let chunks = [Chunk::Text(format!("You wrote: {}", user.unwrap_or_default())), Chunk::Stop(StopReason::EndTurn)];
        stream::iter(chunks.map(Ok)).boxed()
    }
}

#[tokio::main]
async fn run() -> nuncio::Result<()> {
    let prompt: Vec<String> = std::env::args().skip(1).collect();
    let agent = Agent::builder(".").model_with(Echo).build().await?;
    println!("{}", agent.session().await?.prompt(prompt.join(" ")).await?.finish().await?);
    agent.close().await
}

fn main() -> nuncio::Result<()> {
    nuncio::init();
    run()
}
