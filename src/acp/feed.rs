//! The events of the followed sessions, written between the responses of a connection. Only a
//! response that must follow certain events waits for them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::barrier::Barrier;
use super::presence::Presence;
use super::subscriptions::{SubscriptionFeed, SubscriptionItem, SubscriptionList};
use super::view::View;
use crate::api::{App, Client, FollowChange};
use crate::id::{Seq, SessionId};
use crate::rpc::{Feed, FrameWriter};

/// Writes the events of the sessions that a client follows.
pub(crate) struct SessionFeed {
    app: Arc<App>,
    client: Arc<Client>,
    views: HashMap<SessionId, View>,
    presence: Presence,
    /// One future per followed session, which resolves when there are events after the view's
    /// cursor.
    waiting: FuturesUnordered<BoxFuture<'static, (SessionId, u64)>>,
    /// Number of the most recently opened view. The results of earlier views' futures are ignored.
    opened: u64,
    subscriptions: SubscriptionFeed,
}

/// Output that is ready.
pub(crate) enum FeedChange {
    /// A session with new events, and the number of its view.
    Session(SessionId, u64),
    Subscription(Box<SubscriptionItem>),
}

impl Feed for SessionFeed {
    type Barrier = Barrier;
    type Change = FeedChange;

    async fn before(&mut self, barrier: &Barrier, out: &mut FrameWriter) -> io::Result<()> {
        if let Some((session, seq)) = &barrier.after {
            self.show_to(session, *seq, out).await?;
        }
        if let Some(FollowChange::Replayed(session)) = &barrier.follow {
            self.replay(session, out).await?;
        }
        Ok(())
    }

    async fn after(&mut self, Barrier { follow, subscription, answered, .. }: Barrier, out: &mut FrameWriter) {
        drop(answered);
        if let Some(subscription) = subscription {
            self.subscriptions.follow(subscription);
        }
        match follow {
            None => {}
            Some(FollowChange::Replayed(session)) => self.start_following(session, out).await,
            Some(FollowChange::After(session, seq)) => {
                self.open_view(&session, seq, out);
                self.start_following(session, out).await;
            }
            Some(FollowChange::AfterIfNew(session, _)) if self.is_shown(&session) => {}
            Some(FollowChange::AfterIfNew(session, seq)) => {
                self.open_view(&session, seq, out);
                self.start_following(session, out).await;
            }
            // A prompt may have reopened the session in the meantime: keep following it.
            Some(FollowChange::No(session)) if self.is_shown(&session) => {}
            Some(FollowChange::No(session)) => {
                if let Some(mut view) = self.views.remove(&session) {
                    view.withdraw_requests(out);
                }
                let open = self.app.sessions_now().and_then(|sessions| sessions.opened(&session));
                self.presence.leave(&session, open.as_ref());
            }
        }
    }

    async fn changed(&mut self) -> FeedChange {
        tokio::select! {
            Some((session, number)) = self.waiting.next() => FeedChange::Session(session, number),
            item = self.subscriptions.changed() => FeedChange::Subscription(Box::new(item)),
        }
    }

    /// Writes only one page of events, so that responses do not wait for more than one page.
    async fn write(&mut self, change: FeedChange, out: &mut FrameWriter) -> io::Result<()> {
        let (session, number) = match change {
            FeedChange::Session(session, number) => (session, number),
            FeedChange::Subscription(item) => return self.subscriptions.write(*item, out).await,
        };
        let Some(view) = self.views.get_mut(&session).filter(|view| view.number == number) else { return Ok(()) };
        if !view.show(out).await && view.is_over() {
            self.follow_again(&session, out).await;
        } else {
            self.waiting.push(view.moved());
        }
        Ok(())
    }

    /// Writes the events that are committed so far.
    async fn finish(&mut self, out: &mut FrameWriter) -> io::Result<()> {
        let sessions: Vec<(SessionId, Seq)> = self.views.iter().map(|(id, view)| (id.clone(), view.head())).collect();
        for (session, head) in sessions {
            self.show_to(&session, head, out).await?;
        }
        self.subscriptions.finish(out).await
    }
}

impl SessionFeed {
    /// Creates a feed that follows no session yet.
    pub(crate) fn new(app: Arc<App>, client: Arc<Client>, presence: Presence, subscriptions: SubscriptionList) -> SessionFeed {
        SessionFeed {
            app,
            client,
            presence,
            views: HashMap::new(),
            waiting: FuturesUnordered::new(),
            opened: 0,
            subscriptions: SubscriptionFeed::new(subscriptions),
        }
    }

    /// Returns whether the session is open and a view shows it. False if the session was closed and
    /// opened again after the view was created.
    fn is_shown(&self, session: &SessionId) -> bool {
        let open = self.app.sessions_now().and_then(|sessions| sessions.opened(session));
        open.is_some_and(|open| self.views.get(session).is_some_and(|view| view.is_of(&open)))
    }

    /// Creates a view of a session. Returns false if the session is no longer open.
    fn open_view(&mut self, session: &SessionId, after: Seq, out: &mut FrameWriter) -> bool {
        let Some(open) = self.app.sessions_now().and_then(|sessions| sessions.opened(session)) else { return false };
        self.opened += 1;
        if let Some(earlier) = self.views.get_mut(session) {
            earlier.withdraw_requests(out);
        }
        self.presence.attend(&open);
        let view = View::new(open, after, self.opened, self.app.clone(), self.client.clone());
        self.views.insert(session.clone(), view);
        true
    }

    /// Starts following a session: writes the available commands and the open permission requests.
    /// Called after the response that names the session.
    async fn start_following(&mut self, session: SessionId, out: &mut FrameWriter) {
        let Some(view) = self.views.get_mut(&session) else { return };
        view.send_commands(true, out).await;
        view.ask_open_permissions(out);
        self.waiting.push(view.moved());
    }

    /// Writes the history of a session.
    async fn replay(&mut self, session: &SessionId, out: &mut FrameWriter) -> io::Result<()> {
        if !self.open_view(session, 0, out) {
            return Ok(());
        }
        loop {
            let Some(view) = self.views.get_mut(session) else { return Ok(()) };
            if !view.replay(out).await {
                return Ok(());
            }
            out.flush_if_full().await?;
        }
    }

    /// Writes the events of a followed session up to `seq`.
    async fn show_to(&mut self, session: &SessionId, seq: Seq, out: &mut FrameWriter) -> io::Result<()> {
        while let Some(view) = self.views.get_mut(session).filter(|view| view.cursor() < seq) {
            if !view.show(out).await {
                break;
            }
            out.flush_if_full().await?;
        }
        Ok(())
    }

    /// Resumes following a session that was closed and has new events since.
    async fn follow_again(&mut self, session: &SessionId, out: &mut FrameWriter) {
        let Some(mut view) = self.views.remove(session) else { return };
        view.withdraw_requests(out);
        let opened = match self.app.sessions_now() {
            Some(sessions) => sessions.open_read_only(session).await.is_ok(),
            None => false,
        };
        if opened
            && self.open_view(session, view.cursor(), out)
            && let Some(view) = self.views.get_mut(session)
        {
            view.ask_open_permissions(out);
            self.waiting.push(view.moved());
        }
    }
}
