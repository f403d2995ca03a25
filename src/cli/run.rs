//! `nuncio run`: runs prompts in order, in a session of this process or of another one.

mod answer_schema;
pub(super) mod attached_files;
pub(super) mod compare;
pub(super) mod input;
mod message_file;
pub(super) mod result;

use std::io::IsTerminal;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::answer_schema::{AnswerSchema, without_fence};
use self::input::RunInput;
use self::message_file::MessageFile;
use self::result::RunResult;
use super::background;
use super::errors::DENIED;
use super::flags::run_options::{OutputFormat, RunOptions};
use super::prompt_runner::PromptRunner;
use super::prompt_runner::runner_output::RunnerOutput;
use super::sessions::opening;
use super::terminal::ask::Approver;
use super::terminal::input_queue::InputQueue;
use super::terminal::markdown::MarkdownLayout;
use super::terminal::output::{Colours, print_json, print_stderr};
use super::terminal::renderer::{RenderOptions, TerminalRenderer};
use super::terminal::status_line::columns;
use crate::api::{App, DeleteSession, GetResult, GetResultParams, SessionParams};
use crate::app::on_signal;
use crate::client::SessionClient;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::task;
use crate::terminal_text;

/// Runs `nuncio run`. Returns the exit code.
pub(crate) async fn run(app: Arc<App>, options: RunOptions, colours: Colours) -> Result<u8> {
    let agents = app.services.overrides.agents.clone();
    if let Some(name) = options.not_compared().filter(|_| agents.len() > 1) {
        return Err(Error::invalid_params(format!("{name}: not available with several --agent")));
    }
    check_tools(&app, agents.is_empty())?;
    let message_file = options.output_last_message.as_deref().map(MessageFile::check).transpose()?;
    let schema = options.output_schema.as_deref().map(AnswerSchema::read).transpose()?;
    let attached = attached_files::read(&options.files, &app.services.launcher).await?;
    let (mut input, budget) = (input::read(&options).await?, options.budget());
    if agents.len() > 1 {
        let RunInput::Prompts(prompts) = input else {
            return Err(Error::invalid_params("--agent: a comparison needs a prompt, not JSON lines"));
        };
        return compare::run(app, &agents, &Vec::from(prompts), &options).await;
    }
    if options.with_changes {
        return Err(Error::invalid_params("--with-changes: needs several --agent").hint("one agent works in this directory"));
    }
    match &mut input {
        RunInput::Prompts(prompts) => {
            if let (Some(schema), Some(last)) = (&schema, prompts.back_mut()) {
                *last = schema.add_to(last);
            }
        }
        RunInput::Lines | RunInput::Nothing => {
            let needs = |flag: &str| {
                Err(Error::invalid_params(format!("{flag}: needs a prompt as an argument or as text on standard input")))
            };
            match (&schema, attached.is_empty()) {
                (Some(_), _) => return needs("--output-schema"),
                (None, false) => return needs("--file"),
                (None, true) => {}
            }
        }
    }
    let interrupted = CancellationToken::new();
    let listen = || drop(task::spawn(on_signal(interrupted.clone())));
    if options.ephemeral {
        // Listen before the session exists, so that no signal leaves it in the store.
        listen();
    }
    let client = opening::client(&app, &options.session)?;
    let session = opening::open(&client, &options.session).await?;
    if options.detached {
        background::report(&session.0)?;
    }
    if !options.ephemeral {
        listen();
    }
    let id = session.0.clone();
    let output = output(&app, &options, colours);
    let approver = approver(&input, options.detached);
    let code = match PromptRunner::new(client.clone(), session, output, approver.clone(), interrupted.clone()).await {
        Ok(runner) => {
            let runner = runner.with_budget(budget).with_attached(attached);
            work(&client, &id, runner, input, (&options, schema.as_ref())).await
        }
        Err(error) => Err(error),
    };
    approver.restore_terminal();
    let mut code = report_result(&client, &id, (&options, schema.as_ref()), message_file, code).await;
    if options.ephemeral {
        code = delete(&client, &id).await.and(code);
    }
    app.leave(&interrupted).await;
    app.shut_down().await;
    code
}

fn approver(input: &RunInput, is_detached: bool) -> Approver {
    match input {
        _ if is_detached => Approver::Elsewhere,
        RunInput::Lines => Approver::None,
        RunInput::Prompts(_) | RunInput::Nothing => Approver::for_terminal(),
    }
}

/// Deletes the session of `--ephemeral`. The hint of the error deletes it later.
async fn delete(client: &SessionClient, session: &SessionId) -> Result<()> {
    let deleted = client.call::<DeleteSession>(SessionParams { session_id: session.clone() }).await;
    deleted.map(drop).map_err(|error| {
        let message = format!("the session was not deleted: {}", error.message);
        Error { message, ..error }.hint(format!("nuncio sessions rm {session}"))
    })
}

fn output(app: &App, options: &RunOptions, colours: Colours) -> RunnerOutput {
    let format = options.format();
    let watched = format != OutputFormat::StreamJson && std::io::stderr().is_terminal();
    let rendering = match format {
        OutputFormat::StreamJson => RenderOptions::default(),
        // A pipe or a file gets the model's text unchanged.
        OutputFormat::Text | OutputFormat::Json => RenderOptions {
            colour: colours.stderr && !options.plain,
            exact: !std::io::stdout().is_terminal(),
            markdown: (colours.markdown && !options.plain).then(|| MarkdownLayout { columns: columns(), colour: colours.stdout }),
            watched,
            ..RenderOptions::default()
        },
    };
    RunnerOutput {
        json: format == OutputFormat::StreamJson,
        answers: format == OutputFormat::Text,
        renderer: TerminalRenderer::new(rendering, &app.cwd),
        status_line: rendering.colour,
        watched,
        is_kept: !options.ephemeral,
        ascii: colours.ascii && colours.markdown,
    }
}

/// Writes the last message to its file and prints the result, as the options require it. Returns
/// `code`, or the error of writing.
async fn report_result(
    client: &SessionClient,
    session: &SessionId,
    (options, schema): (&RunOptions, Option<&AnswerSchema>),
    message_file: Option<MessageFile>,
    code: Result<u8>,
) -> Result<u8> {
    let completed = is_completed(&code);
    let message_file = message_file.filter(|_| completed);
    if message_file.is_none() && options.format() != OutputFormat::Json {
        return code;
    }
    let result = match client.call::<GetResult>(GetResultParams { session_id: session.clone(), diff: false }).await {
        Ok(result) => result,
        Err(error) => return code.and(Err(error)),
    };
    let message = if schema.is_some() { without_fence(&result.answer) } else { &result.answer };
    let written = message_file.map_or(Ok(()), |file| file.write(message));
    let code = written.and(code);
    if options.format() != OutputFormat::Json {
        return code;
    }
    let output = schema.filter(|_| completed).and_then(|schema| schema.parse(&result.answer).ok());
    let result = RunResult { output, ..RunResult::new(result, &code) };
    print_json(format!("{}\n", json!(result))).and(code)
}

/// Returns whether all prompts completed, also if a call was denied.
fn is_completed(code: &Result<u8>) -> bool {
    matches!(code, Ok(0 | DENIED))
}

/// Runs the prompts, and a further one if the last message does not match the schema. Returns the
/// exit code. Drops the runner, so that it does not answer questions from a turn that the shutdown
/// cancels.
async fn work(
    client: &SessionClient,
    session: &SessionId,
    mut runner: PromptRunner,
    input: RunInput,
    (options, schema): (&RunOptions, Option<&AnswerSchema>),
) -> Result<u8> {
    let app = client.app();
    if options.session.continues() {
        runner.show_open_requests().await?;
    }
    if !matches!(input, RunInput::Lines) && client.server().is_none() {
        // This process ends after its own prompts, so it starts no turns of other processes.
        app.sessions().await?.leave();
    }
    let code = prompt(&mut runner, input, options).await;
    let Some(schema) = schema.filter(|_| is_completed(&code)) else { return code };
    let last_message = async || -> Result<String> {
        let params = GetResultParams { session_id: session.clone(), diff: false };
        Ok(client.call::<GetResult>(params).await?.answer)
    };
    let Err(mismatches) = schema.parse(&last_message().await?) else { return code };
    print_stderr(format!("The last message does not match the JSON Schema:\n{}\n", terminal_text::output(&mismatches)));
    let correction = RunInput::Prompts([schema.correction(&mismatches)].into());
    let code = prompt(&mut runner, correction, options).await;
    match schema.parse(&last_message().await?) {
        Err(mismatches) if is_completed(&code) => Err(schema.failed(&mismatches)),
        _ => code,
    }
}

/// Runs prompts and waits for the background work that they started. Returns the exit code.
async fn prompt(runner: &mut PromptRunner, input: RunInput, options: &RunOptions) -> Result<u8> {
    let code = match input {
        RunInput::Lines => runner.lines(InputQueue::open()).await,
        RunInput::Prompts(prompts) => runner.prompts(prompts).await,
        RunInput::Nothing => runner.follow_turn().await,
    };
    let background = runner.finish_background_work(is_completed(&code) && !options.no_wait).await?;
    code.map(|code| if code == 0 { background } else { code })
}

/// Refuses names in `--tools` that no tool has. The tools of MCP servers and of hosted agents are
/// not known yet.
fn check_tools(app: &App, own_agent: bool) -> Result<()> {
    let tools = app.services.overrides.tools.as_deref().unwrap_or_default();
    let is_known =
        |name: &String| name.starts_with("mcp") || app.services.tools.matching(std::slice::from_ref(name)).names().next().is_some();
    match tools.iter().find(|name| !is_known(name)).filter(|_| own_agent) {
        Some(name) => {
            Err(Error::invalid_params(format!("--tools: no tool is called {name:?}")).hint("nuncio tool lists the tools"))
        }
        None => Ok(()),
    }
}
