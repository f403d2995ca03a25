// Cases about following the end of the conversation, with real wheel, touch, keys and scroll bar.

import { Browser, becomes, equal, ok } from "./harness.mjs";
import { answerByClick, asks, rests } from "./pages.mjs";

const PARAGRAPHS = (word, count) => Array.from({ length: count }, (_, index) => `${word} ${index} of a paragraph.`).join("\n\n");
// Each case cancels this stream before its end, also in a slow browser.
const STREAM = { text: PARAGRAPHS("Streamed", 4000), chunk_chars: 12, delay_ms: 12 };

const below = (page) => page.evaluate(() => { const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#scroller"); return Math.round(scrollHeight - scrollTop - clientHeight); });
const top = (page) => page.evaluate(() => document.querySelector("#scroller").scrollTop);
/** The number of the last paragraph that is drawn, 0 if there is none. */
const newest = async (page) => Number([...(await page.locator(".message.assistant").last().textContent()).matchAll(/Streamed (\d+) /g)].at(-1)?.[1] ?? 0);
/** Waits until ten more paragraphs are drawn. */
const grows = async (page) => {
  const until = (await newest(page)) + 10;
  await becomes(async () => (await newest(page)) >= until, true, `paragraph ${until}`);
};
const drawn = (page, text) => page.locator(".message.assistant", { hasText: text }).waitFor();

/** Waits until no scroll animation moves the view, and returns its position. */
async function rested() {
  const scroller = document.querySelector("#scroller");
  let at = scroller.scrollTop;
  for (let frames = 0; frames < 20; frames++) {
    await new Promise(requestAnimationFrame);
    if (scroller.scrollTop !== at) frames = 0;
    at = scroller.scrollTop;
  }
  return at;
}

/** Checks that the view follows a stream, is released by `up` and follows again after `down`. */
async function released(page, server, up, down) {
  await server.prompt(page.id);
  await drawn(page, "Streamed 40 ");
  equal([await below(page) < 40, await page.locator("#latest").isVisible()], [true, false], "it follows");
  await up();
  await page.locator("#latest").waitFor();
  const at = await page.evaluate(rested);
  await grows(page);
  equal(await top(page), at, "the position while more text arrives");
  await down();
  await page.locator("#latest").waitFor({ state: "hidden" });
  await grows(page);
  await stops(page, server);
  ok((await below(page)) < 4, `the end is ${await below(page)} px below`);
}

async function stops(page, server) {
  await server.call("POST", `/v1/sessions/${page.id}/cancel`, {});
  await rests(page);
}

async function opened(browser, server, options) {
  const id = await server.session([STREAM, STREAM]);
  const page = await browser.open(server, id, options);
  return Object.assign(page, { id });
}

/** Moves a finger down, or up for a negative distance. */
async function swipe(page, distance) {
  const session = await page.context().newCDPSession(page);
  const send = (type, y) => session.send("Input.dispatchTouchEvent", { type, touchPoints: y === null ? [] : [{ x: 180, y }] });
  const from = distance > 0 ? 100 : 500;
  await send("touchStart", from);
  for (let step = 1; step <= 8; step++) await send("touchMove", from + (distance * step) / 8);
  await send("touchEnd", null);
  await session.detach();
}

export const following = (browser, server) => ({
  async "a turn with four requests is followed to its end"() {
    for (const height of [800, 640]) {
      const step = (number) => ({ text: PARAGRAPHS(`Part ${number}`, 8), chunk_chars: 40, delay_ms: 5, tool_calls: [{ name: "bash", input: { command: `seq ${number}00 ${number}40` } }] });
      const page = await browser.open(server, await server.session([1, 2, 3, 4].map(step).concat({ text: PARAGRAPHS("Last", 30), chunk_chars: 30, delay_ms: 5 })), { viewport: { width: 1280, height } });
      await page.fill("#prompt", "Four commands");
      await page.keyboard.press("Enter");
      for (let number = 0; number < 4; number++) {
        await asks(page);
        await becomes(async () => (await below(page)) < 4, true, `the end at request ${number + 1} and ${height} px`);
        await answerByClick(page);
      }
      await drawn(page, "Last 29 ");
      await rests(page);
      await becomes(async () => [(await below(page)) < 4, await page.locator("#latest").isVisible()], [true, false], `the end at ${height} px, and the arrow`);
    }
  },

  async "where nothing overflows, nothing releases the view"() {
    const id = await server.session([{ text: "Short." }, STREAM]);
    const page = await browser.open(server, id);
    await server.prompt(id);
    await drawn(page, "Short.");
    await page.mouse.move(600, 300);
    await page.mouse.wheel(0, -300);
    await page.fill("#prompt", "More");
    await page.keyboard.press("Enter");
    await drawn(page, "Streamed 60 ");
    equal([await below(page) < 40, await page.locator("#latest").isVisible()], [true, false], "it follows");
    await server.call("POST", `/v1/sessions/${id}/cancel`, {});
  },

  async "a wheel releases the view while text streams, and returns it to the end"() {
    const page = await opened(browser, server);
    await page.mouse.move(600, 300);
    await released(page, server, () => page.mouse.wheel(0, -50), () => page.mouse.wheel(0, 100_000));
  },

  async "a finger releases the view while text streams"() {
    const page = await opened(browser, server, { viewport: { width: 390, height: 700 }, isMobile: true, hasTouch: true });
    const down = async () => {
      // The finger cannot catch up with text that still arrives.
      await stops(page, server);
      for (let count = 0; count < 60 && (await page.locator("#latest").isVisible()); count++) await swipe(page, -380);
      await server.prompt(page.id);
    };
    await released(page, server, () => swipe(page, 120), down);
  },

  async "keys release the view while text streams"() {
    const page = await opened(browser, server);
    await page.locator("#scroller").focus();
    await released(page, server, () => page.keyboard.press("PageUp"), () => page.keyboard.press("End"));
  },

  async "a press holds the view while text streams, and the scroll event of a drag may follow its end"() {
    const page = await opened(browser, server);
    await server.prompt(page.id);
    await drawn(page, "Streamed 40 ");
    await page.mouse.move(600, 300);
    await page.mouse.down();
    const at = await top(page);
    await drawn(page, "Streamed 80 ");
    equal(await top(page), at, "the position during the press");
    await page.mouse.up();
    await becomes(async () => [(await below(page)) < 40, await page.locator("#latest").isVisible()], [true, false], "the end, and the arrow");
    await page.evaluate(() => {
      const scroller = document.querySelector("#scroller"), send = (type) => scroller.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerType: "mouse" }));
      send("pointerdown");
      scroller.scrollTop -= 200;
      send("pointerup");
    });
    await page.locator("#latest").waitFor();
    await stops(page, server);
  },

  async "the scroll bar releases the view while text streams"() {
    const other = await Browser.start({ ignoreDefaultArgs: ["--hide-scrollbars"] });
    const page = await opened(other, server);
    const box = await page.locator("#scroller").boundingBox();
    const x = box.x + box.width - 5;
    const drag = async (from, to) => {
      await page.mouse.move(x, from);
      await page.mouse.down();
      await page.mouse.move(x, to, { steps: 5 });
      await page.mouse.up();
    };
    // Scroll bars of Chromium have a thumb of at least 17 px. It is at the end here, unless the text grows faster than it is drawn.
    const up = async () => { for (let count = 0; count < 60 && !(await page.locator("#latest").isVisible()); count++) await drag(box.y + box.height - 40, box.y + box.height - 140); };
    await released(page, server, up, () => page.click("#latest"));
    equal(other.complaints, [], "complaints of the browser");
    await other.chromium.close();
  },
});
