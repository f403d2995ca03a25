//! Arguments of `nuncio login`.

use clap::{Args, Subcommand};

/// Editors append the arguments of the authentication method `login` to their own command.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AcpCommand {
    /// Store the API key of a provider
    #[command(hide = true)]
    Login(LoginOptions),
}

/// Arguments of `nuncio login`.
#[derive(Debug, Args)]
pub(in crate::cli) struct LoginOptions {
    /// Provider whose API key is read from standard input, or asked for at a terminal
    pub(in crate::cli) provider: Option<String>,
    /// List the providers with a key, and where it comes from
    #[arg(long, conflicts_with = "provider")]
    pub(in crate::cli) list: bool,
    /// With --list: print JSON
    #[arg(long, requires = "list")]
    pub(in crate::cli) json: bool,
    /// Store the key in a file even if there is a keyring
    #[arg(long)]
    pub(in crate::cli) file: bool,
    /// Store the key without checking it with the provider
    #[arg(long)]
    pub(in crate::cli) no_check: bool,
}
