//! The command line: dispatches commands. Each command prints its own output.

mod agents;
mod arguments;
mod background;
mod chat;
mod completions;
mod demo;
mod dollars;
mod editors;
mod errors;
mod eval;
mod first_start;
mod flags;
mod help;
mod log_lines;
mod logging;
mod login;
mod man;
mod mcp_serve;
mod models;
mod projects;
mod prompt_runner;
mod replay;
mod run;
mod schema;
mod serve;
mod servers;
mod sessions;
mod store_copy;
mod terminal;
mod token;
mod tool;
#[cfg(feature = "telemetry")]
mod traces;
#[cfg(not(feature = "telemetry"))]
#[path = "cli/traces_disabled.rs"]
mod traces;
mod update;

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::CommandFactory;

use self::terminal::output::print_stderr;
use crate::app::{self, Bootstrap, CommonArgs};
use crate::config::{Environment, Overrides, Telemetry};
use crate::error::{Error, Result};
use crate::task;
use errors::{exit_code, is_broken_pipe, report, report_usage};
use flags::config_flags::ConfigCommand;
use flags::login_flags::AcpCommand;
use flags::run_options::ChatOptions;
use flags::server_flags::McpCommand;
use flags::{AcpOptions, CliCommand, Flags, SessionsCommand};
use logging::LogStyle;
use terminal::lines::TerminalLines;
use terminal::output::Colours;

/// Maximum number of threads for blocking work: file and store access.
const BLOCKING_THREADS_MAX: usize = 32;

/// Runs the command that the arguments name. Exit codes: 0 success, 1 failure, 2 usage or settings
/// error, 3 the model cannot be reached, 4 denied, 130 interrupted.
pub fn main(environment: Environment) -> ExitCode {
    // Clients of other crates use the default provider. It cannot be installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let flags = match Flags::from_arguments() {
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
        Some(CliCommand::Acp(AcpOptions { command: Some(AcpCommand::Login(options)), .. })) => CliCommand::Login(options),
        Some(command) => command,
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => CliCommand::Chat(ChatOptions::default()),
        None if std::io::stdin().is_terminal() => return terminal::output::print(help::text(&Flags::command())).map(|()| 0),
        None => CliCommand::Acp(AcpOptions::default()),
    };
    let models = flags.common.models.clone();
    let mut args = flags.common.args()?;
    let command = match run_without_settings(command, &environment, &args) {
        ControlFlow::Break(ended) => return ended,
        ControlFlow::Continue(command) => command,
    };
    check_several(&models, &args, &command)?;
    if let CliCommand::Run(options) = &command {
        options.add_to(&mut args.overrides)?;
        background::begin(options.detached);
    }
    let style = log_style(&command);
    let names_cwd = args.cwd.is_some();
    let demo_start = (environment.clone(), CommonArgs { overrides: Overrides::default(), ..args.clone() });
    let bootstrap = app::bootstrap(environment, args)?;
    let _traces = logging::start(&bootstrap.environment, style, &bootstrap.loaded.settings.telemetry)?;
    let colours = Colours::new(&bootstrap.environment);
    match command {
        CliCommand::Acp(AcpOptions { http: None, .. }) => on_worker(async move {
            let hint = || {
                if implied {
                    print_stderr(
                        "nuncio: standard input is not JSON: without a command, nuncio expects the Agent Client Protocol\n",
                    );
                    print_stderr("  to pass it as a prompt: nuncio run\n");
                }
            };
            app::acp(app::build(bootstrap)?, hint).await.map(|()| 0)
        }),
        CliCommand::Acp(AcpOptions { http: Some(address), server, .. }) => {
            on_worker(serve::acp_and_serve(bootstrap, address, server))
        }
        CliCommand::Serve(options) => on_worker(serve::serve(bootstrap, options)),
        CliCommand::Token { command } => token::run(&bootstrap, command),
        CliCommand::Chat(options) => start_chat(bootstrap, options, demo_start, colours),
        CliCommand::Run(options) => on_worker(async move { run::run(app::build(bootstrap)?, options, colours).await }),
        CliCommand::Ps { json } => on_worker(async move { background::list(app::build(bootstrap)?, json).await }),
        CliCommand::Tool(options) => on_worker(async move { tool::run(app::build(bootstrap)?, options, colours).await }),
        CliCommand::Eval(options) => on_worker(eval::run(bootstrap, models, options)),
        CliCommand::Agents { command } => {
            let cwd = names_cwd.then(|| bootstrap.cwd.clone());
            on_runtime(agents::command::run(bootstrap, command, cwd))
        }
        CliCommand::Mcp { command } => on_runtime(servers::command::run(bootstrap, command)),
        CliCommand::Login(options) => on_runtime(async { login::login(app::build(bootstrap)?, options).await }),
        CliCommand::Logout { provider } => on_runtime(async { login::logout(app::build(bootstrap)?, provider).await }),
        CliCommand::Models(options) => on_worker(async move { models::run(app::build(bootstrap)?, options).await }),
        CliCommand::Sessions { command } => on_worker(run_sessions(bootstrap, command, colours)),
        CliCommand::Workspaces { command } => {
            on_worker(async move { projects::workspaces::run(app::build(bootstrap)?, command).await })
        }
        CliCommand::Store { command } => on_runtime(store_copy::run(bootstrap, command)),
        CliCommand::Config { command } => projects::config::config(&bootstrap, command),
        CliCommand::Trust { dir, yes, json, diff, command } => {
            on_runtime(projects::trust::run(&bootstrap, &dir, projects::trust::TrustFlags { yes, json, diff }, command))
        }
        CliCommand::Update { .. } => on_runtime(update::check(bootstrap)),
        CliCommand::Doctor => on_runtime(projects::doctor::doctor(bootstrap)),
        CliCommand::Schema { .. }
        | CliCommand::Completions { .. }
        | CliCommand::Man { .. }
        | CliCommand::Demo { .. }
        | CliCommand::Replay(_) => unreachable!("handled above"),
    }
}

async fn run_sessions(bootstrap: Bootstrap, command: SessionsCommand, colours: Colours) -> Result<u8> {
    match command {
        SessionsCommand::Export { id, scripted: Some(dir), .. } => replay::export::run(bootstrap, id, dir).await,
        command => sessions::command::run(app::build(bootstrap)?, command, colours).await,
    }
}

/// Refuses several models or agents for a command that takes one.
fn check_several(models: &[String], args: &CommonArgs, command: &CliCommand) -> Result<()> {
    if args.overrides.agents.len() > 1 && !matches!(command, CliCommand::Run(_) | CliCommand::Eval(_)) {
        return Err(Error::invalid_params("--agent: only run and eval take several agents"));
    }
    if models.len() > 1 && !matches!(command, CliCommand::Eval(_)) {
        return Err(Error::invalid_params("--model: only eval takes several models"));
    }
    Ok(())
}

/// Runs a command that needs no valid settings. Other commands are returned.
fn run_without_settings(command: CliCommand, environment: &Environment, args: &CommonArgs) -> ControlFlow<Result<u8>, CliCommand> {
    ControlFlow::Break(match command {
        CliCommand::Schema { name } => name.as_deref().map_or_else(schema::print_names, schema::print_named),
        CliCommand::Completions { shell } => completions::print_script(shell),
        CliCommand::Man { dir } => man::write_pages(&dir),
        CliCommand::Demo { yes, keep } => {
            let style = if demo::is_in_chat(yes, environment) { LogStyle::Chat } else { LogStyle::Command };
            let traces = logging::start(environment, style, &Telemetry::default());
            traces.and_then(|_traces| on_runtime(demo::run(environment.clone(), args.clone(), yes, keep)))
        }
        CliCommand::Replay(options) => {
            let traces = logging::start(environment, LogStyle::Command, &Telemetry::default());
            traces.and_then(|_traces| on_worker(replay::run(environment.clone(), args.cwd.clone(), options)))
        }
        CliCommand::Run(options) if options.bg => background::start(),
        CliCommand::Config { command: Some(ConfigCommand::File(command)) } => app::paths(environment, &args.config, &args.data)
            .and_then(|places| on_runtime(projects::config_edit::run(environment, &places.file, command))),
        command => return ControlFlow::Continue(command),
    })
}

fn log_style(command: &CliCommand) -> LogStyle {
    match command {
        CliCommand::Serve(_) | CliCommand::Acp(AcpOptions { http: Some(_), .. }) => LogStyle::Server,
        CliCommand::Acp(AcpOptions { http: None, .. }) | CliCommand::Mcp { command: McpCommand::Serve } => LogStyle::Protocol,
        CliCommand::Chat(options) if !options.plain => LogStyle::Chat,
        _ => LogStyle::Command,
    }
}

/// Runs the chat. Without a model, tells the user what to set up, and offers the demo.
fn start_chat(
    bootstrap: Bootstrap,
    options: ChatOptions,
    (environment, args): (Environment, CommonArgs),
    colours: Colours,
) -> Result<u8> {
    chat::check_terminal(&options, &environment)?;
    on_worker(async move {
        let app = app::build(bootstrap)?;
        let elsewhere = options.session.url.is_some() || options.session.continues();
        let hosted = elsewhere || !app.services.overrides.agents.is_empty();
        let Some(guide) = (if hosted { None } else { first_start::guide(&app).await }) else {
            return chat::run(app, options, colours).await;
        };
        app.shut_down().await;
        print_stderr(guide);
        if !TerminalLines::default().lock().await.confirm("Run the demo now?").await {
            return Ok(3);
        }
        demo::run(environment, args, false, None).await
    })
}

/// Runs a command as a task, on the threads of the tasks that it waits for.
fn on_worker(command: impl Future<Output = Result<u8>> + Send + 'static) -> Result<u8> {
    on_runtime(async { task::spawn(command).await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())) })
}

/// Runs a command on an async runtime. Threads that are still blocked when the command returns,
/// e.g. reading from the terminal, do not delay the exit.
fn on_runtime(command: impl Future<Output = Result<u8>>) -> Result<u8> {
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|error| Error::io("starting the async runtime", error))?;
    let code = runtime.block_on(command);
    runtime.shutdown_background();
    code
}
