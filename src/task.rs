//! Spawns tasks. The futures are boxed: tokio's code for a task is compiled once for each type of
//! future, and is larger than most of them.

use std::future::Future;
use std::ops::Deref;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

/// Spawns a task, as [`tokio::spawn`] does.
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future.boxed())
}

/// Spawns tasks and waits for them, as [`tokio_util::task::TaskTracker`] does.
#[derive(Clone, Debug, Default)]
pub struct TaskTracker(tokio_util::task::TaskTracker);

impl TaskTracker {
    /// Creates a tracker without tasks.
    pub fn new() -> TaskTracker {
        TaskTracker::default()
    }

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
