//! `nuncio tool`: runs one tool outside of a session, through the same code path as the tool calls
//! of a turn.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::flags::ToolOptions;
use super::terminal::ask::{self, Approver, PermissionChoice, PermissionReply};
use super::terminal::output::{Colours, print, print_json, print_question, print_stderr};
use super::terminal::renderer::{RenderOptions, TerminalRenderer};
use crate::api::App;
use crate::app::on_signal;
use crate::config::{Policy, Rule};
use crate::content::{PermissionOptionKind, ToolLabel, plain_text};
use crate::error::{Error, Result};
use crate::event::{Actor, Body, Notice, PermissionOutcome};
use crate::id::{PermissionId, ToolCallId};
use crate::json;
use crate::limits;
use crate::options::Mode;
use crate::runtime::{CallHost, CallOutcome, CallResult, SessionEnvironment, SessionMcp, ToolCall, ToolUse};
use crate::session::{PermissionAnswer, Turn, TurnQuestion};
use crate::terminal_text::output_line;
use crate::toolkit::ToolError;

/// Prints `{"ok","output","details"}`, with `messages` if hooks added any, or lists the tools if no
/// name is given. Exit codes: 0 success, 1 the tool failed, 2 usage, 4 denied.
pub(crate) async fn run(app: Arc<App>, options: ToolOptions, colours: Colours) -> Result<u8> {
    let Some(name) = &options.name else { return list(&app) };
    let text = match options.input.as_str() {
        "-" => read_input()?,
        text => text.to_string(),
    };
    let parsed = json::from_str::<Value>(&text);
    parsed.map_err(|error| Error::invalid_params(format!("the input is not JSON: {error}")))?;
    let environment = SessionEnvironment::new(app.services.clone(), None, None, app.cwd.clone(), Vec::new(), None)?;
    let environment = Arc::new(environment);
    // The servers live until the call has ended.
    let mcp = SessionMcp::default();
    if name.starts_with("mcp") {
        for notice in mcp.update(&environment, &CancellationToken::new()).await {
            report_notice(&notice);
        }
    }
    if let Some(error) = unknown(&environment, name) {
        return Err(error);
    }
    let host = Terminal { cancel: CancellationToken::new(), mode: app.mode, cwd: app.cwd.clone(), colour: colours.stderr };
    crate::task::spawn(on_signal(host.cancel.clone()));
    let tool_use = ToolUse { id: ToolCallId::new(), name: name.clone(), input: text, state: None };
    let result = ToolCall::announce(&host, &environment, tool_use).await.run(&host).await?;
    app.shut_down().await;
    let code = match &result.outcome {
        _ if host.cancel.is_cancelled() => 130,
        CallOutcome::Completed(_) => 0,
        CallOutcome::Failed(_) | CallOutcome::Cancelled => 1,
        CallOutcome::InvalidInput(_) => 2,
        CallOutcome::Denied(_) => 4,
    };
    print_json(format!("{}\n", json(result))).map(|()| code)
}

/// Prints a notice, for example about an MCP server that cannot be used.
fn report_notice(notice: &Body) {
    if let Body::Notice(Notice { title, description, .. }) = notice {
        print_stderr(format!("nuncio: {}\n", output_line(&format!("{title}: {}", description.as_deref().unwrap_or_default()))));
    }
}

/// Returns an error if no tool has this name.
fn unknown(environment: &SessionEnvironment, name: &str) -> Option<Error> {
    let tools = environment.tools.table();
    if tools.get(name).is_some() {
        return None;
    }
    let names: Vec<&str> = tools.names().collect();
    Some(Error::invalid_params(format!("tool \"{name}\" is unknown")).hint(format!("use one of {}", names.join(", "))))
}

fn json(CallResult { outcome, messages, .. }: CallResult) -> Value {
    let mut json = match outcome {
        CallOutcome::Completed(output) => {
            json!({ "ok": true, "output": plain_text(&output.parts), "details": output.details })
        }
        CallOutcome::Failed(message) | CallOutcome::InvalidInput(message) | CallOutcome::Denied(message) => {
            json!({ "ok": false, "output": message, "details": null })
        }
        CallOutcome::Cancelled => json!({ "ok": false, "output": ToolError::cancelled().0, "details": null }),
    };
    if !messages.is_empty() {
        json["messages"] = messages.into();
    }
    json
}

/// Hosts a call without a session: events are not recorded, and permission questions are asked on
/// the terminal.
struct Terminal {
    cancel: CancellationToken,
    mode: Mode,
    cwd: PathBuf,
    /// True if standard error gets colours.
    colour: bool,
}

impl CallHost for Terminal {
    fn turn(&self) -> Option<&Turn> {
        None
    }

    fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    fn permissions(&self, _: Policy) -> (Mode, Vec<Rule>) {
        (self.mode, Vec::new())
    }

    fn emit(&self, body: Body) -> BoxFuture<'_, ()> {
        report_notice(&body);
        Box::pin(async {})
    }

    fn ask(&self, question: TurnQuestion) -> BoxFuture<'_, (Option<PermissionId>, PermissionAnswer)> {
        Box::pin(async move { (None, self.answer(question).await) })
    }
}

impl Terminal {
    async fn answer(&self, TurnQuestion { tool: ToolLabel { title, .. }, content, options, .. }: TurnQuestion) -> PermissionAnswer {
        let answer = |outcome, reason| PermissionAnswer::without_choice(outcome, Actor::Terminal, reason);
        let Approver::Terminal(lines) = Approver::for_terminal() else {
            let hint = match self.mode {
                Mode::Auto => "a rule in [permissions] of your settings can allow it",
                Mode::Ask | Mode::AcceptEdits | Mode::Plan => "--mode auto allows most calls inside the session's directories",
            };
            let reason = format!("the call requires permission, and there is no terminal to ask ({hint})");
            return answer(PermissionOutcome::Denied, Some(&reason));
        };
        let rendering = RenderOptions { colour: self.colour, ..RenderOptions::default() };
        print_question(TerminalRenderer::new(rendering, &self.cwd).question(&title, &content));
        let PermissionReply { choice, reason, .. } = ask::ask(&lines, &title, &options).await;
        match choice {
            PermissionChoice::Kind(PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways) => {
                answer(PermissionOutcome::AllowOnce, None)
            }
            PermissionChoice::Option(id) => PermissionAnswer { option_id: Some(id), ..answer(PermissionOutcome::AllowOnce, None) },
            _ => answer(PermissionOutcome::RejectOnce, reason.as_deref()),
        }
    }
}

/// Lists the tools with parameters and descriptions. `?` marks optional parameters.
fn list(app: &App) -> Result<u8> {
    for tool in app.services.tools.iter() {
        let schema = &tool.spec().input_schema;
        let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields: Vec<String> = fields.map(|(name, _)| format!("{name}{}", if required(name) { "" } else { "?" })).collect();
        print(wrapped(&format!("{:14}{}", tool.name(), fields.join(", "))))?;
        print(wrapped(&format!("{:14}{}", "", tool.spec().description)))?;
    }
    Ok(0)
}

/// Wraps text to 100 columns and indents continuation lines to the second column.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), text[..14].to_string());
    for word in text[14..].split_whitespace() {
        if line.chars().count() + word.chars().count() > 99 {
            lines += &(line + "\n");
            line = " ".repeat(14);
        }
        line += &format!("{}{word}", if line.len() > 14 { " " } else { "" });
    }
    lines + &line + "\n"
}

fn read_input() -> Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        return Err(Error::invalid_params("input `-`: standard input is a terminal; redirect a file or pipe the JSON"));
    }
    let read = std::io::stdin().take(limits::INPUT_LINE_BYTES_MAX as u64).read_to_string(&mut text);
    read.map_err(|error| Error::io("reading standard input", error))?;
    Ok(text)
}
