// A conversation's webview and its messages, with a stand-in for VS Code.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createApi, load } from "./stand_in.mjs";

function conversation(state = {}, vscode = createApi(["/project"])) {
  const found = { posted: [], calls: [], shown: [], prompted: 0, followed: [], disposed: 0, kept: [] };
  const webview = {
    cspSource: "self:",
    asWebviewUri: (uri) => uri,
    onDidReceiveMessage: (does) => ((found.receive = does), { dispose() {} }),
    postMessage: (message) => found.posted.push(message),
  };
  const agent = { follow: (params, sink) => (found.followed.push({ params, sink }), { dispose: () => found.disposed++ }) };
  const api = {
    agent,
    async call(method, params) {
      found.calls.push([method, params]);
      if (method === "fails") throw Object.assign(new Error("no"), { data: { hint: "try" } });
      return { done: true };
    },
  };
  const hooks = { ready() {}, shown: (_, id) => found.shown.push(id), prompted: () => found.prompted++, failed: (error) => found.posted.push(error.message) };
  const { Conversation } = load("view.ts", vscode);
  return { ...found, found, webview, view: new Conversation(webview, api, hooks, vscode.Uri.file("/extension"), "sidebar", state, (kept) => found.kept.push(kept)) };
}

/** Waits until this number of messages was posted, and those that are pending are handled. */
async function posts({ posted }, count) {
  while (posted.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
  await new Promise((resolve) => setTimeout(resolve, 30));
}

test("the page has a policy, and its state is text", () => {
  const { webview } = conversation({ storage: { draft: `"'><script>&` } });
  const nonce = /script-src 'nonce-([\w-]{20,})'/.exec(webview.html)[1];
  assert.ok(webview.html.includes(`<script nonce="${nonce}"`) && webview.html.includes("require-trusted-types-for 'script'"));
  assert.equal(webview.html.match(/<script/g).length, 1);
  assert.ok(/data-state="[^"<>]*"/.test(webview.html));
});

test("the page has the translations of the window's language, as text", () => {
  const vscode = createApi(["/project"]);
  assert.ok(!conversation({}, vscode).webview.html.includes("data-texts") && conversation({}, vscode).webview.html.includes('<html lang="en">'));
  const bundle = { "Open diff": `"Diff" <öffnen> & 'mehr'` };
  Object.assign(vscode.l10n, { bundle });
  vscode.env.language = "de";
  const { html } = conversation({}, vscode).webview;
  const unescaped = (text) => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code));
  assert.deepEqual(JSON.parse(unescaped(/ data-texts="([^"<>]*)"/.exec(html)[1])), bundle);
  assert.ok(html.includes('<html lang="de">'));
});

test("commands wait until the page is ready, and again after it was loaded anew", async () => {
  const { found, view } = conversation();
  view.show("s");
  view.prompt("Fix it");
  assert.deepEqual(found.posted, []);
  found.receive({ type: "ready" });
  assert.deepEqual(found.posted, [{ type: "show", session: "s" }, { type: "send", parts: [{ type: "text", text: "Fix it" }] }]);
  found.receive({ type: "follow", id: 1, params: { sessionId: "s" } });
  found.receive({ type: "starting" });
  view.compose({ text: "more" });
  assert.deepEqual([found.posted.length, found.disposed], [2, 1]);
  found.receive({ type: "ready" });
  assert.deepEqual(found.posted[2], { type: "compose", text: "more" });
});

test("calls are answered, and a prompt is reported", async () => {
  const { found } = conversation();
  found.receive({ type: "call", id: 1, method: "_nuncio/session/message", params: { parts: [] } });
  found.receive({ type: "call", id: 2, method: "fails" });
  found.receive({ type: "shown", session: "s" });
  found.receive({ type: "shown", session: 7 });
  found.receive({ type: "unknown" });
  found.receive(null);
  await posts(found, 2);
  assert.deepEqual(found.posted[0], { type: "result", id: 1, value: { done: true } });
  assert.deepEqual([found.posted[1].id, found.posted[1].error.message], [2, "no"]);
  assert.deepEqual([found.prompted, found.shown, found.posted.length], [1, ["s", null], 2]);
});

test("events of a stream are posted together, and not after it was left", async () => {
  const { found } = conversation();
  found.receive({ type: "follow", id: 5, params: { sessionId: "s" } });
  const [{ sink }] = found.followed;
  sink.synced(0);
  sink.event({ seq: 1 }, 1);
  sink.event({ seq: 2 }, 2);
  await posts(found, 1);
  assert.deepEqual(found.posted, [{ type: "stream", streams: [{ id: 5, messages: [{ synced: 0 }, { event: { seq: 1 }, cursor: 1 }, { event: { seq: 2 }, cursor: 2 }] }] }]);
  sink.event({ seq: 3 }, 3);
  found.receive({ type: "unfollow", id: 5 });
  await posts(found, 1);
  assert.deepEqual([found.posted.flatMap(({ streams }) => streams).length, found.disposed], [1, 1]);
});

test("a file that is not here is an error of the window", async () => {
  const { found } = conversation();
  found.receive({ type: "openFile", path: "no/such.txt", cwd: "/project" });
  await posts(found, 1);
  assert.deepEqual(found.posted, ["no/such.txt is not a file here"]);
});
