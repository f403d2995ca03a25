// Access to the server: API calls with the token, and event streams that reconnect at their cursor.

const KEY = "nuncio.token";
const SILENCE_MS = 40_000;
const TRIES_MAX = 5;
const BACKOFF_MS = [150, 300, 600, 1200, 2500, 5000, 10_000];

/** Pause after the given number of failures, in milliseconds: exponential, with jitter. */
export const backoff = (failures) => BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)] * (0.8 + Math.random() * 0.4);

let token = null;

/** An error response of the server. */
export class ApiError extends Error {
  constructor(status, error, headers) {
    super(error.message || `the server returned status ${status}`);
    Object.assign(this, { status, code: error.code, hint: error.hint, details: error.details, headers });
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
 * Takes the token from the page URL and removes it there, or returns the token stored for this tab.
 */
export function takeToken() {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    setToken(decoded(given[1]));
  } else {
    token = sessionStorage.getItem(KEY);
  }
  return token;
}

export function setToken(value) {
  token = value;
  sessionStorage.removeItem(KEY);
  try {
    if (value) sessionStorage.setItem(KEY, value);
  } catch {
    // The storage is full: the user has to enter the token again after a reload.
  }
}

const authorized = (headers) => ({ authorization: `Bearer ${token}`, ...headers });

/**
 * Calls the API. Throws ApiError for an error response, TypeError if the server cannot be reached.
 */
export async function call(verb, path, body, headers) {
  const options = { method: verb, headers: authorized(headers), cache: "no-store" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  const response = await fetch(path, options);
  const text = await response.text();
  let value = {};
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    throw new ApiError(response.status, { message: "the response is not JSON" });
  }
  if (!response.ok) throw new ApiError(response.status, value.error || {}, response.headers);
  return value;
}

export const get = (path) => call("GET", path);
export const session = (id, rest = "") => `/v1/sessions/${encodeURIComponent(id)}${rest}`;

/** A POST that takes effect once, even if it is sent again after a broken connection. */
export async function post(path, body, headers) {
  const key = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  for (let failures = 0; ; failures++) {
    try {
      return await call("POST", path, body, { "idempotency-key": key, ...headers });
    } catch (error) {
      if (!(error instanceof TypeError) || failures === TRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, BACKOFF_MS[failures]));
    }
  }
}

/**
 * Follows a stream of events until `close()`. Callbacks: `events` receives lists of events in
 * order, each event once; `status` receives each change of the agents' status; `synced` receives the
 * cursor at which the history ends; `state` receives one of connecting, live, lost; `refused` receives an ApiError after which the stream does not
 * reconnect.
 */
export function follow(path, { after = 0, types, interactive, events, status, synced, state, refused }) {
  let cursor = after, closed = false, failures = 0, abort = null, wake = null;

  async function run() {
    while (!closed) {
      try {
        await read();
        failures = 0;
      } catch (error) {
        if (closed) return;
        if (error instanceof ApiError && [400, 401, 403, 404].includes(error.status)) return refused?.(error);
      }
      if (closed) return;
      state?.("lost");
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, backoff(failures++));
      });
    }
  }

  async function read() {
    abort = new AbortController();
    let timer = null;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE_MS);
    };
    heard();
    try {
      const query = new URLSearchParams({ after: cursor, ...(types ? { types } : {}), ...(interactive ? { interactive } : {}) });
      const headers = authorized({ accept: "text/event-stream" });
      const response = await fetch(`${path}?${query}`, { headers, signal: abort.signal, cache: "no-store" });
      if (!response.ok) {
        const value = await response.json().catch(() => ({}));
        throw new ApiError(response.status, value.error || {});
      }
      state?.("live");
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done || closed) return;
        heard();
        failures = 0;
        const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = frames.pop();
        take(frames);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Calls a callback. An exception in the callback does not end the stream. */
  function tell(reader, what) {
    try {
      reader?.(what);
    } catch (error) {
      console.error(error);
    }
  }

  function take(frames) {
    let batch = [];
    for (const frame of frames) {
      let id = null, data = "", name = "";
      for (const line of frame.split("\n")) {
        if (line.startsWith("data: ")) data += line.slice(6);
        else if (line.startsWith("id: ")) id = Number(line.slice(4));
        else if (line.startsWith("event: ")) name = line.slice(7);
      }
      if (name === "synced") {
        if (batch.length) tell(events, batch);
        batch = [];
        const upTo = JSON.parse(data).cursor;
        cursor = Math.max(cursor, upTo);
        tell(synced, upTo);
      } else if (name === "agent.status") {
        tell(status, JSON.parse(data));
      } else if (id !== null && data && id > cursor) {
        cursor = id;
        batch.push(JSON.parse(data));
      }
      if (closed) return;
    }
    if (batch.length) tell(events, batch);
  }

  const now = () => {
    failures = 0;
    wake?.();
  };
  addEventListener("online", now);
  state?.("connecting");
  run();
  return {
    close() {
      closed = true;
      abort?.abort();
      wake?.();
      removeEventListener("online", now);
    },
    get cursor() {
      return cursor;
    },
  };
}
