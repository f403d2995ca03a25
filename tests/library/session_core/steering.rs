//! How a running turn delivers steering messages.

use nuncio::event::Delivery;

use super::history::History;
use super::model::Entry;

impl History {
    /// The running turn takes the steering messages, and may fail to deliver one of them.
    pub fn steer(&mut self) {
        let Some(turn) = self.running.as_ref().filter(|running| running.is_open).map(|running| running.id.clone()) else { return };
        for queued in self.core.take(|_, queued| queued.delivery == Delivery::Steer) {
            let id = queued.message.id;
            match self.random.below(4) {
                0 => {
                    self.actions.push(format!("-> {id} is put back"));
                    self.core.put_back(&id);
                }
                // The turn ends before it delivers the message.
                1 => {
                    self.actions.push(format!("-> {id} is taken and not delivered"));
                    self.model.taken.insert(id, turn.clone());
                }
                _ => {
                    self.model.remove(&id);
                    self.append(Entry::Completed(id));
                }
            }
        }
    }

    /// The running turn prepares the next steering message, or delivers the one that it prepared.
    pub fn deliver(&mut self) {
        if !self.running.as_ref().is_some_and(|running| running.is_open) {
            return;
        }
        let Some(prepared) = self.prepared.take() else {
            self.prepared = self.core.next_steering().cloned();
            let next = self.prepared.as_ref().map(|queued| &queued.message.id);
            return assert_eq!(next, self.model.next_steering(), "the next steering message");
        };
        let id = prepared.message.id.clone();
        let is_next = self.model.next_steering() == Some(&id);
        assert_eq!(self.core.take_prepared(&prepared), is_next, "{id} is delivered");
        if is_next {
            self.model.remove(&id);
            self.append(Entry::Completed(id));
        }
    }
}
