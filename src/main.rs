//! The binary: runs the command line, or the helper process that supervises commands.

use std::process::ExitCode;

use nuncio::internal::cli;
use nuncio::internal::config::Environment;
use nuncio::internal::process::{hide_memory, limit_memory_pools};

fn main() -> ExitCode {
    nuncio::init();
    hide_memory();
    limit_memory_pools();
    cli::main(Environment::capture())
}
