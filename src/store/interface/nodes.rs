//! The functions of the store for nodes. A node is a process that shares the store with processes
//! of other machines: it claims sessions in their rows, and its files of sessions are in the store
//! too.

use super::Store;
use crate::error::Result;
use crate::id::SessionId;
use crate::store::rows::{NodeRenewal, NodeRow, SessionRow, StoredFile};

#[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "an SQLite store has no nodes"))]
impl Store {
    /// Returns whether processes claim sessions in their rows, as nodes. Otherwise they hold lock
    /// files, and the other functions in this file do nothing.
    pub(crate) fn has_nodes(&self) -> bool {
        on_each!(self, store => false, true)
    }

    /// Makes this process a node with a new incarnation, which replaces the one of the row, for the
    /// duration of a lease. Its earlier incarnation ends.
    pub(crate) async fn join_node(&self, node: &NodeRow) -> Result<()> {
        on_each!(self, store => Ok(()), store.join_node(node).await)
    }

    /// Renews the lease of this node. `None` if it has ended.
    pub(crate) async fn renew_node(&self) -> Result<Option<NodeRenewal>> {
        on_each!(self, store => Ok(Some(NodeRenewal::default())), store.renew_node().await)
    }

    /// Returns the incarnation of this node; 0 before it has joined.
    pub(crate) fn incarnation(&self) -> i64 {
        on_each!(self, store => 0, store.incarnation())
    }

    /// Ends the lease of a node, which releases its sessions.
    pub(crate) async fn remove_node(&self, incarnation: i64) -> Result<()> {
        on_each!(self, store => Ok(()), store.remove_node(incarnation).await)
    }

    /// Lists the nodes whose lease has not ended.
    pub(crate) async fn nodes(&self) -> Result<Vec<NodeRow>> {
        on_each!(self, store => Ok(Vec::new()), store.nodes().await)
    }

    /// Returns the node that has claimed a session.
    pub(crate) async fn session_owner(&self, id: &SessionId) -> Result<Option<NodeRow>> {
        on_each!(self, store => Ok(None), store.session_owner(id).await)
    }

    /// Lists up to `limit` sessions that nodes have claimed, most recently updated first.
    pub(crate) async fn claimed_sessions(&self, limit: usize) -> Result<Vec<SessionRow>> {
        on_each!(self, store => Ok(Vec::new()), store.claimed_sessions(limit).await)
    }

    /// Lists up to `limit` sessions with an open turn whose node's lease has ended.
    pub(crate) async fn abandoned_sessions(&self, limit: usize) -> Result<Vec<SessionId>> {
        on_each!(self, store => Ok(Vec::new()), store.abandoned_sessions(limit).await)
    }

    /// Releases sessions that this node claimed: their keys, and the generation of each claim.
    pub(crate) async fn release_sessions(&self, claims: &[(i64, i64)]) -> Result<()> {
        on_each!(self, store => Ok(()), store.release_sessions(claims).await)
    }

    pub(crate) async fn files(&self, session: &SessionId) -> Result<Vec<StoredFile>> {
        on_each!(self, store => Ok(Vec::new()), store.files(session).await)
    }

    pub(crate) async fn file(&self, session: &SessionId, path: &str) -> Result<Option<Vec<u8>>> {
        on_each!(self, store => Ok(None), store.file(session, path).await)
    }

    /// Writes a file of a session that exists. A file with this path is kept unless `replace` is
    /// set. Returns false if it was kept.
    pub(crate) async fn put_file(&self, session: &SessionId, path: &str, content: &[u8], replace: bool) -> Result<bool> {
        on_each!(self, store => Ok(true), store.put_file(session, path, content, replace).await)
    }

    pub(crate) async fn remove_files(&self, session: &SessionId, paths: &[String]) -> Result<()> {
        on_each!(self, store => Ok(()), store.remove_files(session, paths).await)
    }

    /// Removes the files in `directory` of all sessions without events since `before_ms`.
    pub(crate) async fn remove_old_files(&self, directory: &str, before_ms: u64) -> Result<()> {
        on_each!(self, store => Ok(()), store.remove_old_files(directory, before_ms).await)
    }
}
