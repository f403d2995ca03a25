//! `nuncio completions`: the completion scripts of shells.

use clap::CommandFactory;
use clap_complete::Shell;

use super::flags::Flags;
use super::terminal::output::print_exact;
use crate::error::Result;

/// Prints the script with which a shell completes commands and options.
pub(super) fn print_script(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Flags::command(), "nuncio", &mut script);
    print_exact(String::from_utf8_lossy(&script)).map(|()| 0)
}
