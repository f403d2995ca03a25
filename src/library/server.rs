//! The HTTP server of an agent of the embedding program.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api::App;
use crate::app::http_server_of;
use crate::error::Result;
use crate::http::HttpOptions;
use crate::task;

/// The HTTP server of an agent: REST, server-sent events and the web console. Dropping it stops it.
pub struct Server {
    url: String,
    token: String,
    stop: DropGuard,
    serving: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(app: Arc<App>, address: &str) -> Result<Server> {
        let options = HttpOptions { address: address.into(), ..HttpOptions::default() };
        let server = http_server_of(app, options).await?;
        let (url, token, stop) = (server.url()?, server.token().to_owned(), CancellationToken::new());
        let serving = task::spawn(server.serve(stop.clone(), CancellationToken::new()));
        Ok(Server { url, token, stop: stop.drop_guard(), serving })
    }

    /// Returns the URL: `http://ADDRESS`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the token with which requests must be authenticated (`Authorization: Bearer TOKEN`).
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Stops accepting requests, waits for the running turns as long as the setting `http.drain_s`
    /// allows, and ends the agent.
    pub async fn stop(self) {
        drop(self.stop);
        // The task ends by itself.
        let _ = self.serving.await;
    }
}
