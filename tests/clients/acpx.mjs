// Drives nuncio with acpx, the headless command line client: sessions new, prompt with a call that its policy allows, prompt with one
// that it denies, cancel of a running prompt, set-mode, sessions list, close, a new file through the client, files that the client
// refuses, then load in a home that knows of no session.
// `node acpx.mjs NUNCIO`, with Node 22.13 or newer (acpx asks for it); exits with 1 and the reason when something does not hold.
//
// What acpx cannot do, and the SDKs' tests do: cancel while a question is open (its policy answers at once), and load from an agent that
// can resume (it always prefers session/resume; so here a filter takes that capability out of nuncio's answer for the second half).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const nuncio = resolve(process.argv[2]);
const temp = realpathSync(mkdtempSync(join(tmpdir(), "nuncio-acpx-")));
const cwd = join(temp, "work");
mkdirSync(cwd);
const acpx = fileURLToPath(new URL("dist/cli.js", import.meta.resolve("acpx/package.json")));
const script = (name) => `scripted:${fileURLToPath(new URL(name, import.meta.url))}`;

setTimeout(() => {
  console.error("no end after 90 s");
  process.exit(1);
}, 90_000).unref();

// acpx with a home of its own and one agent: `(words…) => {code, frames}`, the frames being the JSON lines that it printed.
// Between commands a background process of acpx keeps the agent; it ends with the session, or after 30 s.
const client = (home, agent) => async (args, onFrame = () => {}) => {
  mkdirSync(home, { recursive: true });
  const child = spawn(process.execPath, [acpx, "--agent", agent, "--format", "json", "--ttl", "30", ...args], {
    cwd,
    env: { ...process.env, HOME: home, NUNCIO_HOME: join(temp, "nuncio") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const frames = [];
  let [line, errors] = ["", ""];
  child.stderr.on("data", (data) => (errors += data));
  child.stdout.on("data", (data) => {
    const lines = (line + data).split("\n");
    line = lines.pop();
    for (const frame of lines.map((text) => JSON.parse(text))) frames.push(frame), onFrame(frame);
  });
  const code = await new Promise((done, failed) => child.on("close", done).on("error", failed));
  return { code, frames, errors };
};
const done = ({ code, frames, errors }) => {
  assert.equal(code, 0, `acpx failed: ${errors} ${JSON.stringify(frames.at(-1))}`);
  return frames.at(-1);
};
const updates = (frames, kind) => frames.filter((frame) => frame.params?.update?.sessionUpdate === kind).map((frame) => frame.params.update);
const text = (frames) => updates(frames, "agent_message_chunk").map((update) => update.content.text).join("");
const stopReason = (frames) => frames.find((frame) => frame.result?.stopReason)?.result.stopReason;

const run = client(join(temp, "home"), `${nuncio} acp --model ${script("script.json")}`);
const { acpxSessionId: sessionId } = done(await run(["sessions", "new"]));

const allowed = await run(["--approve-all", "prompt", "Please write the file."]);
done(allowed);
assert.equal(stopReason(allowed.frames), "end_turn");
assert.equal(allowed.frames.find((frame) => frame.method === "initialize")?.params.clientInfo.name, "acpx");
assert.equal(allowed.frames.filter((frame) => frame.method === "session/request_permission").length, 1);
assert.equal(updates(allowed.frames, "tool_call_update").at(-1).status, "completed");
assert.equal(text(allowed.frames), "I will write it.It is written.");
assert.equal(readFileSync(join(cwd, "made.txt"), "utf8"), "made by a client\n");

const denied = await run(["--deny-all", "prompt", "Now remove it."]);
assert.equal(stopReason(denied.frames), "end_turn");
assert.equal(updates(denied.frames, "tool_call_update").at(-1).status, "failed");
assert.ok(existsSync(join(cwd, "made.txt")), "a denied call does nothing");

let cancel;
const cancelled = await run(["--deny-all", "prompt", "Talk."], (frame) => {
  if (updates([frame], "agent_message_chunk").length) cancel ??= run(["cancel"]);
});
assert.equal(done(await cancel).cancelled, true);
assert.equal(stopReason(cancelled.frames), "cancelled");
assert.ok(text(cancelled.frames).length < 100, `cut short: ${text(cancelled.frames)}`);

assert.equal(done(await run(["set-mode", "plan"])).modeId, "plan");
const listed = done(await run(["sessions", "list"]));
assert.deepEqual([listed.source, listed.sessions.map((session) => session.sessionId)], ["agent", [sessionId]]);
done(await run(["sessions", "close"]));

// Files: nuncio writes a new one itself, and what acpx refuses to read is neither shown nor changed.
writeFileSync(join(cwd, "secret.txt"), "hidden\n");
const files = client(join(temp, "home-files"), `${nuncio} acp --mode accept-edits --model ${script("files.json")}`);
done(await files(["sessions", "new"]));
const requests = (frames) => frames.flatMap((frame) => frame.method?.match(/^fs\/(\w+)_text_file$/)?.[1] ?? []);

const made = await files(["--approve-all", "prompt", "Make a file."]);
done(made);
assert.equal(text(made.frames), "It is made.");
assert.deepEqual(requests(made.frames), [], "acpx follows symlinks, so it creates no file");
assert.ok(!made.frames.some((frame) => frame.error), "no request of the turn fails");
assert.equal(readFileSync(join(cwd, "notes/new.txt"), "utf8"), "made\n");

const refused = await files(["--deny-all", "prompt", "Show the secret."]);
assert.equal(text(refused.frames), "It was refused.", JSON.stringify(refused.frames.at(-1)));
assert.deepEqual(requests(refused.frames), ["read", "read"]);
assert.ok(!JSON.stringify(refused.frames).includes("hidden"), "a refused file is not shown");
assert.equal(readFileSync(join(cwd, "secret.txt"), "utf8"), "hidden\n", "a refused file is not changed");
done(await files(["sessions", "close"]));

const wire = join(temp, "wire.ndjson");
const loading = join(temp, "nuncio-that-cannot-resume");
writeFileSync(loading, `#!/bin/sh\n"${nuncio}" acp --model "${script("resume.json")}" | tee -a "${wire}" | sed -u 's/"resume":{},\\{0,1\\}//'\n`);
chmodSync(loading, 0o755);
const again = client(join(temp, "home-that-knows-nothing"), loading);
assert.equal(done(await again(["sessions", "new", "--resume-session", sessionId])).acpxSessionId, sessionId);
const replayed = readFileSync(wire, "utf8").split("\n").filter(Boolean).map((text) => JSON.parse(text));
const words = updates(replayed, "user_message_chunk").map((update) => update.content.text);
assert.deepEqual(words, ["Please write the file.", "Now remove it.", "Talk."]);
assert.match(text(replayed), /^I will write it\.It is written\.I will remove it\.It stays\.A/);

const remembered = await again(["prompt", "Do you remember?"]);
done(remembered);
assert.ok(remembered.frames.some((frame) => frame.method === "session/load"), "the session is loaded, not resumed");
assert.equal(stopReason(remembered.frames), "end_turn");
assert.equal(text(remembered.frames), "I remember.");
done(await again(["sessions", "close"]));
