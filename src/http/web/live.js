// Follows one session: first its history without deltas, then the running turn with deltas, then
// new events.

import { call, follow } from "./api.js";
import { FACTS, SessionState } from "./state.js";

export class Live {
  /**
   * `hooks`: `changed()` is called after every batch of events; `reset()` when the state starts
   * anew; `gone(error)` when the session cannot be followed; `state(word)` with the connection's
   * state; `observes()` returns true if the token has the observer role.
   */
  constructor(id, hooks) {
    Object.assign(this, { id, hooks, hasHistory: false, ready: false, closed: false, stream: null });
    this.state = new SessionState(id);
    this.history();
  }

  events = (batch) => {
    for (const event of batch) {
      try {
        this.state.on(event);
      } catch (error) {
        // An event that cannot be applied does not affect the other events.
        console.error(error);
      }
    }
    this.hooks.changed();
  };

  refused = (error) => {
    // The server does not know the cursor: its data was replaced. Start from the beginning.
    if (error.code === "invalid_params" && this.state.seq > 0) {
      this.state = new SessionState(this.id);
      this.hooks.reset();
      this.history();
    } else {
      this.hooks.gone(error);
    }
  };

  history() {
    this.ready = this.hasHistory = false;
    this.start({ types: FACTS }, {
      synced: () => {
        this.hasHistory = true;
        this.hooks.changed();
        this.stream.close();
        this.live();
      },
    });
  }

  live() {
    const { state } = this;
    const after = state.turn ? state.turn.seq : state.seq;
    state.deltaSeq = Math.max(state.deltaSeq, after);
    this.start({ after }, {
      synced: () => {
        this.ready = true;
        this.hooks.changed();
        this.settle();
      },
      state: (word) => this.hooks.state(word),
    });
  }

  start(params, callbacks) {
    if (this.closed) return;
    this.stream = follow({ sessionId: this.id, interactive: true, ...params }, { events: this.events, refused: this.refused, ...callbacks });
  }

  /**
   * Opens the session on the server, which ends a turn whose process has exited. Has no effect on a
   * turn that another process runs.
   */
  async settle() {
    if (!this.state.busy || this.hooks.observes()) return;
    await call("session/resume", { sessionId: this.id, cwd: "" }).catch(() => {});
  }

  /** Stops following. `wake` continues at the same place. */
  sleep() {
    this.stream?.close();
    this.stream = null;
  }

  wake() {
    if (this.stream || this.closed) return;
    if (!this.ready) return this.history();
    const after = Math.max(this.state.seq, this.state.deltaSeq);
    this.start({ after }, { synced: () => this.settle(), state: (word) => this.hooks.state(word) });
  }

  close() {
    this.closed = true;
    this.sleep();
  }
}
