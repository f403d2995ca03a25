// Packs the extension: `node scripts/package.mjs [--out FILE] [--target TARGET --binary NUNCIO]`.
// With a target, for example linux-x64, the package contains the program.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const bin = join(root, "bin");
const { values } = parseArgs({ options: { out: { type: "string" }, target: { type: "string" }, binary: { type: "string" } } });

if (!values.target !== !values.binary) throw new Error("--target and --binary belong together");

rmSync(bin, { recursive: true, force: true });
copyFileSync(join(root, "../../LICENSE"), join(root, "LICENSE"));
if (values.binary) {
  const program = join(bin, values.target.startsWith("win32") ? "nuncio.exe" : "nuncio");
  mkdirSync(bin);
  copyFileSync(resolve(values.binary), program);
  chmodSync(program, 0o755);
}
const args = ["package", "--no-dependencies"];
if (values.target) args.push("--target", values.target);
if (values.out) args.push("--out", resolve(values.out));
try {
  execFileSync(process.execPath, [join(root, "node_modules/@vscode/vsce/vsce"), ...args], { cwd: root, stdio: "inherit" });
} finally {
  rmSync(bin, { recursive: true, force: true });
}
