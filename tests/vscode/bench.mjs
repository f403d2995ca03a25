// Measures the extension in code-server: node bench.mjs NUNCIO VSIX. Prints milliseconds: from the
// activation to the first accepted prompt, to open a conversation of 10,000 messages, and the age of
// the newest visible delta of a fast stream.

import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Other } from "./agent.mjs";
import { Browser, Editor, until } from "./harness.mjs";

const MESSAGES = 10_000;
const DELTAS = 20_000;
const DELTAS_PER_PAUSE = 20;
const PAUSE_MS = 5;

const [nuncio, vsix] = process.argv.slice(2);

/** A model whose deltas are the times at which they were sent, in paragraphs of 20. */
async function answer(request, response) {
  const send = (value) => response.write(`data: ${JSON.stringify(value)}\n\n`);
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let sent = 0; sent < DELTAS; sent++) {
    send({ choices: [{ index: 0, delta: { content: `${Date.now()}${sent % 20 === 19 ? "\n\n" : " "}` } }] });
    if (sent % DELTAS_PER_PAUSE === 0) await setTimeout(PAUSE_MS);
  }
  send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  response.end("data: [DONE]\n\n");
}
const model = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
await once(model, "listening");

const editor = await Editor.start(nuncio, vsix, { settings: { "nuncio.args": ["--model", "bench/clock"] } });
const url = `http://127.0.0.1:${model.address().port}`;
writeFileSync(join(editor.data, "config.toml"), `[providers.bench]\nprotocol = "openai-chat"\nbase_url = "${url}"\ncontext_window = 1000000\nmodels = ["clock"]\n`);
const browser = await Browser.start();

/** Returns when a process was started, in milliseconds, with a resolution of 10 ms. */
function startedMs(pid) {
  const uptimeMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
  const ticks = Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")[19]);
  return Date.now() - uptimeMs + ticks * 10;
}

/** Sends the first prompt of a session, and returns how long after the start of nuncio it was accepted. */
async function firstPromptMs(frame) {
  await frame.locator("#prompt").fill("Hello");
  await frame.evaluate(() => {
    window.acceptedMs = null;
    const observer = new MutationObserver(() => {
      if (document.querySelector(".message.user")) observer.disconnect(), (window.acceptedMs = Date.now());
    });
    observer.observe(document.body, { childList: true, subtree: true });
    document.getElementById("send").click();
  });
  const acceptedMs = await until(() => frame.evaluate(() => window.acceptedMs), "an accepted prompt");
  return Math.round(acceptedMs - startedMs(editor.nuncios()[0]));
}

const [opened, restarted] = [[], []];
for (let start = 0; start < 5; start++) {
  const window = await browser.open(editor);
  const frame = await window.nuncio();
  // The extension starts nuncio as soon as it is activated.
  await until(() => editor.nuncios().length === 1, "a process");
  opened.push(await firstPromptMs(frame));
  await window.rests(frame);
  await window.fresh();
  process.kill(editor.nuncios()[0], "SIGKILL");
  await until(() => editor.nuncios().length === 1, "another process");
  restarted.push(await firstPromptMs(frame));
  await window.rests(frame);
  await window.close();
  await until(() => editor.nuncios().length === 0, "the process has ended");
}
console.log(`start of nuncio → the first prompt is accepted: ${opened.join(", ")} ms while the view loads, ${restarted.join(", ")} ms in an open view`);

const other = new Other(editor, [{ text: "Hello." }]);
const id = await other.session(editor.project);
await other.prompt(id, "A long conversation");
for (let sent = 0; sent < MESSAGES; sent += 100) {
  const batch = Array.from({ length: 100 }, (_, index) => other.call("_nuncio/session/message", { sessionId: id, autoRun: false, parts: [{ type: "text", text: `Message ${sent + index} with **some** text.` }] }));
  await Promise.all(batch);
}
await other.end();

const window = await browser.open(editor);
const frame = await window.nuncio();
const row = await window.tree("A long conversation");
const times = [];
for (let turn = 0; turn < 5; turn++) {
  await window.fresh();
  await frame.evaluate(() => {
    window.openedMs = null;
    window.startedMs = null;
    const node = document.getElementById("conversation");
    addEventListener("hashchange", () => (window.startedMs ??= performance.now()), { once: true });
    const observer = new MutationObserver(() => {
      if (window.startedMs === null || node.getAttribute("aria-busy") !== "false") return;
      window.openedMs = performance.now() - window.startedMs;
      observer.disconnect();
    });
    observer.observe(node, { attributes: true });
  });
  await row.click();
  times.push(Math.round(await until(() => frame.evaluate(() => window.openedMs), "opened")));
}
console.log(`${MESSAGES} messages open in ${times.join(", ")} ms; ${await frame.locator("#conversation > *").count()} nodes`);

await window.fresh();
await frame.locator("#prompt").fill("Stream");
await frame.evaluate(() => {
  window.ages = [];
  let last = 0;
  const tick = () => {
    const said = document.querySelector(".message.assistant .markdown");
    const newest = Number(said?.lastElementChild?.textContent.trim().split(" ").at(-1));
    // An incomplete number is not one of the last minutes.
    if (newest > last && Date.now() - newest < 60_000) window.ages.push(Date.now() - (last = newest));
    if (!window.done) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
});
await frame.locator("#send").click();
await frame.locator(".message.assistant").first().waitFor();
await window.rests(frame);
const ages = (await frame.evaluate(() => ((window.done = true), window.ages))).sort((a, b) => a - b);
const at = (part) => ages[Math.min(ages.length - 1, Math.floor(ages.length * part))];
console.log(`${DELTAS} deltas, ${ages.length} drawings: the newest delta is ${at(0.5)} (median), ${at(0.95)} (95 %), ${at(1)} ms old`);

model.close();
await browser.close();
await editor.down();
