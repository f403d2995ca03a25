//! The writer of a connection: writes responses and events in order. Only a response that must
//! follow certain events waits for them.

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

/// An encoded message, with the events that must precede it and a change of what is followed.
pub struct Out {
    /// The message; may be empty.
    pub frame: Vec<u8>,
    /// Events of this session up to this seq are written before the message.
    pub after: Option<(SessionId, Seq)>,
    pub follow: Option<Follow>,
    /// Dropped once the response is in the buffer. The next turn starts after that, so that none of
    /// its events precede the response.
    pub answered: Option<DropGuard>,
}

/// Writes the messages of a connection, and the events of the sessions that its client follows.
pub struct Outbox<W> {
    nuncio: Arc<Nuncio>,
    client: Arc<Client>,
    peer: Arc<Peer>,
    output: W,
    buffer: Vec<u8>,
    views: HashMap<SessionId, View>,
    presence: Presence,
    /// One future per followed session: resolves when there are events after its cursor.
    waiting: FuturesUnordered<BoxFuture<'static, (SessionId, u64)>>,
    /// Number of the latest view. A future of an earlier view is ignored.
    opened: u64,
}

/// Buffered bytes that cause a flush. The buffer is also flushed when no output is ready.
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

    /// Runs until all senders of messages are dropped or writing fails.
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
            Some(Follow::Replayed(session)) => self.start_following(session),
            Some(Follow::After(session, seq)) => {
                self.open_view(&session, seq);
                self.start_following(session);
            }
            Some(Follow::AfterIfNew(session, _)) if self.is_shown(&session) => {}
            Some(Follow::AfterIfNew(session, seq)) => {
                self.open_view(&session, seq);
                self.start_following(session);
            }
            // A prompt may have reopened the session in the meantime: keep following it.
            Some(Follow::No(session)) if self.is_shown(&session) => {}
            Some(Follow::No(session)) => {
                if let Some(mut view) = self.views.remove(&session) {
                    view.withdraw_requests(&mut self.buffer);
                }
                let open = self.nuncio.sessions_now().and_then(|sessions| sessions.opened(&session));
                self.presence.leave(&session, open.as_ref());
            }
        }
        self.flush_if_full().await
    }

    /// Returns whether the session is open and its current view is shown.
    fn is_shown(&self, session: &SessionId) -> bool {
        let open = self.nuncio.sessions_now().and_then(|sessions| sessions.opened(session));
        open.is_some_and(|open| self.views.get(session).is_some_and(|view| view.is_of(&open)))
    }

    /// Creates a view of a session. Returns false if the session is no longer open.
    fn open_view(&mut self, session: &SessionId, after: Seq) -> bool {
        let Some(open) = self.nuncio.sessions_now().and_then(|sessions| sessions.opened(session)) else { return false };
        self.opened += 1;
        if let Some(earlier) = self.views.get_mut(session) {
            earlier.withdraw_requests(&mut self.buffer);
        }
        self.presence.attend(&open);
        let view = View::new(open, after, self.opened, self.nuncio.clone(), self.client.clone(), self.peer.clone());
        self.views.insert(session.clone(), view);
        true
    }

    /// Starts following a session, after the response that names it: writes the available commands
    /// and the open permission requests.
    fn start_following(&mut self, session: SessionId) {
        let Some(view) = self.views.get_mut(&session) else { return };
        view.send_commands(&mut self.buffer);
        view.ask_open_permissions(&mut self.buffer);
        self.waiting.push(view.moved());
    }

    /// Writes the history of a session.
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

    /// Writes the events of a followed session up to `seq`.
    async fn show_to(&mut self, session: &SessionId, seq: Seq) -> io::Result<()> {
        while let Some(view) = self.views.get_mut(session).filter(|view| view.cursor() < seq) {
            if !view.show(&mut self.buffer).await {
                break;
            }
            self.flush_if_full().await?;
        }
        Ok(())
    }

    /// Writes one page of events. Responses of other sessions wait for no more than that.
    async fn events(&mut self, session: &SessionId, number: u64) -> io::Result<()> {
        let Some(view) = self.views.get_mut(session).filter(|view| view.number == number) else { return Ok(()) };
        if !view.show(&mut self.buffer).await && view.is_over() {
            return self.follow_again(session).await;
        }
        self.waiting.push(view.moved());
        self.flush_if_full().await
    }

    /// Follows a session again that was closed and has new events.
    async fn follow_again(&mut self, session: &SessionId) -> io::Result<()> {
        let Some(mut view) = self.views.remove(session) else { return Ok(()) };
        view.withdraw_requests(&mut self.buffer);
        let opened = match self.nuncio.sessions_now() {
            Some(sessions) => sessions.open_read_only(session).await.is_ok(),
            None => false,
        };
        if opened
            && self.open_view(session, view.cursor())
            && let Some(view) = self.views.get_mut(session)
        {
            view.ask_open_permissions(&mut self.buffer);
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

    /// Writes the events that are committed so far, then flushes.
    async fn finish(mut self) -> io::Result<()> {
        let sessions: Vec<(SessionId, Seq)> = self.views.iter().map(|(id, view)| (id.clone(), view.head())).collect();
        for (session, head) in sessions {
            self.show_to(&session, head).await?;
        }
        self.flush().await
    }
}
