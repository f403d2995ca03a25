// Cases about conversations with many messages.

import { becomes, equal, ok } from "./harness.mjs";
import { rests } from "./pages.mjs";

const MESSAGES = 10_000;

/** A history as an event stream: turns with a prompt and an answer. */
function history() {
  const frames = [];
  const add = (turn, body) => frames.push(`id: ${frames.length + 1}\ndata: ${JSON.stringify({ seq: frames.length + 1, atMs: 1_700_000_000_000, turnId: `turn-${turn}`, body })}\n\n`);
  for (let turn = 0; turn < MESSAGES / 2; turn++) {
    const say = (role, text) => add(turn, { type: "message.completed", messageId: `${role}-${turn}`, role, parts: [{ type: "text", text }] });
    add(turn, { type: "turn.started" });
    say("user", `Prompt ${turn}`);
    say("assistant", `Answer ${turn}: **text** with \`code\`.\n\n- one\n- two\n\n\`\`\`js\nconst x = ${turn};\n\`\`\``);
    add(turn, { type: "turn.completed", stopReason: "end_turn" });
  }
  return frames.join("") + `event: synced\ndata: {"cursor": ${frames.length}}\n\n`;
}

/** Scrolls up with the wheel, which releases the view from the end. */
async function wheelUp(page) {
  await page.mouse.move(600, 300);
  await page.mouse.wheel(0, -50);
  await page.locator("#latest").waitFor();
}

export const long = (browser, server) => ({
  async "ten thousand messages open fast, and only some of them are drawn"() {
    const id = await server.session([], { title: "Long" });
    const page = await browser.open(server);
    let asked = 0;
    const synced = `event: synced\ndata: {"cursor": ${MESSAGES * 2}}\n\n`;
    await page.route(`**/v1/sessions/${id}/events?*`, (route) => {
      // A third request would be the one after the end of the second answer. It stays open.
      if (++asked <= 2) return route.fulfill({ headers: { "content-type": "text/event-stream" }, body: asked === 1 ? history() : synced });
    });
    const opened = await page.evaluate((id) => new Promise((resolve) => {
      const conversation = document.querySelector("#conversation"), started = performance.now();
      new MutationObserver(() => conversation.textContent.includes("Answer 4999") && requestAnimationFrame(() => resolve(performance.now() - started))).observe(conversation, { childList: true });
      location.hash = `#/session/${id}`;
    }), id);
    console.log(`      opened after ${Math.round(opened)} ms`);
    await becomes(() => page.getAttribute("#conversation", "aria-busy"), "false", "the conversation");
    const drawn = () => page.locator("#conversation > *").count();
    equal(await drawn(), 100, "messages at first");
    const said = page.locator(".said", { hasText: /^Prompt 4950$/ });
    ok(await page.locator(".message", { hasText: "Answer 4999" }).isVisible(), "the end is not shown");
    await wheelUp(page);
    // The user scrolls on: what was visible keeps its place while earlier messages are drawn above.
    const moved = await page.evaluate(async () => {
      const scroller = document.querySelector("#scroller"), root = document.querySelector("#conversation");
      scroller.scrollTop = 700;
      const first = root.querySelector(".message:nth-child(20)"), before = first.getBoundingClientRect().top;
      await new Promise((resolve) => new MutationObserver(resolve).observe(root, { childList: true }));
      await new Promise(requestAnimationFrame);
      return Math.round(Math.abs(first.getBoundingClientRect().top - before));
    });
    ok(moved <= 2, `the text moved by ${moved} pixels`);
    equal([await drawn(), await said.count()], [200, 1], "messages after scrolling");
    let most = 0, steps = 0;
    for (; steps < 200 && (await page.locator(".said", { hasText: /^Prompt 0$/ }).count()) === 0; steps++) {
      const count = await page.evaluate(async () => {
        const scroller = document.querySelector("#scroller"), root = document.querySelector("#conversation");
        const changed = new Promise((resolve) => new MutationObserver(resolve).observe(root, { childList: true }));
        scroller.scrollTop = 0;
        await changed;
        return root.childElementCount;
      });
      most = Math.max(most, count);
    }
    ok(steps < 105 && most <= 400, `${steps} steps, at most ${most} messages`);
    await becomes(() => page.locator(".earlier-items").isHidden(), true, "the button for earlier messages");
    await page.click("#latest");
    await page.locator(".message", { hasText: "Answer 4999" }).waitFor();
    ok(await drawn() <= 400, "too many messages at the end");
    await page.waitForFunction(() => { const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#scroller"); return scrollHeight - scrollTop - clientHeight < 4; });
    await page.evaluate(() => document.querySelector(".earlier-items").click());
    equal(await drawn(), 200, "messages after the button");
  },

  async "a text is found in the whole conversation, also where it is not drawn"() {
    const id = await server.session([], { title: "Long" });
    const page = await browser.open(server);
    let asked = 0;
    await page.route(`**/v1/sessions/${id}/events?*`, (route) => {
      if (++asked <= 2) return route.fulfill({ headers: { "content-type": "text/event-stream" }, body: asked === 1 ? history() : `event: synced\ndata: {"cursor": ${MESSAGES * 2}}\n\n` });
    });
    await browser.go(page, id);
    await page.keyboard.press("Control+f");
    await page.keyboard.type("prompt 12");
    const count = page.locator("#find .count");
    await becomes(() => count.textContent(), "111 of 111", "prompts that are found");
    await page.keyboard.type("34");
    await becomes(() => count.textContent(), "1 of 1", "the prompt that is found");
    const said = page.locator(".said", { hasText: /^Prompt 1234$/ });
    ok(await said.evaluate((node) => { const { top, bottom } = node.getBoundingClientRect(); return top > 50 && bottom < innerHeight; }), "it is not visible");
    equal(await page.evaluate(() => [...CSS.highlights.get("found")].map(String)), ["Prompt 1234"], "what is marked");
    await page.locator("#find input").fill("TEXT WITH");
    await becomes(() => count.textContent(), "5000 of 5000", "answers, over their elements");
    equal(await page.evaluate(() => [...CSS.highlights.get("found")].map(String)), ["text with"], "what is marked");
    await page.keyboard.press("Enter");
    await becomes(() => count.textContent(), "1 of 5000", "the next");
    await page.keyboard.press("Shift+Enter");
    await becomes(() => count.textContent(), "5000 of 5000", "the previous");
    await page.locator("#find input").fill("nowhere");
    await becomes(() => count.textContent(), "Not found", "a text that is not there");
    await page.keyboard.press("Escape");
    equal([await page.locator("#find").isHidden(), await page.evaluate(() => CSS.highlights.has("found"))], [true, false], "after it");
  },

  async "an answer is copied as it was written"() {
    const id = await server.session([{ text: "A **bold** answer.\n\n- one\n" }]);
    await server.prompt(id);
    const page = await browser.open(server, id, { permissions: ["clipboard-read", "clipboard-write"] });
    await rests(page);
    await page.hover(".message.assistant");
    await page.getByRole("button", { name: "Copy the answer" }).click();
    await becomes(() => page.evaluate(() => navigator.clipboard.readText()), "A **bold** answer.\n\n- one\n", "the copied text");
  },

  async "while the user reads above, new messages move nothing"() {
    const id = await server.session([{ text: "First.\n\n".repeat(80) }, { text: "Second.\n\n".repeat(40) }]);
    const page = await browser.open(server, id);
    await server.prompt(id);
    await page.locator(".message.assistant", { hasText: "First." }).waitFor();
    await rests(page);
    await wheelUp(page);
    await page.evaluate(() => (document.querySelector("#scroller").scrollTop = 300));
    await server.prompt(id, "More");
    await page.locator(".message.assistant", { hasText: "Second." }).waitFor();
    await rests(page);
    equal(await page.evaluate(() => document.querySelector("#scroller").scrollTop), 300, "the position");
    await page.click("#latest");
    await page.locator("#latest").waitFor({ state: "hidden" });
  },
});
