// The visible content of a console page.

import { WAIT_MS } from "./harness.mjs";

export const text = (page, selector) => page.locator(selector).first().innerText();
export const texts = (page, selector) => page.locator(selector).allTextContents();

/** The last message of the model. */
export const answer = (page) => page.locator(".message.assistant .markdown").last();

/** The turn is over. */
export const rests = (page) => page.waitForFunction(() => document.querySelector("#working").hidden && document.querySelector("#stop").hidden);

export const asks = (page) => page.locator("#ask:not([hidden])").waitFor();
export const asksNot = (page) => page.locator("#ask").waitFor({ state: "hidden" });

/** Answers with a key. In an input field, the key would be typed: Escape leaves it for the question. */
export const answerBy = (page, key) => answerWith(page, key, async () => {
  if (await page.evaluate(() => document.querySelector("#ask").hidden)) return;
  if (await page.evaluate(() => document.activeElement.tagName === "TEXTAREA")) await page.keyboard.press("Escape");
  else await page.keyboard.press(key);
});

/** Answers with a click on the first answer. */
export const answerByClick = (page) => answerWith(page, "a click", () => page.locator("#ask .primary").click({ timeout: 500 }).catch(() => {}));

/** Answers as soon as the question takes one: what comes too soon is not for it. */
export async function answerWith(page, what, act) {
  await asks(page);
  const question = await page.locator("#ask").getAttribute("data-id");
  const isOpen = async () => (await page.locator("#ask").getAttribute("data-id")) === question;
  for (const until = Date.now() + WAIT_MS; await isOpen(); ) {
    if (Date.now() > until) throw new Error(`the question does not take ${what}; ${await page.evaluate(() => document.activeElement.outerHTML)}`);
    await act();
  }
}

/** The conversation as a list of what it shows. */
export const conversation = (page) =>
  page.locator("#conversation > *").evaluateAll((nodes) =>
    nodes.filter((node) => !node.hidden).map((node) => {
      const kind = node.className.split(" ").slice(0, 2).join(" ");
      return `${kind}: ${node.textContent.replace(/\s+/g, " ").trim()}`;
    }),
  );

/** Texts whose contrast with what is behind them is less than WCAG's 4.5 (3 for large ones), as `ratio text`. */
export const faint = (page) =>
  page.evaluate(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const read = (colour) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], under) => [r, g, b].map((one, index) => one * a + under[index] * (1 - a));
    const luminance = (colour) => {
      const [r, g, b] = colour.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
      const chain = [];
      for (let at = node; at; at = at.parentElement) chain.push(read(getComputedStyle(at).backgroundColor));
      return chain.reverse().reduce((under, colour) => over(colour, under), [255, 255, 255]);
    };
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement, said = walker.currentNode.textContent.trim();
      if (!said || !node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || node.closest(".hidden, [hidden], noscript, :disabled, .number")) continue;
      const style = getComputedStyle(node), under = behind(node);
      const [light, dark] = [luminance(over(read(style.color), under)), luminance(under)].sort((a, b) => b - a);
      const ratio = (light + 0.05) / (dark + 0.05);
      const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
      if (ratio < (large ? 3 : 4.5)) found.add(`${ratio.toFixed(2)} ${said.slice(0, 40)}`);
    }
    return [...found];
  });

/** How far the page can be scrolled sideways. */
export const overhang = (page) =>
  page.evaluate(() => Math.max(...[document.documentElement, document.body, document.querySelector("#scroller"), document.querySelector("main")].map((node) => node.scrollWidth - node.clientWidth)));
