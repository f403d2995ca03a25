//! The binary: runs the command line, or the helper process that supervises commands.

use std::process::ExitCode;

use nuncio::internal::cli;
use nuncio::internal::config::Environment;
use nuncio::internal::process::hide_memory;

fn main() -> ExitCode {
    nuncio::init();
    hide_memory();
    cli::main(Environment::capture())
}
