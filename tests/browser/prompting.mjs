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

  async "the first session of a directory completes commands and paths, with quotes around blanks"() {
    const directory = join(server.project, "untouched");
    mkdirSync(join(directory, ".nuncio", "commands"), { recursive: true });
    mkdirSync(join(directory, "with blanks"), { recursive: true });
    writeFileSync(join(directory, ".nuncio", "commands", "ship.md"), "---\ndescription: Ship it\n---\nShip.");
    writeFileSync(join(directory, "with blanks", "notes.txt"), "text\n");
    const page = await browser.open(server);
    await page.fill("#directory", directory);
    await page.locator("#prompt").focus();
    await page.keyboard.type("/sh");
    await becomes(() => names(page), ["/ship"], "commands");
    await page.fill("#prompt", "");
    await page.keyboard.type("Read @blanks");
    await page.locator(".completion .name", { hasText: '@"with blanks/"' }).first().waitFor();
    await page.locator(".completion li", { hasText: /^@"with blanks\/"$/ }).click();
    equal(await page.inputValue("#prompt"), 'Read @"with blanks/', "an open directory");
    await becomes(() => names(page), ['@"with blanks/notes.txt"'], "paths in the directory");
    await page.keyboard.press("Tab");
    equal(await page.inputValue("#prompt"), 'Read @"with blanks/notes.txt" ', "the path");
  },

  async "files that a message names are sent, and it is said what is not"() {
    const directory = join(server.project, "named");
    mkdirSync(join(directory, "inner"), { recursive: true });
    writeFileSync(join(directory, "lines.txt"), "one\ntwo\nthree\nfour\n");
    writeFileSync(join(directory, "inner", "deep.txt"), "deep\n");
    writeFileSync(join(directory, "large.txt"), "x\n".repeat(40_000));
    const id = await server.session([{ expect: "two\nthree\n", text: "Lines." }, { expect: "deep.txt", text: "List." }, { expect: "[cut: the first", text: "Cut." }, { text: "Nothing." }], { cwd: directory });
    const page = await browser.open(server, id);
    const send = async (text, answer) => {
      await page.fill("#prompt", text);
      await page.keyboard.press("Escape");
      await page.locator("#prompt").focus();
      await page.keyboard.press("Enter");
      await page.locator(".message.assistant", { hasText: answer }).waitFor();
    };
    await send("Look at @lines.txt#L2-3.", "Lines.");
    await send("And (@inner/).", "List.");
    await send("Then @large.txt", "Cut.");
    await page.locator("#toast", { hasText: "64 of 79 KiB are sent" }).waitFor();
    await send("Not @/etc/passwd, nor @nobody", "Nothing.");
    await page.locator("#toast", { hasText: "@/etc/passwd is not sent" }).waitFor();
    const { messages } = await server.call("GET", `/v1/sessions/${id}/messages`);
    const sent = messages.filter(({ role }) => role === "user").map(({ parts }) => parts.length);
    equal(sent, [2, 2, 2, 1], "parts of the messages");
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
