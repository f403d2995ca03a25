//! Sign-ins of browsers: a cookie in place of a token, and codes for one use that lead to one. A
//! sign-in has the rights of its token, and ends with it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::tokens::{TokenDigest, new_token, sha256};
use crate::error::{Error, Result};
use crate::hex::{hex, unhex};
use crate::session::clock::now_ms;
use crate::workspace::{lock_files, read_small, replace_private};

/// How long a sign-in lasts.
pub(crate) const LOGIN: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a code can be used.
pub(crate) const CODE: Duration = Duration::from_secs(300);
/// Maximum number of sign-ins. Beyond it, the oldest one ends.
const LOGINS_MAX: usize = 500;
/// Maximum number of codes that were not used. Beyond it, the oldest one ends.
const CODES_MAX: usize = 50;

/// A sign-in, as it is stored. Digests are SHA-256 in hexadecimal digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Login {
    /// Digest of the cookie.
    digest: String,
    /// Digest of the token with which the browser signed in.
    token: String,
    /// Milliseconds since the Unix epoch.
    expires_ms: u64,
}

/// A code that was not used yet.
struct Code {
    digest: TokenDigest,
    token: TokenDigest,
    expires_ms: u64,
}

/// The sign-ins in a data directory (file `logins.json`), which are read again when the file
/// changes, and the codes of this process.
pub(crate) struct Logins {
    file: PathBuf,
    known: Mutex<KnownLogins>,
    codes: Mutex<Vec<Code>>,
}

#[derive(Default)]
struct KnownLogins {
    stamp: Option<(SystemTime, u64)>,
    logins: Vec<Login>,
}

impl Logins {
    pub(crate) fn new(data: &Path) -> Logins {
        Logins { file: data.join("logins.json"), known: Mutex::default(), codes: Mutex::default() }
    }

    /// Creates a sign-in for a token, and returns its cookie. Blocks.
    pub(crate) fn sign_in(&self, token: &TokenDigest) -> Result<String> {
        let cookie = new_token()?;
        let now = now_ms();
        let added = Login { digest: hex(&sha256(&cookie)), token: hex(token), expires_ms: now + LOGIN.as_millis() as u64 };
        self.change(|logins| {
            logins.retain(|login| login.expires_ms > now);
            logins.push(added);
            let surplus = logins.len().saturating_sub(LOGINS_MAX);
            logins.drain(..surplus);
        })?;
        Ok(cookie)
    }

    /// Returns the digest of the token to which a cookie belongs.
    pub(crate) fn token_of(&self, cookie: &str) -> Option<TokenDigest> {
        let given = sha256(cookie);
        let mut known = self.known.lock();
        let stamp = std::fs::metadata(&self.file).ok().and_then(|file| Some((file.modified().ok()?, file.len())));
        if known.stamp != stamp {
            *known = KnownLogins { stamp, logins: self.read().unwrap_or_default() };
        }
        let now = now_ms();
        // All digests are compared, so that the time taken does not reveal which one matches.
        let mut found = None;
        for login in known.logins.iter().filter(|login| login.expires_ms > now) {
            if unhex(&login.digest).is_some_and(|digest| bool::from(digest.ct_eq(&given))) {
                found = unhex(&login.token);
            }
        }
        found
    }

    /// Ends the sign-in of a cookie. Blocks.
    pub(crate) fn sign_out(&self, cookie: &str) -> Result<()> {
        let digest = hex(&sha256(cookie));
        self.change(|logins| logins.retain(|login| login.digest != digest))
    }

    /// Creates a code for one sign-in with a token.
    pub(crate) fn new_code(&self, token: TokenDigest) -> Result<String> {
        let code = new_token()?;
        let now = now_ms();
        let mut codes = self.codes.lock();
        codes.retain(|code| code.expires_ms > now);
        let surplus = (codes.len() + 1).saturating_sub(CODES_MAX);
        codes.drain(..surplus);
        codes.push(Code { digest: sha256(&code), token, expires_ms: now + CODE.as_millis() as u64 });
        Ok(code)
    }

    /// Uses a code. Returns the digest of its token, once.
    pub(crate) fn take_code(&self, code: &str) -> Option<TokenDigest> {
        let (given, now) = (sha256(code), now_ms());
        let mut codes = self.codes.lock();
        codes.retain(|code| code.expires_ms > now);
        let place = codes.iter().position(|code| bool::from(code.digest.ct_eq(&given)))?;
        Some(codes.remove(place).token)
    }

    fn read(&self) -> Result<Vec<Login>> {
        match read_small(&self.file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Error::invalid_params(format!("reading {}: {error}", self.file.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::io(format_args!("reading {}", self.file.display()), error)),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Login>)) -> Result<()> {
        let _lock = self.file.parent().map(lock_files).transpose()?;
        // A file that cannot be read has no valid sign-ins.
        let mut logins = self.read().unwrap_or_default();
        change(&mut logins);
        let text = serde_json::to_string(&logins).map_err(|error| Error::internal(error.to_string()))?;
        replace_private(&self.file, text.as_bytes())
            .map_err(|error| Error::io(format_args!("writing {}", self.file.display()), error))
    }
}
