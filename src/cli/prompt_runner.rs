//! Runs prompts in a session and shows its events, for `run` and `demo`.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::ask::{self, Approver};
use super::countdown::Countdown;
use super::errors::{CHECKS_FAILED, DENIED, exit_code, report, stop_code};
use super::input_queue::{InputLine, InputQueue};
use super::output::{print_event, print_question, print_rendered};
use super::renderer::TerminalRenderer;
use crate::api::Prompt;
use crate::app::on_signal;
use crate::content::BudgetLimits;
use crate::error::Result;
use crate::event::{Body, Event};
use crate::id::{PermissionId, Seq, SessionId};
use crate::local::{LocalClient, LocalEvents};
use crate::protocol::acp;
use crate::transcript::{PermissionQuestion, Transcript, TranscriptBlock};

/// How the runner shows events. With `json`, events are printed as JSON lines, and `renderer` is
/// used only for permission questions.
pub(crate) struct RunnerOutput {
    pub json: bool,
    pub renderer: TerminalRenderer,
    /// Shows the time until a model request is sent again.
    pub countdown: bool,
}

/// Runs prompts in a session and shows its events.
pub(crate) struct PromptRunner {
    client: LocalClient,
    session: SessionId,
    events: LocalEvents,
    output: RunnerOutput,
    transcript: Transcript,
    approver: Approver,
    interrupted: CancellationToken,
    denied: bool,
    /// The project's checks failed when they ran last.
    checks_failed: bool,
    /// The permission question that is waiting for an answer at the terminal.
    open_question: Option<PermissionId>,
    /// Events that arrived since that question was asked; shown when it is resolved.
    deferred: VecDeque<Arc<Event>>,
    countdown: Countdown,
    /// Limits of the turn of each prompt.
    budget: BudgetLimits,
}

impl PromptRunner {
    /// Sets limits of the turn of each prompt.
    pub(crate) fn with_budget(self, budget: BudgetLimits) -> PromptRunner {
        PromptRunner { budget, ..self }
    }

    /// Creates a runner that shows the session's events after sequence number `after`.
    pub(crate) async fn new(
        client: LocalClient,
        (session, after): (SessionId, Seq),
        output: RunnerOutput,
        approver: Approver,
    ) -> Result<PromptRunner> {
        let events = client.follow(&session, after, approver != Approver::None).await?;
        let interrupted = CancellationToken::new();
        tokio::spawn(on_signal(interrupted.clone()));
        let countdown = Countdown::new(output.countdown);
        Ok(PromptRunner {
            client,
            session,
            events,
            output,
            transcript: Transcript::default(),
            approver,
            interrupted,
            denied: false,
            checks_failed: false,
            open_question: None,
            deferred: VecDeque::new(),
            countdown,
            budget: BudgetLimits::default(),
        })
    }

    /// Returns the token that a signal cancels.
    pub(crate) fn interrupted(&self) -> CancellationToken {
        self.interrupted.clone()
    }

    /// Returns whether a tool call was denied, by the user or by a rule.
    pub(crate) fn denied(&self) -> bool {
        self.denied
    }

    /// Runs prompts in order and stops at the first failure. Returns the exit code.
    pub(crate) async fn prompts(&mut self, prompts: VecDeque<String>) -> Result<u8> {
        for prompt in prompts {
            let code = match stop_code(self.prompt(prompt, &mut InputQueue::closed()).await?) {
                0 if self.checks_failed => CHECKS_FAILED,
                code => code,
            };
            if code != 0 {
                // The next prompt may depend on this prompt, which did not complete.
                return Ok(code);
            }
        }
        Ok(if self.denied { DENIED } else { 0 })
    }

    /// Handles messages and interrupts from standard input. A message that arrives during a turn is
    /// queued. Returns the exit code.
    pub(crate) async fn lines(&mut self, mut input: InputQueue) -> Result<u8> {
        let mut code = 0;
        while let Some(message) = input.message().await {
            self.checks_failed = false;
            match self.prompt(message?, &mut input).await {
                Ok(_) if self.interrupted.is_cancelled() => return Ok(130),
                Ok(_) if self.checks_failed => code = CHECKS_FAILED,
                Ok(_) => {}
                // A failed turn does not prevent the next message from being sent.
                Err(error) => {
                    report(&error);
                    code = exit_code(&error);
                }
            }
        }
        Ok(code)
    }

    /// Runs one prompt to the end of its turn.
    async fn prompt(&mut self, prompt: String, input: &mut InputQueue) -> Result<acp::StopReason> {
        let (client, cancel) = (self.client.clone(), self.interrupted.child_token());
        let content = vec![acp::ContentBlock::Text(acp::TextContent::new(prompt))];
        let params = acp::PromptRequest::new(acp::SessionId::new(self.session.as_str()), content).meta(self.meta());
        let mut turn = Box::pin(client.call_until::<Prompt>(params, cancel.clone()));
        let end = loop {
            tokio::select! {
                biased;
                events = self.events.next() => for event in events? { self.event(event).await?; },
                end = &mut turn => break end,
                () = self.countdown.tick() => self.countdown.write(),
                line = input.line() => match line {
                    Ok(InputLine::Interrupt {}) => cancel.cancel(),
                    Ok(InputLine::Message { content }) => input.push(content),
                    Err(error) => { cancel.cancel(); report(&error); }
                },
            }
        };
        for event in self.events.committed().await? {
            self.event(event).await?;
        }
        self.countdown.stop();
        // The turn has ended, so an open question is void.
        self.open_question = None;
        self.show_deferred().await?;
        Ok(end?.stop_reason)
    }

    /// `_meta` of a prompt: the budget, if there is one.
    fn meta(&self) -> Option<acp::Meta> {
        let given = self.budget != BudgetLimits::default();
        given.then(|| acp::Meta::from_iter([("nuncio".to_owned(), json!({ "budget": self.budget }))]))
    }

    /// Shows an event, or defers it while a question is open at the terminal.
    async fn event(&mut self, event: Arc<Event>) -> Result<()> {
        if let Body::PermissionResolved { permission_id, outcome, .. } = &event.body {
            self.denied |= !outcome.allows();
            self.open_question.take_if(|open| permission_id.as_ref() == Some(open));
        }
        if let Body::VerifyCompleted { round: 1.., passed, error: None, .. } = &event.body {
            self.checks_failed = !passed;
        }
        self.deferred.push_back(event);
        self.show_deferred().await
    }

    async fn show_deferred(&mut self) -> Result<()> {
        while self.open_question.is_none()
            && let Some(event) = self.deferred.pop_front()
        {
            self.show(&event).await?;
        }
        Ok(())
    }

    async fn show(&mut self, event: &Event) -> Result<()> {
        if self.output.json {
            print_event(event)?;
        }
        if let Body::StepCompleted { retry_at_ms: Some(retry_at_ms), .. } = &event.body {
            self.countdown.start(*retry_at_ms);
        }
        for block in self.transcript.on(event) {
            if !self.output.json {
                let rendered = self.output.renderer.render(&block);
                if !rendered.is_empty() {
                    self.countdown.erase();
                }
                print_rendered(rendered)?;
            }
            if let TranscriptBlock::Question(question) = block {
                self.ask(question).await;
            }
        }
        Ok(())
    }

    async fn ask(&mut self, question: PermissionQuestion<'_>) {
        let resolved =
            |event: &Event| matches!(&event.body, Body::PermissionResolved { permission_id: Some(of), .. } if of == question.id);
        if self.deferred.iter().any(|event| resolved(event)) {
            return;
        }
        let title = question.title.as_deref().unwrap_or("the tool call");
        if self.approver == Approver::Terminal {
            match self.output.json {
                false => self.open_question = Some(question.id.clone()),
                // Standard output carries JSON lines, so the question goes to standard error.
                true => print_question(self.output.renderer.question(title, question.content)),
            }
        }
        ask::answer(self.approver, &self.client, question.id, title, question.options).await;
    }
}
