//! `nuncio token`: lists, creates and revokes the tokens of the HTTP server.

use super::flags::TokenCommand;
use super::terminal::output::print;
use crate::app::Bootstrap;
use crate::cli::terminal::amounts::local_time;
use crate::error::Result;
use crate::event::timestamp;
use crate::http::Tokens;
use crate::session::clock::now_ms;

/// Runs `nuncio token`. Returns the exit code.
pub(crate) fn run(bootstrap: &Bootstrap, command: TokenCommand) -> Result<u8> {
    let tokens = Tokens::new(&bootstrap.places.data);
    match command {
        TokenCommand::List => {
            let rows = tokens.list()?.into_iter().map(|token| {
                let roots: Vec<String> = token.roots.iter().map(|root| root.display().to_string()).collect();
                let roots = if roots.is_empty() { "all roots of the server".into() } else { roots.join(" ") };
                format!("{:20} {:10} {} {roots}\n", token.name, token.role.as_str(), local_time(&timestamp(token.created_ms)))
            });
            print(rows.collect::<String>())?;
        }
        TokenCommand::New { name, role } => {
            print(tokens.create(&name, role.parse()?, bootstrap.overrides.roots.clone(), now_ms())? + "\n")?;
        }
        TokenCommand::Revoke { name } => tokens.revoke(&name)?,
    }
    Ok(0)
}
