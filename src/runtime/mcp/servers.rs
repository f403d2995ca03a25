//! The MCP servers of one session: starts them with the first turn, and offers their tools to the
//! model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use globset::{Glob, GlobSet, GlobSetBuilder};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::launch::launch;
use crate::config::McpServer;
use crate::content::listed;
use crate::event::{Body, Notice, Severity};
use crate::limits;
use crate::mcp::{McpServerHandle, Offer, State};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::environment::session_tools::SessionTools;
use crate::toolkit::{AnyTool, mcp_tool_names};
use crate::tools::mcp::{McpTool, ResourceReader, Search};
use crate::workspace::one_line;

/// The MCP servers of one session.
#[derive(Default)]
pub(crate) struct SessionMcp {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The servers that the client gave. They replace servers of the settings with the same name.
    given: BTreeMap<String, McpServer>,
    /// The environment whose servers run.
    environment: Weak<SessionEnvironment>,
    servers: Vec<SessionServer>,
    /// True after the specifications were too large for the prompt. Never reset, so that the list
    /// of tools does not change back and forth.
    searches: bool,
    /// True if the servers have changed since the list of tools was created.
    stale: bool,
}

/// A server that the session uses.
#[derive(Clone)]
struct SessionServer {
    name: String,
    settings: McpServer,
    server: Result<Arc<McpServerHandle>, String>,
    /// The last tools and prompts. Kept after the server has failed, so that the list of tools is
    /// stable.
    offer: Option<Arc<Offer>>,
    /// Names for models of the server's tools in the table.
    names: BTreeSet<String>,
    reported: ReportedState,
    reported_names: BTreeSet<String>,
}

/// A server that has been ready.
pub(crate) struct ReadyServer {
    /// Name of the server in the settings.
    pub name: String,
    pub server: Arc<McpServerHandle>,
    pub offer: Arc<Offer>,
    /// Timeout of a request.
    pub timeout: Duration,
}

/// The state of a server that was reported to the user.
#[derive(Clone, PartialEq)]
enum ReportedState {
    Nothing,
    /// The first turn did not wait longer.
    Starting,
    Ready {
        run: u32,
    },
    Failed,
}

impl SessionMcp {
    /// Replaces the servers that the client gave. They are used from the next turn on.
    pub(crate) fn set_client_servers(&self, servers: BTreeMap<String, McpServer>) {
        let mut inner = self.inner();
        if inner.given != servers {
            inner.given = servers;
            inner.environment = Weak::new();
        }
    }

    /// Stops using all servers.
    pub(crate) fn close(&self) {
        let mut inner = self.inner();
        let given = std::mem::take(&mut inner.given);
        *inner = Inner { given, ..Inner::default() };
    }

    /// Updates the session's list of tools, between turns. Starts the servers if necessary, all at
    /// once, and waits a limited time for those that have not started yet. Returns notices about
    /// servers.
    pub(crate) async fn update(&self, environment: &Arc<SessionEnvironment>, cancel: &CancellationToken) -> Vec<Body> {
        let starting = self.start(environment);
        if !starting.is_empty() {
            let started = join_all(starting.iter().map(|server| server.started()));
            let names = || self.starting();
            if !environment.services.mcp_wait.wait(&environment.loaded.settings.tools, started, names, cancel).await {
                return Vec::new();
            }
        }
        let mut inner = self.inner();
        if inner.servers.is_empty() && environment.tools.has_no_extra() {
            return Vec::new();
        }
        let states: Vec<State> = inner.servers.iter().map(SessionServer::state).collect();
        let mut stale = std::mem::take(&mut inner.stale);
        for (used, state) in inner.servers.iter_mut().zip(&states) {
            stale |= used.take_offer(state);
        }
        if stale {
            let (listed, unlisted) = inner.tools(environment.loaded.settings.tools.mcp_tokens, &environment.tools);
            environment.tools.set_extra(listed, unlisted);
        }
        inner.servers.iter_mut().zip(states).filter_map(|(used, state)| used.report(state)).collect()
    }

    /// Starts the servers of an environment. Returns those that the session has not waited for.
    fn start(&self, environment: &Arc<SessionEnvironment>) -> Vec<Arc<McpServerHandle>> {
        let mut inner = self.inner();
        if inner.environment.ptr_eq(&Arc::downgrade(environment)) {
            return Vec::new();
        }
        inner.environment = Arc::downgrade(environment);
        inner.stale = true;
        let mut wanted = environment.loaded.settings.mcp.clone();
        wanted.extend(inner.given.clone());
        let before = std::mem::take(&mut inner.servers);
        let wanted = wanted.into_iter().filter(|(_, settings)| settings.enabled);
        inner.servers = wanted
            .map(|(name, settings)| {
                let server = start_server(&name, &settings, environment);
                let known = before.iter().find(|known| match (&known.server, &server) {
                    (Ok(known), Ok(server)) => Arc::ptr_eq(known, server),
                    _ => false,
                });
                let new = || (None, ReportedState::Nothing, BTreeSet::new());
                let (offer, reported, names) =
                    known.map_or_else(new, |known| (known.offer.clone(), known.reported.clone(), known.reported_names.clone()));
                SessionServer { name, settings, server, offer, names: BTreeSet::new(), reported, reported_names: names }
            })
            .collect();
        let new = inner.servers.iter().filter(|used| used.reported == ReportedState::Nothing);
        new.filter_map(|used| used.server.clone().ok()).collect()
    }

    /// Returns the names of the servers that have not started yet.
    fn starting(&self) -> Vec<String> {
        let inner = self.inner();
        let starting = inner.servers.iter().filter(|used| matches!(used.state(), State::Starting { .. }));
        starting.map(|used| one_line(used.name.clone())).collect()
    }

    /// Returns the servers that have been ready.
    pub(crate) fn ready(&self) -> Vec<ReadyServer> {
        let inner = self.inner();
        let ready = inner.servers.iter().filter_map(|used| {
            let (server, offer) = (used.server.clone().ok()?, used.offer.clone()?);
            Some(ReadyServer { name: used.name.clone(), server, offer, timeout: Duration::from_secs(used.settings.timeout_s) })
        });
        ready.collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

type ToolList = Vec<Arc<dyn AnyTool>>;

impl Inner {
    /// Returns the listed and the unlisted tools of the session's servers. If the specifications of
    /// the tools exceed `budget` tokens, the tools are unlisted, and the tools that find and call
    /// them are listed instead.
    fn tools(&mut self, budget: usize, table: &SessionTools) -> (ToolList, ToolList) {
        let (mut shown, mut resources) = (Vec::new(), Vec::new());
        for (at, used) in self.servers.iter().enumerate() {
            let (Ok(server), Some(offer)) = (&used.server, &used.offer) else { continue };
            let timeout = Duration::from_secs(used.settings.timeout_s);
            let filter = ToolFilter::new(&used.settings);
            shown.extend(offer.tools.iter().filter(|tool| filter.shows(&tool.name)).map(|tool| (at, server, tool, timeout)));
            if offer.resources {
                resources.push((used.name.clone(), server.clone(), timeout));
            }
        }
        let names: Vec<(&str, &str)> = shown.iter().map(|(at, _, tool, _)| (&*self.servers[*at].name, &*tool.name)).collect();
        let (mut tools, mut seen) = (Vec::new(), BTreeSet::new());
        let mut names_of = vec![BTreeSet::new(); self.servers.len()];
        for (name, (at, server, tool, timeout)) in mcp_tool_names(&names).into_iter().zip(&shown) {
            if table.allows(&name) && seen.insert(name.clone()) {
                names_of[*at].insert(name.clone());
                tools.push(Arc::new(McpTool::new(name, &self.servers[*at].name, (*server).clone(), tool, *timeout)));
            }
        }
        self.servers.iter_mut().zip(names_of).for_each(|(used, names)| used.names = names);
        self.searches |= tools.iter().map(|tool| specification_tokens(&**tool)).sum::<usize>() > budget;
        let erased = tools.iter().map(|tool| tool.clone() as Arc<dyn AnyTool>).collect();
        let (mut listed, unlisted) = match self.searches {
            true => (Search::both(tools).into(), erased),
            false => (erased, Vec::new()),
        };
        if !resources.is_empty() && table.allows(ResourceReader::NAME) {
            listed.push(Arc::new(ResourceReader::new(resources)));
        }
        (listed, unlisted)
    }
}

/// Estimates the tokens of a tool's specification: four bytes a token.
fn specification_tokens(tool: &dyn AnyTool) -> usize {
    let spec = tool.spec();
    (spec.name.len() + spec.description.len() + spec.input_schema.to_string().len()) / 4
}

impl SessionServer {
    fn state(&self) -> State {
        match &self.server {
            Ok(server) => server.state(),
            Err(why) => State::Failed { why: why.clone(), restarts: false },
        }
    }

    /// Stores the server's current tools and prompts. Returns whether they have changed.
    fn take_offer(&mut self, state: &State) -> bool {
        let State::Ready(connection) = state else { return false };
        let is_new = !self.offer.as_ref().is_some_and(|offer| Arc::ptr_eq(offer, &connection.offer));
        self.offer = Some(connection.offer.clone());
        is_new
    }

    /// Returns a notice if the server's state or its tools in the table have changed since the last
    /// notice.
    fn report(&mut self, state: State) -> Option<Body> {
        let name = one_line(self.name.clone());
        let notice = |severity, event: &str, why: String| Some(Body::notice(severity, format!("MCP server {name} {event}"), why));
        let (reported, notice) = match state {
            State::Starting { fault: None } => {
                let description = "its tools are available in a later turn, when it is ready";
                (ReportedState::Starting, notice(Severity::Info, "is still starting", description.into()))
            }
            State::Starting { fault: Some(why) } => (ReportedState::Starting, notice(Severity::Warning, "does not answer", why)),
            State::Failed { why, restarts } => {
                let again = if restarts { "; it is started again" } else { "" };
                (ReportedState::Failed, notice(Severity::Warning, "failed", why + again))
            }
            State::Ready(connection) => {
                let notice = self.ready_notice(&name, connection.run, connection.after.as_deref());
                self.reported_names.clone_from(&self.names);
                (ReportedState::Ready { run: connection.run }, notice)
            }
        };
        let is_news = self.reported != reported || matches!(reported, ReportedState::Ready { .. });
        self.reported = reported;
        notice.filter(|_| is_news)
    }

    /// Creates the notice about a server that is ready, unless it was ready for the first turn and
    /// its tools are unchanged. The notice tells the model which tools are new and which were
    /// removed.
    fn ready_notice(&self, name: &str, run: u32, after: Option<&str>) -> Option<Body> {
        let title = match &self.reported {
            ReportedState::Nothing => return None,
            ReportedState::Ready { run: known } if *known == run => format!("MCP server {name} changed its tools"),
            ReportedState::Ready { .. } => format!("MCP server {name} was started again"),
            ReportedState::Starting | ReportedState::Failed => format!("MCP server {name} is ready"),
        };
        let difference = |what: &str, these: &BTreeSet<String>, others: &BTreeSet<String>| {
            let names: Vec<&str> = these.difference(others).map(String::as_str).collect();
            (!names.is_empty()).then(|| format!("{what} tools: {}", listed(&names, limits::MCP_NAMES_SHOWN)))
        };
        let added = difference("new", &self.names, &self.reported_names);
        let removed = difference("removed", &self.reported_names, &self.names);
        let mut changes: Vec<String> = added.into_iter().chain(removed).collect();
        let restarted = matches!(&self.reported, ReportedState::Ready { run: known } if *known != run);
        if changes.is_empty() && matches!(&self.reported, ReportedState::Ready { run: known } if *known == run) {
            return None;
        }
        let note = (!changes.is_empty()).then(|| format!("The tools of MCP server {name} changed, as follows."));
        let quoted = note.is_some().then(|| changes.join("; "));
        if let Some(why) = after.filter(|_| restarted) {
            changes.insert(0, format!("the previous run ended: {why}"));
        }
        let severity = if restarted { Severity::Warning } else { Severity::Info };
        Some(Body::Notice(Notice { description: Some(changes.join("; ")), note, quoted, ..Notice::new(severity, title) }))
    }
}

/// The settings `tools` and `hidden_tools` of a server.
struct ToolFilter {
    shown: Option<GlobSet>,
    hidden: GlobSet,
}

impl ToolFilter {
    fn new(settings: &McpServer) -> ToolFilter {
        let shown = (!settings.tools.is_empty()).then(|| globs(&settings.tools));
        ToolFilter { shown, hidden: globs(&settings.hidden_tools) }
    }

    fn shows(&self, tool: &str) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.is_match(tool)) && !self.hidden.is_match(tool)
    }
}

/// Compiles globs. Invalid ones are skipped: the globs were checked with the settings.
fn globs(texts: &[String]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in texts.iter().filter_map(|text| Glob::new(text).ok()) {
        builder.add(glob);
    }
    builder.build().unwrap_or_default()
}

/// Starts a server for this environment, if no session uses it already. The error is a message.
pub(crate) fn start_server(
    name: &str,
    settings: &McpServer,
    environment: &SessionEnvironment,
) -> Result<Arc<McpServerHandle>, String> {
    environment.services.mcp.server(launch(name, settings, environment)?)
}
