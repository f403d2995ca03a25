//! `nuncio token`: lists, creates and revokes the tokens of the HTTP server.

use super::flags::TokenCommand;
use super::output::print;
use crate::api::{Role, timestamp};
use crate::app::Bootstrap;
use crate::error::{Error, Result};
use crate::http::Tokens;
use crate::session::now_ms;

/// Runs `nuncio token`. Returns the exit code.
pub fn run(bootstrap: &Bootstrap, command: TokenCommand) -> Result<u8> {
    let tokens = Tokens::new(&bootstrap.places.data);
    match command {
        TokenCommand::List => {
            let rows = tokens.list()?.into_iter().map(|token| {
                let roots: Vec<String> = token.roots.iter().map(|root| root.display().to_string()).collect();
                let roots = if roots.is_empty() { "all roots of the server".into() } else { roots.join(" ") };
                format!("{:20} {:10} {} {roots}\n", token.name, role_name(token.role), timestamp(token.created_ms))
            });
            print(rows.collect::<String>())?;
        }
        TokenCommand::New { name, role } => {
            let role = match role.as_str() {
                "observer" => Role::Observer,
                "controller" => Role::Controller,
                _ => {
                    return Err(Error::invalid_params(format!("role \"{role}\" is unknown"))
                        .hint("use --role observer or --role controller"));
                }
            };
            print(tokens.create(&name, role, bootstrap.overrides.roots.clone(), now_ms())? + "\n")?;
        }
        TokenCommand::Revoke { name } => tokens.revoke(&name)?,
    }
    Ok(0)
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Observer => "observer",
        Role::Controller => "controller",
    }
}
