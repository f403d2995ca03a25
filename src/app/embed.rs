//! Embeds nuncio in another program, with hooks and model providers of that program.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{CommonArgs, build, load};
use crate::config::Environment;
use crate::error::Result;
use crate::hooks::Hook;
use crate::model::ModelProvider;

/// A nuncio inside another program.
///
/// A program whose sessions run commands must begin its `main` like that of nuncio: if the first
/// argument is [`crate::process::HELPER`], it calls [`crate::process::helper_main`].
#[derive(Default)]
pub struct EmbedOptions {
    /// The variables that settings, keys and paths come from.
    pub environment: Environment,
    /// The data directory, instead of the default one.
    pub data: Option<PathBuf>,
    /// The working directory, instead of the current one.
    pub cwd: Option<PathBuf>,
    /// Hooks, which run after those of the settings.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Model providers by name. They precede those of the settings and of the catalog.
    pub providers: Vec<(String, Arc<dyn ModelProvider>)>,
}

impl EmbedOptions {
    /// Serves ACP to one client until the input ends or `stop` is cancelled. The running turns are
    /// then cancelled.
    pub async fn serve(
        self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
        stop: CancellationToken,
    ) -> Result<()> {
        let args = CommonArgs { data: self.data, cwd: self.cwd, ..CommonArgs::default() };
        let app = build(load(self.environment, args)?)?;
        for hook in self.hooks {
            app.services.add_hook(hook);
        }
        for (name, provider) in self.providers {
            app.services.models.register(name, provider);
        }
        crate::stdio::serve(app, input, output, stop, async {}).await
    }
}
