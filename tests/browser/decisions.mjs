// Cases about what the user decides, and about the ends and the results of turns.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Server, becomes, equal, ok } from "./harness.mjs";
import { answerBy, answerWith, asks, asksNot, rests, text, texts } from "./pages.mjs";

const bash = (command) => ({ tool_calls: [{ name: "bash", input: { command } }] });
const write = (path) => ({ name: "write", input: { file_path: path, content: `${path}\n` } });

const primary = async (page) => (await text(page, "#ask .primary")).replace(/\s+/g, " ");

/** An ACP agent in a few lines, whose calls have these results: `[title, kind, input, result]`. */
const agent = (calls) => `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const update = (fields) => send({ method: "session/update", params: { sessionId: "one", update: fields } });
const answers = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  "session/new": () => ({ sessionId: "one" }),
  "session/prompt": () => {
    for (const [index, [title, kind, rawInput, rawOutput, status = "completed"]] of ${JSON.stringify(calls)}.entries()) {
      const toolCallId = "call-" + index;
      update({ sessionUpdate: "tool_call", toolCallId, title, kind, status: "in_progress", rawInput });
      update({ sessionUpdate: "tool_call_update", toolCallId, status, rawOutput });
    }
    return { stopReason: "end_turn" };
  },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) send({ id, result: answers[method]?.() ?? {} });
});
`;

export const decisions = (browser, server, program) => {
  /** A page with a session of an agent whose turn made these calls. */
  async function hosted(calls) {
    const host = await Server.start(program, [], `[agents]\nallowed = ["other"]\n[agents.other]\nkind = "acp"\ncommand = ["node", "agent.cjs"]\n`);
    try {
      writeFileSync(join(host.project, "agent.cjs"), agent(calls));
      execFileSync(program, ["trust", host.project], { env: { ...process.env, NUNCIO_HOME: host.home }, stdio: ["ignore", "pipe", "pipe"] });
      const page = await browser.open(host, (await host.call("POST", "/v1/sessions", { agent: "other" })).sessionId);
      await page.fill("#prompt", "Work");
      await page.click("#send");
      await page.locator(".tool.completed, .tool.failed").nth(calls.length - 1).waitFor();
      await rests(page);
      return page;
    } finally {
      await host.down("SIGTERM");
    }
  }

  return {
  async "a choice about one file is not overridden by a key for all"() {
    const host = await Server.start(program, [{ tool_calls: [write("one.txt"), write("two.txt")] }, { text: "Done." }], '[review]\nmode = "request"\n');
    try {
      for (const how of ["key", "Enter"]) {
        const work = mkdtempSync(join(host.project, "review-"));
        const { sessionId } = await host.call("POST", "/v1/sessions", { mode: "auto", cwd: work });
        const page = await browser.open(host, sessionId);
        await host.prompt(sessionId);
        await asks(page);
        equal(await primary(page), "Accept all y", "before a choice");
        const one = page.locator("#ask .part").first();
        await one.getByLabel("Reject").check();
        equal(await primary(page), "Apply the choices y", "after a choice");
        equal(await page.locator("#ask [aria-keyshortcuts]").count(), 1, "answers with a key");
        if (how === "key") await answerBy(page, "y");
        else await answerWith(page, how, () => page.locator("#ask .primary").press("Enter", { timeout: 500 }).catch(() => {}));
        await rests(page);
        equal(["one.txt", "two.txt"].map((name) => existsSync(join(work, name))), [false, true], `files, by ${how}`);
      }
    } finally {
      await host.down("SIGTERM");
    }
  },

  async "a question takes no focus from the prompt, and no key answers it within a second after typing"() {
    const page = await browser.page();
    await page.clock.install();
    await page.goto(`${server.url}/#token=${server.token}`);
    await page.waitForSelector("body.ready");
    await browser.go(page, await server.session([bash("touch answered"), { text: "Done." }]));
    let answers = 0;
    page.on("request", (request) => (answers += request.method() === "POST" && /\/v1\/permissions\//.test(request.url())));
    await page.fill("#prompt", "Run it");
    await page.keyboard.press("Enter");
    await asks(page);
    equal(await page.evaluate(() => document.activeElement.id), "prompt", "the focus");
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await page.keyboard.type("yes");
    equal(await page.inputValue("#prompt"), "yes", "what was typed");
    await page.keyboard.press("Escape");
    ok(await page.evaluate(() => document.querySelector("#ask").contains(document.activeElement)), "Escape does not go to the question");
    for (const key of ["y", "Enter", "Space"]) await page.keyboard.press(key);
    equal(answers, 0, "answers within a second");
    await page.clock.runFor(1000);
    await page.keyboard.press("y");
    await asksNot(page);
    equal(answers, 1, "answers");
    await page.clock.resume();
    await rests(page);
  },

  async "a turn that failed is run again, and a message that waits is sent"() {
    const id = await server.session([{ error: { status: 400, times: 1 }, text: "It works now." }, server.hold().step, { text: "The next." }], { mode: "auto" });
    const page = await browser.open(server, id);
    await server.prompt(id, "Try it");
    await page.locator(".note.error").waitFor();
    await rests(page);
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator(".message.assistant", { hasText: "It works now." }).waitFor();
    await rests(page);
    equal(await page.getByRole("button", { name: "Retry" }).count(), 0, "offers after a turn that completed");
    await server.prompt(id);
    await page.locator(".tool.in_progress").waitFor();
    await page.fill("#prompt", "And then?");
    await page.keyboard.press("Enter");
    await page.locator("#queue", { hasText: "And then?" }).waitFor();
    equal(await page.getByRole("button", { name: "Send now" }).count(), 0, "offers during the turn");
    await server.call("POST", `/v1/sessions/${id}/cancel`, {});
    await page.locator(".note", { hasText: "Stopped" }).waitFor();
    await page.getByRole("button", { name: "Send now" }).click();
    await page.locator(".message.assistant", { hasText: "The next." }).waitFor();
    await page.locator("#queue").waitFor({ state: "hidden" });
    equal(await texts(page, ".said"), ["Try it", "Try it", "Go.", "And then?"], "prompts");
  },

  async "the dot in the header is the status of the session, not of its directory"() {
    const waiting = await server.session([bash("true"), { text: "Done." }], { title: "It waits" });
    const page = await browser.open(server, await server.session([{ text: "Done." }], { title: "It rests" }));
    await server.prompt(waiting);
    await page.locator("#sessions .waiting", { hasText: "It waits" }).waitFor();
    await page.locator("#cwd.idle").waitFor();
    await browser.go(page, waiting);
    await page.locator("#cwd.waiting").waitFor();
    await answerBy(page, "n");
    await rests(page);
    await page.locator("#cwd.idle").waitFor();
  },

  async "a failed check shows its last lines"() {
    const check = { name: "verify", input: { commands: ["true", "seq 30; echo 'assertion failed: 1 == 2'; exit 1"] } };
    const page = await browser.open(server, await server.session([{ tool_calls: [check] }, { text: "Done." }]));
    await page.fill("#prompt", "Check it");
    await page.click("#send");
    await answerBy(page, "y");
    await rests(page);
    equal(await page.locator(".tool .row").getAttribute("aria-expanded"), "false", "the row");
    const shown = (await text(page, ".tool .preview")).split("\n");
    equal([shown.at(-1), shown.includes("30")], ["assertion failed: 1 == 2", true], "the last lines");
  },

  async "the result of a hosted agent is drawn, not shown as JSON"() {
    const result = { items: [{ title: "Empty input panics", open: true }, { title: "Stack overflow", open: false }], note: "two\nlines" };
    const page = await hosted([["tickets: search", "other", { query: "panic", limits: { first: 5 } }, result]]);
    await page.click(".tool .row");
    const shown = await text(page, ".tool .body");
    for (const part of ["query", "panic", "Empty input panics", "Stack overflow", "two\nlines"]) ok(shown.includes(part), `${part} is not in ${shown}`);
    ok(!/[{}"]/.test(shown), `JSON is shown: ${shown}`);
  },

  async "results of Claude Code, Codex and OpenCode are drawn by their shape"() {
    const hostile = `<img src=x onerror="window.hacked=1">`;
    const todos = [{ content: `Read ${hostile}`, status: "completed", activeForm: "Reading" }, { content: "Write it", status: "in_progress" }, { content: "Test it", status: "pending" }];
    const links = [{ title: `A ${hostile} [page]`, url: "https://elsewhere.test/a b" }, { title: "Bad", url: "javascript:window.hacked=1" }];
    const calls = [
      ["TodoWrite", "other", { todos }, "Todos have been modified successfully."],
      ["todowrite", "think", { todos }, JSON.stringify(todos)],
      ["Task Look", "other", { description: "Look", prompt: "Look for **bugs**.", subagent_type: "Explore" }, "Found `one` bug."],
      ["ExitPlanMode", "other", { plan: "# The plan\n\n1. First" }, "User has approved your plan."],
      ["MultiEdit a.txt", "edit", { file_path: "a.txt", edits: [{ old_string: "old", new_string: "new" }, { old_string: "red", new_string: "blue" }] }, "Applied 2 edits"],
      ["WebSearch weather", "fetch", { query: "weather" }, `Web search results for query: "weather"\n\nLinks: ${JSON.stringify(links)}\n\nIt is **sunny**.`],
      ["BashOutput", "other", { bash_id: "1" }, "<status>completed</status>\n<exit_code>0</exit_code>\n<stdout>\none\ntwo\n</stdout>\n<system-reminder>Hidden</system-reminder>"],
      ["Read a.txt", "read", { file_path: "a.txt" }, "<tool_use_error>No such file</tool_use_error>", "failed"],
      ["apply_patch", "edit", { patchText: "*** Begin Patch\n*** Update File: b.txt\n-one\n+two\n*** End Patch" }, "Success."],
    ];
    const page = await hosted(calls);
    for (const row of await page.locator(".tool .row").all()) if ((await row.getAttribute("aria-expanded")) === "false") await row.click();
    const body = (at) => page.locator(".tool .body").nth(at);
    const list = ["done: Read " + hostile, "now: Write it", "open: Test it"];
    for (const at of [0, 1]) equal(await body(at).locator(".todos li").allTextContents(), list, `tasks of ${calls[at][0]}`);
    equal([await body(2).locator("details strong").textContent(), await body(2).locator("> .markdown code").textContent()], ["bugs", "one"], "the subagent");
    equal(await body(3).locator("h2, li").allTextContents(), ["The plan", "First"], "the plan");
    equal([await body(4).locator(".diff .added .text").allTextContents(), await page.locator(".tool .meta").nth(4).innerText()], [["added: new", "added: blue"], "+2 −2"], "the edits");
    equal(await body(5).locator("a").evaluateAll((links) => links.map((link) => [link.href, link.textContent])), [["https://elsewhere.test/a%20b", `A ${hostile} [page]`]], "the links");
    equal(await body(5).locator("strong").textContent(), "sunny", "the summary of the search");
    equal(await body(6).locator("dt").allTextContents(), ["status", "exit code", "stdout"], "the parts");
    equal([await body(6).locator("pre").textContent(), (await body(6).textContent()).includes("Hidden")], ["one\ntwo", false], "the output");
    ok((await body(7).innerText()).includes("No such file"), "the error");
    ok((await body(8).innerText()).includes("+two"), "the patch");
    const shown = await page.locator("#conversation").innerText();
    ok(!/\[\{"|tool_use_error|modified successfully/.test(shown), `raw data is shown: ${shown}`);
    equal([await page.locator("#conversation img").count(), await page.evaluate(() => window.hacked ?? null)], [0, null], "what the text did");
  },

  async "code in a table is not broken within a word"() {
    const cells = ["`internationalization_settings`", "`configuration.environment`", "`a-command --with-option`", "`SomeVeryLongIdentifierOfAType`"];
    const table = `| ${cells.map(() => "Column").join(" | ")} |\n|${"---|".repeat(cells.length)}\n| ${cells.join(" | ")} |`;
    const page = await browser.open(server, await server.session([{ text: table }]), { viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true });
    await page.fill("#prompt", "A table");
    await page.click("#send");
    await page.locator(".table td").first().waitFor();
    await rests(page);
    const broken = () => page.evaluate(() =>
      [...document.querySelectorAll(".table code")].flatMap((code) => {
        const node = code.firstChild, words = [...node.data.matchAll(/\w+/g)];
        return words.filter(({ 0: word, index }) => {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          return range.getClientRects().length > 1;
        }).map(([word]) => word);
      }));
    await becomes(broken, [], "words that are broken");
    equal(await page.evaluate(() => document.querySelector("#scroller").scrollWidth - document.querySelector("#scroller").clientWidth), 0, "sideways");
  },
  };
};
