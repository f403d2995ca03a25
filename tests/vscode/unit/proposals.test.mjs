// Diff tabs of permission requests: what they show, and when they answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createApi, load } from "./stand_in.mjs";

const OPTIONS = [
  { optionId: "yes", kind: "allow_once" },
  { optionId: "always", kind: "allow_always" },
  { optionId: "no", kind: "reject_once" },
];
const diff = (path, oldText, newText) => ({ type: "diff", path, oldText, newText });

/** A window with a group of tabs, whose diff tabs come to the front when they are shown. */
function window({ fails = false, settings = {} } = {}) {
  const vscode = createApi(["/project"]);
  class TabInputTextDiff {
    constructor(original, modified) {
      Object.assign(this, { original, modified });
    }
  }
  const uri = (fields) => ({ ...fields, fsPath: fields.path, with: (others) => uri({ ...fields, ...others }), toString: () => `${fields.scheme}://${fields.path}?${fields.query ?? ""}` });
  const group = { tabs: [], activeTab: undefined };
  const titles = [];
  Object.assign(vscode, { TabInputTextDiff, FileType: { File: 1 }, FileChangeType: { Changed: 1 } });
  vscode.Uri.file = (path) => uri({ scheme: "file", path });
  vscode.window.tabGroups = {
    all: [group],
    activeTabGroup: group,
    onDidChangeTabs: () => ({ dispose() {} }),
    onDidChangeTabGroups: () => ({ dispose() {} }),
    async close(tabs) {
      group.tabs = group.tabs.filter((tab) => !tabs.includes(tab));
      if (!group.tabs.includes(group.activeTab)) group.activeTab = group.tabs.at(-1);
    },
  };
  vscode.window.showInformationMessage = async (text) => void vscode.calls.push(["notified", text]);
  vscode.workspace.getConfiguration = () => ({ get: (name, otherwise) => settings[name] ?? otherwise });
  vscode.workspace.registerFileSystemProvider = vscode.workspace.registerTextDocumentContentProvider = () => ({ dispose() {} });
  const run = vscode.commands.executeCommand;
  vscode.commands.executeCommand = async (command, ...words) => {
    if (command !== "vscode.diff") return run(command, ...words);
    const [original, modified, title] = words;
    titles.push(title);
    const known = group.tabs.find((tab) => tab.input.modified.toString() === modified.toString());
    group.activeTab = known ?? { input: new TabInputTextDiff(original, modified) };
    if (!known) group.tabs.push(group.activeTab);
  };
  const found = { answers: [], failed: [], requests: [], listed: [] };
  const api = {
    async call(method, params) {
      if (method === "_nuncio/permission/list") return { permissions: found.listed };
      if (fails) throw new Error("gone");
      found.answers.push([params.permissionId, params.optionId ?? params.outcome]);
    },
  };
  const { Proposals, PROPOSAL } = load("proposals.ts", vscode);
  const hooks = { failed: (error) => found.failed.push(error.message), showRequest: async (id) => void found.requests.push(id) };
  const proposals = new Proposals(api, (id) => id === "mine", hooks);
  const rest = () => new Promise((resolve) => setImmediate(resolve));
  const take = async (body, sessionId = "mine") => (proposals.take({ sessionId, body }), await rest());
  const request = (content, options = OPTIONS, permissionId = "perm") => take({ type: "permission.requested", permissionId, options, content });
  const shown = () => group.tabs.map((tab) => tab.input.modified.path);
  return { ...found, found, vscode, api, proposals, group, titles, take, request, shown, PROPOSAL, rest };
}

test("a request of this window has a tab for each file, and others have none", async () => {
  const { take, request, shown, titles } = window();
  await take({ type: "permission.requested", permissionId: "other", options: OPTIONS, content: [diff("/project/x", "a", "b")] }, "elsewhere");
  await request([{ type: "content", content: { type: "text", text: "no change" } }], OPTIONS, "command");
  assert.deepEqual(shown(), []);
  await request([diff("/project/a.txt", "one", "two"), diff("/project/new.txt", undefined, "new")]);
  assert.deepEqual([shown(), titles], [["/project/a.txt", "/project/new.txt"], ["1 of 2: a.txt (proposed by nuncio)", "2 of 2: new.txt (new file, proposed by nuncio)"]]);
  await request([diff("/project/a.txt", "one", "two")]);
  assert.equal(titles.length, 2);
  await take({ type: "permission.resolved", permissionId: "perm" });
  assert.deepEqual(shown(), []);
});

test("at most five tabs are opened at once, and the end of the turn closes them", async () => {
  const { request, take, shown } = window();
  await request(Array.from({ length: 8 }, (_, at) => diff(`/project/${at}`, "a", "b")));
  assert.equal(shown().length, 5);
  await take({ type: "turn.cancelled" });
  assert.deepEqual(shown(), []);
});

test("a setting switches the tabs off", async () => {
  const { request, shown } = window({ settings: { diffTab: false } });
  await request([diff("/project/a.txt", "one", "two")]);
  assert.deepEqual(shown(), []);
});

test("a request is allowed only after each of its files was in front", async () => {
  const { request, answers, proposals, group } = window();
  await request(["a", "b", "c"].map((name) => diff(`/project/${name}`, "one", "two")));
  const front = () => group.activeTab.input.modified.path;
  // The last tab is in front.
  for (const next of ["/project/a", "/project/b"]) {
    await proposals.answer(true);
    assert.deepEqual([front(), answers], [next, []]);
  }
  await proposals.answer(true);
  assert.deepEqual(answers, [["perm", "yes"]]);
});

test("a request is rejected at once, by its own option or by an outcome", async () => {
  for (const [options, answer] of [[OPTIONS, "no"], [OPTIONS.slice(0, 1), "reject_once"]]) {
    const { request, answers, proposals } = window();
    await request([diff("/project/a", "one", "two"), diff("/project/b", "one", "two")], options);
    await proposals.answer(false);
    assert.deepEqual(answers, [["perm", answer]]);
  }
});

test("content without a tab is answered in the conversation", async () => {
  const { request, answers, proposals, found, vscode } = window();
  await request([diff("/project/a", "one", "two"), { type: "content", content: { type: "text", text: "large.txt: …" } }]);
  await proposals.answer(true);
  assert.deepEqual([answers, found.requests], [[], ["mine"]]);
  assert.match(vscode.calls.find(([kind]) => kind === "notified")[1], /answer it in the conversation/);
});

test("texts that the user changed are part of an answer that allows", async () => {
  const { request, api, group, vscode } = window();
  await request([diff("/project/a", "one\n", "two\n"), diff("/project/b", "one\n", "two\n")]);
  const changed = group.tabs[0].input.modified;
  vscode.workspace.textDocuments.push({ uri: changed, isClosed: false, getText: () => "three\n" });
  const edits = [{ path: "/project/a", text: "three\n" }];
  assert.deepEqual(api.answer("perm", { optionId: "always" }), { optionId: "always", edits });
  assert.deepEqual(api.answer("perm", { outcome: "allow_once" }), { outcome: "allow_once", edits });
  for (const params of [{ optionId: "no" }, { outcome: "reject_once" }, {}]) assert.deepEqual(api.answer("perm", params), params);
  assert.deepEqual(api.answer("unknown", { optionId: "yes" }), { optionId: "yes" });
});

test("a request that was answered meanwhile is no failure, another error is one", async () => {
  const { request, proposals, failed, take } = window({ fails: true });
  await request([diff("/project/a", "one", "two")]);
  const answered = proposals.answer(false);
  await take({ type: "permission.resolved", permissionId: "perm" });
  await answered;
  await request([diff("/project/a", "one", "two")], OPTIONS, "second");
  await proposals.answer(false);
  assert.deepEqual(failed, ["gone"]);
});

test("requests that are open already are shown, and closed tabs again", async () => {
  const { found, proposals, group, shown, vscode, rest } = window();
  found.listed.push({ permissionId: "perm", options: OPTIONS, toolCall: { content: [diff("/project/a", "one", "two")] } });
  await proposals.showOpen("mine");
  assert.deepEqual(shown(), ["/project/a"]);
  await vscode.window.tabGroups.close([...group.tabs]);
  await proposals.reveal("mine", "perm");
  await rest();
  assert.deepEqual(shown(), ["/project/a"]);
});
