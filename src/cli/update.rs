//! `nuncio update --check`: compares this version with the newest one at an address of the user.

use std::time::Duration;

use serde::Deserialize;

use super::terminal::output::print;
use crate::app::Bootstrap;
use crate::error::{Error, Kind, Result};
use crate::web::{Address, HttpClients};

/// Timeout for fetching the document, including redirections.
const FETCH: Duration = Duration::from_secs(30);
/// Maximum number of redirections that are followed.
const REDIRECTIONS_MAX: usize = 5;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The document at the address. It may have other fields.
#[derive(Deserialize)]
struct VersionDocument {
    version: String,
}

/// Requests the address in `update.url` and prints whether its version is newer. Without the
/// setting, requests nothing and fails.
pub(super) async fn check(bootstrap: Bootstrap) -> Result<u8> {
    let Some(url) = bootstrap.loaded.settings.update.url else {
        let hint = "nuncio requests no address by itself; set url in [update] to the address of a JSON object with \"version\"";
        return Err(Error::invalid_params("update.url is not set").hint(hint));
    };
    let address = Address::parse(&url).map_err(|problem| Error::invalid_params(format!("update.url: {problem}")))?;
    let body = tokio::time::timeout(FETCH, fetch(address)).await;
    let body = body.unwrap_or_else(|_| Err("timed out".into())).map_err(failure)?;
    let document: VersionDocument = serde_json::from_slice(&body).map_err(failure)?;
    print(report(&document.version).ok_or_else(|| failure(format!("invalid version {:?}", document.version)))?).map(|()| 0)
}

fn failure(problem: impl std::fmt::Display) -> Error {
    Error::new(Kind::Internal, format!("update.url: {problem}"))
}

/// Fetches the document. A redirection may lead to public addresses only.
async fn fetch(mut address: Address) -> Result<Vec<u8>, String> {
    let clients = HttpClients::default();
    let allowed = [address.authority()];
    for _ in 0..=REDIRECTIONS_MAX {
        let response = clients.get(&address, &allowed).await?;
        match response.redirect {
            Some(next) => address = next,
            None if response.status == 200 => return Ok(response.body),
            None => return Err(format!("{address} answered {}", response.status_text)),
        }
    }
    Err(format!("more than {REDIRECTIONS_MAX} redirections, the last one to {address}"))
}

/// Returns the sentence about a version, or `None` if it is not of the form `1.2.3`.
fn report(newest: &str) -> Option<String> {
    let (this, that) = (numbers(VERSION)?, numbers(newest)?);
    Some(match that > this {
        true => format!("nuncio {newest} is available; this is {VERSION}\n"),
        false => format!("no newer version: this is {VERSION}, the newest is {newest}\n"),
    })
}

/// Parses `1.2.3`.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}
