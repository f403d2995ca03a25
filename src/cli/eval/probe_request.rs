//! The request of a probe: the system prompt and the tools of a new session. Nothing runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use serde_json::Value;

use super::child_run::RunSetup;
use super::line::{RunTokens, RunUse};
use super::probe::{CalledTool, Probe, ProbeAnswer};
use super::workbench::Workbench;
use crate::agent::first_request;
use crate::api::App;
use crate::app::{self, CommonArgs};
use crate::config::Overrides;
use crate::content::{StopReason, Usage};
use crate::error::{Error, Result};
use crate::model::{Chunk, Request};
use crate::runtime::{SessionEnvironment, model_error};
use crate::tools::Tools;

/// Sends the requests of probes, with the settings of the runs and in an empty directory.
pub(super) struct ProbeRequests {
    app: Arc<App>,
    environment: Arc<SessionEnvironment>,
}

impl ProbeRequests {
    /// Prepares the requests. `outer` is the application of the command.
    pub(super) async fn new(outer: &App, bench: &Workbench, setup: &RunSetup) -> Result<ProbeRequests> {
        bench.empty().await?;
        let services = &outer.services;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let environment = services.environment.clone().with("HOME", text(&bench.home())).with("NUNCIO_HOME", text(&bench.data()));
        let Overrides { base_url, thinking, system_prompt, .. } = services.overrides.clone();
        let overrides = Overrides { base_url, thinking, system_prompt, ..Overrides::default() };
        let args = CommonArgs { overrides, config: Some(setup.settings.clone()), cwd: Some(bench.task()), ..CommonArgs::default() };
        let app = app::build(app::load(environment, args, &outer.cwd, Tools::native())?)?;
        let environment = SessionEnvironment::new(app.services.clone(), None, None, app.cwd.clone(), Vec::new(), None)?;
        Ok(ProbeRequests { app, environment: Arc::new(environment) })
    }

    /// Returns whether nuncio has a tool with this name.
    pub(super) fn knows(&self, tool: &str) -> bool {
        self.app.services.tools.get(tool).is_some()
    }

    /// Ends what the requests started.
    pub(super) async fn shut_down(&self) {
        self.app.shut_down().await;
    }

    /// Sends a probe to a model. Adds to `used` what the request used.
    pub(super) async fn answer(&self, model: &str, probe: &Probe, used: &mut RunUse) -> Result<ProbeAnswer> {
        let services = &self.app.services;
        let settings = &services.user.settings;
        let opened = services.models.open(model, settings).await.map_err(model_error)?;
        opened.prepare().await;
        let price = services.price(model, settings).await;
        let (system, tools) = first_request(&self.environment, &*opened)?;
        let request = Request {
            system,
            messages: Arc::new(probe.messages.clone()),
            tools,
            thinking: services.overrides.thinking.unwrap_or_default(),
            json_answer: false,
            cache_key: "eval".into(),
            refused: Arc::default(),
        };
        let (started, mut answer, mut usage) = (Instant::now(), ProbeAnswer::default(), Usage::default());
        let mut stream = opened.stream(request);
        used.requests = 1;
        let mut failure = None;
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(Chunk::Text(text)) => answer.text += &text,
                Ok(Chunk::ToolCall { name, input, .. }) => {
                    let arguments = serde_json::from_str(&input).unwrap_or(Value::String(input));
                    answer.calls.push(CalledTool { tool: name, arguments });
                }
                Ok(Chunk::Retry { .. }) => answer = ProbeAnswer::default(),
                Ok(Chunk::Usage(more)) => usage += more,
                Ok(Chunk::Stop(reason)) => used.stop_reason = Some(reason),
                Ok(_) => {}
                Err(error) => {
                    failure = Some(model_error(error));
                    break;
                }
            }
        }
        let Usage { input_tokens: input, output_tokens: output, cache_read_tokens: cached, .. } = usage;
        used.tokens = RunTokens { input, cached, output };
        used.cost = price.map(|price| price.cost(&usage).dollars());
        used.seconds = started.elapsed().as_secs_f64();
        match (failure, used.stop_reason) {
            (Some(error), _) => Err(error),
            // The calls of a truncated answer are not run.
            (None, Some(StopReason::MaxTokens)) => Ok(ProbeAnswer::default()),
            (None, Some(_)) => Ok(answer),
            (None, None) => Err(Error::internal("the answer has no end")),
        }
    }
}
