//! The options of `nuncio replay`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct ReplayOptions {
    /// Directory of a recording
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Replace the expectations of the recording by what the replay sends and does
    #[arg(long)]
    pub update: bool,
}
