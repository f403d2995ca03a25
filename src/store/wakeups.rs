//! Reports writes of other processes to the store.

use std::time::Duration;

#[cfg(feature = "postgres")]
use super::postgres::Listener;
use super::rows::Wakeup;
use super::sqlite::ChangeWatch;

/// Interval at which an SQLite database is checked for writes of other processes.
const SQLITE_POLL: Duration = Duration::from_millis(50);

/// Waits for writes of other processes.
pub(crate) enum Wakeups {
    Sqlite {
        watch: ChangeWatch,
        /// The version at the last wait.
        seen: Option<i64>,
    },
    #[cfg(feature = "postgres")]
    Postgres(Listener),
}

impl Wakeups {
    /// Waits for a write, or until a short time has passed. The first call returns
    /// [`Wakeup::Unknown`] immediately.
    pub(crate) async fn next(&mut self) -> Wakeup {
        match self {
            Wakeups::Sqlite { watch, seen } => {
                if seen.is_some() {
                    tokio::time::sleep(SQLITE_POLL).await;
                }
                let version = Some(watch.version());
                if std::mem::replace(seen, version) == version { Wakeup::Unchanged } else { Wakeup::Unknown }
            }
            #[cfg(feature = "postgres")]
            Wakeups::Postgres(listener) => listener.next().await,
        }
    }
}
