//! The address of the database: a URL as libpq accepts it
//! (postgresql.org/docs/current/libpq-connect.html). The TLS parameters are handled here.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::failure::reason;
use crate::error::{Error, Result};

/// Timeout of the connection to one host.
const CONNECT: Duration = Duration::from_secs(5);
/// Time without traffic after which a connection is tested.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Time without an acknowledgement of sent data after which a connection is lost.
const UNACKNOWLEDGED: Duration = Duration::from_secs(15);

/// How the connection is encrypted (`sslmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disabled,
    /// Encrypted; the certificate is not checked.
    Encrypted,
    /// The certificate is signed by an authority that is trusted.
    Signed,
    /// The certificate is also for the name of the host.
    Full,
}

/// The parsed URL.
pub(super) struct DatabaseAddress {
    pub config: Config,
    pub tls: TlsMode,
    /// The file with the certificates of trusted authorities (`sslrootcert`).
    pub root_certificates: Option<PathBuf>,
    shown: String,
}

impl DatabaseAddress {
    /// Parses a URL. Over TCP, the default of `sslmode` is `verify-full`.
    pub(super) fn parse(url: &str) -> Result<DatabaseAddress> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(invalid(format_args!("it does not begin with postgres://")));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut rest, mut tls, mut root_certificates) = (Vec::new(), None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match name {
                "sslmode" => tls = Some(mode(&value)?),
                "sslrootcert" => root_certificates = Some(PathBuf::from(value.as_ref())),
                "target_session_attrs" if matches!(&*value, "any" | "read-write" | "primary") => {}
                "sslcert" | "sslkey" | "passfile" | "service" | "target_session_attrs" => {
                    return Err(invalid(format_args!("the parameter {name}={value} is not supported")));
                }
                _ => rest.push(pair),
            }
        }
        // As in libpq, a host in the query replaces the other one.
        let base = if rest.iter().any(|pair| pair.starts_with("host=")) { without_host(base) } else { base.to_owned() };
        let plain = if rest.is_empty() { base } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(|error| invalid(format_args!("{}", reason(&error))))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid(format_args!("it has no host")));
        }
        let over_tcp = config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
        let tls = if over_tcp { tls.unwrap_or(TlsMode::Full) } else { TlsMode::Disabled };
        // A server without TLS is an error.
        config.ssl_mode(if tls == TlsMode::Disabled { SslMode::Disable } else { SslMode::Require });
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.connect_timeout(CONNECT).keepalives_idle(KEEP_ALIVE).keepalives_interval(KEEP_ALIVE).keepalives_retries(2);
        config.tcp_user_timeout(UNACKNOWLEDGED);
        if config.get_application_name().is_none() {
            config.application_name("nuncio");
        }
        let shown = shown(&config);
        Ok(DatabaseAddress { config, tls, root_certificates, shown })
    }

    /// Returns the address without user and password.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}

/// Removes the host from a URL without a query.
fn without_host(base: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return base.to_owned() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let user = authority.rfind('@').map_or("", |at| &authority[..=at]);
    format!("{scheme}://{user}{path}")
}

fn invalid(why: std::fmt::Arguments<'_>) -> Error {
    Error::invalid_params(format!("the URL of the store is invalid: {why}"))
        .hint("the form is postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full")
}

fn mode(name: &str) -> Result<TlsMode> {
    match name {
        "disable" => Ok(TlsMode::Disabled),
        "require" => Ok(TlsMode::Encrypted),
        "verify-ca" => Ok(TlsMode::Signed),
        "verify-full" => Ok(TlsMode::Full),
        _ => Err(invalid(format_args!("sslmode must be disable, require, verify-ca or verify-full"))),
    }
}

fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    format!("the database {} on {}", config.get_dbname().or(config.get_user()).unwrap_or("of the user"), hosts.join(", "))
}
