//! Bearer tokens: the owner token, generated on first start, and named tokens, stored as SHA-256
//! digests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::api::{Client, ClientRole, OWNER};
use crate::error::{Error, Result};
use crate::hex::{hex, unhex};
use crate::workspace::{create_private_dir, lock_files, read_small, read_small_text, replace_private, write_private};

/// Minimum length of a token in a token file, in characters.
const TOKEN_CHARS_MIN: usize = 32;
/// Maximum length of a token's name, in characters.
const TOKEN_NAME_CHARS_MAX: usize = 64;

/// SHA-256 digest of a token.
pub(crate) type TokenDigest = [u8; 32];

/// A named token. `roots` are absolute directories; if empty, the server's roots apply.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedToken {
    pub name: String,
    pub role: ClientRole,
    pub roots: Vec<PathBuf>,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// SHA-256 digest of the token, in hexadecimal digits.
    digest: String,
}

/// The tokens in a data directory (files `token` and `tokens.json`), reloaded when one of the files
/// changes.
pub(crate) struct Tokens {
    data: PathBuf,
    owner: PathBuf,
    named: PathBuf,
    known: Mutex<TokenCache>,
}

#[derive(Default)]
struct TokenCache {
    read: Option<[Option<(SystemTime, u64)>; 2]>,
    owner: Option<TokenDigest>,
    /// Digest of the hook token.
    hook: Option<TokenDigest>,
    named: Vec<(NamedToken, TokenDigest)>,
}

impl Tokens {
    /// Creates the collection of tokens for this data directory, without reading its files.
    pub(crate) fn new(data: &Path) -> Tokens {
        Tokens { data: data.into(), owner: data.join("token"), named: data.join("tokens.json"), known: Mutex::default() }
    }

    pub(crate) fn owner_file(&self) -> &Path {
        &self.owner
    }

    /// Returns the owner token. Generates it if the file does not exist.
    pub(crate) fn owner(&self) -> Result<String> {
        match read_small_text(&self.owner) {
            Ok(text) if text.trim().len() >= TOKEN_CHARS_MIN => return Ok(text.trim().into()),
            Ok(_) => {
                return Err(Error::invalid_params(format!("{} does not contain a token", self.owner.display()))
                    .hint("remove the file; the next start generates a new token"));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(format_args!("reading {}", self.owner.display()), error)),
        }
        let token = new_token()?;
        let write = || {
            create_parent(&self.owner)?;
            write_private(&self.owner, format!("{token}\n").as_bytes())
        };
        match write() {
            // Another process has just created the file: read the token from it.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => self.owner(),
            written => written.map(|()| token).map_err(|error| Error::io(format_args!("writing {}", self.owner.display()), error)),
        }
    }

    /// Returns the client that this token belongs to. The client's roots are the intersection of
    /// the token's and the server's roots.
    pub(crate) fn client(&self, token: &str, roots: &Arc<[PathBuf]>) -> Option<Client> {
        self.client_of(&sha256(token), roots)
    }

    /// Returns the client like [`Tokens::client`], for the digest of a token.
    pub(crate) fn client_of(&self, given: &TokenDigest, roots: &Arc<[PathBuf]>) -> Option<Client> {
        let mut known = self.known.lock();
        self.refresh(&mut known);
        // All digests are compared, so that the time taken does not reveal which digest matches.
        let mut found = None;
        for (named, digest) in &known.named {
            if bool::from(digest.ct_eq(given)) {
                let mut client = Client::limited(&named.name, named.role, Some(intersect_roots(&named.roots, roots)));
                client.sees_all = named.roots.is_empty();
                found = Some(client);
            }
        }
        if known.owner.is_some_and(|owner| owner.ct_eq(given).into()) {
            found = Some(Client::limited(OWNER, ClientRole::Controller, Some(roots.clone())));
        }
        if let Some(client) = &mut found {
            client.data.clone_from(&self.data);
        }
        found
    }

    /// Returns the token for the route of hooks. Agents in terminals receive it instead of the
    /// owner token, from which it is derived.
    pub(crate) fn hook_token(&self) -> Result<String> {
        self.owner().map(|owner| hook_token(&owner))
    }

    pub(crate) fn is_hook_token(&self, token: &str) -> bool {
        let mut known = self.known.lock();
        self.refresh(&mut known);
        known.hook.is_some_and(|hook| hook.ct_eq(&sha256(token)).into())
    }

    fn refresh(&self, known: &mut TokenCache) {
        let stamp = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        let read = Some([stamp(&self.owner), stamp(&self.named)]);
        if known.read == read {
            return;
        }
        let owner = read_small_text(&self.owner).ok();
        let owner = owner.as_deref().map(str::trim).filter(|token| token.len() >= TOKEN_CHARS_MIN);
        known.owner = owner.map(sha256);
        known.hook = owner.map(|owner| sha256(&hook_token(owner)));
        // An invalid `tokens.json` disables only the named tokens. The error is logged; clients do
        // not see it.
        let named = self.list().unwrap_or_else(|error| {
            tracing::error!(error = %error, "cannot read the named tokens: they are rejected");
            Vec::new()
        });
        let digest = |token: NamedToken| unhex(&token.digest).map(|digest| (token, digest));
        known.named = named.into_iter().filter_map(digest).collect();
        known.read = read;
    }

    pub(crate) fn list(&self) -> Result<Vec<NamedToken>> {
        match read_small(&self.named) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Error::invalid_params(format!("reading {}: {error}", self.named.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::io(format_args!("reading {}", self.named.display()), error)),
        }
    }

    /// Creates a named token and returns it. Only its digest is stored.
    pub(crate) fn create(&self, name: &str, role: ClientRole, roots: Vec<PathBuf>, created_ms: u64) -> Result<String> {
        let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if name.is_empty() || name.len() > TOKEN_NAME_CHARS_MAX || !name.chars().all(fits) || name == OWNER {
            return Err(Error::invalid_params(format!("token name \"{name}\" is invalid"))
                .hint("use letters, digits, `-`, `_` and `.`; `owner` is reserved"));
        }
        let _lock = self.named.parent().map(lock_files).transpose()?;
        let mut tokens = self.list()?;
        if tokens.iter().any(|token| token.name == name) {
            return Err(Error::invalid_params(format!("token {name} already exists"))
                .hint(format!("revoke it first: nuncio token revoke {name}")));
        }
        let token = new_token()?;
        tokens.push(NamedToken { name: name.into(), role, roots, created_ms, digest: hex(&sha256(&token)) });
        self.save(&tokens)?;
        Ok(token)
    }

    pub(crate) fn revoke(&self, name: &str) -> Result<()> {
        let _lock = self.named.parent().map(lock_files).transpose()?;
        let mut tokens = self.list()?;
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        if tokens.len() == before {
            return Err(Error::not_found(format!("token {name} does not exist")));
        }
        self.save(&tokens)
    }

    fn save(&self, tokens: &[NamedToken]) -> Result<()> {
        let text = serde_json::to_string_pretty(tokens).map_err(|error| Error::internal(error.to_string()))?;
        replace_private(&self.named, format!("{text}\n").as_bytes())
            .map_err(|error| Error::io(format_args!("writing {}", self.named.display()), error))
    }
}

/// Intersects the token's roots with the server's roots. A token without roots has the server's
/// roots.
fn intersect_roots(token: &[PathBuf], server: &Arc<[PathBuf]>) -> Arc<[PathBuf]> {
    if token.is_empty() {
        return server.clone();
    }
    let inside = |root: &&PathBuf, others: &[PathBuf]| others.iter().any(|other| root.starts_with(other));
    let narrower = token.iter().filter(|root| inside(root, server));
    narrower.chain(server.iter().filter(|root| inside(root, token))).cloned().collect()
}

/// Creates the directory of a file with mode 0700.
fn create_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), |dir| create_private_dir(dir).map_err(std::io::Error::other))
}

/// Generates a token: 256 random bits in hexadecimal digits.
pub(super) fn new_token() -> Result<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::internal("the system's random number generator failed"))?;
    Ok(hex(&bytes))
}

fn hook_token(owner: &str) -> String {
    hex(&sha256(&format!("hook {owner}")))
}

pub(super) fn sha256(token: &str) -> TokenDigest {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    out
}
