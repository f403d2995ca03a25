//! Arguments of the HTTP server.

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct ServeOptions {
    /// Listen on ADDR
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8686")]
    pub http: String,
    /// Listen although the store cannot be opened; /ready answers 503 until it can
    #[arg(long)]
    pub wait_for_store: bool,
    /// Open the console in the browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub server: HttpArgs,
}

#[derive(Debug, Default, Args)]
pub(in crate::cli) struct HttpArgs {
    /// Accept an address outside the loopback interface; requires TLS or --behind-proxy
    #[arg(long)]
    pub allow_public: bool,
    /// Declare that a reverse proxy terminates TLS
    #[arg(long)]
    pub behind_proxy: bool,
    /// Accept requests for this host name (repeatable)
    #[arg(long = "allow-host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Accept requests from pages of an origin, e.g. https://name:port (repeatable)
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
}
