//! Subagents for clients with the capability `subagents` (ACP RFD "Subagent Sessions"): the client
//! receives the updates of a subagent under the id of the subagent's own session.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::project::Projection;
use super::view::{ChildView, View};
use crate::content::StopReason;
use crate::error::Kind;
use crate::event::{ChildEnd, ChildLabel, ChildStatus};
use crate::protocol::{acp, content};
use crate::rpc::FrameWriter;
use crate::session::Follow;

impl View {
    /// Announces a subagent and shows its session from its first event. `history`: the events were
    /// committed before the client opened the parent session.
    pub(super) async fn start_child(&mut self, label: &ChildLabel, history: bool, out: &mut FrameWriter) {
        self.projection.link_child(label, out);
        if !self.shows_subagents {
            return;
        }
        self.projection.announce_child(label, out);
        let Some(sessions) = self.app.sessions_now().cloned() else { return };
        match sessions.open_read_only(&label.child_session_id).await {
            Ok(session) => {
                let view = self.of_child(session, history);
                self.children.push(ChildView { label: label.clone(), view, is_waiting: false });
            }
            Err(error) => tracing::info!(session = %label.child_session_id, %error, "cannot show the session of a subagent"),
        }
    }

    /// Writes the remaining events of a subagent, and then its end.
    pub(super) async fn end_child(&mut self, label: &ChildLabel, end: &ChildEnd, out: &mut FrameWriter) {
        let is_child = |child: &ChildView| child.label.child_session_id == label.child_session_id;
        if let Some(index) = self.children.iter().position(is_child) {
            let mut child = self.children.remove(index);
            while child.view.continue_child(out).await {
                // An error is reported by the next write.
                let _ = out.flush_if_full().await;
            }
            child.view.withdraw_requests(out);
            self.projection.child_state(label, idle(end), out);
        }
    }

    /// Writes the next events of the running subagents. Returns false if there are none.
    pub(super) async fn show_children(&mut self, out: &mut FrameWriter) -> bool {
        let mut has_more = false;
        for child in &mut self.children {
            has_more |= child.view.continue_child(out).await;
            let is_waiting = child.view.is_waiting();
            if std::mem::replace(&mut child.is_waiting, is_waiting) != is_waiting {
                let state = match is_waiting {
                    true => acp::StateUpdate::RequiresAction(acp::RequiresActionStateUpdate::new()),
                    false => acp::StateUpdate::Running(acp::RunningStateUpdate::new()),
                };
                self.projection.child_state(&child.label, state, out);
            }
        }
        has_more
    }

    /// Writes the next page of a subagent's events: first of its history, then live events. Returns
    /// false if there are none.
    fn continue_child<'a>(&'a mut self, out: &'a mut FrameWriter) -> BoxFuture<'a, bool> {
        async move {
            if self.is_history {
                self.is_history = self.replay(out).await;
                return true;
            }
            self.show(out).await
        }
        .boxed()
    }

    /// Adds cursors at the positions of this view and of the views of its subagents.
    pub(super) fn add_follows(&self, follows: &mut Vec<Follow>) {
        follows.push(self.session.log.follow(self.cursor()));
        for child in &self.children {
            child.view.add_follows(follows);
        }
    }

    /// Withdraws the permission requests of the subagents from the client.
    pub(super) fn withdraw_child_requests(&mut self, out: &mut FrameWriter) {
        for child in &mut self.children {
            child.view.withdraw_requests(out);
        }
    }

    /// Sends the open permission requests of the subagents.
    pub(super) fn ask_open_child_permissions(&mut self, out: &mut FrameWriter) {
        for child in &mut self.children {
            child.view.ask_open_permissions(out);
        }
    }
}

impl Projection {
    /// Adds the id of the subagent's session to the tool call that started it. The id is in
    /// `_meta`, because ACP's types have no such content yet.
    fn link_child(&self, label: &ChildLabel, out: &mut FrameWriter) {
        let session = serde_json::json!({ "sessionId": label.child_session_id });
        let meta = acp::Meta::from_iter([("session".to_owned(), session)]);
        let id = acp::ToolCallId::new(label.tool_call_id.as_str());
        let update = acp::ToolCallUpdate::new(id, acp::ToolCallUpdateFields::new()).meta(meta);
        self.update(acp::SessionUpdate::ToolCallUpdate(update), out);
    }

    fn announce_child(&self, label: &ChildLabel, out: &mut FrameWriter) {
        let cancel = acp::SubagentSessionCapabilities::new().cancel(acp::SessionCancelCapabilities::new());
        let update = acp::SubagentUpdate::new(acp::SessionId::new(label.child_session_id.as_str()))
            .title(label.title.clone())
            .capabilities(cancel)
            .state(acp::StateUpdate::Running(acp::RunningStateUpdate::new()));
        self.update(acp::SessionUpdate::SubagentUpdate(update), out);
    }

    fn child_state(&self, label: &ChildLabel, state: acp::StateUpdate, out: &mut FrameWriter) {
        let update = acp::SubagentUpdate::new(acp::SessionId::new(label.child_session_id.as_str())).state(state);
        self.update(acp::SessionUpdate::SubagentUpdate(update), out);
    }
}

/// Returns the state of a subagent whose work has ended.
fn idle(end: &ChildEnd) -> acp::StateUpdate {
    let reason = match (end.status, end.stop_reason) {
        (ChildStatus::Completed, Some(StopReason::MaxTokens)) => acp::IdleStopReason::MaxTokens,
        (ChildStatus::Completed, Some(StopReason::MaxTurnRequests)) => acp::IdleStopReason::MaxTurnRequests,
        (ChildStatus::Completed, Some(StopReason::Refusal)) => acp::IdleStopReason::Refusal,
        (ChildStatus::Completed, Some(StopReason::EndTurn) | None) => acp::IdleStopReason::EndTurn,
        (ChildStatus::Cancelled, _) | (ChildStatus::Completed, Some(StopReason::Cancelled)) => acp::IdleStopReason::Cancelled,
        (ChildStatus::Failed | ChildStatus::Interrupted, _) => {
            let message = end.error.as_deref().unwrap_or("the process that ran the subagent has ended");
            acp::ErrorStopReason::new().error(acp::Error::new(Kind::Internal.row().rpc, message)).into()
        }
    };
    acp::StateUpdate::Idle(acp::IdleStateUpdate::new().stop_reason(reason).usage(end.usage.as_ref().map(content::usage)))
}
