// Access to the server: the sign-in, calls of methods over REST, and event streams that reconnect at
// their cursor.

import { t } from "./texts.js";
import { ApiError, backoff, decoded, Delivery } from "./transport.js";

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

/**
 * The token in a browser that refuses the cookie of the sign-in, else null; `given`: the token of the
 * sign-in, until a request has shown which of both it is.
 */
let token = null, given = null;

/**
 * Takes the credential from the page URL, `{token}` or `{code, keep}`, and removes it there; null if
 * there is none.
 */
export function takeCredential() {
  const found = /^#(token|code)=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname + location.search);
  const [, name, value] = found;
  // A code is for another device of the user, such as a phone.
  return name === "code" ? { code: decoded(value), keep: true } : { token: decoded(value) };
}

/** Signs in: the browser gets a cookie, which no script can read. */
export async function signIn(credential) {
  token = given = null;
  await post("/console/login", credential);
  given = credential.token ?? null;
}

/** Ends the sign-in of this browser. */
export async function signOut() {
  await post("/console/logout", {}).catch(() => {});
  token = given = null;
}

/** Returns the address of the console with a code for one sign-in. */
export async function newAddress() {
  const { code } = await post("/console/code", {});
  return `${location.origin}/#code=${code}`;
}

async function post(path, body) {
  return (await request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).json();
}

/** Returns true if the server refused the token. */
export const refusesToken = (error) => error.code === "unauthenticated";

/** Sends a request. Throws ApiError for an error response. */
async function request(path, options) {
  const headers = { ...options.headers, ...(token && { authorization: `Bearer ${token}` }) };
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  if (response.ok) {
    given = null;
    return response;
  }
  const body = await response.json().catch(() => null);
  if (response.status === 401 && given) {
    [token, given] = [given, null];
    return request(path, options);
  }
  throw new ApiError({ message: t`the server returned status ${response.status}`, ...body?.error });
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
      if (error instanceof SyntaxError) throw new ApiError({ message: t`the response is not JSON` });
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
