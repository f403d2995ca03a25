// What each transport of the console's calls uses: the error, the pauses between tries, and the
// delivery of events. api.js is the transport to a server; the page of an editor has another one.

import { t } from "./texts.js";

const BACKOFF_MS = [150, 300, 600, 1200, 2500, 5000, 10_000];

/** Pause after the given number of failures, in milliseconds: exponential, with jitter. */
export const backoff = (failures) => BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)] * (0.8 + Math.random() * 0.4);

/** An error of a method. To tell errors apart, use `code`, a word such as `not_found`. */
export class ApiError extends Error {
  constructor({ message, code, hint, details }) {
    super(message || t`unknown error`);
    Object.assign(this, { code, hint, details });
  }
}

/** Decodes a part of a URL. A badly encoded part is returned unchanged. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Delivers the messages of an event stream to callbacks until it is closed: `events` receives lists
 * of events in order, each event once; `status` receives each change of the agents' status; `synced`
 * receives the cursor at which the history ends; `state` receives one of connecting, live, lost;
 * `refused` receives an ApiError after which the stream does not continue.
 */
export class Delivery {
  constructor(after, callbacks) {
    Object.assign(this, { cursor: after, callbacks, closed: false });
  }

  /** Takes messages `{event, cursor}`, or `{name: value}` with the name of another callback. */
  take(messages) {
    let batch = [];
    const flush = () => {
      if (batch.length) this.tell("events", batch);
      batch = [];
    };
    for (const { event, cursor, ...others } of messages) {
      if (this.closed) return;
      if (event && cursor > this.cursor) {
        this.cursor = cursor;
        batch.push(event);
      }
      for (const [name, value] of Object.entries(others)) {
        flush();
        if (name === "synced") this.cursor = Math.max(this.cursor, value);
        this.tell(name, value);
      }
    }
    if (!this.closed) flush();
  }

  /** Calls a callback. An exception in the callback does not end the stream. */
  tell(name, value) {
    try {
      this.callbacks[name]?.(value);
    } catch (error) {
      console.error(error);
    }
  }
}
