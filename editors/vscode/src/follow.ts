// A stream of events that continues at its cursor after a disconnection.

import type { Params } from "./answers";

/** An event as in schema/event.json. */
export interface NuncioEvent {
  seq: number;
  atMs: number;
  sessionId: string;
  turnId?: string;
  // The members depend on the type.
  body: { type: string; [name: string]: any };
}

export interface FollowOptions {
  /** Follows one session; without it, all sessions. */
  sessionId?: string;
  after?: number;
  /** A person answers the permission requests of the session. */
  interactive?: boolean;
  /** Names and globs of event types, separated by commas. */
  types?: string;
}

export interface FollowSink {
  event?(event: NuncioEvent, cursor: number): void;
  /** The history up to `cursor` was delivered. */
  synced?(cursor: number): void;
  /** The status of agents in other processes changed. */
  status?(change: any): void;
  state?(word: "live" | "lost"): void;
  /** The stream was refused and does not continue. */
  refused?(error: unknown): void;
}

export class Follow {
  /** The id of the subscription; null while the stream is disconnected. */
  subscription: unknown = null;
  private cursor: number;
  private closed = false;

  constructor(
    private readonly options: FollowOptions,
    private readonly sink: FollowSink,
  ) {
    this.cursor = options.after ?? 0;
  }

  /** Returns the params of the call that starts the stream. */
  get params(): Params {
    const { sessionId, types, interactive } = this.options;
    return { after: this.cursor, ...(sessionId ? { sessionId } : {}), ...(types ? { types } : {}), ...(interactive ? { interactive } : {}) };
  }

  started(subscription: unknown): void {
    this.subscription = subscription;
    if (!this.closed) this.sink.state?.("live");
  }

  lost(): void {
    this.subscription = null;
    if (!this.closed) this.sink.state?.("lost");
  }

  refused(error: unknown): void {
    if (!this.closed) this.sink.refused?.(error);
  }

  close(): void {
    this.closed = true;
  }

  /** Takes a message of the stream. Returns false if the server ended the stream. */
  take(result: unknown): boolean {
    if (this.closed || typeof result !== "object" || result === null) return true;
    const { cursor, event, synced, status, ended } = result as { cursor?: number; event?: NuncioEvent; synced?: number; status?: unknown; ended?: boolean };
    if (ended) return false;
    if (event && typeof cursor === "number") {
      // Events that arrived before a disconnection can arrive again.
      if (cursor <= this.cursor) return true;
      this.cursor = cursor;
      this.sink.event?.(event, cursor);
    } else if (typeof synced === "number") {
      this.cursor = Math.max(this.cursor, synced);
      this.sink.synced?.(synced);
    } else if (status !== undefined) {
      this.sink.status?.(status);
    }
    return true;
  }
}
