//! The one writer of a connection: answers and events in their order. An answer that follows events waits for them, and nothing else does.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::presence::Presence;
use super::view::View;
use crate::api::{Client, Follow, Nuncio};
use crate::id::{Seq, SessionId};
use crate::rpc::peer::Peer;

/// An answer, written; with what has to be shown before it, and from where its session is followed.
pub struct Out {
    pub frame: Vec<u8>,
    pub after: Option<(SessionId, Seq)>,
    pub follow: Option<Follow>,
    /// Dropped once the answer is in the buffer: nothing of the next turn comes before it.
    pub answered: Option<DropGuard>,
}

pub struct Outbox<W> {
    nuncio: Arc<Nuncio>,
    client: Arc<Client>,
    peer: Arc<Peer>,
    output: W,
    buffer: Vec<u8>,
    views: HashMap<SessionId, View>,
    presence: Presence,
    /// Sessions that wait for something after their cursor.
    waiting: FuturesUnordered<BoxFuture<'static, (SessionId, u64)>>,
    /// Number of the view that was opened last: what an older one waited for is nobody's.
    opened: u64,
}

/// Written when so much has gathered, or nothing more is ready.
const FLUSH_BYTES: usize = 64 << 10;

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub fn new(nuncio: Arc<Nuncio>, client: Arc<Client>, peer: Arc<Peer>, presence: Presence, output: W) -> Self {
        Self {
            nuncio,
            client,
            peer,
            presence,
            output,
            buffer: Vec::new(),
            views: HashMap::new(),
            waiting: FuturesUnordered::new(),
            opened: 0,
        }
    }

    /// Ends when all senders of answers are gone, or the client does not take any more.
    pub async fn run(mut self, mut answers: mpsc::Receiver<Out>) -> io::Result<()> {
        loop {
            let idle = self.buffer.is_empty();
            tokio::select! {
                biased;
                answer = answers.recv() => match answer {
                    Some(answer) => self.answer(answer).await?,
                    None => break,
                },
                Some((session, number)) = self.waiting.next(), if !self.waiting.is_empty() => self.events(&session, number).await?,
                () = std::future::ready(()), if !idle => self.flush().await?,
            }
        }
        self.finish().await
    }

    async fn answer(&mut self, Out { frame, after, follow, answered }: Out) -> io::Result<()> {
        if let Some((session, seq)) = after {
            self.show_to(&session, seq).await?;
        }
        if let Some(Follow::Replayed(session)) = &follow {
            self.replay(session).await?;
        }
        self.buffer.extend_from_slice(&frame);
        drop(answered);
        match follow {
            None => {}
            Some(Follow::Replayed(session)) => self.followed(session),
            Some(Follow::After(session, seq)) => {
                self.open_view(&session, seq);
                self.followed(session);
            }
            Some(Follow::AfterIfNew(session, _)) if self.is_shown(&session) => {}
            Some(Follow::AfterIfNew(session, seq)) => {
                self.open_view(&session, seq);
                self.followed(session);
            }
            // A prompt may have opened it anew meanwhile: that stays.
            Some(Follow::No(session)) if self.is_shown(&session) => {}
            Some(Follow::No(session)) => {
                if let Some(mut view) = self.views.remove(&session) {
                    view.leave(&mut self.buffer);
                }
                let open = self.nuncio.sessions_now().and_then(|sessions| sessions.opened(&session));
                self.presence.leave(&session, open.as_ref());
            }
        }
        self.flush_if_full().await
    }

    /// Whether the session is open and shown as it is now.
    fn is_shown(&self, session: &SessionId) -> bool {
        let open = self.nuncio.sessions_now().and_then(|sessions| sessions.opened(session));
        open.is_some_and(|open| self.views.get(session).is_some_and(|view| view.is_of(&open)))
    }

    /// False: the session is not open any more.
    fn open_view(&mut self, session: &SessionId, after: Seq) -> bool {
        let Some(open) = self.nuncio.sessions_now().and_then(|sessions| sessions.opened(session)) else { return false };
        self.opened += 1;
        if let Some(earlier) = self.views.get_mut(session) {
            earlier.leave(&mut self.buffer);
        }
        self.presence.attend(&open);
        let view = View::new(open, after, self.opened, self.nuncio.clone(), self.client.clone(), self.peer.clone());
        self.views.insert(session.clone(), view);
        true
    }

    /// The answer that makes the session known is written: now what belongs to the beginning of following it.
    fn followed(&mut self, session: SessionId) {
        let Some(view) = self.views.get_mut(&session) else { return };
        view.greet(&mut self.buffer);
        view.ask_open(&mut self.buffer);
        self.waiting.push(view.moved());
    }

    async fn replay(&mut self, session: &SessionId) -> io::Result<()> {
        if !self.open_view(session, 0) {
            return Ok(());
        }
        loop {
            let Some(view) = self.views.get_mut(session) else { return Ok(()) };
            if !view.replay(&mut self.buffer).await {
                return Ok(());
            }
            self.flush_if_full().await?;
        }
    }

    /// Shows what was committed up to `seq`.
    async fn show_to(&mut self, session: &SessionId, seq: Seq) -> io::Result<()> {
        while let Some(view) = self.views.get_mut(session).filter(|view| view.cursor() < seq) {
            if !view.show(&mut self.buffer).await {
                break;
            }
            self.flush_if_full().await?;
        }
        Ok(())
    }

    /// One page, so that an answer of another session waits for no more.
    async fn events(&mut self, session: &SessionId, number: u64) -> io::Result<()> {
        let Some(view) = self.views.get_mut(session).filter(|view| view.number == number) else { return Ok(()) };
        if !view.show(&mut self.buffer).await && view.is_over() {
            return self.go_on(session).await;
        }
        self.waiting.push(view.moved());
        self.flush_if_full().await
    }

    /// A session that was closed behind this client's back, and is worked in again.
    async fn go_on(&mut self, session: &SessionId) -> io::Result<()> {
        let Some(mut view) = self.views.remove(session) else { return Ok(()) };
        view.leave(&mut self.buffer);
        let opened = match self.nuncio.sessions_now() {
            Some(sessions) => sessions.look(session).await.is_ok(),
            None => false,
        };
        if opened
            && self.open_view(session, view.cursor())
            && let Some(view) = self.views.get_mut(session)
        {
            view.ask_open(&mut self.buffer);
            self.waiting.push(view.moved());
        }
        self.flush_if_full().await
    }

    async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FLUSH_BYTES { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer).await?;
        self.output.flush().await?;
        self.buffer.clear();
        if self.buffer.capacity() > 4 * FLUSH_BYTES {
            self.buffer.shrink_to(FLUSH_BYTES);
        }
        Ok(())
    }

    /// The last words: what was committed meanwhile.
    async fn finish(mut self) -> io::Result<()> {
        let sessions: Vec<(SessionId, Seq)> = self.views.iter().map(|(id, view)| (id.clone(), view.head())).collect();
        for (session, head) in sessions {
            self.show_to(&session, head).await?;
        }
        self.flush().await
    }
}
