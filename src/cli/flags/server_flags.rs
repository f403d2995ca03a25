//! Arguments of `nuncio mcp`.

use clap::{ArgGroup, Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum McpCommand {
    /// List the MCP servers of the settings
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Connect to MCP servers and report their tools, versions, start times and errors
    Check {
        /// Names of servers; without them, all enabled servers
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Add an MCP server to the user's settings file
    #[command(override_usage = "nuncio mcp add [OPTIONS] <NAME> (--url <URL> | -- <COMMAND>...)")]
    Add(McpAddOptions),
    /// Remove an MCP server from the user's settings file
    Rm {
        /// Name of the server
        name: String,
    },
    /// Sign in to an MCP server with OAuth, in a browser
    Login {
        /// Name of the server
        name: String,
    },
    /// Remove the tokens of a sign-in
    Logout {
        /// Name of the server
        name: String,
    },
    /// Serve MCP on standard input and output, so that other agents can delegate tasks to nuncio
    Serve,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("server").args(["command", "url"]).required(true))]
pub(in crate::cli) struct McpAddOptions {
    /// Name of the server: letters, digits, `_` and `-`
    pub name: String,
    /// Use a server with the transport "streamable HTTP"
    #[arg(long)]
    pub url: Option<String>,
    /// Set a variable of the program; `$OTHER` is a variable of nuncio (repeatable)
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
    pub env: Vec<String>,
    /// Send a header with every request; `$OTHER` is a variable of nuncio (repeatable)
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "url")]
    pub headers: Vec<String>,
    /// Name the environment variable that holds the bearer token
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub bearer_token_env: Option<String>,
    /// Program and arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
