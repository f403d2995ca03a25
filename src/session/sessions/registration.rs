//! Registers clients of this process, which can answer permission requests, with the owner of a
//! session.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::session::open::Session;
use crate::session::open::other_processes::Registration;
use crate::session::permissions::broker::Responder;
use crate::session::sessions::Sessions;

/// Maximum time for the owner of a session to register a client that answers permission requests.
const REGISTRATION: Duration = Duration::from_secs(2);

/// The request to the owner of a session that registers a client that can answer permission
/// requests ([`Register`]). It has no response while the client is attached.
pub(crate) const REGISTER: &str = "register";
/// The notification of the owner that the client is registered.
pub(crate) const REGISTERED: &str = "registered";

/// Params of [`REGISTER`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Register {
    /// Number of the request on its connection.
    pub call: u64,
    pub session: SessionId,
    /// A person uses the client.
    #[serde(default)]
    pub person: bool,
}

impl Register {
    /// Returns who answers permission requests through the client.
    pub(crate) fn responder(&self) -> Responder {
        if self.person { Responder::Person } else { Responder::Program }
    }
}

impl Sessions {
    /// Registers this process with the owner of the session, as [`Sessions::start_registration`]
    /// does, and waits until the owner has done so.
    pub(crate) async fn register(&self, session: &Session) {
        self.start_registration(session).await;
        let mut registration = session.others.registration.subscribe();
        let known = registration.wait_for(|registration| *registration != Registration::Requested);
        if tokio::time::timeout(REGISTRATION, known).await.is_err() {
            tracing::warn!(session = %session.log.id, "the owner of a session does not respond");
        }
    }

    /// Registers this process, as [`Sessions::register`] does, for a client that will be attached
    /// within `time`.
    pub(crate) async fn register_for(&self, session: &Session, time: Duration) {
        let responder = session.broker.register_responder(Responder::Program);
        self.register(session).await;
        let shutdown = self.shutdown.clone();
        self.tasks.spawn(async move {
            let _ = tokio::time::timeout(time, shutdown.cancelled()).await;
            drop(responder);
        });
    }

    /// Registers this process with the owner of the session if a client of this process can answer
    /// permission requests. Does nothing if this process is registered or no other process owns the
    /// session.
    pub(in crate::session) async fn start_registration(&self, session: &Session) {
        let registration = &session.others.registration;
        if session.is_owned() || !session.broker.has_responders() || *registration.borrow() != Registration::Unknown {
            return;
        }
        let Ok(Some(owner)) = self.other_owner(&session.log.id).await else { return };
        let Ok(connection) = self.peers.connect(&owner) else { return };
        // Another task may have registered this process concurrently.
        let requests = registration.send_if_modified(|registration| {
            let unknown = *registration == Registration::Unknown;
            *registration = if unknown { Registration::Requested } else { *registration };
            unknown
        });
        if !requests {
            return;
        }
        let session = session.clone();
        self.tasks.spawn(async move {
            // Ends after the next registration has begun, so that one of them always counts.
            let mut earlier = None;
            while let Some(responder) = session.broker.responder() {
                let mut call = connection.new_call();
                let person = responder == Responder::Person;
                let params = Register { call: call.call, session: session.log.id.clone(), person };
                let mut ended = Box::pin(connection.request(REGISTER, params));
                let changed = loop {
                    tokio::select! {
                        biased;
                        // Completes when the other process no longer owns the session.
                        _ = &mut ended => break false,
                        _ = call.next() => {
                            earlier = None;
                            session.others.registration.send_replace(Registration::Registered);
                        }
                        () = session.broker.responder_changed(Some(responder)) => break true,
                        () = session.closed() => break false,
                        () = session.shutdown.cancelled() => break false,
                    }
                };
                if !changed {
                    break;
                }
                earlier = Some((ended, call));
            }
            drop(earlier);
            session.others.registration.send_replace(Registration::Unknown);
        });
    }
}
