//! `nuncio serve` and `nuncio acp --http`: the HTTP server.

use std::io::IsTerminal;

use super::flags::serve_flags::{HttpArgs, ServeOptions};
use super::terminal::output::{print, print_stderr};
use crate::app::{self, Bootstrap};
use crate::error::Result;
use crate::http::HttpOptions;
use crate::http::Tokens;
use crate::process::start_program;
use crate::terminal_text::output_line;

fn flags(address: String, options: HttpArgs) -> HttpOptions {
    let HttpArgs { allow_public, behind_proxy, hosts, origins } = options;
    HttpOptions { address, public: allow_public, behind_proxy, hosts, origins, roots: Vec::new() }
}

/// Serves HTTP until a signal arrives. Opens the store first, unless `wait_for_store` is set. Then
/// opens the console in the browser if `open` is set.
pub(crate) async fn serve(bootstrap: Bootstrap, options: ServeOptions) -> Result<u8> {
    let ServeOptions { http: address, wait_for_store, open, server: options } = options;
    let browser = open.then(|| bootstrap.environment.get("BROWSER").unwrap_or("xdg-open").to_owned());
    let token_file = Tokens::new(&bootstrap.places.data).owner_file().display().to_string();
    let (app, server) = app::http_server(bootstrap, flags(address, options)).await?;
    match wait_for_store {
        true => app.open_store_later()?,
        false => drop(app.sessions().await?),
    }
    // The URL with the token is printed to a terminal only, so that no file or pipe records it.
    let terminal = std::io::stdout().is_terminal();
    let url = if terminal { server.ready_url()? } else { server.url()? };
    let code_url = browser.as_ref().map(|_| server.code_url()).transpose()?;
    let announce = || {
        match terminal {
            true => print(format!("owner token file: {token_file}\n"))?,
            false => tracing::info!(url, token_file, "listening"),
        }
        print(format!("nuncio listens on {url}\n"))?;
        if let Some((browser, url)) = browser.zip(code_url)
            && let Err(error) = start_program(&browser, &url)
        {
            print_stderr(format!("nuncio: the browser was not started: {browser}: {error}\n"));
        }
        Ok(())
    };
    app::serve(server, announce).await.map(|()| 0)
}

/// Serves ACP on standard input and output, and HTTP. The address is printed to standard error.
pub(crate) async fn acp_and_serve(bootstrap: Bootstrap, address: String, options: HttpArgs) -> Result<u8> {
    let token_file = Tokens::new(&bootstrap.places.data).owner_file().display().to_string();
    let (app, server) = app::http_server(bootstrap, flags(address, options)).await?;
    let terminal = std::io::stderr().is_terminal();
    let url = if terminal { server.ready_url()? } else { server.url()? };
    let announce = || {
        if terminal {
            print_stderr(format!("owner token file: {}\n", output_line(&token_file)));
        }
        print_stderr(format!("nuncio listens on {url}\n"));
        if !terminal {
            tracing::info!(url, token_file, "listening");
        }
    };
    app::acp_and_http(app, server, announce).await.map(|()| 0)
}
