//! The binary: the helper that watches over commands, or the command line.

use std::process::ExitCode;

use nuncio::config::Environment;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == nuncio::process::HELPER) {
        nuncio::process::helper_main(arguments);
    }
    nuncio::process::hide_memory();
    nuncio::cli::main(Environment::capture())
}
