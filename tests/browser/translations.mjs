// Cases about translated texts of the user interface. The translation encloses each text in ⟦ ⟧, so
// that a text outside of them is one that cannot be translated.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { texts as keys } from "../../editors/vscode/scripts/texts.mjs";
import { Server, equal } from "./harness.mjs";
import { answerBy, asks, rests, text } from "./pages.mjs";

const TABLE = Object.fromEntries(keys().map((key) => [key, `⟦${key}⟧`]));

/** Elements whose texts come from the model, the server, files or the user, with what is in them. */
const TEXTS = [
  "kbd, code, .brand",
  // Titles, paths, and names of agents, modes and models.
  "#title, #cwd, #agent, #sessions .title, #sessions .where, .day, .project .name, .picker.agent, .picker.mode, .picker.model",
  // Messages, tool calls and their files.
  ".said, .markdown, .tool .name, .output, .path, .diff .text, .chip",
  // The subject of a request, and the names of its answers.
  "#ask .subtitle, #ask .answers button",
  // Names of settings, and what the server says about them.
  ".setting strong, .setting .muted, .comparisons label, .comparisons option",
].join(", ").split(", ");

/** Selectors of data. The words for screen readers (`.hidden`) are texts of the user interface. */
const DATA = {
  text: [...TEXTS.flatMap((one) => [`${one}:not(.hidden)`, `${one} :not(.hidden)`]), "#announcer"].join(", "),
  title: "#sessions *, #cwd, #directory, .tool .row, [data-path]:not(.open-file), .markdown a, .comparisons label",
  "aria-label": ".picker",
  placeholder: "#directory",
};

/** Visible texts and attributes with letters outside of ⟦ ⟧ that are not data. */
const untranslated = (page) =>
  page.evaluate((data) => {
    const isOutside = (said) => {
      let depth = 0;
      // Numbers with units, such as `3s`, are the same in all languages.
      for (const char of said.replace(/\d[\d.]*(?:ms|[smhdkM])\b/g, "")) {
        if (char === "⟦") depth++;
        else if (char === "⟧") depth--;
        else if (depth === 0 && /\p{L}/u.test(char)) return true;
      }
      return false;
    };
    const found = new Set();
    for (const node of document.body.querySelectorAll("*")) {
      if (!node.checkVisibility()) continue;
      // A sentence with elements in it has several text nodes.
      const said = [...node.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE).map((child) => child.data).join("");
      const named = ["title", "aria-label", "placeholder"].map((name) => [name, node.getAttribute(name) ?? ""]);
      for (const [kind, value] of [["text", said], ...named]) {
        if (isOutside(value) && !node.matches(data[kind])) found.add(`${kind} of ${node.localName}.${node.className}: ${value.trim().slice(0, 80)}`);
      }
    }
    return [...found];
  }, DATA);

/** A page with the table, which the server's own page does not have. */
async function open(browser, server) {
  const page = await browser.page();
  const attribute = JSON.stringify(TABLE).replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  await page.route((url) => url.pathname === "/", async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace("<body ", () => `<body data-texts="${attribute}" `);
    await route.fulfill({ response, body });
  });
  await page.goto(`${server.url}/#token=${server.token}`);
  await page.waitForSelector("body.ready");
  return page;
}

export const translations = (browser, server, program) => ({
  async "each text of the user interface can be translated"() {
    const host = await Server.start(program, [{ text: "Done." }]);
    try {
      writeFileSync(join(host.project, "poem.txt"), "roses\nare red\n");
      const read = { name: "read", input: { file_path: "poem.txt" } };
      const edit = { name: "edit", input: { file_path: "poem.txt", old_string: "red", new_string: "blue" } };
      const steps = [{ thinking: "Hm.", text: "I look at it.", tool_calls: [read] }, { tool_calls: [edit] }, { text: "Done:\n\n```js\nlet a;\n```\n\n| a |\n|---|\n| b |\n\n- [x] c\n" }];
      const id = await host.session(steps);
      const page = await open(browser, host);
      equal(await text(page, "#welcome"), "⟦What should nuncio do?⟧", "a translated text");
      equal(await untranslated(page), [], "on the page of a new session");
      await browser.go(page, id);
      await page.fill("#prompt", "Change it");
      await page.click("#send");
      await asks(page);
      equal(await text(page, "#ask-title"), "⟦Make this change?⟧", "the question");
      equal(await untranslated(page), [], "with a permission request");
      await answerBy(page, "y");
      await rests(page);
      await page.locator(".message.assistant .table").first().waitFor();
      await page.locator(".tool .diff").first().waitFor();
      equal(await untranslated(page), [], "with a diff and an answer");
      await page.click("#more button");
      await page.locator(".menu:popover-open").waitFor();
      equal(await untranslated(page), [], "in the menu of the session");
      await page.keyboard.press("Escape");
      await page.fill("#search", "no such session");
      await page.locator("#no-sessions", { hasText: "⟦No session matches.⟧" }).waitFor();
      await page.keyboard.press("Control+f");
      await page.locator("#find input").fill("blue");
      await page.locator("#find .count", { hasText: "⟦1 of 1⟧" }).waitFor();
      equal(await untranslated(page), [], "with searches");
      await page.keyboard.press("Escape");
      for (const [button, part] of [["#show-settings", "section"], ["#show-keys", "dd"], ["#show-workspaces", "li"], ["#show-comparisons", "textarea"], ["#show-changes", "p"]]) {
        await page.click(button);
        await page.locator(`dialog[open] ${part}`, { hasNotText: "⟦Reading…⟧" }).first().waitFor();
        equal(await untranslated(page), [], `after a click on ${button}`);
        if (button === "#show-settings") await page.locator(".setting .muted", { hasText: "⟦nuncio's own agent⟧" }).first().waitFor();
        await page.keyboard.press("Escape");
        await page.locator("dialog[open]").waitFor({ state: "detached" });
      }
    } finally {
      await host.down("SIGKILL");
    }
  },

  async "without translations, the texts are English"() {
    const page = await browser.open(server);
    equal([await text(page, "#welcome"), await page.getAttribute("#prompt", "placeholder")], ["What should nuncio do?", "Describe a task"], "texts");
  },
});
