// Replaces the console's api.js in the webview: the same exports, answered by the extension host.

import type { RestError } from "../src/rest";
import type { ViewState } from "../src/view";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): any; setState(state: unknown): void };

/** The connection to the extension host. */
export const host = acquireVsCodeApi();

/** What is kept over a reload of the window: the shown session, and drafts. */
const kept: ViewState = JSON.parse(document.body.dataset.state || "{}");
export const state = (): Readonly<ViewState> => kept;

export function keep(change: ViewState): void {
  Object.assign(kept, change);
  host.setState(kept);
  host.postMessage({ type: "state", state: kept });
}

const BACKOFF_MS = [150, 300, 600, 1200, 2500, 5000, 10_000];

/** Pause after the given number of failures, in milliseconds: exponential, with jitter. */
export const backoff = (failures: number) => BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)]! * (0.8 + Math.random() * 0.4);

/** An error response of nuncio. */
export class ApiError extends Error {
  status: number;
  code?: string;
  hint?: string;
  details?: unknown;

  constructor(status: number, error: Partial<RestError>) {
    super(error.message || `nuncio returned status ${status}`);
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
    this.details = error.details;
  }
}

/** Decodes a part of a URL. A badly encoded part is returned unchanged. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns a value for the token of the console: the connection of the extension needs none. */
export const takeToken = () => "none";

export function setToken(): void {}

interface Pending {
  resolve(value: any): void;
  reject(error: Error): void;
}

let lastId = 0;
const pending = new Map<number, Pending>();
const streams = new Map<number, Stream>();

/** Calls the API. Throws ApiError for an error response. */
export function call(verb: string, path: string, body?: unknown): Promise<any> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    pending.set(id, { resolve, reject });
    host.postMessage({ type: "call", id, verb, path, body });
  });
}

export const get = (path: string) => call("GET", path);
export const session = (id: string, rest = "") => `/v1/sessions/${encodeURIComponent(id)}${rest}`;
/** The extension host waits for a restart of nuncio, so that a call needs no repetition here. */
export const post = (path: string, body?: unknown) => call("POST", path, body);

interface Callbacks {
  after?: number;
  types?: string;
  events?(batch: unknown[]): void;
  status?(change: unknown): void;
  synced?(cursor: number): void;
  state?(word: string): void;
  refused?(error: ApiError): void;
}

/** A message of a stream, in the order in which nuncio sent it. */
export type StreamMessage = { event: unknown; cursor: number } | { synced: number } | { status: unknown } | { state: string } | { refused: RestError };

class Stream {
  cursor: number;

  constructor(readonly callbacks: Callbacks) {
    this.cursor = callbacks.after ?? 0;
  }

  /** Delivers messages; events that follow each other in one batch. */
  take(messages: StreamMessage[], isOpen: () => boolean): void {
    let batch: unknown[] = [];
    const flush = () => {
      const events = batch;
      batch = [];
      if (events.length) this.tell(this.callbacks.events, events);
    };
    for (const message of messages) {
      if (!isOpen()) return;
      if ("event" in message) {
        if (message.cursor <= this.cursor) continue;
        this.cursor = message.cursor;
        batch.push(message.event);
        continue;
      }
      flush();
      if ("synced" in message) {
        this.cursor = Math.max(this.cursor, message.synced);
        this.tell(this.callbacks.synced, message.synced);
      } else if ("status" in message) this.tell(this.callbacks.status, message.status);
      else if ("state" in message) this.tell(this.callbacks.state, message.state);
      else this.tell(this.callbacks.refused, new ApiError(message.refused.status, message.refused));
    }
    if (isOpen()) flush();
  }

  /** Calls a callback. An exception in the callback does not end the stream. */
  private tell<T>(callback: ((value: T) => void) | undefined, value: T): void {
    try {
      callback?.(value);
    } catch (error) {
      console.error(error);
    }
  }
}

/** Follows a stream of events until `close()`, with the callbacks of the console's api.js. */
export function follow(path: string, callbacks: Callbacks) {
  const id = ++lastId;
  const stream = new Stream(callbacks);
  streams.set(id, stream);
  callbacks.state?.("connecting");
  host.postMessage({ type: "follow", id, path, after: callbacks.after ?? 0, types: callbacks.types });
  return {
    close() {
      if (streams.delete(id)) host.postMessage({ type: "unfollow", id });
    },
    get cursor() {
      return stream.cursor;
    },
  };
}

addEventListener("message", ({ data, origin }) => {
  // VS Code's own frame, which has the same origin, posts the messages of the extension host.
  if (origin !== window.origin) return;
  if (data?.type === "result") {
    const waiting = pending.get(data.id);
    pending.delete(data.id);
    if (data.error) waiting?.reject(new ApiError(data.error.status, data.error));
    else waiting?.resolve(data.value);
  } else if (data?.type === "stream") {
    for (const { id, messages } of data.streams as { id: number; messages: StreamMessage[] }[]) {
      streams.get(id)?.take(messages, () => streams.has(id));
    }
  }
});
