//! Nodes, and the claims of nodes on sessions. A claim is valid while the lease of its node is.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::PostgresStore;
use super::events::text;
use super::failure::Columns;
use super::sessions::{select_sessions, session};
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::store::rows::{NODE_LEASE, NodeAddress, NodeRenewal, NodeRow, SessionRow, TakeOutcome};

/// Begins a SELECT statement with the columns that [`node`] reads, for the nodes `n`.
macro_rules! select_nodes {
    ($rest:literal) => {
        concat!(
            "SELECT n.incarnation, n.home, n.process, n.name, n.address, n.certificate, g.address, g.certificate FROM nodes n \
             LEFT JOIN LATERAL (SELECT address, certificate FROM nodes \
               WHERE n.address IS NULL AND home = n.home AND address IS NOT NULL AND lease_until > clock_timestamp() LIMIT 1) g ON true ",
            $rest
        )
    };
}

fn node(row: &Row) -> Result<NodeRow> {
    let (incarnation, home, process, name) = (row.column(0)?, row.column(1)?, row.column(2)?, row.column(3)?);
    Ok(NodeRow { incarnation, home, process, name, address: address(row, 4)?, gateway: address(row, 6)? })
}

/// Reads the address in two columns.
fn address(row: &Row, column: usize) -> Result<Option<NodeAddress>> {
    let address = row.column::<Option<String>>(column)?.zip(row.column(column + 1)?);
    Ok(address.map(|(host, certificate)| NodeAddress { host, certificate }))
}

impl PostgresStore {
    /// Returns the incarnation of this process; 0, which no node has, before it has joined.
    pub(in crate::store) fn incarnation(&self) -> i64 {
        self.incarnation.load(Ordering::Acquire)
    }

    /// Adds this process as a node with a new incarnation, in place of its last one. Removes the
    /// nodes whose lease has ended.
    pub(in crate::store) async fn join_node(&self, node: &NodeRow) -> Result<()> {
        let sql = "WITH ended AS (DELETE FROM nodes WHERE lease_until < clock_timestamp() OR incarnation = $1) \
                   INSERT INTO nodes (incarnation, home, process, name, address, certificate, lease_until) \
                   VALUES ($2, $3, $4, $5, $6, $7, clock_timestamp() + make_interval(secs => $8))";
        let incarnation = (Uuid::new_v4().as_u64_pair().0 >> 1) as i64;
        let (address, certificate) = node.address.as_ref().map(|address| (&address.host, &address.certificate)).unzip();
        let (name, lease) = (text(&node.name), NODE_LEASE.as_secs_f64());
        let params: [&(dyn ToSql + Sync); 8] =
            [&self.incarnation(), &incarnation, &node.home, &node.process, &name, &address, &certificate, &lease];
        self.beats.rows("joining", sql, &params).boxed().await?;
        self.incarnation.store(incarnation, Ordering::Release);
        Ok(())
    }

    /// Renews the lease of this process. `None` if it has ended.
    pub(in crate::store) async fn renew_node(&self) -> Result<Option<NodeRenewal>> {
        let sql = "WITH renewed AS ( \
                     UPDATE nodes SET lease_until = clock_timestamp() + make_interval(secs => $2) \
                     WHERE incarnation = $1 AND lease_until > clock_timestamp() RETURNING incarnation \
                   ) SELECT (SELECT extract(epoch FROM min(lease_until) - clock_timestamp())::float8 FROM nodes \
                     WHERE incarnation <> $1 AND lease_until > clock_timestamp()) FROM renewed";
        let params: [&(dyn ToSql + Sync); 2] = [&self.incarnation(), &NODE_LEASE.as_secs_f64()];
        let renewed = self.beats.rows("renewing the lease in", sql, &params).boxed().await?;
        let Some(row) = renewed.first() else { return Ok(None) };
        let seconds: Option<f64> = row.column(0)?;
        Ok(Some(NodeRenewal { others_end: seconds.map(|seconds| Duration::from_secs_f64(seconds.max(0.0))) }))
    }

    /// Ends the lease of a node, and with it its claims.
    pub(in crate::store) async fn remove_node(&self, incarnation: i64) -> Result<()> {
        self.rows("leaving", "DELETE FROM nodes WHERE incarnation = $1", &[&incarnation]).await.map(drop)
    }

    /// Lists the nodes whose lease has not ended.
    pub(in crate::store) async fn nodes(&self) -> Result<Vec<NodeRow>> {
        let sql = select_nodes!("WHERE n.lease_until > clock_timestamp()");
        self.rows("listing the nodes of", sql, &[]).await?.iter().map(node).collect()
    }

    /// Returns the node that has claimed a session.
    pub(in crate::store) async fn session_owner(&self, id: &SessionId) -> Result<Option<NodeRow>> {
        let sql = select_nodes!("JOIN sessions s ON s.owner = n.incarnation WHERE s.id = $1 AND n.lease_until > clock_timestamp()");
        self.row("looking up an owner in", sql, &[&text(id.as_str())]).await?.as_ref().map(node).transpose()
    }

    pub(in crate::store) async fn claimed_sessions(&self, limit: usize) -> Result<Vec<SessionRow>> {
        let sql = select_sessions!(
            "WHERE head > 0 AND owner IN (SELECT incarnation FROM nodes WHERE lease_until > clock_timestamp()) \
             ORDER BY updated_ms DESC LIMIT $1"
        );
        self.rows("listing sessions of", sql, &[&(limit as i64)]).await?.iter().map(session).collect()
    }

    /// Lists up to `limit` sessions with an open turn that were claimed by a node whose lease has
    /// ended.
    pub(in crate::store) async fn abandoned_sessions(&self, limit: usize) -> Result<Vec<SessionId>> {
        let sql = "SELECT id FROM sessions WHERE owner IS NOT NULL AND turn IS NOT NULL AND head > 0 AND owner NOT IN ( \
                     SELECT incarnation FROM nodes WHERE lease_until > clock_timestamp()) LIMIT $1";
        let rows = self.rows("listing sessions of", sql, &[&(limit as i64)]).await?;
        rows.iter().map(|row| Ok(row.column::<&str>(0)?.into())).collect()
    }

    /// Claims a session for this process, unless another node has claimed it.
    pub(in crate::store) async fn take_session(&self, key: i64, ends_turn: bool) -> Result<TakeOutcome> {
        let doing = "taking a session in";
        let claim = "UPDATE sessions s SET generation = generation + 1, owner = $2, \
                       ending_generation = CASE WHEN $3 THEN generation + 1 END WHERE key = $1 AND (owner IS NULL OR owner = $2 \
                       OR NOT EXISTS (SELECT FROM nodes n WHERE n.incarnation = s.owner AND n.lease_until > clock_timestamp())) \
                     RETURNING generation";
        let held = select_nodes!("JOIN sessions s ON s.owner = n.incarnation WHERE s.key = $1");
        let exists = "SELECT FROM sessions WHERE key = $1";
        // The claim may have been released between the two statements.
        for _ in 0..3 {
            if let Some(row) = self.row(doing, claim, &[&key, &self.incarnation(), &ends_turn]).await? {
                return Ok(TakeOutcome::Taken(row.column(0)?));
            }
            if let Some(row) = self.row(doing, held, &[&key]).await? {
                return Ok(TakeOutcome::Held(node(&row)?));
            }
            if self.row(doing, exists, &[&key]).await?.is_none() {
                return Err(Error::not_found("the session does not exist any more"));
            }
        }
        Err(Error::new(Kind::SessionBusy, "the owner of the session changes").hint("retry"))
    }

    /// Releases claims of this process, each on a session in a generation.
    pub(in crate::store) async fn release_sessions(&self, claims: &[(i64, i64)]) -> Result<()> {
        let (keys, generations): (Vec<i64>, Vec<i64>) = claims.iter().copied().unzip();
        let sql = "UPDATE sessions s SET owner = NULL FROM unnest($1::bigint[], $2::bigint[]) AS c(key, generation) \
                   WHERE s.key = c.key AND s.generation = c.generation AND s.owner IS NOT DISTINCT FROM $3";
        self.rows("releasing sessions in", sql, &[&keys, &generations, &self.incarnation()]).await.map(drop)
    }
}
