//! Signatures over what a session may do. They are in the store, and their key is not: who can only
//! write to the store cannot widen a session.
//!
//! A signature covers the session, the seq of its event, and all that is in force after the event,
//! so that no event can be copied, moved or left out. The key is derived from the secret of the
//! cluster, or it is in the data directory.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::event::{Body, Event, Severity};
use crate::hex::{hex, unhex};
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::session::folds::signed_event::changes_grants;
use crate::session::folds::state::SessionState;
use crate::store::{SessionRow, Store};
use crate::task;
use crate::workspace::{lock_files, read_private, real_path, replace_private};

/// The file with the key.
const KEY: &str = "session-key";
/// The file with signatures of the sessions that an SQLite database had when the key was made: a
/// line with the id and the signature each.
const EARLIER: &str = "session-signatures";
/// The form of the signed text, with which signatures begin.
const FORM: &str = "1:";

/// Signs what the sessions of a store may do.
pub(in crate::session) struct Signer {
    /// The first key signs, all keys verify. Empty in a store that cannot be written, if the key
    /// cannot be read: no session does anything then.
    keys: Vec<hmac::Key>,
    earlier: PathBuf,
    /// See [`Agents::directories`](crate::session::Agents::directories).
    directories: Vec<PathBuf>,
}

impl Signer {
    /// Reads the key of the data directory `dir` and the secrets of the cluster. Without both, it
    /// makes a key, and signs the sessions that the SQLite database has then, if an earlier version
    /// of nuncio has worked in the directory.
    pub(in crate::session) async fn open(
        dir: &Path,
        store: &Store,
        cluster: Option<&Cluster>,
        directories: Vec<PathBuf>,
    ) -> Result<Signer> {
        let own = match read_key(dir) {
            Ok(Some(key)) => Some(key),
            _ if store.is_read_only() => None,
            // Its directory may not outlast the process.
            Ok(None) if cluster.is_some() => None,
            Ok(None) => Some(make_key(dir, store).await?),
            Err(error) => return Err(error),
        };
        let shared = cluster.into_iter().flat_map(|cluster| cluster.keys("nuncio-session"));
        let own = own.map(|key| hmac::Key::new(hmac::HMAC_SHA256, &key));
        Ok(Signer { keys: shared.chain(own).collect(), earlier: dir.join(EARLIER), directories })
    }

    /// Returns the signature for an event of a session, with all that is in force after it.
    fn sign(&self, id: &SessionId, seq: Seq, granted: &Body) -> Option<String> {
        Some(format!("{FORM}{}", hex(hmac::sign(self.keys.first()?, &signed_text(id, seq, granted)?).as_ref())))
    }

    /// Signs the events that change what a session may do. `state` returns what it may do before
    /// the events.
    pub(in crate::session) fn sign_events(&self, id: &SessionId, state: impl FnOnce() -> SessionState, events: &mut [Event]) {
        let mut changes = events.iter_mut().filter(|event| changes_grants(&event.body)).peekable();
        if changes.peek().is_none() {
            return;
        }
        let mut state = state();
        for event in changes {
            state.apply_grants(event);
            event.signature = self.sign(id, event.seq, &state.granted()).map(String::into_boxed_str);
        }
    }

    /// Checks that the events of a session, from which `state` was computed, end with a signature
    /// of what the session may do. Drops what is not signed. Returns `None` if the current key has
    /// signed it; otherwise what was dropped, now and before: nothing if an earlier key has signed
    /// it, or if the session is older than the key.
    pub(in crate::session) fn check(
        &self,
        id: &SessionId,
        state: &mut SessionState,
        dropped: Option<Vec<String>>,
    ) -> Option<Vec<String>> {
        let text = signed_text(id, state.signed.seq, &state.granted()).unwrap_or_default();
        let signer = |signature: &str| {
            let tag = signature.strip_prefix(FORM).and_then(unhex)?;
            self.keys.iter().position(|key| hmac::verify(key, &text, &tag).is_ok())
        };
        match state.signed.signature.as_deref().and_then(signer) {
            _ if self.keys.is_empty() => None,
            Some(0) => None,
            Some(_) => Some(Vec::new()),
            None if self.signature_before(id).as_deref().and_then(signer).is_some() => Some(Vec::new()),
            None => Some([dropped.unwrap_or_default(), state.drop_grants(self.other_directory(&state.cwd))].concat()),
        }
    }

    /// Returns the directory that replaces one that is not below the directories of this process.
    fn other_directory(&self, cwd: &Path) -> Option<PathBuf> {
        let real = real_path(cwd);
        let leads_up = real.components().any(|part| part == Component::ParentDir);
        let inside = !leads_up && self.directories.iter().any(|directory| real.starts_with(directory));
        self.directories.first().filter(|_| !inside).cloned()
    }

    /// Returns the signature of a session that is older than the key.
    fn signature_before(&self, id: &SessionId) -> Option<String> {
        let text = fs::read_to_string(&self.earlier).ok()?;
        text.lines().find_map(|line| line.strip_prefix(id.as_str())?.strip_prefix(' ').map(String::from))
    }
}

/// Creates the notice about what was dropped from a session, if anything was.
pub(in crate::session) fn dropped_notice(dropped: &[String]) -> Option<Body> {
    let description = format!(
        "no key of this machine or of its cluster has signed it in the store: {}. Set it again if it was yours",
        dropped.join("; ")
    );
    (!dropped.is_empty()).then(|| Body::notice(Severity::Warning, "Settings of the session were dropped", description))
}

/// Returns the text that a signature covers. No two states of sessions have the same one.
fn signed_text(id: &SessionId, seq: Seq, granted: &Body) -> Option<Vec<u8>> {
    serde_json::to_vec(&("nuncio-session", id, seq, granted)).ok()
}

/// Reads the key in a data directory; `None` if the file is absent.
fn read_key(dir: &Path) -> Result<Option<[u8; 32]>> {
    let path = dir.join(KEY);
    let wrong = |reason: &dyn std::fmt::Display| {
        Error::invalid_params(format!("the key of the sessions, {}: {reason}", path.display()))
            .hint("chmod 600 FILE. Without the file, a new key is made and sessions have the settings of new ones")
    };
    match read_private(&path) {
        Ok(text) => unhex(&text).map(Some).ok_or_else(|| wrong(&"it does not contain a key")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(&error)),
    }
}

/// Makes the key of a data directory, unless another process does.
async fn make_key(dir: &Path, store: &Store) -> Result<[u8; 32]> {
    let locked = dir.to_owned();
    let _lock = task::blocking("locking the data directory", move || lock_files(&locked)).await??;
    if let Some(key) = read_key(dir)? {
        return Ok(key);
    }
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| Error::internal("no random bytes"))?;
    let keys = vec![hmac::Key::new(hmac::HMAC_SHA256, &key)];
    let signer = Signer { keys, earlier: PathBuf::new(), directories: Vec::new() };
    // A database without the directory of locks was copied here, such as a backup.
    let is_own = !store.has_nodes() && dir.join("locks").exists();
    let earlier = if is_own { signatures_before(&signer, store).await? } else { String::new() };
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        replace_private(&path, text.as_bytes()).map_err(|error| Error::io(format_args!("writing {}", path.display()), error))
    };
    write(EARLIER, &earlier)?;
    write(KEY, &format!("{}\n", hex(&key)))?;
    Ok(key)
}

/// Signs the sessions of a store that has no signature yet. If it has one, its key is lost: returns
/// no signatures.
async fn signatures_before(signer: &Signer, store: &Store) -> Result<String> {
    let (mut lines, mut after) = (String::new(), 0);
    loop {
        let rows = store.session_rows(after, limits::SESSIONS_PAGE).await?;
        let Some(last) = rows.last() else { return Ok(lines) };
        after = last.key;
        for row in rows.iter().filter(|row| row.head > 0) {
            let Some(state) = unsigned_grants(store, row).await? else { return Ok(String::new()) };
            let signature = signer.sign(&row.id, state.signed.seq, &state.granted());
            lines.extend(signature.map(|signature| format!("{} {signature}\n", row.id)));
        }
    }
}

/// Returns what a session may do according to its log; `None` if the log has a signature.
async fn unsigned_grants(store: &Store, row: &SessionRow) -> Result<Option<SessionState>> {
    let (mut state, mut after) = (SessionState::default(), 0);
    loop {
        let events = store.events(&row.id, row.key, after, limits::BATCH_EVENTS_MAX, false).await?;
        let Some(last) = events.last() else { return Ok(Some(state)) };
        after = last.seq;
        if events.iter().any(|event| event.signature.is_some()) {
            return Ok(None);
        }
        events.iter().for_each(|event| state.apply_grants(event));
    }
}
