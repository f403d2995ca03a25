// Cases about the prompt: completion of commands and paths, and the queue.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { becomes, equal, ok } from "./harness.mjs";
import { overhang, text, texts } from "./pages.mjs";

const names = (page) => texts(page, ".completion .name");

export const prompting = (browser, server) => ({
  async "commands and paths are completed with the keyboard"() {
    const directory = join(server.project, "completed");
    mkdirSync(join(directory, "source", "inner"), { recursive: true });
    for (const name of ["source/main.rs", "source/inner/deep.rs", "readme.md"]) writeFileSync(join(directory, name), "text\n");
    const id = await server.session([{ text: "Heard." }], { cwd: directory });
    const page = await browser.open(server, id);
    await page.locator("#prompt").focus();
    await page.keyboard.type("/");
    await page.locator(".completion .name", { hasText: "/review" }).waitFor();
    await page.keyboard.type("rv");
    await becomes(() => names(page), ["/review"], "commands for /rv");
    equal(await page.getAttribute("#prompt", "aria-activedescendant"), "completion-0", "the active suggestion");
    await page.keyboard.press("Enter");
    equal(await page.inputValue("#prompt"), "/review ", "the command");
    await becomes(() => page.locator(".completion").isVisible(), false, "the list");
    await page.fill("#prompt", "");
    await page.keyboard.type("Read @");
    await page.locator(".completion .name", { hasText: "@readme.md" }).waitFor();
    await page.keyboard.type("srcma");
    await becomes(() => names(page), ["@source/main.rs"], "paths for srcma");
    await page.keyboard.press("Tab");
    equal(await page.inputValue("#prompt"), "Read @source/main.rs ", "the path");
    await page.keyboard.type("and @inner");
    await page.locator(".completion .name", { hasText: "@source/inner/" }).first().waitFor();
    await page.locator(".completion li", { hasText: /^@source\/inner\/$/ }).click();
    await becomes(() => names(page), ["@source/inner/deep.rs"], "paths in the directory");
    await page.keyboard.press("Escape");
    await becomes(() => page.locator(".completion").isVisible(), false, "the list after Escape");
    await page.keyboard.press("Enter");
    await page.locator(".message.assistant", { hasText: "Heard." }).waitFor();
    equal(await text(page, ".said"), "Read @source/main.rs and @source/inner/", "the prompt");
    await page.evaluate(() => (location.hash = "#/"));
    await page.locator("body.home").waitFor();
    await page.fill("#directory", directory);
    await page.locator("#prompt").focus();
    await page.keyboard.type("@deep");
    await becomes(() => names(page), ["@source/inner/deep.rs"], "paths in a new session");
  },

  async "completion sends one request at a time, and shows only the answer to the last word"() {
    const id = await server.session([{ text: "Heard." }]);
    const page = await browser.open(server, id, { viewport: { width: 300, height: 600 } });
    const held = [];
    await page.route("**/v1/files?*", (route) => held.push(route));
    await page.locator("#prompt").focus();
    await page.keyboard.type("@one");
    await becomes(() => held.length, 1, "requests while one runs");
    const query = (route) => new URL(route.request().url()).searchParams.get("query");
    const answer = (route, paths) => route.fulfill({ json: { paths, truncated: false } });
    await answer(held[0], ["stale.txt"]);
    await becomes(() => held.length, 2, "requests after the first answer");
    equal([query(held[0]), query(held[1])], ["", "one"], "queries");
    equal(await names(page), [], "suggestions of the first answer");
    const hostile = `<img src=x onerror="window.hacked=1">`;
    await answer(held[1], [hostile, ...Array.from({ length: 300 }, (_, index) => `${"long/".repeat(30)}${index}`)]);
    await page.locator(".completion li").first().waitFor();
    equal([await page.locator(".completion li").count(), (await names(page))[0], await page.locator(".completion img").count()], [50, `@${hostile}`, 0], "suggestions");
    equal(await overhang(page), 0, "sideways");
    for (const key of ["ArrowUp", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
    ok((await page.locator(".completion [aria-selected=true] .name").innerText()).endsWith("/0"), "the second suggestion is not active");
    await page.keyboard.press("Escape");
    equal(await page.inputValue("#prompt"), "@one", "the text after Escape");
  },

  async "a queued message is edited with buttons on a narrow page; Escape keeps it and the turn"() {
    const id = await server.session([server.hold().step, { text: "The next." }], { mode: "auto" });
    const page = await browser.open(server, id, { viewport: { width: 300, height: 600 } });
    await server.prompt(id);
    await page.locator(".tool.in_progress").waitFor();
    const parts = [{ type: "text", text: "Look at this" }, { type: "resource", uri: "file:///notes.md", mimeType: "text/markdown", text: "# Notes" }];
    await server.call("POST", `/v1/sessions/${id}/messages`, { role: "user", parts, delivery: "queue" });
    await page.locator("#queue", { hasText: "Look at this · 1 attachment" }).waitFor();
    await page.getByLabel("Edit this message").click();
    equal(await page.inputValue("#queue textarea"), "Look at this", "the text in the field");
    await page.fill("#queue textarea", "Dropped");
    await page.keyboard.press("Escape");
    await page.locator("#queue textarea").waitFor({ state: "detached" });
    equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Edit this message", "the focus");
    await page.keyboard.press("Enter");
    await page.fill("#queue textarea", "Look at that");
    equal(await overhang(page), 0, "sideways");
    await page.locator("#queue").getByRole("button", { name: "Save" }).click();
    await page.locator("#queue", { hasText: "Look at that · 1 attachment" }).waitFor();
    ok(!(await page.locator("#stop").isHidden()), "the turn does not run");
    await server.call("POST", `/v1/sessions/${id}/cancel`, {});
    await page.locator(".note", { hasText: "Stopped" }).waitFor();
  },
});
