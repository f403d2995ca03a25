// One session, followed: first the facts of its past, then the running turn with its pieces, then what happens.

import { ApiError, call, follow, session as route } from "./api.js";
import { FACTS, SessionState } from "./state.js";

export class Live {
  /** `changed()` after every batch; `gone(error)` when there is nothing to follow; `state(word)` of the connection. */
  constructor(id, hooks) {
    Object.assign(this, { id, hooks, ready: false, closed: false, stream: null });
    this.state = new SessionState(id);
    this.history();
  }

  events = (batch) => {
    for (const event of batch) {
      try {
        this.state.on(event);
      } catch (error) {
        // One that is not understood does not keep the others from being.
        console.error(error);
      }
    }
    this.hooks.changed();
  };

  refused = (error) => {
    // A cursor that the server does not know: its data is another one. From the beginning, then.
    if (error instanceof ApiError && error.status === 400 && this.state.seq > 0) {
      this.state = new SessionState(this.id);
      this.hooks.reset();
      this.history();
    } else {
      this.hooks.gone(error);
    }
  };

  history() {
    this.ready = false;
    this.start({
      types: FACTS,
      synced: () => {
        this.stream.close();
        this.live();
      },
    });
  }

  live() {
    const { state } = this;
    const after = state.turn ? state.turn.seq : state.seq;
    state.deltaSeq = Math.max(state.deltaSeq, after);
    this.start({
      after,
      synced: () => {
        this.ready = true;
        this.hooks.changed();
        this.settle();
      },
      state: (word) => this.hooks.state(word),
    });
  }

  start(options) {
    if (this.closed) return;
    this.stream = follow(route(this.id, "/events"), { events: this.events, refused: this.refused, ...options });
  }

  /** A turn may be one of a process that is gone: whoever opens the session closes it. Where somebody works, this only looks. */
  async settle() {
    if (!this.state.busy || this.hooks.observes()) return;
    await call("POST", route(this.id, "/resume"), {}).catch(() => {});
  }

  /** Stops following; `wake` goes on where this was. */
  sleep() {
    this.stream?.close();
    this.stream = null;
  }

  wake() {
    if (this.stream || this.closed) return;
    if (!this.ready) return this.history();
    const after = Math.max(this.state.seq, this.state.deltaSeq);
    this.start({ after, synced: () => this.settle(), state: (word) => this.hooks.state(word) });
  }

  close() {
    this.closed = true;
    this.sleep();
  }
}
