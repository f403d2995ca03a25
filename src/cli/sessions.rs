//! `nuncio sessions`: lists, shows, cancels, answers, exports, imports and deletes sessions.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use serde::Deserialize;
use serde_json::Value;

use super::flags::SessionsCommand;
use super::output::{Colours, print, print_event, print_json, print_replay};
use super::renderer::{RenderOptions, RenderedText, TerminalRenderer};
use super::stored::each_event;
use super::{answer, export, import};
use crate::api::{App, CancelTurn, CloseSession, DeleteSession, ListSessions};
use crate::app::on_signal;
use crate::content::{Cost, Usage};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event};
use crate::id::SessionId;
use crate::local::LocalClient;
use crate::protocol::acp;
use crate::session::Sessions;
use crate::terminal_text::output_line;
use crate::transcript::Transcript;

/// Runs `nuncio sessions`. Returns the exit code.
pub(crate) async fn run(app: Arc<App>, command: SessionsCommand, colours: Colours) -> Result<u8> {
    let sessions = app.sessions().await?.clone();
    let client = LocalClient::new(app.clone(), "terminal");
    let result = match command {
        SessionsCommand::List { here, json } => {
            let request = acp::ListSessionsRequest::new().cwd(here.then(|| app.cwd.clone()));
            list(&client, &sessions, request, json).await
        }
        SessionsCommand::Show { id, json, follow: false } => show(&sessions, &id.into(), json, colours),
        SessionsCommand::Show { id, json, follow: true } => follow(&client, &sessions, &id.into(), json, colours).await,
        SessionsCommand::Cancel { id } => client.call::<CancelTurn>(acp::CancelNotification::new(id)).await,
        SessionsCommand::Answer { id, option } => answer::run(&client, &id, option).await,
        SessionsCommand::Export { id, layout } => export::export(&app, &sessions, &id.into(), layout.as_deref()),
        SessionsCommand::Import { file } => import::import(&app, &sessions, &file).await,
        SessionsCommand::Rm { ids } => remove(&client, &ids).await,
    };
    app.shut_down().await;
    result.map(|()| 0)
}

async fn list(client: &LocalClient, sessions: &Sessions, mut request: acp::ListSessionsRequest, json: bool) -> Result<()> {
    loop {
        let page = client.call::<ListSessions>(request.clone()).await?;
        for session in page.sessions {
            let (id, updated) = (SessionId::from(&*session.session_id.0), session.updated_at.unwrap_or_default());
            let activity = session.meta.unwrap_or_default().shift_remove("nuncio").unwrap_or_default();
            if json {
                // Read the number of events from the store, because the API method does not return
                // it.
                let events = sessions.row(&id)?.head;
                let mut line = serde_json::json!({
                    "sessionId": id, "cwd": session.cwd, "title": session.title, "updatedAt": updated, "events": events,
                });
                if let (Some(line), Value::Object(activity)) = (line.as_object_mut(), activity) {
                    line.extend(activity);
                }
                print_json(format!("{line}\n"))?;
            } else {
                let title = output_line(session.title.as_deref().unwrap_or_default());
                let (cwd, updated) =
                    (output_line(&session.cwd.to_string_lossy()), updated.get(..16).unwrap_or_default().replace('T', " "));
                let state = match (activity["waiting"].as_bool(), activity["status"].as_str()) {
                    (Some(true), _) => "[waiting] ",
                    (_, Some("busy")) => "[busy] ",
                    (_, Some("idle")) => "[idle] ",
                    _ => "",
                };
                let cost = Cost::deserialize(&activity["cost"]).map(|cost| format!("  {cost}")).unwrap_or_default();
                print(format!("{id}  {updated}  {cwd}  {state}{title}{cost}\n"))?;
            }
        }
        if page.next_cursor.is_none() {
            return Ok(());
        }
        request.cursor = page.next_cursor;
    }
}

fn show(sessions: &Sessions, id: &SessionId, json: bool, colours: Colours) -> Result<()> {
    let options = RenderOptions { colour: colours.stdout, replay: true, ..RenderOptions::default() };
    let mut renderer = TerminalRenderer::new(options, &sessions.row(id)?.cwd);
    if json {
        return each_event(sessions, id, print_event);
    }
    let (mut transcript, mut spent) = (Transcript::default(), Spent::default());
    each_event(sessions, id, |event| {
        spent.on(event);
        transcript.on(event).iter().try_for_each(|block| print_replay(renderer.render(block)))
    })?;
    print_replay(renderer.incomplete())?;
    print_replay(spent.line().map(RenderedText::Progress).into_iter().collect())
}

/// The usage and the cost of all model requests of a session and of its subagents.
#[derive(Default)]
struct Spent {
    usage: Option<Usage>,
    cost: Option<Cost>,
}

impl Spent {
    fn on(&mut self, event: &Event) {
        let (usage, cost) = match &event.body {
            Body::UsageUpdated { usage, cost, .. } => (*usage, *cost),
            Body::ChildCompleted { end, .. } => (end.usage.unwrap_or_default(), end.cost),
            _ => return,
        };
        *self.usage.get_or_insert_default() += usage;
        self.cost = Cost::sum(self.cost, cost);
    }

    /// A line with the totals, unless there are none.
    fn line(&self) -> Option<String> {
        let usage = self.usage?;
        let cost = self.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        Some(format!("Tokens: {} in, {} out{cost}\n", usage.input_tokens, usage.output_tokens))
    }
}

/// Shows the history of a session and then its live events, until the session is deleted or a
/// signal arrives.
async fn follow(client: &LocalClient, sessions: &Sessions, id: &SessionId, json: bool, colours: Colours) -> Result<()> {
    let interrupted = CancellationToken::new();
    tokio::spawn(on_signal(interrupted.clone()));
    let options = RenderOptions { colour: colours.stdout, replay: true, ..RenderOptions::default() };
    let mut renderer = TerminalRenderer::new(options, &sessions.row(id)?.cwd);
    let (mut transcript, mut events) = (Transcript::default(), client.follow(id, 0, false).await?);
    loop {
        let page = tokio::select! {
            page = events.next() => page,
            () = interrupted.cancelled() => return Err(Error::new(Kind::Cancelled, "interrupted")),
        };
        for event in page? {
            if json {
                print_event(&event)?;
            } else {
                transcript.on(&event).iter().try_for_each(|block| print_replay(renderer.render(block)))?;
            }
            if matches!(event.body, Body::SessionDeleted {}) {
                return Ok(());
            }
        }
    }
}

async fn remove(client: &LocalClient, ids: &[String]) -> Result<()> {
    for id in ids {
        let id = acp::SessionId::new(id.as_str());
        // Deleting an unknown session succeeds, but closing one is an error.
        client.call::<CloseSession>(acp::CloseSessionRequest::new(id.clone())).await?;
        client.call::<DeleteSession>(acp::DeleteSessionRequest::new(id)).await?;
    }
    Ok(())
}
