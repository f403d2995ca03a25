//! Spawns tasks with boxed futures. The compiler generates tokio's code for a task once for each
//! type of future. Boxed futures with the same type of result share one type, so that builds are
//! faster and the binary is smaller.

use std::future::Future;
use std::ops::Deref;

use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{Error, Result};

/// Spawns a task, as [`tokio::spawn`] does.
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future.boxed())
}

/// Waits until a time; forever without one.
pub(crate) async fn passed(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Runs work that may block on a thread for such work. `what` names the work in the error for a
/// panic.
pub(crate) async fn blocking<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::internal(format!("internal error: {what} panicked")))
}

/// Spawns tasks and waits for them, as [`tokio_util::task::TaskTracker`] does.
#[derive(Clone, Debug, Default)]
pub struct TaskTracker(tokio_util::task::TaskTracker);

impl TaskTracker {
    /// Spawns a task.
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.0.spawn(future.boxed())
    }
}

impl Deref for TaskTracker {
    type Target = tokio_util::task::TaskTracker;

    fn deref(&self) -> &tokio_util::task::TaskTracker {
        &self.0
    }
}
