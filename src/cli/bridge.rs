//! `nuncio serve`, `nuncio acp --http` and `nuncio token`: the HTTP server and its tokens.

use std::io::IsTerminal;

use super::flags::{BridgeOptions, TokenCommand};
use super::print;
use crate::api::timestamp;
use crate::app::{self, BridgeFlags, Ground};
use crate::error::Result;
use crate::http::Tokens;
use crate::session::now_ms;
use crate::terminal_text::output_line;

fn flags(address: String, options: BridgeOptions) -> BridgeFlags {
    let BridgeOptions { allow_public, behind_proxy, hosts, origins } = options;
    BridgeFlags { address, public: allow_public, behind_proxy, hosts, origins }
}

/// Serves HTTP until a signal arrives.
pub async fn serve(ground: Ground, address: String, options: BridgeOptions) -> Result<u8> {
    let token_file = Tokens::new(&ground.places.data).owner_file().display().to_string();
    let (_, bridge) = app::bridge(ground, flags(address, options)).await?;
    // The URL with the token is printed to a terminal only, so that no file or pipe records it.
    let terminal = std::io::stdout().is_terminal();
    let url = if terminal { bridge.ready_url()? } else { bridge.url()? };
    let announce = || {
        print(format!("nuncio listens on {url}\n"))?;
        if terminal {
            return print(format!("owner token: {token_file}\n"));
        }
        tracing::info!(url, token_file, "listening");
        Ok(())
    };
    app::serve(bridge, announce).await.map(|()| 0)
}

/// Serves ACP on standard input and output, and HTTP. The address is printed to standard error.
pub async fn acp_and_serve(ground: Ground, address: String, options: BridgeOptions) -> Result<u8> {
    let token_file = Tokens::new(&ground.places.data).owner_file().display().to_string();
    let (nuncio, bridge) = app::bridge(ground, flags(address, options)).await?;
    let terminal = std::io::stderr().is_terminal();
    let url = if terminal { bridge.ready_url()? } else { bridge.url()? };
    let announce = || {
        eprintln!("nuncio listens on {url}");
        match terminal {
            true => eprintln!("owner token: {}", output_line(&token_file)),
            false => tracing::info!(url, token_file, "listening"),
        }
    };
    app::acp_and_bridge(nuncio, bridge, announce).await.map(|()| 0)
}

/// Runs `nuncio token`.
pub fn token(ground: &Ground, command: TokenCommand) -> Result<u8> {
    let tokens = Tokens::new(&ground.places.data);
    match command {
        TokenCommand::List => {
            let rows = tokens.list()?.into_iter().map(|token| {
                let roots: Vec<String> = token.roots.iter().map(|root| root.display().to_string()).collect();
                let roots = if roots.is_empty() { "all roots of the server".into() } else { roots.join(" ") };
                format!("{:20} {:10} {} {roots}\n", token.name, token.role.as_str(), timestamp(token.created_ms))
            });
            print(rows.collect::<String>())?;
        }
        TokenCommand::New { name, role } => {
            print(tokens.create(&name, role.parse()?, ground.overrides.roots.clone(), now_ms())? + "\n")?;
        }
        TokenCommand::Revoke { name } => tokens.revoke(&name)?,
    }
    Ok(0)
}
