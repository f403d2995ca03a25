//! `nuncio sessions show`: the messages and tool calls of a session, and its open permission
//! requests.

use std::io::IsTerminal;

use tokio_util::sync::CancellationToken;

use super::stored::each_event;
use crate::api::{ListPermissions, ListPermissionsParams};
use crate::app::on_signal;
use crate::cli::terminal::ask;
use crate::cli::terminal::lines::TerminalLines;
use crate::cli::terminal::output::{Colours, print, print_event, print_replay};
use crate::cli::terminal::renderer::{RenderOptions, RenderedText, TerminalRenderer};
use crate::client::SessionClient;
use crate::content::{Cost, Usage};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, UsageUpdate};
use crate::id::SessionId;
use crate::session::Sessions;
use crate::terminal_text::output_line;
use crate::transcript::Transcript;

/// Shows a stored session, and asks its open permission requests if a user is at the terminal.
pub(crate) async fn show(client: &SessionClient, sessions: &Sessions, id: &SessionId, json: bool, colours: Colours) -> Result<()> {
    let options = RenderOptions { colour: colours.stdout, replay: true, ..RenderOptions::default() };
    let mut renderer = TerminalRenderer::new(options, &sessions.row(id).await?.cwd);
    if json {
        return each_event(sessions, id, print_event).await;
    }
    let (mut transcript, mut spent) = (Transcript::default(), SessionTotals::default());
    each_event(sessions, id, |event| {
        spent.apply(event);
        transcript.apply(event).iter().try_for_each(|block| print_replay(renderer.render(block)))
    })
    .await?;
    print_replay(renderer.incomplete())?;
    print_replay(spent.line().map(RenderedText::Progress).into_iter().collect())?;
    show_open_requests(client, id).await
}

/// Prints the open permission requests of a session. At a terminal, the user may answer them.
async fn show_open_requests(client: &SessionClient, id: &SessionId) -> Result<()> {
    let params = ListPermissionsParams { session_id: Some(id.clone()) };
    let attended = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    let lines = TerminalLines::default();
    for request in client.call::<ListPermissions>(params).await?.permissions {
        let title = &request.tool_call.tool.title;
        print(format!("Waits for permission: {}\n", output_line(title)))?;
        print(format!("  to answer it: nuncio sessions answer {} allow_once\n", request.permission_id))?;
        if attended && let Some(chosen) = ask::ask_or_leave(&lines, title, &request.options).await {
            ask::send(client, &request.permission_id, chosen).await;
        }
    }
    Ok(())
}

/// The usage and the cost of all model requests of a session and of its subagents.
#[derive(Default)]
struct SessionTotals {
    usage: Option<Usage>,
    cost: Option<Cost>,
}

impl SessionTotals {
    fn apply(&mut self, event: &Event) {
        let (usage, cost) = match &event.body {
            Body::UsageUpdated(UsageUpdate { usage, cost, .. }) => (*usage, *cost),
            Body::ChildCompleted { end, .. } => (end.usage.unwrap_or_default(), end.cost),
            _ => return,
        };
        *self.usage.get_or_insert_default() += usage;
        self.cost = Cost::sum(self.cost, cost);
    }

    /// Returns a line with the totals, unless there are none.
    fn line(&self) -> Option<String> {
        let usage = self.usage?;
        let cost = self.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        Some(format!("Tokens: {} in, {} out{cost}\n", usage.input_tokens, usage.output_tokens))
    }
}

/// Shows the history of a session and then its live events, until the session is deleted or a
/// signal arrives.
pub(crate) async fn follow(
    client: &SessionClient,
    sessions: &Sessions,
    id: &SessionId,
    json: bool,
    colours: Colours,
) -> Result<()> {
    let interrupted = CancellationToken::new();
    crate::task::spawn(on_signal(interrupted.clone()));
    let options = RenderOptions { colour: colours.stdout, replay: true, ..RenderOptions::default() };
    let mut renderer = TerminalRenderer::new(options, &sessions.row(id).await?.cwd);
    let (mut transcript, mut events) = (Transcript::default(), client.follow(id, 0, None).await?);
    loop {
        let page = tokio::select! {
            page = events.next() => page,
            () = interrupted.cancelled() => return Err(Error::new(Kind::Cancelled, "interrupted")),
        };
        for event in page? {
            if json {
                print_event(&event)?;
            } else {
                transcript.apply(&event).iter().try_for_each(|block| print_replay(renderer.render(block)))?;
            }
            if matches!(event.body, Body::SessionDeleted {}) {
                return Ok(());
            }
        }
    }
}
