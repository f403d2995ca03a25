// The conversion of REST calls to methods, with the table of the build.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { routes } from "../../../editors/vscode/scripts/routes.mjs";
import { toMethod, toRest, toRestError } from "../../../editors/vscode/src/rest.ts";

const schema = (name) => JSON.parse(readFileSync(new URL(`../../../schema/${name}`, import.meta.url), "utf8"));
const table = routes(schema("openapi.json"), schema("methods.json"));
const call = (verb, path, body) => {
  const { method, params } = toMethod(table, verb, path, body) ?? {};
  return [method, params];
};

const CASES = [
  ["GET", "/v1/status", undefined, ["_nuncio/status", {}]],
  ["GET", "/v1/sessions?empty=true&cursor=a%2Fb", undefined, ["session/list", { cursor: "a/b", _meta: { nuncio: { empty: true } } }]],
  ["POST", "/v1/sessions", { cwd: "/a", mode: "plan", model: "m" }, ["session/new", { cwd: "/a", _meta: { nuncio: { model: "m", mode: "plan" } } }]],
  ["POST", "/v1/sessions/s%2F1/prompt", { prompt: [] }, ["session/prompt", { prompt: [], sessionId: "s/1" }]],
  ["POST", "/v1/sessions/s/messages", { role: "user", parts: [], delivery: "steer" }, ["_nuncio/session/message", { role: "user", parts: [], delivery: "steer", sessionId: "s" }]],
  ["PUT", "/v1/sessions/s/mode", { modeId: "ask" }, ["session/set_mode", { modeId: "ask", sessionId: "s" }]],
  ["PUT", "/v1/sessions/s/config/agent.model", { value: "x" }, ["session/set_config_option", { value: "x", sessionId: "s", configId: "agent.model" }]],
  ["PUT", "/v1/sessions/s/queue/m", { delivery: "steer" }, ["_nuncio/session/queue/edit", { delivery: "steer", sessionId: "s", messageId: "m" }]],
  ["DELETE", "/v1/sessions/s/queue/m", undefined, ["_nuncio/session/queue/remove", { sessionId: "s", messageId: "m" }]],
  ["POST", "/v1/sessions/s/turns/t/retry", {}, ["_nuncio/session/retry", { sessionId: "s", turnId: "t" }]],
  ["POST", "/v1/permissions/p", { optionId: "o" }, ["_nuncio/permission/answer", { optionId: "o", permissionId: "p" }]],
  ["GET", "/v1/files?sessionId=s&query=a&limit=20", undefined, ["_nuncio/file/search", { sessionId: "s", query: "a", limit: 20 }]],
  ["DELETE", "/v1/workspaces/w?confirm=c", undefined, ["_nuncio/workspace/delete", { confirm: "c", workspaceId: "w" }]],
  ["DELETE", "/v1/sessions/s", undefined, ["session/delete", { sessionId: "s" }]],
  ["GET", "/v1/none", undefined, [undefined, undefined]],
];

for (const [verb, path, body, expected] of CASES) test(`${verb} ${path}`, () => assert.deepEqual(call(verb, path, body), expected));

test("only the cancel of a turn is a notification", () => {
  assert.deepEqual(table.filter((row) => row.notification).map((row) => row.method), ["session/cancel"]);
});

test("each route of the console has a method", () => {
  const calls = new Set();
  for (const name of ["app", "ask", "composer", "live", "queue", "sessions", "workspaces"]) {
    const text = readFileSync(new URL(`../../../src/http/web/${name}.js`, import.meta.url), "utf8");
    for (const [, verb, path] of text.matchAll(/call\("(\w+)", "(\/v1\/[^"?]+)/g)) calls.add(`${verb} ${path}`);
    for (const [, path] of text.matchAll(/\bget\(["`](\/v1\/[\w/]+)["`?]/g)) calls.add(`GET ${path}`);
    for (const [, path] of text.matchAll(/\bpost\("(\/v1\/[\w/]+)"/g)) calls.add(`POST ${path}`);
    for (const [, verb, path] of text.matchAll(/call\("(\w+)", route\([^,)]+, "(\/[\w/]+)"/g)) calls.add(`${verb} /v1/sessions/x${path}`);
    for (const [, path] of text.matchAll(/\bpost\(route\([^,)]+, "(\/[\w/]+)"/g)) calls.add(`POST /v1/sessions/x${path}`);
  }
  assert.ok(calls.size >= 8, [...calls].join(", "));
  for (const one of calls) assert.ok(toMethod(table, ...one.split(" ")), one);
});

test("results have the fields of _meta.nuncio, also in lists", () => {
  const result = { sessions: [{ sessionId: "s", _meta: { nuncio: { status: "idle" }, other: 1 } }], _meta: { nuncio: { a: 1 } } };
  assert.deepEqual(toRest(result), { sessions: [{ sessionId: "s", _meta: { other: 1 }, status: "idle" }], a: 1 });
  assert.deepEqual(toRest(null), {});
});

test("errors", () => {
  const error = { code: -32010, message: "busy", data: { code: "session_busy", details: "a turn runs", hint: "wait" } };
  assert.deepEqual(toRestError(error), { status: 409, code: "session_busy", message: "a turn runs", hint: "wait", details: undefined });
  assert.equal(toRestError(new Error("x")).status, 500);
});
