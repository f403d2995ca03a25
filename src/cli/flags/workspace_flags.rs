//! Arguments of `nuncio workspaces`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum WorkspacesCommand {
    /// List workspaces with size, changes, unmerged commits, sessions and processes
    List {
        /// Show only workspaces of this repository
        #[arg(long)]
        here: bool,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Create a workspace of this repository and print its path
    Create {
        /// Name; default: w1, w2, ...
        name: Option<String>,
        /// Check out an existing branch, or name the new one; default: nuncio/NAME
        #[arg(long)]
        branch: Option<String>,
        /// Start a new branch at a branch or commit; default: HEAD
        #[arg(long, value_name = "REVISION")]
        base: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take the work of a workspace into the working tree of this directory
    Apply {
        /// Name in this repository, or id
        name: String,
        /// Merge its commits; this is the default, unless the workspace started from other changes
        #[arg(long, group = "how")]
        merge: bool,
        /// Add one commit with all its changes
        #[arg(long, group = "how")]
        squash: bool,
        /// Change files only, without a commit
        #[arg(long, group = "how")]
        patch: bool,
        /// Message of the commit; default: the title of the workspace
        #[arg(long)]
        message: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what deleting a workspace would lose; with --confirm, delete it
    Delete {
        /// Name in this repository, or id
        name: String,
        /// Delete it if nothing has changed since the command printed this token
        #[arg(long, value_name = "TOKEN")]
        confirm: Option<String>,
        /// Delete it in one step
        #[arg(long, conflicts_with = "confirm")]
        force: bool,
        /// Branch: delete it if it is merged, keep it, or delete it with its commits
        #[arg(long, value_parser = ["merged", "keep", "delete"], default_value = "merged")]
        branch: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
