//! `nuncio tool`: runs one tool outside of a session, with the same permission checks.

use std::io::{IsTerminal, Read};
use std::sync::Arc;

use serde_json::{Value, json};

use super::ask::{self, Approver};
use super::flags::ToolOptions;
use super::output::{Colours, print, print_json, print_question};
use super::renderer::{RenderOptions, TerminalRenderer};
use crate::agent::gate;
use crate::api::Nuncio;
use crate::app::on_signal;
use crate::config::Policy;
use crate::content::{PermissionOptionKind, ToolKind, plain_text};
use crate::error::{Error, Result};
use crate::limits;
use crate::permission::rules::Mode;
use crate::session::SessionState;
use crate::tools::{self, Output, ToolError};

/// Prints `{"ok","output","details"}`, or lists the tools if no name is given. Exit codes: 0
/// success, 1 the tool failed, 2 usage, 4 denied.
pub async fn run(nuncio: Arc<Nuncio>, options: ToolOptions, colours: Colours) -> Result<u8> {
    let Some(name) = &options.name else { return list(&nuncio) };
    let text = match options.input.as_str() {
        "-" => read_input()?,
        text => text.to_string(),
    };
    let input: Value =
        serde_json::from_str(&text).map_err(|error| Error::invalid_params(format!("the input is not JSON: {error}")))?;
    let state = SessionState { cwd: nuncio.cwd.clone(), mode: nuncio.mode.clone(), ..SessionState::default() };
    let environment = nuncio.agents.desk("tool", &state, None)?;
    let rules = environment.rules(&[]);
    let mut context = environment.tool_context(&nuncio.agents);
    tokio::spawn(on_signal(context.cancel.clone()));
    let tools = nuncio.agents.tools();
    if tools.get(name).is_none() {
        let names: Vec<&str> = tools.names().collect();
        return Err(Error::invalid_params(format!("tool \"{name}\" is unknown")).hint(format!("use one of {}", names.join(", "))));
    }
    let prepared = match tools.prepare(name, input, &context) {
        Ok(prepared) => prepared,
        Err(error) => return print_result(Err(error), 2),
    };
    let mode = Mode::parse(&state.mode).unwrap_or(Mode::Ask);
    let decision = gate::judge(&rules, mode, environment.loaded.settings.permissions.default, &gate::subject(&prepared, &context));
    match decision.policy {
        Policy::Allow => {}
        Policy::Deny => return print_result(Err(ToolError::new(gate::denial(&decision, mode))), 4),
        Policy::Ask if Approver::for_terminal() == Approver::None => {
            return print_result(
                Err(ToolError::new(
                    "denied: permission must be asked for, and no terminal is attached (--mode auto allows the call inside the roots)",
                )),
                4,
            );
        }
        Policy::Ask => {
            let options = gate::options(&gate::subject(&prepared, &context));
            let content = match prepared.preview(&context).await {
                Err(error) => return print_result(Err(error), 1),
                Ok(content) => content,
            };
            let title = prepared.title.clone();
            let rendering = RenderOptions { colour: colours.stderr, ..RenderOptions::default() };
            print_question(TerminalRenderer::new(rendering, &nuncio.cwd).question(&title, &content));
            let kind = tokio::task::spawn_blocking(move || ask::ask(&title, &options)).await;
            if !matches!(kind, Ok(PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)) {
                return print_result(Err(ToolError::new("denied by the user")), 4);
            }
        }
    }
    context.sandbox = environment.sandbox(mode);
    context.hidden = gate::hidden(&rules, &prepared, &context);
    context.reach = gate::reach(&rules, mode, environment.loaded.settings.permissions.default, &prepared);
    let cancel = context.cancel.clone();
    let kind = prepared.kind;
    let mut result = prepared.run(&context).await;
    if let (Ok(output), ToolKind::Edit) = (&mut result, kind) {
        tools::after_edit(output, &context).await;
    }
    nuncio.shut_down().await;
    match (&result, cancel.is_cancelled()) {
        (_, true) => print_result(result, 130),
        (Ok(_), false) => print_result(result, 0),
        (Err(_), false) => print_result(result, 1),
    }
}

/// Lists the tools with parameters and descriptions. `?` marks optional parameters.
fn list(nuncio: &Nuncio) -> Result<u8> {
    for tool in nuncio.agents.tools().iter() {
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
        return Err(Error::invalid_params("input - reads standard input, which is a terminal"));
    }
    let read = std::io::stdin().take(limits::INPUT_LINE_BYTES_MAX as u64).read_to_string(&mut text);
    read.map_err(|error| Error::io("reading standard input", error))?;
    Ok(text)
}

/// Prints the result as a line of JSON and returns the exit code.
fn print_result(result: Result<Output, ToolError>, code: u8) -> Result<u8> {
    let line = match result {
        Ok(output) => json!({ "ok": true, "output": plain_text(&output.parts), "details": output.details }),
        Err(ToolError(message)) => json!({ "ok": false, "output": message, "details": null }),
    };
    print_json(format!("{line}\n")).map(|()| code)
}
