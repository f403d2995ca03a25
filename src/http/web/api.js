// Access to the server: calls of methods over REST with the token, and event streams that reconnect
// at their cursor.

import { ApiError, backoff, decoded, Delivery } from "./transport.js";

const KEY = "nuncio.token";
const SILENCE_MS = 40_000;
const TRIES_MAX = 5;
/** Codes of errors after which a stream does not reconnect. */
const FINAL = ["invalid_params", "invalid_request", "unauthenticated", "forbidden", "not_found"];

/**
 * The REST routes of the methods that the console calls. CREATE is a POST that takes effect once,
 * even if it is sent again after a broken connection.
 */
export const ROUTES = {
  "session/new": "CREATE /v1/sessions",
  "session/list": "GET /v1/sessions",
  "session/resume": "POST /v1/sessions/{sessionId}/resume",
  "session/fork": "CREATE /v1/sessions/{sessionId}/fork",
  "session/close": "POST /v1/sessions/{sessionId}/close",
  "session/delete": "DELETE /v1/sessions/{sessionId}",
  "session/cancel": "POST /v1/sessions/{sessionId}/cancel",
  "session/set_mode": "PUT /v1/sessions/{sessionId}/mode",
  "session/set_config_option": "PUT /v1/sessions/{sessionId}/config/{configId}",
  "_nuncio/session/get": "GET /v1/sessions/{sessionId}",
  "_nuncio/session/configure": "PATCH /v1/sessions/{sessionId}",
  "_nuncio/session/messages": "GET /v1/sessions/{sessionId}/messages",
  "_nuncio/session/result": "GET /v1/sessions/{sessionId}/result",
  "_nuncio/session/message": "CREATE /v1/sessions/{sessionId}/messages",
  "_nuncio/session/retry": "CREATE /v1/sessions/{sessionId}/turns/{turnId}/retry",
  "_nuncio/session/queue/edit": "PUT /v1/sessions/{sessionId}/queue/{messageId}",
  "_nuncio/session/queue/remove": "DELETE /v1/sessions/{sessionId}/queue/{messageId}",
  "_nuncio/permission/list": "GET /v1/permissions",
  "_nuncio/permission/answer": "POST /v1/permissions/{permissionId}",
  "_nuncio/command/list": "GET /v1/commands",
  "_nuncio/file/search": "GET /v1/files",
  "_nuncio/file/read": "GET /v1/files/content",
  "_nuncio/agent/list": "GET /v1/agents",
  "_nuncio/settings/get": "GET /v1/settings",
  "_nuncio/settings/set_model": "PUT /v1/settings/model",
  "_nuncio/settings/mcp/add": "POST /v1/settings/mcp",
  "_nuncio/settings/mcp/remove": "DELETE /v1/settings/mcp/{name}",
  "_nuncio/settings/rules/add": "POST /v1/settings/rules",
  "_nuncio/settings/rules/remove": "POST /v1/settings/rules/remove",
  "_nuncio/model/list": "GET /v1/models",
  "_nuncio/status": "GET /v1/status",
  "_nuncio/workspace/create": "CREATE /v1/workspaces",
  "_nuncio/workspace/list": "GET /v1/workspaces",
  "_nuncio/workspace/apply": "CREATE /v1/workspaces/{workspaceId}/apply",
  "_nuncio/workspace/delete": "DELETE /v1/workspaces/{workspaceId}",
  "_nuncio/comparison/start": "CREATE /v1/comparisons",
};

let token = null;

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

/** Returns true if the server refused the token. */
export const refusesToken = (error) => error.code === "unauthenticated";

/** Sends a request. Throws ApiError for an error response. */
async function request(path, options) {
  const headers = { ...options.headers, authorization: `Bearer ${token}` };
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new ApiError({ message: `the server returned status ${response.status}`, ...body?.error });
}

/**
 * Calls a method. Returns its result, with the fields of `_meta.nuncio` at the top level. Throws
 * ApiError for an error response, TypeError if the server cannot be reached.
 */
export async function call(method, { _meta, ...params } = {}) {
  const [verb, template] = ROUTES[method].split(" ");
  // REST takes the fields of `_meta.nuncio` at the top level, too.
  const fields = new Map(Object.entries({ ...params, ..._meta?.nuncio }).filter(([, value]) => value !== undefined));
  let path = template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = fields.get(name);
    fields.delete(name);
    return encodeURIComponent(value);
  });
  const options = { method: verb, headers: {} };
  if (verb !== "GET" && verb !== "DELETE") {
    options.body = JSON.stringify(Object.fromEntries(fields));
    options.headers["content-type"] = "application/json";
  } else if (fields.size) {
    path += `?${new URLSearchParams([...fields])}`;
  }
  if (verb === "CREATE") {
    options.method = "POST";
    options.headers["idempotency-key"] = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  for (let failures = 0; ; failures++) {
    try {
      const text = await (await request(path, options)).text();
      return text ? JSON.parse(text) : {};
    } catch (error) {
      if (error instanceof SyntaxError) throw new ApiError({ message: "the response is not JSON" });
      if (!(error instanceof TypeError) || verb !== "CREATE" || failures === TRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, backoff(failures)));
    }
  }
}

/** Converts a frame of server-sent events to a message of a Delivery. */
function message(frame) {
  let id = null, data = "", name = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("data: ")) data += line.slice(6);
    else if (line.startsWith("id: ")) id = Number(line.slice(4));
    else if (line.startsWith("event: ")) name = line.slice(7);
  }
  if (name === "synced") return { synced: JSON.parse(data).cursor };
  if (name === "agent.status") return { status: JSON.parse(data) };
  return id !== null && data ? { event: JSON.parse(data), cursor: id } : {};
}

/**
 * Follows events until `close()`, with the params of `_nuncio/events/follow` and the callbacks of a
 * Delivery.
 */
export function follow({ sessionId, after = 0, ...filters }, callbacks) {
  const path = sessionId ? `/v1/sessions/${encodeURIComponent(sessionId)}/events` : "/v1/events";
  const delivery = new Delivery(after, callbacks);
  let failures = 0, abort = null, wake = null;

  async function run() {
    while (!delivery.closed) {
      try {
        await read();
        failures = 0;
      } catch (error) {
        if (FINAL.includes(error.code)) return delivery.take([{ refused: error }]);
      }
      if (delivery.closed) return;
      delivery.tell("state", "lost");
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
      const query = new URLSearchParams({ after: delivery.cursor, ...filters });
      const response = await request(`${path}?${query}`, { headers: { accept: "text/event-stream" }, signal: abort.signal });
      delivery.tell("state", "live");
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done || delivery.closed) return;
        heard();
        failures = 0;
        const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = frames.pop();
        delivery.take(frames.map(message));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  const now = () => {
    failures = 0;
    wake?.();
  };
  addEventListener("online", now);
  delivery.tell("state", "connecting");
  run();
  return {
    close() {
      delivery.closed = true;
      abort?.abort();
      wake?.();
      removeEventListener("online", now);
    },
  };
}
