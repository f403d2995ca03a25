//! A session that the client follows: a cursor in its log, and the permission requests that the
//! client has not answered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_all};
use serde_json::json;

use super::permission::PermissionAnswers;
use super::project::{self, Projection};
use crate::api::{App, Client};
use crate::context::commands::SlashCommand;
use crate::event::{Body, ChildLabel, Event, PermissionDecision, PermissionRequest, StepStart};
use crate::id::{PermissionId, Seq, SessionId};
use crate::limits;
use crate::protocol::{acp, content};
use crate::rpc::FrameWriter;
use crate::rpc::message::Id;
use crate::session::{Follow, Session};

/// A followed session.
pub(crate) struct View {
    /// Distinguishes the view from earlier views of the same session.
    pub number: u64,
    pub(super) session: Session,
    follow: Follow,
    pub(super) projection: Projection,
    pub(super) app: Arc<App>,
    client: Arc<Client>,
    /// True if the client has the capability `subagents`.
    pub(super) shows_subagents: bool,
    /// The running subagents, if the client shows them.
    pub(super) children: Vec<ChildView>,
    /// True for the session of a subagent.
    is_child: bool,
    /// True until the history of a subagent is written.
    pub(super) is_history: bool,
    /// Permission requests that were sent to the client and have no answer.
    asked: HashMap<PermissionId, Id>,
    /// Permission requests without a tool call, which were sent as one.
    questions: HashSet<PermissionId>,
    /// The commands that were sent to the client.
    commands: Option<Arc<[SlashCommand]>>,
}

/// The view of a subagent's session, as a part of the view of the parent session.
pub(super) struct ChildView {
    pub label: ChildLabel,
    pub view: View,
    /// True if the last reported state is that the subagent waits for an answer.
    pub is_waiting: bool,
}

impl View {
    /// Creates a view of `session` that shows the events after seq `after`.
    pub(crate) fn new(session: Session, after: Seq, number: u64, app: Arc<App>, client: Arc<Client>) -> View {
        let (queued, cwd) =
            session.log.state(|state| (state.queue.iter().map(|queued| queued.message.id.clone()).collect(), state.cwd.clone()));
        let capabilities = client.capabilities();
        View {
            number,
            follow: session.log.follow(after),
            projection: Projection::new(session.log.id.clone(), client.id.clone(), &capabilities, queued, cwd),
            shows_subagents: capabilities.subagents.is_some(),
            children: Vec::new(),
            is_child: false,
            is_history: false,
            asked: HashMap::new(),
            questions: HashSet::new(),
            commands: None,
            session,
            app,
            client,
        }
    }

    /// Creates the view of the session of a subagent. `is_history`: the client receives the history
    /// of the session first.
    pub(super) fn of_child(&self, session: Session, is_history: bool) -> View {
        let mut view = View::new(session, 0, self.number, self.app.clone(), self.client.clone());
        view.projection.set_parent(self.session.log.id.clone());
        View { is_child: true, is_history, ..view }
    }

    /// Returns whether the client has a permission request of this session to answer.
    pub(super) fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Returns whether the view shows this open instance of the session, not an earlier one.
    pub(crate) fn is_of(&self, session: &Session) -> bool {
        self.session.is_same(session)
    }

    /// Returns whether the session was closed.
    pub(crate) fn is_over(&self) -> bool {
        self.session.is_closed()
    }

    /// Returns the seq of the last event that was written.
    pub(crate) fn cursor(&self) -> Seq {
        self.follow.cursor()
    }

    /// Returns the seq of the last event of the session.
    pub(crate) fn head(&self) -> Seq {
        self.session.log.head()
    }

    /// Resolves when there are events after the cursor.
    pub(crate) fn moved(&self) -> BoxFuture<'static, (SessionId, u64)> {
        let (id, number, cursor) = (self.session.log.id.clone(), self.number, self.cursor());
        let mut follows = Vec::new();
        self.add_follows(&mut follows);
        let (session, sessions) = (self.session.clone(), self.app.sessions_now().cloned());
        async move {
            let moved = select_all(follows.iter_mut().map(|follow| Box::pin(follow.moved())));
            let closed = tokio::select! {
                biased;
                _ = moved => false,
                () = session.closed() => true,
            };
            drop(session);
            // The session was closed: wait until a process (possibly this one) writes to the
            // session again.
            if let (true, Some(sessions)) = (closed, sessions) {
                let _ = sessions.beyond(&id, cursor).await;
            }
            (id, number)
        }
        .boxed()
    }

    /// Writes the available commands if they differ from those written before. Unless `check` is
    /// set, changes of files since the last check are not noticed.
    pub(crate) async fn send_commands(&mut self, check: bool, out: &mut FrameWriter) {
        // Clients do not prompt subagents.
        if self.is_child {
            return;
        }
        let commands = self.session.commands(check).await;
        let is_sent = |sent: &Arc<[SlashCommand]>| Arc::ptr_eq(sent, &commands) || *sent == commands;
        if !self.commands.as_ref().is_some_and(is_sent) {
            self.projection.update(project::available_commands(&commands), out);
            self.commands = Some(commands);
        }
    }

    /// Writes a page of history with completed messages. Returns false after the last page, once
    /// the partial text of incomplete messages has been written too.
    pub(crate) async fn replay(&mut self, out: &mut FrameWriter) -> bool {
        let (head, open_messages) = self.session.log.state_at_head(|state, head| (head, state.open_messages.clone()));
        if self.follow.cursor() < head {
            let events = match self.session.log.page(self.follow.cursor(), limits::PAGE_EVENTS, false).await {
                Ok(events) => events,
                failed => {
                    tracing::error!(session = %self.session.log.id, ?failed, "cannot replay a session");
                    return false;
                }
            };
            for event in &events {
                match &event.body {
                    Body::ChildStarted { child, .. } => self.start_child(child, true, out).await,
                    Body::ChildCompleted { child, end } => {
                        self.projection.replayed(event, out);
                        self.end_child(child, end, out).await;
                    }
                    _ => self.projection.replayed(event, out),
                }
            }
            // If there are no further events, skip to the head: the deltas up to the head belong to
            // incomplete messages, whose text is written below.
            self.follow.seek(events.last().map_or(head, |last| last.seq));
            if !events.is_empty() {
                return true;
            }
        }
        for open in open_messages {
            self.projection.text(&open.id, open.role, 0, &open.text, out);
        }
        // Subagents that are still running.
        while self.children.iter().any(|child| child.view.is_history) && self.show_children(out).await {
            let _ = out.flush_if_full().await;
        }
        false
    }

    /// Sends the permission requests up to the cursor that are still open. Later requests are sent
    /// with their events, after the tool call they belong to.
    pub(crate) fn ask_open_permissions(&mut self, out: &mut FrameWriter) {
        let cursor = self.cursor();
        let open = self.session.log.state(|state| state.open_permissions.clone());
        for open in open.into_iter().filter(|open| open.seq <= cursor) {
            self.ask(&open.request, out);
        }
        self.ask_open_child_permissions(out);
    }

    /// Withdraws all permission requests from the client.
    pub(crate) fn withdraw_requests(&mut self, out: &mut FrameWriter) {
        for (_, request) in self.asked.drain() {
            out.cancel_request(&request);
        }
        self.withdraw_child_requests(out);
    }

    /// Writes the next page of events, and of the events of running subagents. Returns false if
    /// there are no more events.
    pub(crate) async fn show(&mut self, out: &mut FrameWriter) -> bool {
        let events = match self.follow.read().await {
            Ok(events) => events,
            Err(error) => {
                tracing::error!(session = %self.session.log.id, error = %error, "cannot read the events of a session");
                return false;
            }
        };
        for event in &events {
            self.event(event, out).await;
        }
        let has_child_events = self.show_children(out).await;
        has_child_events || !events.is_empty()
    }

    async fn event(&mut self, event: &Event, out: &mut FrameWriter) {
        match &event.body {
            Body::PermissionRequested(request) => self.ask(request, out),
            Body::PermissionResolved(PermissionDecision { permission_id: Some(id), tool_call_id, outcome, .. }) => {
                if self.questions.remove(id) {
                    self.projection.question_ended(tool_call_id, outcome.allows(), out);
                }
                if let Some(request) = self.asked.remove(id) {
                    out.cancel_request(&request);
                }
            }
            Body::ChildStarted { child, .. } => self.start_child(child, false, out).await,
            Body::ChildCompleted { child, end } => self.end_child(child, end, out).await,
            Body::UsageUpdated { .. } => {
                self.projection.set_cost(self.session.log.state(|state| state.turns.total().1));
                self.projection.shown(event, out);
            }
            Body::ModeChanged { .. } | Body::SessionGranted { .. } => {
                self.projection.shown(event, out);
                self.options(out).await;
            }
            Body::SessionUpdated { change } => {
                self.projection.shown(event, out);
                if change.model.is_some() || change.thinking.is_some() {
                    self.options(out).await;
                }
            }
            // The first request follows the start of the MCP servers, whose prompts are commands.
            Body::TurnStarted { .. } | Body::StepStarted(StepStart { step: 1, .. }) => {
                self.projection.shown(event, out);
                self.send_commands(matches!(event.body, Body::TurnStarted { .. }), out).await;
            }
            _ => self.projection.shown(event, out),
        }
    }

    async fn options(&self, out: &mut FrameWriter) {
        let options = crate::api::config_options(&self.app, &self.client, &self.session).await;
        self.projection.update(acp::SessionUpdate::ConfigOptionUpdate(acp::ConfigOptionUpdate::new(options)), out);
    }

    fn ask(&mut self, request: &PermissionRequest, out: &mut FrameWriter) {
        let PermissionRequest { permission_id: id, tool_call_id: tool_call, tool, content: shown, options, review, .. } = request;
        let label = tool.as_ref();
        if !self.session.is_waiting_for(id) || self.asked.contains_key(id) {
            // The request is resolved, or it was already sent.
            return;
        }
        if self.children.iter().any(|child| child.label.tool_call_id == *tool_call) {
            // A request of a subagent is sent with the call in the subagent's session.
            return;
        }
        let mut fields = acp::ToolCallUpdateFields::new()
            .status(acp::ToolCallStatus::Pending)
            .content((!shown.is_empty()).then(|| content::tool_contents(shown, &self.client.id)));
        let has_call = self.session.log.state(|state| {
            if let Some(open) = state.open_tools.iter().find(|open| open.has_id(tool_call)) {
                let open = &open.call;
                fields.title = Some(open.title.clone());
                fields.kind = Some(content::tool_kind(open.kind));
                fields.locations = Some(open.locations.iter().map(content::location).collect());
                fields.raw_input = Some(open.input.clone());
            }
            fields.title.is_some() || state.history.call_started(tool_call).is_some()
        });
        // The title of a call of a subagent names the subagent.
        fields.title = label.map(|label| label.title.clone()).or(fields.title);
        if let (false, Some(label)) = (has_call, label) {
            fields.kind = Some(acp::ToolKind::Other);
            self.projection.question(tool_call, label, out);
            self.questions.insert(id.clone());
        }
        let meta = review.as_ref().map(|review| acp::Meta::from_iter([("nuncio".to_owned(), json!({ "review": review }))]));
        let params = acp::RequestPermissionRequest::new(
            acp::SessionId::new(self.session.log.id.as_str()),
            acp::ToolCallUpdate::new(acp::ToolCallId::new(tool_call.as_str()), fields),
            options.iter().map(content::permission_option).collect(),
        )
        .meta(meta);
        let answers = PermissionAnswers { app: self.app.clone(), client: self.client.clone(), session: self.session.clone() };
        let permission = id.clone();
        let record = Box::new(move |answer| answers.record(&permission, answer));
        let request = out.request("session/request_permission", params, record);
        self.asked.insert(id.clone(), request);
    }
}
