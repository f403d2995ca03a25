// The methods that the console and the extension call, and the form of results and errors.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { errorFacts, lifted } from "../../../editors/vscode/src/answers.ts";
import { call, ROUTES } from "../../../src/http/web/api.js";

const at = (path) => new URL(`../../../${path}`, import.meta.url);
const schema = (name) => JSON.parse(readFileSync(at(`schema/${name}`), "utf8"));
const methods = schema("methods.json");
const { paths } = schema("openapi.json");

/** Returns the methods that the files of a directory call. */
function called(directory) {
  const texts = readdirSync(at(directory)).filter((name) => /\.[jt]s$/.test(name)).map((name) => readFileSync(at(`${directory}/${name}`), "utf8"));
  return [...new Set(texts.flatMap((text) => [...text.matchAll(/\b(?:call|request)(?:<[^(]*>)?\(\s*"([^"]+)"/g)].map(([, name]) => name)))].sort();
}

test("each route of the console is a route of its method", () => {
  for (const [method, route] of Object.entries(ROUTES)) {
    const [verb, path] = route.replace("CREATE", "POST").split(" ");
    assert.equal(paths[path]?.[verb.toLowerCase()]?.["x-method"], method, route);
  }
});

test("the console has a route for each method that it calls, and no others", () => {
  assert.deepEqual(called("src/http/web"), Object.keys(ROUTES).sort());
});

test("the extension calls methods of nuncio", () => {
  const names = called("editors/vscode/src");
  assert.ok(names.length >= 8, names.join(", "));
  for (const name of names) assert.ok(methods[name], name);
});

/** What a call sends: the verb, the path, the body, and whether it has an idempotency key. */
const CALLS = [
  ["_nuncio/status", undefined, ["GET", "/v1/status", undefined, false]],
  ["session/list", { cursor: "a/b", cwd: undefined, _meta: { nuncio: { empty: true } } }, ["GET", "/v1/sessions?cursor=a%2Fb&empty=true", undefined, false]],
  ["session/new", { cwd: undefined, _meta: { nuncio: { model: "m", mode: "plan" } } }, ["POST", "/v1/sessions", { model: "m", mode: "plan" }, true]],
  ["_nuncio/session/message", { sessionId: "s/1", parts: [], delivery: "steer" }, ["POST", "/v1/sessions/s%2F1/messages", { parts: [], delivery: "steer" }, true]],
  ["session/set_config_option", { sessionId: "s", configId: "agent.model", value: "x" }, ["PUT", "/v1/sessions/s/config/agent.model", { value: "x" }, false]],
  ["_nuncio/session/queue/edit", { sessionId: "s", messageId: "m", delivery: "steer" }, ["PUT", "/v1/sessions/s/queue/m", { delivery: "steer" }, false]],
  ["_nuncio/session/queue/remove", { sessionId: "s", messageId: "m" }, ["DELETE", "/v1/sessions/s/queue/m", undefined, false]],
  ["_nuncio/session/retry", { sessionId: "s", turnId: "t" }, ["POST", "/v1/sessions/s/turns/t/retry", {}, true]],
  ["_nuncio/permission/answer", { permissionId: "p", optionId: "o" }, ["POST", "/v1/permissions/p", { optionId: "o" }, false]],
  ["_nuncio/file/search", { sessionId: "s", query: "a b", limit: 20 }, ["GET", "/v1/files?sessionId=s&query=a+b&limit=20", undefined, false]],
  ["_nuncio/workspace/delete", { workspaceId: "w", confirm: "c" }, ["DELETE", "/v1/workspaces/w?confirm=c", undefined, false]],
  ["session/delete", { sessionId: "s" }, ["DELETE", "/v1/sessions/s", undefined, false]],
];

for (const [method, params, expected] of CALLS) {
  test(`${method} as REST`, async (t) => {
    let sent;
    t.mock.method(globalThis, "fetch", async (path, { method: verb, body, headers }) => {
      sent = [verb, path, body && JSON.parse(body), /^[0-9a-f]{32}$/.test(headers["idempotency-key"])];
      return new Response("{}");
    });
    assert.deepEqual(await call(method, params), {});
    assert.deepEqual(sent, expected);
  });
}

test("only what creates something is sent again after a broken connection, with the same key", async (t) => {
  const keys = [];
  t.mock.method(globalThis, "fetch", async (_, { headers }) => {
    if (keys.push(headers["idempotency-key"]) % 2) throw new TypeError("broken");
    return new Response('{"sessionId": "s"}');
  });
  assert.deepEqual(await call("session/new"), { sessionId: "s" });
  assert.equal(keys.length, 2);
  assert.ok(keys[0] && keys[0] === keys[1], keys.join(", "));
  await assert.rejects(call("session/cancel", { sessionId: "s" }), TypeError);
  assert.equal(keys.length, 3);
});

test("errors of REST", async (t) => {
  const answers = [
    [409, { error: { code: "session_busy", message: "a turn runs", hint: "wait", requestId: "r" } }, { code: "session_busy", message: "a turn runs", hint: "wait" }],
    [502, "<html>", { code: undefined, message: "the server returned status 502", hint: undefined }],
    [200, "<html>", { code: undefined, message: "the response is not JSON", hint: undefined }],
  ];
  for (const [status, body, { code, message, hint }] of answers) {
    t.mock.method(globalThis, "fetch", async () => new Response(typeof body === "string" ? body : JSON.stringify(body), { status }));
    await assert.rejects(call("_nuncio/status"), (error) => (assert.deepEqual([error.code, error.message, error.hint], [code, message, hint]), true));
  }
});

test("results have the fields of _meta.nuncio, also in lists", () => {
  const result = { sessions: [{ sessionId: "s", _meta: { nuncio: { status: "idle" }, other: 1 } }, 1], _meta: { nuncio: { a: 1 } } };
  assert.deepEqual(lifted(result), { sessions: [{ sessionId: "s", _meta: { other: 1 }, status: "idle" }, 1], a: 1 });
  assert.equal(lifted(null), null);
});

test("errors of JSON-RPC", () => {
  const error = { code: -32010, message: "busy", data: { code: "session_busy", details: "a turn runs", hint: "wait" } };
  assert.deepEqual(errorFacts(error), { code: "session_busy", message: "a turn runs", hint: "wait", details: undefined });
  assert.deepEqual(errorFacts(new Error("x")), { code: undefined, message: "x", hint: undefined, details: undefined });
});
