// Measures the extension in code-server: node bench.mjs NUNCIO VSIX. Prints milliseconds: until nuncio
// is connected, to open a conversation of 10,000 messages, and from a delta to the page.

import { Other } from "./agent.mjs";
import { Browser, Editor, until } from "./harness.mjs";

const MESSAGES = 10_000;
const DELTAS = 4000;

const [nuncio, vsix] = process.argv.slice(2);
const editor = await Editor.start(nuncio, vsix, { steps: [{ text: "x ".repeat(DELTAS), chunk_chars: 2, delay_ms: 1 }] });
const browser = await Browser.start();

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
for (let turn = 0; turn < 3; turn++) {
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
  window.frames = [];
  const tick = () => {
    const text = document.querySelector(".message.assistant .markdown")?.textContent.length ?? 0;
    window.frames.push([performance.now(), text]);
    if (!window.done) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
});
await frame.locator("#send").click();
await frame.locator(".message.assistant").first().waitFor();
await window.rests(frame);
const frames = await frame.evaluate(() => ((window.done = true), window.frames));
const grown = frames.filter(([, text], index) => text > (frames[index - 1]?.[1] ?? 0));
const gaps = grown.slice(1).map(([ms], index) => ms - grown[index][0]).sort((a, b) => a - b);
const at = (part) => Math.round(gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * part))]);
console.log(`${DELTAS} deltas in ${Math.round(grown.at(-1)[0] - grown[0][0])} ms, ${grown.length} drawings; pauses between drawings: median ${at(0.5)}, 99 % ${at(0.99)}, longest ${at(1)} ms`);

await browser.close();
await editor.down();
