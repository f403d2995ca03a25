//! The lease of this process as a node, in a store in which nodes claim sessions. Without a valid
//! lease, this process writes to no session and its commands end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, machine_name};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::local_socket::{PeerAddress, Peers};
use crate::process::LeaseDeadline;
use crate::store::{NodeRow, Store};
use crate::task;

/// How long this process works after its last renewal was sent. Shorter than the lease in the
/// store, so that its work has ended when other nodes take its sessions.
const LEASE: Duration = Duration::from_secs(15);
/// Interval of renewals.
const RENEWED: Duration = Duration::from_secs(5);
/// Pause after a failed renewal.
const RETRY: Duration = Duration::from_millis(500);
/// Time by which the wait for the end of another lease exceeds it.
const AFTER_END: Duration = Duration::from_millis(5);

/// The end of a lease that has not begun.
const NEVER: u64 = 0;

/// A process whose store is a PostgreSQL database.
pub struct NodeOptions {
    /// URL of the database.
    pub(crate) url: String,
    /// The deadline of the commands of this process.
    pub(crate) commands: Arc<LeaseDeadline>,
    /// The place of this process in its cluster, if it is in one.
    pub(crate) cluster: Option<Arc<Cluster>>,
}

/// The state of this process as a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Membership {
    /// It has claimed no session yet.
    #[default]
    Never,
    Joined,
    /// Its lease has ended, and it has not joined again.
    Ended,
    /// It is shutting down, and has no claims.
    Left,
}

/// The lease of this process.
pub(crate) struct Lease {
    store: Store,
    peers: Arc<Peers>,
    /// The deadline of the commands of this process.
    commands: Arc<LeaseDeadline>,
    /// The time since the boot at which the lease ends, in milliseconds, or [`NEVER`].
    until_ms: AtomicU64,
    /// The mutex serializes joins and renewals.
    membership: tokio::sync::Mutex<Membership>,
    /// Claims that were dropped: the keys of sessions and the generations.
    released: Mutex<Vec<(i64, i64)>>,
    /// Notified after the first join and when a claim ends.
    changed: Notify,
    /// Notified after each renewal.
    pub(in crate::session) renewed: Notify,
    /// Called when the lease has ended.
    on_end: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Lease {
    /// Creates the lease, which does not start before [`Lease::ensure`].
    pub(in crate::session) fn new(store: Store, peers: Arc<Peers>, commands: Arc<LeaseDeadline>) -> Lease {
        let until_ms = AtomicU64::new(NEVER);
        let (membership, released, changed, renewed, on_end) = Default::default();
        Lease { store, peers, commands, until_ms, membership, released, changed, renewed, on_end }
    }

    /// Returns the address of a node. `None` if another version wrote it in another form.
    pub(super) fn address(&self, node: &NodeRow) -> Option<PeerAddress> {
        let (address, home) = (PeerAddress::parse(&node.process)?, self.peers.home());
        let is_here = home.is_some() && node.home == home;
        Some(PeerAddress { remote: (!is_here).then(|| node.clone()), ..address })
    }

    /// Returns how long the lease is valid.
    fn time_left(&self) -> Duration {
        Duration::from_millis(self.until_ms.load(Ordering::Acquire)).saturating_sub(LeaseDeadline::now())
    }

    fn is_valid(&self) -> bool {
        !self.time_left().is_zero()
    }

    /// Returns whether the lease has ended and this process has not joined again.
    pub(in crate::session) fn has_ended(&self) -> bool {
        self.until_ms.load(Ordering::Acquire) != NEVER && !self.is_valid()
    }

    /// Extends the lease. `sent` is the time since the boot at which the renewal was sent.
    fn extend(&self, sent: Duration) {
        let until = sent + LEASE;
        self.until_ms.store(until.as_millis() as u64, Ordering::Release);
        self.commands.set(Some(until.saturating_sub(limits::KILL_GRACE)));
    }

    /// Ensures that the lease is valid: joins the nodes, also again after the lease has ended.
    pub(in crate::session) async fn ensure(&self) -> Result<()> {
        if self.is_valid() {
            return Ok(());
        }
        let mut membership = self.membership.lock().await;
        if self.is_valid() {
            return Ok(());
        }
        if *membership == Membership::Joined {
            tracing::warn!("the lease of this process has ended");
            *membership = Membership::Ended;
            self.on_end.get().inspect(|ended| ended());
        }
        let sent = LeaseDeadline::now();
        let address = self.peers.address();
        // Without a socket, only its lease tells whether this process is alive.
        let home = self.peers.home().filter(|_| address.socket.is_some());
        let cluster = self.peers.cluster();
        let node = NodeRow {
            incarnation: 0,
            name: cluster.map_or_else(machine_name, |cluster| cluster.name().to_owned()),
            home,
            process: address.to_string(),
            address: cluster.and_then(|cluster| cluster.address().cloned()),
            gateway: None,
        };
        self.store.join_node(&node).await?;
        *membership = Membership::Joined;
        self.extend(sent);
        self.changed.notify_one();
        Ok(())
    }

    /// Sets the function that is called when the lease has ended, before this process joins again.
    pub(in crate::session) fn on_end(&self, ended: impl Fn() + Send + Sync + 'static) {
        // The sessions set it once.
        let _ = self.on_end.set(Box::new(ended));
    }

    /// Ends the leases of dead processes of this machine, because a process that dies keeps its
    /// lease, and the connections to nodes whose leases have ended.
    pub(in crate::session) async fn end_dead(&self) -> Result<()> {
        let nodes = self.store.nodes().await?;
        self.peers.close_ended(&nodes);
        for node in nodes {
            if self.address(&node).is_some_and(|address| !self.peers.is_alive(&address)) {
                self.store.remove_node(node.incarnation).await?;
            }
        }
        Ok(())
    }

    /// Registers a claim that was dropped.
    pub(super) fn released(&self, key: i64, generation: i64) {
        self.released.lock().push((key, generation));
        self.changed.notify_one();
    }

    /// Ends the lease, which releases all claims.
    pub(in crate::session) async fn leave(&self) {
        let mut membership = self.membership.lock().await;
        if std::mem::replace(&mut *membership, Membership::Left) == Membership::Joined
            && let Err(error) = self.store.remove_node(self.store.incarnation()).await
        {
            tracing::warn!(%error, "the lease of this process was not ended");
        }
    }

    /// Renews the lease and releases dropped claims until `stop` is cancelled. A process that other
    /// nodes can call joins at once, so that they find it; for the others, this does nothing before
    /// they have joined.
    pub(in crate::session) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let is_called = self.peers.cluster().is_some_and(|cluster| cluster.address().is_some());
        let mut next_renewal = is_called.then(tokio::time::Instant::now);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = task::passed(next_renewal) => next_renewal = None,
            }
            if *self.membership.lock().await == Membership::Never {
                if is_called && let Err(error) = self.ensure().await {
                    tracing::warn!(%error, "this process cannot join the nodes");
                    next_renewal = Some(tokio::time::Instant::now() + RETRY);
                }
                continue;
            }
            let released = self.release_ended().await;
            if next_renewal.is_none() {
                next_renewal = Some(tokio::time::Instant::now() + self.renew().await);
            } else if !released {
                next_renewal = Some(tokio::time::Instant::now() + RETRY);
            }
        }
    }

    /// Renews the lease, or joins again if it has ended. Returns the pause before the next renewal.
    async fn renew(self: &Arc<Self>) -> Duration {
        let renewed = {
            let _joined = self.membership.lock().await;
            let sent = LeaseDeadline::now();
            // The store may not answer: the lease ends nevertheless.
            let renewed = tokio::time::timeout(self.time_left(), self.store.renew_node()).await;
            let renewed = renewed.unwrap_or_else(|_| Err(Error::new(Kind::StoreUnavailable, "the store does not answer")));
            match &renewed {
                Ok(Some(_)) => self.extend(sent),
                Ok(None) => self.until_ms.store(sent.as_millis() as u64, Ordering::Release),
                Err(error) => tracing::warn!(%error, "the lease of this process was not renewed"),
            }
            renewed
        };
        if let Err(error) = self.ensure().await {
            tracing::warn!(%error, "this process cannot join the nodes");
        }
        let Ok(renewed) = renewed else { return RETRY };
        self.renewed.notify_one();
        let others_end = renewed.and_then(|renewal| renewal.others_end).map(|end| end + AFTER_END);
        others_end.map_or(RENEWED, |end| end.min(RENEWED))
    }

    /// Releases the claims that were dropped. Returns whether none remains.
    async fn release_ended(&self) -> bool {
        let claims = std::mem::take(&mut *self.released.lock());
        let released = claims.is_empty() || self.release(&claims).await;
        if !released {
            self.released.lock().extend(claims);
        }
        released
    }

    /// Releases claims: the keys of sessions and the generations. Returns whether that succeeded.
    pub(super) async fn release(&self, claims: &[(i64, i64)]) -> bool {
        if *self.membership.lock().await == Membership::Left {
            return true;
        }
        let released = self.store.release_sessions(claims).await;
        released.inspect_err(|error| tracing::warn!(%error, "sessions were not released")).is_ok()
    }
}
