//! Waits for turns that a prompt of this command did not start: the turn that an opened session is
//! running, and turns that background work starts.

use std::time::Duration;

use super::PromptRunner;
use super::elsewhere::turn_ended;
use crate::api::{GetSession, ListPermissions, ListPermissionsParams, PermissionView, SessionParams};
use crate::cli::terminal::input_queue::InputQueue;
use crate::cli::terminal::output::{print_question, print_stderr};
use crate::content::REVIEW;
use crate::error::{Error, Result};
use crate::terminal_text::output_line;
use crate::transcript::PermissionQuestion;

/// Maximum time that `nuncio run` waits for background work after its last prompt.
const BACKGROUND_WAIT: Duration = Duration::from_secs(3600);

impl PromptRunner {
    /// Shows the permission requests that were open when the session was opened, and asks them.
    /// Returns whether there were any.
    pub(crate) async fn show_open_requests(&mut self) -> Result<bool> {
        let params = ListPermissionsParams { session_id: Some(self.session.clone()) };
        let open = self.client.call::<ListPermissions>(params).await?.permissions;
        for request in &open {
            self.show_request(request).await;
        }
        Ok(!open.is_empty())
    }

    async fn show_request(&mut self, request: &PermissionView) {
        let PermissionView { permission_id, tool_call, options, .. } = request;
        let title = &tool_call.tool.title;
        print_stderr(format!("The session waits for permission: {}\n", output_line(title)));
        if !self.output.json {
            print_question(self.output.renderer.question(title, &tool_call.details.content));
        }
        if !self.questions.approver.answers() {
            print_stderr(format!("  to answer it: nuncio sessions answer {permission_id} allow_once\n"));
        }
        let (content, review) = (&tool_call.details.content, &request.review);
        let is_done = tool_call.tool.name == REVIEW;
        let (call, title) = (&tool_call.tool_call_id, Some(title.clone()));
        let question = PermissionQuestion { id: permission_id, call, title, content, options, review, is_done };
        self.questions.ask(&question, &self.output).await;
    }

    /// Shows the running turn of the session to its end, in whichever process it runs. Returns the
    /// exit code.
    pub(crate) async fn follow_turn(&mut self) -> Result<u8> {
        let no_turn = || Error::invalid_params("no prompt").hint("nuncio run --continue \"fix the failing test\"");
        if self.client.server().is_some() {
            let view = self.client.call::<GetSession>(SessionParams { session_id: self.session.clone() }).await?;
            let ended = turn_ended(view.turn_id.ok_or_else(no_turn)?, self.ended.subscribe());
            return self.show_unprompted(ended).await;
        }
        let Some(session) = self.client.app().sessions_now().and_then(|sessions| sessions.opened(&self.session)) else {
            return Ok(0);
        };
        if session.log.state(|state| state.turn.is_none()) {
            return Err(no_turn());
        }
        self.show_unprompted(session.turn_recorded()).await
    }

    /// Waits for the background work of the session and shows the turns that its results start, or
    /// stops it if `wait` is false. Returns the exit code.
    pub(crate) async fn finish_background_work(&mut self, wait: bool) -> Result<u8> {
        // Otherwise another process runs the turns.
        let owned = self.client.app().sessions_now().and_then(|sessions| sessions.owned(&self.session));
        let Some(session) = owned else { return Ok(0) };
        if !session.is_working() {
            return Ok(0);
        }
        let mut code = 0;
        if wait && !self.interrupted.is_cancelled() {
            let work = session.background_work();
            if !work.is_empty() {
                print_stderr(format!("Waiting for background work: {} (Ctrl+C stops it)\n", names(&work)));
            }
            let on_end = |command: &str, how: &str| {
                print_stderr(format!("The background command `{}` has ended: {}\n", output_line(command), output_line(how)));
            };
            let finished = async {
                let finished = session.finish_background_work(on_end);
                // A command such as a server never ends.
                let _ = tokio::time::timeout(BACKGROUND_WAIT, finished).await;
            };
            code = self.show_unprompted(finished).await?;
        }
        let left = session.background_work();
        if !left.is_empty() {
            print_stderr(format!("Cancelled background work: {}\n", names(&left)));
            session.cancel_subagents();
        }
        Ok(code)
    }

    /// Shows the turns that run until `work` completes or the user interrupts. Returns the exit
    /// code.
    async fn show_unprompted(&mut self, work: impl Future<Output = ()>) -> Result<u8> {
        self.unprompted = Some(0);
        let interrupted = self.interrupted.clone();
        let work = async {
            tokio::select! {
                () = work => {}
                () = interrupted.cancelled() => {}
            }
        };
        self.show_until(work, &mut InputQueue::closed(), &interrupted).await?;
        self.questions.withdraw();
        self.show_deferred().await?;
        let code = self.unprompted.take().unwrap_or_default();
        Ok(if interrupted.is_cancelled() { 130 } else { code })
    }
}

/// Joins titles of background work to one line.
fn names(work: &[String]) -> String {
    work.iter().map(|title| output_line(title)).collect::<Vec<_>>().join(", ")
}
