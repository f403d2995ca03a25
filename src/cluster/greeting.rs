//! The greeting of two nodes: each proves that it knows a secret of the cluster.
//!
//! Each side sends random bytes and proves the secret by an HMAC over those of both sides and the
//! certificate of the connection. So a greeting that was recorded, or is passed on by a third
//! party, is refused.

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Cluster;
use crate::error::{Error, Kind, Result};
use crate::hex::{hex, unhex};

const MESSAGE_BYTES_MAX: usize = 1024;

/// The first message of each side.
#[derive(Serialize, Deserialize)]
struct Introduction {
    name: String,
    nonce: String,
    /// The socket of the process that the caller wants to reach, if it is another one than the
    /// answering one. Not in the proofs, because earlier versions lack it; the connection protects
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    socket: Option<String>,
}

/// A node that has proven a secret.
pub(crate) struct GreetedNode {
    pub name: String,
    /// The socket to which its connection is to be passed on.
    pub socket: Option<String>,
}

/// The proof of a secret, in hexadecimal.
#[derive(Serialize, Deserialize)]
struct Proof {
    proof: String,
}

/// The last message of the answering side.
#[derive(Serialize, Deserialize)]
struct Verdict {
    accepted: bool,
}

/// The side that computes a proof.
#[derive(Clone, Copy)]
enum Side {
    Caller,
    Answerer,
}

/// The values that both proofs cover.
struct Transcript<'a> {
    caller: &'a Introduction,
    answerer: &'a Introduction,
    /// Digest of the certificate of the answering side.
    certificate: &'a str,
}

impl Transcript<'_> {
    /// Returns the bytes that the proof of one side covers. No two transcripts have the same ones.
    fn bytes(&self, side: Side) -> Vec<u8> {
        let side = match side {
            Side::Caller => "caller",
            Side::Answerer => "answerer",
        };
        let Transcript { caller, answerer, certificate } = self;
        json!(["nuncio-peer", side, caller.name, caller.nonce, answerer.name, answerer.nonce, certificate]).to_string().into_bytes()
    }

    fn proof(&self, side: Side, secret: &hmac::Key) -> Proof {
        Proof { proof: hex(hmac::sign(secret, &self.bytes(side)).as_ref()) }
    }

    /// Returns the secret of `cluster` that the other side has proven.
    fn proven<'a>(&self, side: Side, proof: &Proof, cluster: &'a Cluster) -> Option<&'a hmac::Key> {
        let (tag, bytes) = (unhex(&proof.proof)?, self.bytes(side));
        cluster.secrets.iter().find(|secret| hmac::verify(secret, &bytes, &tag).is_ok())
    }
}

fn introduction(cluster: &Cluster, socket: Option<String>) -> Result<Introduction> {
    let mut nonce = [0; 32];
    SystemRandom::new().fill(&mut nonce).map_err(|_| Error::internal("no random bytes"))?;
    Ok(Introduction { name: cluster.name.clone(), nonce: hex(&nonce), socket })
}

/// Greets the node at the other end, whose certificate has this digest. It passes the connection
/// on to `socket` if one is given.
#[cfg(feature = "postgres")]
pub(super) async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    cluster: &Cluster,
    certificate: &str,
    socket: Option<String>,
) -> Result<()> {
    let caller = introduction(cluster, socket)?;
    send(stream, &caller).await?;
    let answerer: Introduction = receive(stream).await?;
    let proof: Proof = receive(stream).await?;
    let transcript = Transcript { caller: &caller, answerer: &answerer, certificate };
    let other_secret = || Error::new(Kind::SessionBusy, format!("node {} has another cluster secret", answerer.name));
    let secret = transcript.proven(Side::Answerer, &proof, cluster).ok_or_else(other_secret)?;
    send(stream, &transcript.proof(Side::Caller, secret)).await?;
    let verdict: Verdict = receive(stream).await?;
    if verdict.accepted { Ok(()) } else { Err(other_secret()) }
}

/// Answers the greeting of another node over a connection with the certificate of this process.
/// Fails if that node does not know a secret.
pub(crate) async fn answer_greeting<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, cluster: &Cluster) -> Result<GreetedNode> {
    let certificate = cluster.address().map_or("", |address| &address.certificate);
    let caller: Introduction = receive(stream).await?;
    let answerer = introduction(cluster, None)?;
    let transcript = Transcript { caller: &caller, answerer: &answerer, certificate };
    send(stream, &answerer).await?;
    send(stream, &transcript.proof(Side::Answerer, &cluster.secrets[0])).await?;
    let proof: Proof = receive(stream).await?;
    let accepted = transcript.proven(Side::Caller, &proof, cluster).is_some();
    send(stream, &Verdict { accepted }).await?;
    if !accepted {
        return Err(Error::new(Kind::Unauthenticated, "it has another cluster secret"));
    }
    Ok(GreetedNode { name: caller.name, socket: caller.socket })
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, message: &impl Serialize) -> Result<()> {
    let failed = |error| Error::io("greeting another node", error);
    let line = json!(message).to_string() + "\n";
    stream.write_all(line.as_bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)
}

/// Reads one line, and nothing behind it.
async fn receive<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> Result<T> {
    let mut line = Vec::new();
    loop {
        let byte = stream.read_u8().await.map_err(|error| Error::io("greeting another node", error))?;
        if byte == b'\n' {
            break;
        }
        line.push(byte);
        if line.len() > MESSAGE_BYTES_MAX {
            return Err(Error::new(Kind::InvalidRequest, "the greeting is too long"));
        }
    }
    let invalid = |error: serde_json::Error| Error::new(Kind::InvalidRequest, format!("the greeting is invalid: {error}"));
    serde_json::from_slice::<Value>(&line).and_then(serde_json::from_value).map_err(invalid)
}
