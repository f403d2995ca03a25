// Replaces the console's api.js in the webview: the same exports, answered by the extension host.

import { ApiError, Delivery, type StreamMessage } from "console/transport.js";
import type { FollowOptions } from "../src/follow";
import type { ViewState } from "../src/view";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): any; setState(state: unknown): void };

/** The connection to the extension host. */
export const extension = acquireVsCodeApi();

/** What is kept over a reload of the window: the shown session, and drafts. */
const kept: ViewState = JSON.parse(document.body.dataset.state || "{}");
export const state = (): Readonly<ViewState> => kept;

export function keep(change: ViewState): void {
  Object.assign(kept, change);
  extension.setState(kept);
  extension.postMessage({ type: "state", state: kept });
}

/** The connection of the extension needs no sign-in. */
export const takeCredential = () => null;

export async function signIn(): Promise<void> {}

export async function signOut(): Promise<void> {}

export const newAddress = async () => "";

/** Without a token, `unauthenticated` is about a hosted agent that is not signed in. */
export const refusesToken = () => false;

interface Pending {
  resolve(value: any): void;
  reject(error: Error): void;
}

let lastId = 0;
const pending = new Map<number, Pending>();
const streams = new Map<number, Delivery>();

/**
 * Calls a method of nuncio. Throws ApiError for an error response. The extension host waits for a
 * restart of nuncio, so that a call needs no repetition here.
 */
export function call(method: string, params?: object): Promise<any> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    pending.set(id, { resolve, reject });
    extension.postMessage({ type: "call", id, method, params });
  });
}

/**
 * Follows events until `close()`, with the params of `_nuncio/events/follow` and the callbacks of a
 * Delivery.
 */
export function follow(params: FollowOptions, callbacks: object) {
  const id = ++lastId;
  const delivery = new Delivery(params.after ?? 0, callbacks);
  streams.set(id, delivery);
  delivery.tell("state", "connecting");
  extension.postMessage({ type: "follow", id, params });
  return {
    close() {
      delivery.closed = true;
      if (streams.delete(id)) extension.postMessage({ type: "unfollow", id });
    },
  };
}

addEventListener("message", ({ data, origin }) => {
  // VS Code's own frame, which has the same origin, posts the messages of the extension host.
  if (origin !== window.origin) return;
  if (data?.type === "result") {
    const waiting = pending.get(data.id);
    pending.delete(data.id);
    if (data.error) waiting?.reject(new ApiError(data.error));
    else waiting?.resolve(data.value ?? {});
  } else if (data?.type === "stream") {
    for (const { id, messages } of data.streams as { id: number; messages: StreamMessage[] }[]) {
      streams.get(id)?.take(messages.map((message) => (message.refused ? { refused: new ApiError(message.refused) } : message)));
    }
  }
});
