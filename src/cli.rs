//! The command line: dispatches commands and reports errors. Each command prints its own output.

mod ask;
mod bridge;
mod demo;
mod export;
mod flags;
mod input;
mod inspect;
mod log_lines;
mod logging;
mod run;
mod schema;
mod sessions;
mod text;
mod tool;
#[cfg(feature = "telemetry")]
mod traces;
#[cfg(not(feature = "telemetry"))]
#[path = "cli/traces_disabled.rs"]
mod traces;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

pub use schema::{SCHEMAS, schema};

use crate::app;
use crate::config::{Environment, Telemetry};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::terminal_text;
use flags::{BridgeOptions, Command, Flags};

/// Runs the command that the arguments name. Exit codes: 0 success, 1 failure, 2 usage or settings
/// error, 3 the model cannot be reached, 4 denied, 130 interrupted.
pub fn main(environment: Environment) -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) if error.use_stderr() => {
            report_usage(&error);
            return ExitCode::from(2);
        }
        // `--help` and `--version` are errors to clap.
        Err(text) => {
            let _ = text.print();
            return ExitCode::SUCCESS;
        }
    };
    match dispatch(flags, environment) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if !is_broken_pipe(&error) {
                report(&error);
            }
            ExitCode::from(exit_code(&error))
        }
    }
}

fn dispatch(flags: Flags, environment: Environment) -> Result<u8> {
    let implied = flags.command.is_none();
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
    let setup = flags.common.setup()?;
    if let Command::Demo { yes, keep } = command {
        let _traces = logging::start(&environment, false, &Telemetry::default())?;
        return on_runtime(demo::run(environment, setup, yes, keep));
    }
    let serves = matches!(command, Command::Serve { .. } | Command::Acp { http: Some(_), .. });
    let ground = app::ground(environment, setup)?;
    let _traces = logging::start(&ground.environment, serves, &ground.loaded.settings.telemetry)?;
    let colours = Colours::new(&ground.environment);
    match command {
        Command::Acp { http: None, .. } => on_runtime(async {
            let hint = || {
                if implied {
                    eprintln!("nuncio: standard input is not JSON: without a command, nuncio expects the Agent Client Protocol");
                    eprintln!("  to pass it as a prompt: nuncio run");
                }
            };
            app::acp(app::nuncio(ground)?, hint).await.map(|()| 0)
        }),
        Command::Acp { http: Some(address), bridge } => on_runtime(bridge::acp_and_serve(ground, address, bridge)),
        Command::Serve { http, bridge } => on_runtime(bridge::serve(ground, http, bridge)),
        Command::Token { command } => bridge::token(&ground, command),
        Command::Run(options) => on_runtime(async { run::run(app::nuncio(ground)?, options, colours).await }),
        Command::Tool(options) => on_runtime(async { tool::run(app::nuncio(ground)?, options, colours).await }),
        Command::Sessions { command } => on_runtime(async { sessions::run(app::nuncio(ground)?, command, colours).await }),
        Command::Config { command } => inspect::config(&ground, command),
        Command::Trust { dir } => inspect::trust(&ground, &dir),
        Command::Doctor => on_runtime(inspect::doctor(ground)),
        Command::Schema { .. } | Command::Demo { .. } => unreachable!("handled above"),
    }
}

/// Runs a command. Threads that still block when it returns, e.g. in a read of the terminal, do not
/// delay the exit.
fn on_runtime(command: impl Future<Output = Result<u8>>) -> Result<u8> {
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(limits::BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|error| Error::io("starting the async runtime", error))?;
    let code = runtime.block_on(command);
    runtime.shutdown_background();
    code
}

fn exit_code(error: &Error) -> u8 {
    let unreachable = error.details.as_ref().is_some_and(|details| details["unreachable"] == true);
    if error.kind == Kind::ModelError && unreachable { 3 } else { error.kind.row().exit }
}

/// Prints an error and its hint to standard error.
fn report(error: &Error) {
    eprintln!("nuncio: {}", terminal_text::output(&error.message));
    if let Some(hint) = &error.hint {
        eprintln!("  {}", terminal_text::output(hint));
    }
}

/// Prints a usage error to standard error. For an unknown command, suggests `nuncio run`: it may be
/// a prompt.
fn report_usage(error: &clap::Error) {
    eprint!("{}", terminal_text::output(&error.render().to_string()));
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) {
        eprintln!("\n  to pass it as a prompt: nuncio run \"{}\"", terminal_text::output_line(unknown));
    }
}

/// The standard streams that get colours: terminals, unless `NO_COLOR` (<https://no-color.org>) or
/// `TERM=dumb` is set.
#[derive(Clone, Copy, Debug)]
struct Colours {
    stdout: bool,
    stderr: bool,
}

impl Colours {
    fn new(environment: &Environment) -> Colours {
        let wanted = environment.get("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb");
        Colours { stdout: wanted && std::io::stdout().is_terminal(), stderr: wanted && std::io::stderr().is_terminal() }
    }
}

/// Writes human-readable text to standard output, with control sequences escaped.
fn print(text: impl AsRef<str>) -> Result<()> {
    print_exact(terminal_text::output(text.as_ref()))
}

/// Writes JSON to standard output. On a terminal, control characters are escaped.
fn print_json(text: impl AsRef<str>) -> Result<()> {
    match std::io::stdout().is_terminal() {
        true => print_exact(terminal_text::json(text.as_ref())),
        false => print_exact(text),
    }
}

/// Writes to standard output unchanged. `main` exits without a message when the pipe is broken.
fn print_exact(text: impl AsRef<str>) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(text.as_ref().as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| Error::new(Kind::Cancelled, format!("writing the output: {error}")).source(error))
}

fn is_broken_pipe(error: &Error) -> bool {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
