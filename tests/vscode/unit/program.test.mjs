// How nuncio is found.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findProgram, isOlder } from "../../../editors/vscode/src/program.ts";

const dir = mkdtempSync(join(tmpdir(), "program-"));

/** Writes a program that prints `output`. */
function program(path, output) {
  mkdirSync(join(dir, path, ".."), { recursive: true });
  writeFileSync(join(dir, path), `#!/bin/sh\nprintf '%s\\n' ${output.map((line) => `'${line}'`).join(" ")}\n`);
  chmodSync(join(dir, path), 0o755);
  return join(dir, path);
}

const find = (fields = {}) => findProgram({ command: "", extensionDirectory: join(dir, "none"), ...fields, env: { PATH: "/none", SHELL: "", ...fields.env } });

const inPath = program("path/nuncio", ["nuncio 1.2.3"]);
const bundled = program("extension/bin/nuncio", ["nuncio 1.2.4"]);
const own = program("own/agent", ["nuncio 2.0.0-rc.1"]);

test("the setting precedes all", async () => {
  assert.deepEqual(await find({ command: own, extensionDirectory: join(dir, "extension") }), { path: own, version: "2.0.0-rc.1" });
  assert.deepEqual(await find({ command: "nuncio", env: { PATH: join(dir, "path") } }), { path: inPath, version: "1.2.3" });
});

test("a wrong setting is not replaced by another program", async () => {
  assert.deepEqual(await find({ command: "/none/nuncio", env: { PATH: join(dir, "path") } }), { problem: "missing", detail: "/none/nuncio" });
});

test("the program of the extension precedes PATH", async () => {
  const env = { PATH: `relative:${join(dir, "path")}` };
  assert.deepEqual(await find({ extensionDirectory: join(dir, "extension"), env }), { path: bundled, version: "1.2.4" });
  assert.deepEqual(await find({ env }), { path: inPath, version: "1.2.3" });
});

test("the login shell is asked last", async () => {
  const shell = program("bin/shell", ["Welcome!", inPath]);
  assert.deepEqual(await find({ env: { SHELL: shell } }), { path: inPath, version: "1.2.3" });
  assert.deepEqual(await find({ env: { SHELL: program("bin/other", ["none"]) } }), { problem: "missing", detail: "" });
});

test("other programs and old versions are problems", async () => {
  const old = program("own/old", ["nuncio 0.0.9"]);
  assert.deepEqual(await find({ command: old }), { problem: "old", detail: "0.0.9", path: old });
  assert.equal((await find({ command: program("own/other", ["something else"]) })).problem, "failed");
});

test("versions", () => {
  for (const [a, b, expected] of [["0.1.0", "0.1.0", false], ["0.0.9", "0.1.0", true], ["1.0.0", "0.9.9", false], ["0.1.0-rc.1", "0.1.0", false], ["0.10.0", "0.9.0", false]]) assert.equal(isOlder(a, b), expected, `${a} ${b}`);
});
