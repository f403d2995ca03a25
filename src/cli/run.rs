//! `nuncio run`: runs prompts in order, in a session owned by this process.

use std::collections::{HashMap, VecDeque};
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ask::{self, Answers};
use super::flags::RunOptions;
use super::text::{Look, Out, Text};
use super::{Colours, input, print_exact, print_json, report};
use crate::api::{Client, Cx, Method, NewSession, Nuncio, Prompt};
use crate::app::on_signal;
use crate::content::{PermissionOption, ToolContent};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, SessionChange};
use crate::id::{PermissionId, Seq, SessionId, ToolCallId};
use crate::limits;
use crate::options::OptionValue;
use crate::protocol::acp;
use crate::rpc::lines::{Line, LineReader};
use crate::session::{Follow, Session};

/// A line of standard input in `run --json -`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Input {
    Message { content: String },
    Interrupt {},
}

/// The output format of events.
pub enum Show {
    Json,
    Text(Text),
}

impl Show {
    fn event(&mut self, event: &Event) -> Result<()> {
        match self {
            Show::Json => {
                let line = serde_json::to_string(event).map_err(|error| Error::internal(error.to_string()))?;
                print_json(line + "\n")
            }
            Show::Text(text) => {
                for out in text.on(event) {
                    match out {
                        Out::Answer(answer) => print_exact(answer)?,
                        Out::Aside(aside) => {
                            let mut stderr = std::io::stderr().lock();
                            let _ = stderr.write_all(aside.as_bytes());
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// Runs `nuncio run`.
pub async fn run(nuncio: Arc<Nuncio>, options: RunOptions, colours: Colours) -> Result<u8> {
    let input = input::read(&options).await?;
    let (session, after) = open(&nuncio, &options).await?;
    // A pipe or a file gets the model's text unchanged.
    let look = Look { colour: colours.stderr && !options.plain, exact: !std::io::stdout().is_terminal(), ..Look::default() };
    let show = if options.json { Show::Json } else { Show::Text(Text::new(look, &nuncio.cwd)) };
    let answers = if matches!(input, input::Input::Lines) { Answers::None } else { Answers::for_terminal() };
    let mut work = Work::new(nuncio, session, after, show, answers);
    let code = match input {
        input::Input::Lines => work.lines().await,
        input::Input::Prompts(prompts) => work.prompts(prompts).await,
    };
    work.nuncio.shut_down().await;
    code
}

/// Opens or creates the session. Also returns the sequence number after which events are shown: 0
/// for a new session, the head for an existing one.
async fn open(nuncio: &Arc<Nuncio>, options: &RunOptions) -> Result<(Session, Seq)> {
    if let Some(model) = &nuncio.services.overrides.model {
        nuncio.services.check_model(model, &nuncio.cwd)?;
    }
    let sessions = nuncio.sessions().await?;
    let known = match (&options.resume, options.last) {
        (Some(id), _) => Some(SessionId::from(id.as_str())),
        (None, true) => {
            let page = sessions.list(Some(&nuncio.cwd), None)?;
            let last = page.sessions.into_iter().next().map(|row| row.id);
            Some(last.ok_or_else(|| Error::not_found(format!("no session in {} to continue", nuncio.cwd.display())))?)
        }
        (None, false) => None,
    };
    let Some(id) = known else {
        let cx = Cx::new(nuncio.clone(), Arc::new(Client::new("terminal")), CancellationToken::new());
        let created = NewSession::call(cx, acp::NewSessionRequest::new(nuncio.cwd.clone())).await?;
        return Ok((sessions.get(&SessionId::from(&*created.result?.session_id.0)).await?, 0));
    };
    let session = sessions.get(&id).await?;
    session.own().await?;
    let head = session.log.head();
    adopt_flags(nuncio, &session).await?;
    Ok((session, head))
}

/// Applies the flags of this call, which take precedence over the session's stored values.
async fn adopt_flags(nuncio: &Nuncio, session: &Session) -> Result<()> {
    let overrides = &nuncio.services.overrides;
    let change = SessionChange {
        model: overrides.model.clone(),
        thinking: overrides.thinking.map(OptionValue::Known),
        ..SessionChange::default()
    };
    if change != SessionChange::default() {
        session.append(Body::SessionUpdated { change }).await?;
    }
    if let Some(mode) = overrides.mode {
        session.append(Body::ModeChanged { mode: OptionValue::Known(mode) }).await?;
    }
    Ok(())
}

/// Runs prompts in a session and shows its events.
pub struct Work {
    pub nuncio: Arc<Nuncio>,
    pub session: Session,
    client: Arc<Client>,
    show: Show,
    answers: Answers,
    follow: Follow,
    /// Titles of the running tool calls.
    titles: HashMap<ToolCallId, String>,
    interrupted: CancellationToken,
    /// True once a tool call was denied, by the user or by a rule.
    pub denied: bool,
    /// The question that is open at the terminal.
    open: Option<PermissionId>,
    /// Events since the question was asked, shown when it is resolved.
    deferred: VecDeque<Event>,
}

impl Work {
    /// Shows events after `after`.
    pub fn new(nuncio: Arc<Nuncio>, session: Session, after: Seq, show: Show, answers: Answers) -> Work {
        let follow = session.log.follow(after);
        let interrupted = CancellationToken::new();
        tokio::spawn(on_signal(interrupted.clone()));
        Work {
            nuncio,
            session,
            client: Arc::new(Client::new("terminal")),
            show,
            answers,
            follow,
            titles: HashMap::new(),
            interrupted,
            denied: false,
            open: None,
            deferred: VecDeque::new(),
        }
    }

    /// Runs prompts in order and stops at the first failure. Returns the exit code.
    pub async fn prompts(&mut self, prompts: VecDeque<String>) -> Result<u8> {
        let _responder = (self.answers != Answers::None).then(|| self.session.broker.register_responder());
        for prompt in prompts {
            let stop = self.prompt(prompt, &mut None).await?;
            match stop {
                acp::StopReason::EndTurn => {}
                acp::StopReason::Cancelled => return Ok(130),
                // The next prompt may depend on this one, which did not complete.
                _ => return Ok(1),
            }
        }
        Ok(if self.denied { 4 } else { 0 })
    }

    /// Handles messages and interrupts from standard input. A message that arrives during a turn is
    /// queued.
    async fn lines(&mut self) -> Result<u8> {
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(read_lines(sender));
        let mut inputs = Some(receiver);
        let mut waiting = VecDeque::new();
        let mut code = 0;
        loop {
            let prompt = match waiting.pop_front() {
                Some(prompt) => prompt,
                None => match next(&mut inputs).await {
                    None => return Ok(code),
                    Some(Err(error)) => return Err(error),
                    Some(Ok(Input::Interrupt {})) => continue,
                    Some(Ok(Input::Message { content })) => content,
                },
            };
            let mut during = Some((&mut inputs, &mut waiting));
            match self.prompt(prompt, &mut during).await {
                Ok(_) if self.interrupted.is_cancelled() => return Ok(130),
                Ok(_) => {}
                // The failure is in the events; the next message still runs.
                Err(error) => {
                    report(&error);
                    code = super::exit_code(&error);
                }
            }
        }
    }

    /// Runs one prompt to the end of its turn.
    async fn prompt(&mut self, prompt: String, inputs: &mut During<'_>) -> Result<acp::StopReason> {
        let cancel = self.interrupted.child_token();
        let cx = Cx::new(self.nuncio.clone(), self.client.clone(), cancel.clone());
        let id = acp::SessionId::new(self.session.log.id.as_str());
        let mut running =
            Box::pin(Prompt::call(cx, acp::PromptRequest::new(id, vec![acp::ContentBlock::Text(acp::TextContent::new(prompt))])));
        let end = loop {
            tokio::select! {
                biased;
                events = self.follow.next() => for event in events? { self.event(&event)?; },
                end = &mut running => break end,
                input = during(inputs) => match input {
                    Some(Ok(Input::Interrupt {})) => cancel.cancel(),
                    Some(Ok(Input::Message { content })) => if let Some((_, waiting)) = inputs { waiting.push_back(content) },
                    Some(Err(error)) => { cancel.cancel(); report(&error); }
                    None => *inputs = None,
                },
            }
        };
        for event in self.follow.ready()? {
            self.event(&event)?;
        }
        // The turn has ended, so an open question is void.
        self.open = None;
        self.show_deferred()?;
        let stop = end?.result?.stop_reason;
        Ok(stop)
    }

    /// Shows an event, or defers it while a question is open at the terminal.
    fn event(&mut self, event: &Event) -> Result<()> {
        if let Body::PermissionResolved { permission_id, outcome, .. } = &event.body {
            self.denied |= !outcome.allows();
            self.open.take_if(|open| permission_id.as_ref() == Some(open));
        }
        if self.open.is_none() && self.deferred.is_empty() {
            return self.show(event);
        }
        self.deferred.push_back(event.clone());
        self.show_deferred()
    }

    fn show_deferred(&mut self) -> Result<()> {
        while self.open.is_none()
            && let Some(event) = self.deferred.pop_front()
        {
            self.show(&event)?;
        }
        Ok(())
    }

    fn show(&mut self, event: &Event) -> Result<()> {
        self.show.event(event)?;
        match &event.body {
            Body::ToolStarted { tool_call_id, title, .. } => drop(self.titles.insert(tool_call_id.clone(), title.clone())),
            Body::ToolCompleted { tool_call_id, .. } => drop(self.titles.remove(tool_call_id)),
            Body::PermissionRequested { permission_id, tool_call_id, content, options, .. } => {
                self.ask(permission_id, tool_call_id, content, options);
            }
            _ => {}
        }
        Ok(())
    }

    fn ask(&mut self, id: &PermissionId, call: &ToolCallId, content: &[ToolContent], options: &[PermissionOption]) {
        let resolved = |event: &Event| matches!(&event.body, Body::PermissionResolved { permission_id: Some(of), .. } if of == id);
        if self.deferred.iter().any(resolved) {
            return;
        }
        let title = self.titles.get(call).map_or("the tool call", String::as_str);
        if self.answers == Answers::Terminal {
            match &self.show {
                Show::Text(_) => self.open = Some(id.clone()),
                // Standard output carries JSON lines, so the question goes to standard error.
                Show::Json => {
                    let text = Text::new(Look::default(), &self.nuncio.cwd);
                    for Out::Answer(shown) | Out::Aside(shown) in text.question(title, content) {
                        eprint!("{shown}");
                    }
                }
            }
        }
        ask::answer(self.answers, &self.session, id, title, options);
    }
}

type Inputs = Option<mpsc::Receiver<Result<Input>>>;
type During<'a> = Option<(&'a mut Inputs, &'a mut VecDeque<String>)>;

async fn next(inputs: &mut Inputs) -> Option<Result<Input>> {
    inputs.as_mut()?.recv().await
}

async fn during(inputs: &mut During<'_>) -> Option<Result<Input>> {
    match inputs {
        Some((inputs, _)) if inputs.is_some() => {
            let input = next(inputs).await;
            if input.is_none() {
                **inputs = None;
            }
            input
        }
        _ => std::future::pending().await,
    }
}

async fn read_lines(inputs: mpsc::Sender<Result<Input>>) {
    let mut lines = LineReader::new(tokio::io::stdin(), limits::INPUT_LINE_BYTES_MAX);
    let mut number = 0;
    loop {
        number += 1;
        let bad = |problem: String| Err(Error::new(Kind::InvalidParams, format!("standard input, line {number}: {problem}")));
        let input = match lines.next().await {
            Ok(None) => return,
            Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(Line::Text(line))) => serde_json::from_slice(&line).or_else(|error| bad(error.to_string())),
            Ok(Some(Line::TooLong)) => bad("too long".into()),
            Err(error) => bad(error.to_string()),
        };
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}
