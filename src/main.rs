//! The binary: runs the command line, or the helper process that supervises commands.

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
