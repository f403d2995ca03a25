//! A tool of the program: the model looks up tickets of a fictional tracker.
//!
//! `cargo run --example own_tool -- "What is ticket 7 about?"`

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;

use nuncio::{Agent, Output, Tool, ToolAccess, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

/// Returns the title of a ticket.
#[derive(Deserialize, JsonSchema)]
struct TicketNumber {
    /// The number of the ticket.
    number: u32,
}

struct Tickets(BTreeMap<u32, &'static str>);

impl Tool for Tickets {
    type Input = TicketNumber;

    fn name(&self) -> &str {
        "ticket"
    }

    fn access(&self) -> ToolAccess {
        // The tickets are in this program, so no permission is needed.
        ToolAccess::Nothing
    }

    fn title(&self, input: &TicketNumber) -> String {
        format!("Ticket {}", input.number)
    }

    async fn run(&self, input: TicketNumber, _: &ToolContext<'_>) -> Result<Output, ToolError> {
        match self.0.get(&input.number) {
            Some(title) => Ok(Output::text(*title)),
            None => Err(ToolError::new(format!("there is no ticket {}; the tickets are {:?}", input.number, self.0.keys()))),
        }
    }
}

#[tokio::main]
async fn run() -> nuncio::Result<()> {
    let prompt: Vec<String> = std::env::args().skip(1).collect();
    let tickets = Tickets([(7, "The login page does not load"), (8, "Prices lack the currency")].into());
    let agent = Agent::builder(".").environment(std::env::vars()).tool(tickets).build().await?;
    println!("{}", agent.session().await?.prompt(prompt.join(" ")).await?.finish().await?);
    agent.close().await
}

fn main() -> nuncio::Result<()> {
    nuncio::init();
    run()
}
