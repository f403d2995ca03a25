//! `nuncio run`: prompts, one after the other, in a session of this process.

use std::collections::{HashMap, VecDeque};
use std::io::{IsTerminal, Read, Write};
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ask::{self, Answers};
use super::flags::RunOptions;
use super::text::{Out, Text};
use super::{print, report};
use crate::api::{Client, Cx, Method, NewSession, Nuncio, Prompt};
use crate::app::on_signal;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, SessionChange};
use crate::id::{Seq, SessionId, ToolCallId};
use crate::limits;
use crate::protocol::acp;
use crate::rpc::lines::{Line, LineReader};
use crate::session::{Follow, Session};

/// A line of `run --json -`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Input {
    Message { content: String },
    Interrupt {},
}

/// How events are shown.
pub enum Show {
    Json,
    Text(Text),
}

impl Show {
    fn event(&mut self, event: &Event) -> Result<()> {
        match self {
            Show::Json => {
                let line = serde_json::to_string(event).map_err(|error| Error::internal(error.to_string()))?;
                print(line + "\n")
            }
            Show::Text(text) => {
                for out in text.on(event) {
                    match out {
                        Out::Answer(answer) => print(answer)?,
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

pub async fn run(nuncio: Arc<Nuncio>, options: RunOptions) -> Result<u8> {
    let lines = options.json && options.prompts.first().is_some_and(|prompt| prompt == "-");
    let mut prompts: VecDeque<String> = options.prompts.iter().cloned().collect();
    if !lines && (prompts.is_empty() || prompts == ["-"]) {
        prompts = [standard_input()?].into();
    }
    let (session, after) = open(&nuncio, &options).await?;
    let colour = !options.plain && std::io::stdout().is_terminal();
    let show = if options.json { Show::Json } else { Show::Text(Text::new(colour, false, &nuncio.cwd)) };
    let answers = if lines { Answers::None } else { Answers::here() };
    let mut work = Work::new(nuncio, session, after, show, answers);
    let code = if lines { work.lines().await } else { work.prompts(prompts).await };
    work.nuncio.shut_down().await;
    code
}

fn standard_input() -> Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        return Err(Error::invalid_params("no prompt").hint("nuncio run \"fix the failing test\""));
    }
    let bounded = std::io::stdin().take(limits::INPUT_LINE_BYTES_MAX as u64).read_to_string(&mut text);
    bounded.map_err(|error| Error::io("reading the prompt from standard input", error))?;
    if text.trim().is_empty() {
        return Err(Error::invalid_params("the prompt on standard input is empty"));
    }
    Ok(text)
}

/// The session, and the event after which it is shown: a new one from its beginning.
async fn open(nuncio: &Arc<Nuncio>, options: &RunOptions) -> Result<(Arc<Session>, Seq)> {
    if let Some(model) = &nuncio.agents.overrides.model {
        nuncio.agents.check_model(model, &nuncio.cwd)?;
    }
    let sessions = nuncio.sessions().await?;
    let known = match (&options.resume, options.last) {
        (Some(id), _) => Some(SessionId::from(id.as_str())),
        (None, true) => {
            let page = sessions.list(Some(&nuncio.cwd), None)?;
            let last = page.sessions.into_iter().next().map(|row| row.id);
            Some(last.ok_or_else(|| Error::not_found(format!("no session of {} to continue", nuncio.cwd.display())))?)
        }
        (None, false) => None,
    };
    let Some(id) = known else {
        let cx = Cx::new(nuncio.clone(), Arc::new(Client::new("terminal")), CancellationToken::new());
        let made = NewSession::call(cx, acp::NewSessionRequest::new(nuncio.cwd.clone())).await?;
        return Ok((sessions.get(&SessionId::from(&*made.result?.session_id.0)).await?, 0));
    };
    let session = sessions.get(&id).await?;
    session.own().await?;
    let head = session.log.head();
    adopt_flags(nuncio, &session).await?;
    Ok((session, head))
}

/// Flags of this call stand above what the session remembers.
async fn adopt_flags(nuncio: &Nuncio, session: &Session) -> Result<()> {
    let overrides = &nuncio.agents.overrides;
    let change = SessionChange { model: overrides.model.clone(), thinking: overrides.thinking.clone(), ..SessionChange::default() };
    if change != SessionChange::default() {
        session.append(Body::SessionUpdated { change }).await?;
    }
    if let Some(mode) = &overrides.mode {
        session.append(Body::ModeChanged { mode: mode.clone() }).await?;
    }
    Ok(())
}

/// A session that is worked in from here.
pub struct Work {
    pub nuncio: Arc<Nuncio>,
    pub session: Arc<Session>,
    client: Arc<Client>,
    show: Show,
    answers: Answers,
    follow: Follow,
    /// What the calls that run call themselves.
    titles: HashMap<ToolCallId, String>,
    interrupted: CancellationToken,
    /// A call was denied, by whomever.
    pub denied: bool,
}

impl Work {
    pub fn new(nuncio: Arc<Nuncio>, session: Arc<Session>, after: Seq, show: Show, answers: Answers) -> Work {
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
        }
    }

    /// One after the other; the first that fails ends it.
    pub async fn prompts(&mut self, prompts: VecDeque<String>) -> Result<u8> {
        let _attendance = (self.answers != Answers::None).then(|| self.session.broker.attend());
        for prompt in prompts {
            let stop = self.prompt(prompt, &mut None).await?;
            match stop {
                acp::StopReason::EndTurn => {}
                acp::StopReason::Cancelled => return Ok(130),
                // It was not done, and what comes after it may count on it.
                _ => return Ok(1),
            }
        }
        Ok(if self.denied { 4 } else { 0 })
    }

    /// Messages and interrupts as they come in; a message that comes while one is worked on waits its turn.
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
                // It is in the events; the next message may do better.
                Err(error) => {
                    report(&error);
                    code = super::exit_code(&error);
                }
            }
        }
    }

    /// Returns why it stopped.
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
        let stop = end?.result?.stop_reason;
        Ok(stop)
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        self.show.event(event)?;
        match &event.body {
            Body::ToolStarted { tool_call_id, title, .. } => drop(self.titles.insert(tool_call_id.clone(), title.clone())),
            Body::ToolCompleted { tool_call_id, .. } => drop(self.titles.remove(tool_call_id)),
            Body::PermissionRequested { permission_id, tool_call_id, options, .. } => {
                let title = self.titles.get(tool_call_id).map_or("it", String::as_str);
                ask::answer(self.answers, &self.session, permission_id, title, options);
            }
            Body::PermissionResolved { outcome, .. } if !outcome.allows() => self.denied = true,
            _ => {}
        }
        Ok(())
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
