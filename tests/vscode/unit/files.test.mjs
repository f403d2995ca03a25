// Files of the editor for nuncio, and files that a conversation names, with a stand-in for VS Code.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createApi, load } from "./stand_in.mjs";

function folder() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "unit-")));
  const project = join(root, "project");
  mkdirSync(join(project, "src"), { recursive: true });
  return { root, project, api: createApi([project]) };
}

test("only open documents of the folders are read", async () => {
  const { root, project, api } = folder();
  const files = new (load("files.ts", api).EditorFiles)();
  const [path, outside] = [join(project, "a.txt"), join(root, "b.txt")];
  for (const one of [path, outside]) writeFileSync(one, "one\ntwo\nthree");
  await assert.rejects(files.read({ path }), /not found/i);
  for (const one of [path, outside]) Object.assign(api.open(one, "one\nTWO\nthree"), { isDirty: true });
  assert.equal((await files.read({ path })).content, "one\nTWO\nthree");
  assert.equal((await files.read({ path, line: 2, limit: 1 })).content, "TWO\n");
  await assert.rejects(files.read({ path: outside }), /not found/i);
});

const WRITES = [
  // disk, unsaved text or null, what nuncio writes, the file after it, the replaced text
  ["one\ntwo\n", null, "one\nTWO\n", "one\nTWO\n", "TWO"],
  ["one\r\ntwo\r\n", null, "one\nTWO\n", "one\r\nTWO\r\n", "TWO"],
  ["one\n", "one\nmine\n", "one\nmine\nnew\n", "one\nmine\nnew\n", "new\n"],
  ["same\n", null, "same\n", "same\n", undefined],
];
for (const [disk, unsaved, written, after, replaced] of WRITES) {
  test(`a write is the smallest edit of the document: ${JSON.stringify([disk, unsaved, written])}`, async () => {
    const { project, api } = folder();
    const path = join(project, "a.txt");
    writeFileSync(path, disk);
    Object.assign(api.open(path, unsaved ?? disk), { isDirty: unsaved !== null });
    const files = new (load("files.ts", api).EditorFiles)();
    await files.write({ path, content: written });
    assert.equal(readFileSync(path, "utf8"), after);
    assert.deepEqual(api.calls, replaced === undefined ? [] : [["edit", replaced]]);
  });
}

test("a new file is created, and no symlink leads a write out of the folders", async () => {
  const { root, project, api } = folder();
  const files = new (load("files.ts", api).EditorFiles)();
  await files.write({ path: join(project, "new.txt"), content: "new\n" });
  assert.equal(readFileSync(join(project, "new.txt"), "utf8"), "new\n");
  mkdirSync(join(root, "elsewhere"));
  symlinkSync(join(root, "elsewhere"), join(project, "link"));
  await assert.rejects(files.write({ path: join(project, "link/a.txt"), content: "x" }), /not in a folder/);
  await assert.rejects(files.write({ path: join(root, "a.txt"), content: "x" }), /not in a folder/);
});

test("a place opens an existing file; one outside of the folders is shown first", async () => {
  const { root, project, api } = folder();
  const { openPlace } = load("places.ts", api);
  const opened = () => api.calls.splice(0).map(([command, uri, options]) => [command, uri?.fsPath ?? uri, options?.selection?.places[0]]);
  writeFileSync(join(project, "a.txt"), "a\n");
  await openPlace({ path: "a.txt", line: 3, cwd: join(project, "src") });
  assert.deepEqual(opened(), [["vscode.open", join(project, "a.txt"), 2]]);
  for (const path of ["none.txt", "src", "//host/share/a.txt", "\\\\host\\a.txt", "command:x", ""]) await assert.rejects(openPlace({ path, cwd: project }), /is not a file here/, path);
  for (const path of [1, null, "a\0b", "x".repeat(5000)]) await openPlace({ path, cwd: project });
  assert.deepEqual(opened(), []);
  const outside = join(root, "outside.txt"), hidden = join(root, "out\u202eside.txt"), long = join(root, "x".repeat(200), "y".repeat(200));
  mkdirSync(join(root, "x".repeat(200)));
  for (const path of [outside, hidden, long]) writeFileSync(path, "b\n");
  symlinkSync(outside, join(project, "link.txt"));
  await openPlace({ path: "link.txt", cwd: project });
  assert.deepEqual(opened(), [["asked", `Open ${outside}? It is outside of the folders of this window.`, undefined]]);
  api.answer = "Open";
  await openPlace({ path: outside });
  assert.deepEqual(opened().map(([command]) => command), ["asked", "vscode.open"]);
  for (const path of [hidden, long]) await assert.rejects(openPlace({ path }), /cannot be shown as a whole/);
  assert.deepEqual(opened(), []);
});
