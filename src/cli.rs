//! The command line: arguments into calls, events into text. What each command prints is its own file's affair.

mod ask;
mod bridge;
mod demo;
mod export;
mod flags;
mod inspect;
mod logging;
mod run;
mod schema;
mod sessions;
mod text;
mod tool;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

pub use schema::{SCHEMAS, schema};

use crate::app;
use crate::config::{Environment, Telemetry};
use crate::error::{Error, Kind, Result};
use crate::limits;
use flags::{BridgeOptions, Command, Flags};

/// Runs the command that the arguments name. The exit code is of INTERFACE's table: 0 done, 1 failed, 2 usage or settings,
/// 3 no model can be reached, 4 denied, 130 interrupted.
pub fn main(environment: Environment) -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match dispatch(flags, environment) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if !reader_is_gone(&error) {
                report(&error);
            }
            ExitCode::from(exit_code(&error))
        }
    }
}

fn dispatch(flags: Flags, environment: Environment) -> Result<u8> {
    let setup = flags.setup();
    let command = match flags.command {
        Some(command) => command,
        None if std::io::stdin().is_terminal() => {
            let _ = Flags::command().print_help();
            return Ok(0);
        }
        None => Command::Acp { http: None, bridge: BridgeOptions::default() },
    };
    if let Command::Schema { name } = &command {
        return name.as_deref().map_or_else(schema::print_names, schema::print_named);
    }
    if let Command::Demo { yes, keep } = command {
        let _traces = logging::start(&environment, false, &Telemetry::default())?;
        return on_runtime(demo::run(environment, setup, yes, keep));
    }
    let serves = matches!(command, Command::Serve { .. } | Command::Acp { http: Some(_), .. });
    let ground = app::ground(environment, setup)?;
    let _traces = logging::start(&ground.environment, serves, &ground.loaded.settings.telemetry)?;
    match command {
        Command::Acp { http: None, .. } => on_runtime(async { app::acp(app::nuncio(ground)?).await.map(|()| 0) }),
        Command::Acp { http: Some(address), bridge } => on_runtime(bridge::beside(ground, address, bridge)),
        Command::Serve { http, bridge } => on_runtime(bridge::serve(ground, http, bridge)),
        Command::Token { command } => bridge::token(&ground, command),
        Command::Run(options) => on_runtime(async { run::run(app::nuncio(ground)?, options).await }),
        Command::Tool(options) => on_runtime(async { tool::run(app::nuncio(ground)?, options).await }),
        Command::Sessions { command } => on_runtime(async { sessions::run(app::nuncio(ground)?, command).await }),
        Command::Config { command } => inspect::config(&ground, command),
        Command::Trust { dir } => inspect::trust(&ground, &dir),
        Command::Doctor => on_runtime(inspect::doctor(ground)),
        Command::Schema { .. } | Command::Demo { .. } => unreachable!("done above"),
    }
}

/// Runs a command to its end. What still blocks then, like a read of a terminal, does not hold up the exit.
fn on_runtime(command: impl Future<Output = Result<u8>>) -> Result<u8> {
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(limits::BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|error| Error::io("starting the runtime", error))?;
    let code = runtime.block_on(command);
    runtime.shutdown_background();
    code
}

fn exit_code(error: &Error) -> u8 {
    let unreachable = error.details.as_ref().is_some_and(|details| details["unreachable"] == true);
    if error.kind == Kind::ModelError && unreachable { 3 } else { error.kind.row().exit }
}

/// Says on standard error what went wrong and what to do.
fn report(error: &Error) {
    eprintln!("nuncio: {}", error.message);
    if let Some(hint) = &error.hint {
        eprintln!("  {hint}");
    }
}

/// Writes to standard output. A reader that is gone ends the process quietly, as with any other tool in a pipe.
fn print(text: impl AsRef<str>) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(text.as_ref().as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| Error::new(Kind::Cancelled, format!("writing the output: {error}")).source(error))
}

fn reader_is_gone(error: &Error) -> bool {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
