// Cases about files that a conversation names: they open at their line.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { equal } from "./harness.mjs";
import { texts } from "./pages.mjs";

export const places = (browser, server) => ({
  async "code spans, links and tool calls that name a file are links to their places"() {
    const text = "See `src/main.rs:42`, `src/lib.rs`, `Cargo.toml:3`, [the lib](src/a%20b.rs#L4-L9), not `console.log`, `a/b`, `x::y`, `http://a.b/c.d`, `1.5:3`, [cmd](command:x.y), [share](//host/a.txt).";
    const page = await browser.open(server);
    const drawn = await page.evaluate(async (text) => {
      const { Growing } = await import("/console/markdown.js");
      const growing = new Growing();
      growing.update(text, true);
      return [...growing.root.querySelectorAll("[data-path]")].map(({ dataset: { path, line } }) => `${path} ${line ?? ""}`);
    }, text);
    equal(drawn, ["src/main.rs 42", "src/lib.rs ", "Cargo.toml 3", "src/a b.rs 4"], "places");
  },

  async "a file that a conversation names is shown at its line"() {
    mkdirSync(join(server.project, "named"), { recursive: true });
    const lines = Array.from({ length: 300 }, (_, index) => `let line_${index + 1} = "<img src=x onerror='window.hacked=1'>";`);
    writeFileSync(join(server.project, "named/file.rs"), `${lines.join("\n")}\n`);
    const id = await server.session([{ text: "Look at `named/file.rs:200`.", tool_calls: [{ name: "read", input: { file_path: "named/file.rs", offset: 10, limit: 2 } }] }, { text: "And at `named/none.rs:1`." }]);
    await server.prompt(id);
    const page = await browser.open(server, id);
    await page.locator(".markdown a.place", { hasText: "named/file.rs:200" }).click();
    const dialog = page.locator("dialog.file-view[open]");
    await dialog.locator(".current", { hasText: "line_200 =" }).waitFor();
    equal(await dialog.locator(".current").evaluate((row) => { const box = row.getBoundingClientRect(); return box.top > 0 && box.bottom < innerHeight; }), true, "the line is visible");
    equal(await texts(page, "dialog.file-view h2"), [join(server.project, "named/file.rs")], "the name");
    await page.keyboard.press("Escape");
    await page.locator(".tool .head").hover();
    await page.locator(".tool .open-file").click();
    await dialog.locator(".current", { hasText: "line_10 =" }).waitFor();
    equal([await dialog.locator("img").count(), await page.evaluate(() => window.hacked ?? null)], [0, null], "what the text did");
    await page.keyboard.press("Escape");
    await page.locator(".markdown a.place", { hasText: "named/none.rs:1" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("#toast.bad", { hasText: "named/none.rs" }).waitFor();
  },
});
