//! `nuncio serve`, `nuncio acp --http`, `nuncio token`: the bridge, and who may in.

use std::io::IsTerminal;

use super::flags::{BridgeOptions, TokenCommand};
use super::print;
use crate::api::{Role, timestamp};
use crate::app::{self, BridgeFlags, Ground};
use crate::error::{Error, Result};
use crate::http::Tokens;
use crate::session::now_ms;
use crate::terminal_text::output_line;

fn flags(address: String, options: BridgeOptions) -> BridgeFlags {
    let BridgeOptions { allow_public, behind_proxy, hosts, origins } = options;
    BridgeFlags { address, public: allow_public, behind_proxy, hosts, origins }
}

pub async fn serve(ground: Ground, address: String, options: BridgeOptions) -> Result<u8> {
    let token_file = Tokens::new(&ground.places.data).owner_file().display().to_string();
    let (_, bridge) = app::bridge(ground, flags(address, options)).await?;
    // The token is for eyes only: not for a file or a pipe that output goes to.
    let terminal = std::io::stdout().is_terminal();
    let url = if terminal { bridge.ready_url()? } else { bridge.url()? };
    let tell = || {
        print(format!("nuncio listens on {url}\n"))?;
        if terminal {
            return print(format!("the owner's token is in {token_file}\n"));
        }
        tracing::info!(url, token_file, "listening");
        Ok(())
    };
    app::serve(bridge, tell).await.map(|()| 0)
}

/// Standard output is the protocol's: the address is told on standard error.
pub async fn beside(ground: Ground, address: String, options: BridgeOptions) -> Result<u8> {
    let token_file = Tokens::new(&ground.places.data).owner_file().display().to_string();
    let (nuncio, bridge) = app::bridge(ground, flags(address, options)).await?;
    let terminal = std::io::stderr().is_terminal();
    let url = if terminal { bridge.ready_url()? } else { bridge.url()? };
    let tell = || {
        eprintln!("nuncio listens on {url}");
        match terminal {
            true => eprintln!("the owner's token is in {}", output_line(&token_file)),
            false => tracing::info!(url, token_file, "listening"),
        }
    };
    app::acp_and_bridge(nuncio, bridge, tell).await.map(|()| 0)
}

pub fn token(ground: &Ground, command: TokenCommand) -> Result<u8> {
    let tokens = Tokens::new(&ground.places.data);
    match command {
        TokenCommand::List => {
            let rows = tokens.list()?.into_iter().map(|token| {
                let roots: Vec<String> = token.roots.iter().map(|root| root.display().to_string()).collect();
                let roots = if roots.is_empty() { "everywhere the server is".into() } else { roots.join(" ") };
                format!("{:20} {:10} {} {roots}\n", token.name, role_name(token.role), timestamp(token.created_ms))
            });
            print(rows.collect::<String>())?;
        }
        TokenCommand::New { name, role } => {
            let role = match role.as_str() {
                "observer" => Role::Observer,
                "controller" => Role::Controller,
                _ => return Err(Error::invalid_params(format!("there is no role {role}")).hint("observer or controller")),
            };
            print(tokens.create(&name, role, ground.overrides.roots.clone(), now_ms())? + "\n")?;
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
