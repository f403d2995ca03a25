// A client generated from schema/openapi.json drives a running bridge: session → prompt → events → approve → messages → close → delete.
// Its types are checked by tsc (see ./run). `node client.mjs URL TOKEN`; exits with 1 and the reason when something does not hold.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";

/** @typedef {import("./generated.js").paths} Paths */
/** @typedef {import("./generated.js").components["schemas"]["Event"]} Event */

const [url = "", token = ""] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
/** @type {import("openapi-fetch").Client<Paths>} */
const client = createClient({ baseUrl: url, headers });

setTimeout(() => {
  console.error("no end after 60 s");
  process.exit(1);
}, 60_000).unref();

/**
 * What a call answered; an error is a failure of the test.
 * @template T
 * @param {Promise<{ data?: T, error?: unknown, response: Response }>} call
 */
async function got(call) {
  const { data, error, response } = await call;
  assert.ok(data !== undefined, `${response.status} ${response.url}: ${JSON.stringify(error)}`);
  return data;
}

/** @param {string} sessionId */
const path = (sessionId) => ({ params: { path: { sessionId } } });

/**
 * The events of a session from its first, as they come. A stream is more than fetch with types can say: it is read by hand.
 * @param {string} sessionId
 * @returns {AsyncGenerator<Event>}
 */
async function* events(sessionId) {
  const { data, response } = await client.GET("/v1/sessions/{sessionId}/events", { ...path(sessionId), parseAs: "stream" });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  assert.ok(data);
  let text = "";
  for await (const piece of data.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const said = frame.split("\n").find((line) => line.startsWith("data: "));
      if (said && !frame.startsWith("event: ")) yield JSON.parse(said.slice("data: ".length));
    }
  }
}

const info = await got(client.GET("/v1/info"));
assert.equal(info.protocolVersion, 1);

const { sessionId } = await got(client.POST("/v1/sessions", { body: { title: "By a generated client" } }));
const { turnId } = await (async () => {
  /** @type {{ type: "text", text: string }[]} */
  const prompt = [{ type: "text", text: "Make a file." }];
  const { data, response } = await client.POST("/v1/sessions/{sessionId}/prompt", {
    params: { path: { sessionId }, header: { Prefer: "respond-async", "Idempotency-Key": "generated" } },
    body: { prompt },
  });
  assert.equal(response.status, 202);
  assert.ok(typeof data === "object" && "turnId" in data, JSON.stringify(data));
  return data;
})();

const kinds = [];
for await (const event of events(sessionId)) {
  kinds.push(event.body.type);
  if (event.body.type === "permission.requested") {
    const { permissions } = await got(client.GET("/v1/permissions", { params: { query: { sessionId } } }));
    assert.equal(permissions.length, 1);
    const permission = permissions[0];
    assert.ok(permission);
    assert.deepEqual([permission.turnId, permission.permissionId], [turnId, event.body.permissionId]);
    const answer = { params: { path: { permissionId: permission.permissionId } } };
    const wrong = await client.POST("/v1/permissions/{permissionId}", { ...answer, body: { optionId: "no such" } });
    assert.equal(wrong.error?.error.code, "invalid_params");
    await got(client.POST("/v1/permissions/{permissionId}", { ...answer, body: { outcome: "allow_once" } }));
  }
  if (event.turnId === turnId && event.body.type.startsWith("turn.") && event.body.type !== "turn.started") break;
}
assert.equal(kinds.at(-1), "turn.completed");
for (const kind of ["session.created", "turn.started", "message.completed", "step.started", "tool.started", "permission.resolved", "tool.completed", "step.completed"]) {
  assert.ok(kinds.includes(/** @type {Event["body"]["type"]} */ (kind)), `no ${kind} in ${kinds}`);
}

const { messages } = await got(client.GET("/v1/sessions/{sessionId}/messages", path(sessionId)));
const said = messages.flatMap((message) => message.parts.map((part) => (part.type === "text" ? part.text : part.type)));
assert.ok(said.includes("Make a file.") && said.includes("It is there."), JSON.stringify(said));
const { turns } = await got(client.GET("/v1/sessions/{sessionId}/turns", path(sessionId)));
assert.deepEqual(turns.map((turn) => [turn.turnId, turn.model?.startsWith("scripted:")]), [[turnId, true]]);
const calls = messages.filter((message) => message.role === "tool");
assert.deepEqual(calls.map((call) => [call.name, call.category, call.status]), [["bash", "command", "completed"]]);

await got(client.POST("/v1/sessions/{sessionId}/close", { ...path(sessionId), body: {} }));
await got(client.DELETE("/v1/sessions/{sessionId}", path(sessionId)));
const gone = await client.GET("/v1/sessions/{sessionId}", path(sessionId));
assert.deepEqual([gone.response.status, gone.error?.error.code], [404, "not_found"]);
