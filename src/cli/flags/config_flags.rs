//! The subcommands of `nuncio config`.

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;

use crate::cli::editors;

/// Commands for the settings file, which may be invalid before.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ConfigFileCommand {
    /// Print the path of the user's settings file
    Path,
    /// Create the user's settings file, with comments about frequent settings
    Init,
    /// Edit the user's settings file in $VISUAL or $EDITOR, and check it
    Edit,
    /// Set a value in the user's settings file; its comments and order are kept
    Set {
        /// Dotted name: budget.max_cost, models."work/big".context_window
        key: String,
        /// TOML value: 2.5, true, ["a", "b"]; other text is a string
        value: String,
    },
    /// Remove a value from the user's settings file
    Unset {
        /// Dotted name
        key: String,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ConfigCommand {
    /// Show every value that differs from the default, and where it is set
    Show,
    /// Check the settings and report errors
    Check,
    #[command(flatten)]
    File(ConfigFileCommand),
    /// Print the settings with which an editor starts this program
    Editor {
        #[arg(value_parser = PossibleValuesParser::new(editors::names()))]
        name: String,
        /// Merge them into FILE, by default the editor's own, and keep a copy of the old file
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        write: Option<Option<PathBuf>>,
    },
}
