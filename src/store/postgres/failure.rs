//! Converts errors of PostgreSQL.

use std::error::Error as StdError;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Error as PostgresError, Row};

use crate::error::{Error, Kind, Result};
use crate::web::certificate_problem;

pub(super) trait Columns {
    /// Returns the value of a column. Fails if the column has another type than nuncio has given
    /// it.
    fn column<'a, T: FromSql<'a>>(&'a self, index: usize) -> Result<T>;
}

impl Columns for Row {
    fn column<'a, T: FromSql<'a>>(&'a self, index: usize) -> Result<T> {
        self.try_get(index).map_err(|error| {
            let name = self.columns().get(index).map_or("", |column| column.name());
            Error::internal(format!("the column {name} of the database: {}", reason(&error)))
                .hint("another program has changed the table: restore the type of the column, or a backup")
        })
    }
}

/// Converts an error of an operation. `place` is the address without the password.
pub(super) fn failed(doing: &str, place: &str, error: PostgresError) -> Error {
    let reason = reason(&error);
    let (kind, hint) = match error.code() {
        // From the client, which asks the server.
        None if reason == "database does not allow writes" => of_code(&SqlState::READ_ONLY_SQL_TRANSACTION),
        None if reason == "server does not support TLS" => {
            (Kind::StoreUnavailable, Some("enable TLS in the server, or add ?sslmode=disable to the URL if the network is trusted"))
        }
        None => (Kind::StoreUnavailable, None),
        Some(code) => of_code(code),
    };
    let failed = Error::new(kind, format!("{doing} {place}: {reason}")).source(error);
    match hint {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

/// Returns the kind and the hint for an error code of the server.
fn of_code(code: &SqlState) -> (Kind, Option<&'static str>) {
    // The first two characters are the class.
    match (code, &code.code()[..2]) {
        (_, "28") => (Kind::InvalidParams, Some("correct the user or the password in the URL of the store")),
        (code, _) if *code == SqlState::UNDEFINED_DATABASE || *code == SqlState::INVALID_CATALOG_NAME => {
            (Kind::InvalidParams, Some("create the database: createdb NAME"))
        }
        (code, _) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            (Kind::InvalidParams, Some("the user needs the rights to create tables in the schema, and to change them"))
        }
        (code, _) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            (Kind::StoreUnavailable, Some("name the primary server in the URL of the store"))
        }
        (code, _) if *code == SqlState::DISK_FULL => (Kind::StoreUnavailable, Some("free disk space on the database server")),
        // Conflicts with other transactions, and timeouts of locks.
        (_, "40" | "55") => (Kind::Overloaded, None),
        // Connection exceptions, too few resources, operator intervention.
        (_, "08" | "53" | "57") => (Kind::StoreUnavailable, None),
        _ => (Kind::Internal, None),
    }
}

/// Returns the message of the server, or of the innermost source.
pub(super) fn reason(error: &PostgresError) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut innermost: &dyn StdError = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let innermost = innermost.to_string();
    certificate_problem(&innermost).map_or(innermost, String::from)
}
