//! Notifications of writes (LISTEN and NOTIFY), with the keys of the changed sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::address::DatabaseAddress;
use super::connection::{Link, OpenConnection};
use crate::error::{Error, Kind, Result};
use crate::store::rows::Wakeup;
use crate::task;

/// Pause between two notifications of this process. Each covers all commits in between.
const NOTIFY_PAUSE: Duration = Duration::from_millis(10);
/// Maximum size of the keys in a notification, in bytes. The limit of the server is 8,000.
const PAYLOAD_BYTES_MAX: usize = 7_000;
/// Maximum number of notifications that wait. Further ones are dropped; the next check of the
/// store finds their changes.
const NOTIFICATIONS_MAX: usize = 256;
/// Time after which changes are assumed without a notification, which can be lost with its
/// connection.
const RECHECK: Duration = Duration::from_secs(1);
/// Maximum duration of one wait.
const TICK: Duration = Duration::from_millis(250);
/// Time in which a notification to this process arrives.
const ECHO: Duration = Duration::from_secs(5);

/// Sends notifications about the commits of this process.
pub(super) struct CommitNotifier {
    /// The first word of its notifications.
    own: String,
    changed: Arc<(Mutex<BTreeSet<i64>>, Notify)>,
}

impl CommitNotifier {
    /// Starts the task that sends notifications. It ends with the notifier.
    pub(super) fn start(link: Link) -> CommitNotifier {
        let own = Uuid::new_v4().simple().to_string();
        let changed: Arc<(Mutex<BTreeSet<i64>>, Notify)> = Arc::default();
        let (sender, weak) = (own.clone(), Arc::downgrade(&changed));
        task::spawn(async move {
            while let Some(changed) = weak.upgrade() {
                changed.1.notified().await;
                let keys = std::mem::take(&mut *changed.0.lock());
                drop(changed);
                if !keys.is_empty() {
                    let payload = payload(&sender, &keys);
                    if let Err(error) = link.rows("notifying", "SELECT pg_notify('nuncio', $1)", &[&payload]).await {
                        // Other processes find the commits when they check the store again.
                        tracing::debug!(%error, "a notification was not sent");
                    }
                }
                tokio::time::sleep(NOTIFY_PAUSE).await;
            }
        });
        CommitNotifier { own, changed }
    }

    /// Returns the first word of the notifications of this process.
    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// Reports a commit to these sessions.
    pub(super) fn changed(&self, keys: &[i64]) {
        self.changed.0.lock().extend(keys);
        self.changed.1.notify_one();
    }
}

impl Drop for CommitNotifier {
    fn drop(&mut self) {
        // The task ends when it finds no notifier.
        self.changed.1.notify_one();
    }
}

/// Returns the text of a notification: the sender, and the keys unless they are too long.
fn payload(sender: &str, keys: &BTreeSet<i64>) -> String {
    let keys: Vec<String> = keys.iter().map(i64::to_string).collect();
    let payload = format!("{sender} {}", keys.join(","));
    if payload.len() > PAYLOAD_BYTES_MAX { sender.to_owned() } else { payload }
}

/// Waits for notifications of other processes.
pub(crate) struct Listener {
    address: Arc<DatabaseAddress>,
    /// The first word of the notifications of this process.
    own: String,
    connection: Option<(OpenConnection, mpsc::Receiver<String>)>,
    checked: Option<Instant>,
}

impl Listener {
    /// Starts to listen.
    pub(super) async fn open(address: Arc<DatabaseAddress>, own: String) -> Result<Listener> {
        let connection = Some(listen(&address).await?);
        Ok(Listener { address, own, connection, checked: None })
    }

    /// Checks that notifications from another connection arrive. A pooler drops them if it gives a
    /// connection of the server to other clients after each transaction. Settings and prepared
    /// statements do not work there either.
    pub(super) async fn check(address: &Arc<DatabaseAddress>, other: &Link) -> Result<()> {
        let (_connection, mut received) = listen(address).await?;
        let sent = Uuid::new_v4().simple().to_string();
        let notified = other.open().await?.client().batch_execute(&format!("NOTIFY nuncio, '{sent}'")).await;
        notified.map_err(|error| other.failed("notifying", error))?;
        let arrived = async {
            while let Some(payload) = received.recv().await {
                if payload == sent {
                    return true;
                }
            }
            false
        };
        if tokio::time::timeout(ECHO, arrived).await != Ok(true) {
            let message = format!("{}: notifications (LISTEN) do not arrive", address.shown());
            let hint = "connect to the server directly, or through a pooler with session pooling";
            return Err(Error::new(Kind::Unsupported, message).hint(hint));
        }
        Ok(())
    }

    /// Waits for a notification, for at most [`TICK`].
    pub(in crate::store) async fn next(&mut self) -> Wakeup {
        let until = Instant::now() + TICK;
        if self.checked.is_none_or(|checked| checked.elapsed() >= RECHECK) {
            self.checked = Some(Instant::now());
            return Wakeup::Unknown;
        }
        let Some((_, received)) = &mut self.connection else {
            match listen(&self.address).await {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    tracing::debug!(%error, "listening failed");
                    tokio::time::sleep_until(until).await;
                }
            }
            return Wakeup::Unknown;
        };
        let mut keys = Vec::new();
        while let Ok(payload) = timeout_at(until, received.recv()).await {
            let Some(payload) = payload else {
                self.connection = None;
                return Wakeup::Unknown;
            };
            let (sender, changed) = payload.split_once(' ').unwrap_or((&payload, ""));
            if sender == self.own {
                continue;
            }
            if changed.is_empty() {
                return Wakeup::Unknown;
            }
            keys.extend(changed.split(',').filter_map(|key| key.parse::<i64>().ok()));
            return Wakeup::Changed(keys);
        }
        Wakeup::Unchanged
    }
}

async fn listen(address: &DatabaseAddress) -> Result<(OpenConnection, mpsc::Receiver<String>)> {
    let (notified, received) = mpsc::channel(NOTIFICATIONS_MAX);
    Ok((OpenConnection::open(address, Some(notified)).await?, received))
}
