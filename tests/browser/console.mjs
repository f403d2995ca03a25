// The console in a real browser: node console.mjs NUNCIO. One case after the other; each has sessions of its own.

import { readFileSync, writeFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Browser, Editor, Server, becomes, equal, ok } from "./harness.mjs";
import { answer, answerBy, answerByClick, answerWith, asks, asksNot, conversation, faint, overhang, rests, text, texts } from "./pages.mjs";
import { changes } from "./changes.mjs";
import { commonmark } from "./commonmark.mjs";
import { decisions } from "./decisions.mjs";
import { following } from "./following.mjs";
import { hub } from "./hub.mjs";
import { long } from "./long.mjs";
import { places } from "./places.mjs";
import { prompting } from "./prompting.mjs";
import { reading } from "./reading.mjs";
import { sessions } from "./sessions.mjs";
import { settings } from "./settings.mjs";
import { translations } from "./translations.mjs";

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>&lt;b&gt;`;
const SLOW = Array.from({ length: 120 }, (_, index) => `word${index}`).join(" ");
/** It takes six seconds, in which a page is loaded again or a server is killed also on a busy machine. */
const SLOWER = Array.from({ length: 300 }, (_, index) => `word${index}`).join(" ");

const program = process.argv[2];
const server = await Server.start(program, [{ text: "The **first** answer, piece by piece.", chunk_chars: 2, delay_ms: 25 }, { text: "The second." }]);
const browser = await Browser.start();
const file = (name) => join(server.project, name);

const CASES = {
  async "the token leaves the address; without one, a field takes it"() {
    const page = await browser.page();
    await page.goto(`${server.url}/`);
    await page.fill("#token", "wrong");
    await page.keyboard.press("Enter");
    await page.locator("#login-error", { hasText: "not valid for this server" }).waitFor();
    await page.fill("#token", server.token);
    await page.keyboard.press("Enter");
    await page.waitForSelector("body.ready");
    const other = await browser.open(server);
    equal(new URL(other.url()).hash.includes("token"), false, "the address");
    await other.reload();
    await other.waitForSelector("body.ready");
    // Another tab of the browser needs no token, and no script can read the sign-in.
    const tab = await browser.tab(other.context());
    await tab.goto(`${server.url}/`);
    await tab.waitForSelector("body.ready");
    equal(await tab.evaluate(() => [document.cookie, Object.keys(localStorage), Object.keys(sessionStorage)]), ["", [], []], "what scripts can read");
    await tab.keyboard.press("Escape");
    await tab.keyboard.press("?");
    await tab.click("#sign-out");
    await tab.locator("#login-error", { hasText: "signed out" }).waitFor();
    await other.reload();
    await other.locator("#login").waitFor();
  },

  async "a page whose script is refused says why"() {
    const page = await browser.page();
    const refuse = (route) => route.fulfill({ status: 403, contentType: "application/json", body: "{}" });
    await page.route("**/console/app.js", refuse);
    await page.goto(`${server.url}/`);
    await page.locator("#refused", { hasText: "--allow-origin" }).waitFor();
    await page.unroute("**/console/app.js", refuse);
    await page.reload();
    await page.locator("#login").waitFor();
    equal(await page.locator("#refused").count(), 0, "the text after the script has started");
  },

  async "files are open, and come with a strict policy and a tag"() {
    const response = await fetch(`${server.url}/console/app.js`);
    equal(response.headers.get("content-type"), "text/javascript; charset=utf-8", "content type");
    ok(response.headers.get("content-security-policy").includes("require-trusted-types-for 'script'"), "no policy");
    const again = await fetch(`${server.url}/console/app.js`, { headers: { "if-none-match": response.headers.get("etag") } });
    equal([again.status, await again.text()], [304, ""], "a known file");
    equal((await fetch(`${server.url}/console/../console/none.js`)).status, 401, "an unknown file");
    // A vendored file has its own form.
    for (const name of ["vendor/markdown-it", "app", "actions", "api", "host", "file", "find", "texts", "state", "live", "sessions", "groups", "scroll", "view", "tool", "places", "ask", "review", "queue", "notify", "worker", "settings", "mentions", "context", "phone", "qr", "composer", "completion", "menu", "workspaces", "comparisons", "markdown", "tokens", "highlight", "diff", "patch", "changes", "export", "results", "fields", "dom"]) {
      const script = await (await fetch(`${server.url}/console/${name}.js`)).text();
      ok(script.startsWith(name.startsWith("vendor/") ? "/*! " : "// "), `${name}.js does not say what it is`);
      ok(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|new Function/.test(script), `${name}.js makes markup of text`);
      ok(name.startsWith("vendor/") || script.split("\n").length <= 400, `${name}.js is long`);
    }
    const foreign = await fetch(`${server.url}/`, { headers: { origin: "http://elsewhere.test" } });
    equal(foreign.status, 403, "from another origin");
  },

  async "a prompt makes a session, and its answer streams in"() {
    const page = await browser.open(server);
    await page.keyboard.type("Say something");
    await page.keyboard.press("Enter");
    await page.locator(".message.user", { hasText: "Say something" }).waitFor();
    await page.locator(".message.assistant.growing").waitFor();
    await rests(page);
    equal(await answer(page).innerText(), "The first answer, piece by piece.", "the answer");
    equal(await text(page, ".message.assistant strong"), "first", "its emphasis");
    await page.locator("#sessions a[aria-current]", { hasText: "Say something" }).waitFor();
    await page.keyboard.type("More");
    await page.keyboard.press("Enter");
    await page.locator(".message.assistant", { hasText: "The second." }).waitFor();
  },

  async "a change is shown as a diff, and allowed by a click"() {
    writeFileSync(file("poem.txt"), "roses\nare red\n");
    const edit = { name: "edit", input: { file_path: "poem.txt", old_string: "red", new_string: "blue" } };
    const page = await browser.open(server, await server.session([{ tool_calls: [edit] }, { text: "Done." }]));
    await page.fill("#prompt", "Change it");
    await page.click("#send");
    await asks(page);
    equal(await text(page, "#ask-title"), "Make this change?", "the question");
    equal(await texts(page, "#ask .diff .added mark"), ["blue"], "what is added");
    await page.locator("#sessions .waiting", { hasText: "Change it" }).waitFor();
    equal(readFileSync(file("poem.txt"), "utf8"), "roses\nare red\n", "before the answer");
    await answerByClick(page);
    await rests(page);
    equal(readFileSync(file("poem.txt"), "utf8"), "roses\nare blue\n", "after it");
    equal(await texts(page, ".tool .diff .removed .text"), ["removed: are red"], "what was removed");
    equal(await text(page, ".tool .meta"), "+1 −1", "how much");
  },

  async "the status of directories and of agents in terminals is shown"() {
    const page = await browser.open(server, await server.session([{ tool_calls: [{ name: "bash", input: { command: "true" } }] }, { text: "Done." }]));
    await page.locator("#cwd.idle").waitFor();
    await page.fill("#prompt", "Run true");
    await page.click("#send");
    await page.locator("#cwd.waiting").waitFor();
    await answerByClick(page);
    await rests(page);
    await page.locator("#cwd.idle").waitFor();
    const hook = async (event) => {
      const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json", "x-workspace-path": server.project };
      const body = JSON.stringify({ hook_event_name: event, session_id: "11111111-2222-4333-8444-555555555555" });
      equal((await fetch(`${server.url}/hook`, { method: "POST", headers, body })).status, 200, event);
    };
    for (const [event, word] of [["UserPromptSubmit", "busy"], ["PermissionRequest", "waiting"], ["Stop", "idle"]]) {
      await hook(event);
      await page.locator(`#terminals li.${word}`, { hasText: `claude-code${word}` }).waitFor();
    }
    await hook("SessionEnd");
    await page.locator("#terminals li").waitFor({ state: "detached" });
  },

  async "a session that an editor runs is answered and prompted in the console"() {
    const steps = [{ tool_calls: [{ name: "bash", input: { command: "touch from-editor" } }] }, { text: "The editor's." }, { text: "The next." }];
    const editor = new Editor(server, steps);
    const id = await editor.session(server.project);
    const page = await browser.open(server, id);
    const turn = editor.prompt(id, "Run it in the editor");
    await asks(page);
    await page.locator("#sessions .waiting", { hasText: "Run it in the editor" }).waitFor();
    await answerByClick(page);
    equal((await turn).stopReason, "end_turn", "the editor's turn");
    await rests(page);
    equal(existsSync(file("from-editor")), true, "the command ran");
    await page.fill("#prompt", "And from here");
    await page.keyboard.press("Enter");
    await page.locator(".message.assistant", { hasText: "The next." }).waitFor();
    await rests(page);
    await editor.end();
  },

  async "commands are allowed and rejected by keys; their output is shown"() {
    const bash = (command) => ({ tool_calls: [{ name: "bash", input: { command } }] });
    const steps = [bash("printf '\\033[31mred\\033[0m text\\n'; touch made; exit 3"), bash("touch never"), { text: "Done." }];
    const page = await browser.open(server, await server.session(steps));
    await page.fill("#prompt", "Run it");
    await page.keyboard.press("Enter");
    await answerBy(page, "y");
    await page.locator(".tool.completed .output", { hasText: "red text" }).waitFor();
    equal(await text(page, ".tool .meta"), "exit 3", "how it ended");
    await answerBy(page, "n");
    await rests(page);
    equal(await text(page, ".tool.failed .meta"), "rejected", "the other");
    equal([existsSync(file("made")), existsSync(file("never"))], [true, false], "what was run");
    equal(await text(page, "#sessions [aria-current] .title"), "Run it", "the title of the session");
  },

  async "the question about a command shows its variables and its directory"() {
    mkdirSync(file("elsewhere"), { recursive: true });
    const input = { command: "echo asked", env: { GIT_SSH_COMMAND: "evil" }, cwd: "elsewhere" };
    const page = await browser.open(server, await server.session([{ tool_calls: [{ name: "bash", input }] }, { text: "Done." }]));
    await page.fill("#prompt", "Run it there");
    await page.keyboard.press("Enter");
    await asks(page);
    equal(await text(page, "#ask-title"), "Run this command?", "the question");
    const shown = await text(page, "#ask .what code");
    for (const part of ["# in ", "elsewhere", "GIT_SSH_COMMAND", "evil", "echo asked"]) ok(shown.includes(part), `${part} is not in ${shown}`);
    await answerBy(page, "n");
    await rests(page);
  },

  async "the question of a subagent has its own title"() {
    const script = server.write("worker.json", [{ tool_calls: [{ name: "bash", input: { command: "touch made-by-worker" } }] }, { text: "Finished." }]);
    mkdirSync(join(server.home, "agents"), { recursive: true });
    writeFileSync(join(server.home, "agents", "worker.md"), `---\nname: worker\ndescription: Works.\nmodel: scripted:${script}\n---\nYou work.\n`);
    const page = await browser.open(server, await server.session([{ tool_calls: [{ name: "task", input: { agent: "worker", prompt: "Work." } }] }, { text: "Done." }]));
    await page.fill("#prompt", "Delegate it");
    await page.keyboard.press("Enter");
    await asks(page);
    equal(await text(page, "#ask-title"), "Allow worker: `touch made-by-worker`?", "the question");
    ok((await text(page, "#ask .what")).includes("touch made-by-worker"), "the command is not shown");
    await answerBy(page, "n");
    await rests(page);
    equal(existsSync(file("made-by-worker")), false, "the file");
  },

  async "reloaded in the midst of a turn, the conversation is the same"() {
    const id = await server.session([{ thinking: "Hm, well.", text: SLOWER, delay_ms: 40, tool_calls: [{ name: "list", input: {} }] }, { text: "Done." }]);
    const page = await browser.open(server, id);
    await server.prompt(id);
    await page.locator(".message.assistant", { hasText: "word9 " }).waitFor();
    await page.reload();
    await page.waitForSelector("body.ready");
    await page.locator(".message.assistant.growing", { hasText: "word9 " }).waitFor();
    await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
    await rests(page);
    const shown = await conversation(page);
    equal(shown.map((line) => line.split(":")[0]), ["message user", "message thought", "message assistant", "tool completed", "message assistant"], "what is shown");
    equal(shown[2], `message assistant: nuncio says:${SLOWER}`, "the answer");
    await page.reload();
    await page.waitForSelector("#conversation[aria-busy=false] .message");
    equal(await conversation(page), shown, "once more");
  },

  async "a server that is killed in the midst of a turn is found again"() {
    const id = await server.session([{ text: SLOWER, delay_ms: 40 }]);
    const page = await browser.open(server, id);
    await server.prompt(id);
    await page.locator(".message.assistant", { hasText: "word9 " }).waitFor();
    await server.down("SIGKILL");
    await page.locator("body.offline").waitFor();
    await server.up();
    await page.locator(".note", { hasText: "Interrupted" }).waitFor();
    await page.locator("body:not(.offline)").waitFor();
    await rests(page);
    equal((await texts(page, ".message.assistant")).length, 1, "answers");
    ok(`nuncio says:${SLOWER}`.startsWith(await page.locator(".message.assistant").textContent()), "the half answer is not the beginning of the whole");
    await page.fill("#prompt", "Again");
    await page.keyboard.press("Enter");
    await page.locator(".message.user", { hasText: "Again" }).waitFor();
    await rests(page);
    await becomes(() => answer(page).textContent(), SLOWER, "the next answer");
  },

  async "what a session says is text and nothing else"() {
    const name = `${HOSTILE.replaceAll("/", "")}.txt`;
    const link = `[go](javascript:window.hacked=1) ![i](https://elsewhere.test/i.png) [ok](https://elsewhere.test/) <div>raw</div>`;
    const calls = [
      { name: "bash", input: { command: `echo '${HOSTILE}'` } },
      { name: "write", input: { file_path: name, content: `${HOSTILE}\n` } },
      { name: "plan", input: { entries: [{ content: HOSTILE, priority: "high", status: "pending" }] } },
    ];
    const steps = [{ thinking: HOSTILE, text: `# ${HOSTILE}\n\n${link}\n\n\`\`\`${HOSTILE}\n${HOSTILE}\n\`\`\`\n\n| ${HOSTILE} |\n|---|\n| ${HOSTILE} |\n`, tool_calls: calls }, { text: "Done." }];
    const id = await server.session(steps, { title: HOSTILE });
    const page = await browser.open(server, id);
    await page.fill("#prompt", HOSTILE);
    await page.keyboard.press("Enter");
    await answerBy(page, "y");
    await answerBy(page, "y");
    await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
    await rests(page);
    for (const row of await page.locator(".tool .row").all()) if ((await row.getAttribute("aria-expanded")) === "false") await row.click();
    for (const selector of ["#title", "#sessions [aria-current] .title", ".message.user .said", ".message.thought .markdown", ".message.assistant .h1", "#plan-now"]) {
      ok((await page.locator(selector).first().textContent()).includes("<img src=x onerror="), `${selector} does not show it as it is`);
    }
    equal(await page.evaluate(() => document.querySelectorAll("#app img, #app script, #app iframe").length), 0, "elements made from text");
    equal(await page.evaluate(() => [...document.querySelectorAll("#conversation a")].map((link) => [link.href, link.rel])), [["https://elsewhere.test/i.png", "noopener noreferrer"], ["https://elsewhere.test/", "noopener noreferrer"]], "links");
    equal(await page.evaluate(() => [window.hacked ?? null, window.violations]), [null, []], "what it did");
    equal(await page.evaluate(() => { try { document.body.innerHTML = "x"; } catch { return "refused"; } }), "refused", "markup");
    await page.evaluate(() => (window.violations = []));
    browser.complaints.length = 0;
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 700 });
      equal(await overhang(page), 0, `sideways at ${width}`);
    }
  },

  async "text that nests without end does not stop the page, and is shown"() {
    const id = await server.session([{ text: `${">".repeat(5000)}deep` }, { text: `${"- ".repeat(3000)}deeper` }, { text: "The next." }]);
    const page = await browser.open(server, id);
    for (const last of ["deep", "deeper", "The next."]) {
      await server.prompt(id);
      await page.locator(".message.assistant", { hasText: last }).last().waitFor();
      await rests(page);
    }
    await page.reload();
    await page.locator(".message.assistant", { hasText: "The next." }).waitFor();
    equal(await page.locator(".message.assistant").count(), 3, "answers");
    equal(await page.locator(".message.assistant").first().locator("blockquote").count(), 20, "levels");
  },

  async "no text takes long to be read"() {
    const page = await browser.open(server);
    const slow = await page.evaluate(async () => {
      const { Growing } = await import("/console/markdown.js");
      const { ToolView } = await import("/console/tool.js");
      const n = 15_000, many = 60_000;
      const texts = {
        heading: `# a${" ".repeat(n)}b`, rule: `a|b\n${" ".repeat(n * 10)}x`, "row rule": `a|b\n${"-|".repeat(n)}x`, tildes: `${"~".repeat(n)}\``, backticks: `${"`".repeat(n)}x`,
        fence: `\`\`\`${" a".repeat(n)}\``, brackets: "[".repeat(many), links: `${"[a](b \"".repeat(40)}${" ".repeat(30_000)}`, stars: "*a ".repeat(many), strong: "**a ".repeat(many),
        spaces: `a${" ".repeat(many)}b`, table: `${"|a".repeat(2000)}|\n${"|-".repeat(2000)}|\n${"|\n".repeat(2000)}`,
      };
      const found = [];
      // The shortest of three runs: a busy machine is slow now and then, a slow reader always.
      const time = (name, does) => {
        const runs = [1, 2, 3].map(() => {
          const started = performance.now();
          does();
          return performance.now() - started;
        });
        const took = Math.min(...runs);
        if (took > 2000) found.push(`${name}: ${Math.round(took)} ms`);
      };
      for (const [name, text] of Object.entries(texts)) time(name, () => new Growing().update(text, true));
      for (const text of [`${" ".repeat(many)}x`, `${"\n".repeat(many)}x`]) {
        const item = { about: "execute", input: { command: `a${text}` }, title: "", status: "completed", done: true, content: [{ type: "content", content: { type: "text", text } }], locations: [] };
        time("output", () => new ToolView(item).update());
      }
      return found;
    });
    equal(slow, [], "what took long");
  },

  async "what cannot be drawn is plain text, and keeps nothing else from it"() {
    const id = await server.session([{ text: "Before.\n\n---\n" }, { text: "The next." }]);
    const page = await browser.open(server, id);
    await page.evaluate(() => {
      const real = document.createElement;
      document.createElement = function (name) {
        if (name === "hr") throw new Error("broken on purpose");
        return real.call(this, name);
      };
    });
    await server.prompt(id);
    await page.locator(".message.assistant .said", { hasText: "---" }).waitFor();
    await rests(page);
    await server.prompt(id, "More.");
    await page.locator(".message.assistant", { hasText: "The next." }).waitFor();
    ok(browser.complaints.length && browser.complaints.every((one) => one.includes("broken on purpose")), "it is not told");
    browser.complaints.length = 0;
  },

  async "a click that was meant for one question does not answer the next"() {
    const bash = (command) => ({ tool_calls: [{ name: "bash", input: { command } }] });
    const page = await browser.open(server, await server.session([bash("touch first"), bash("touch second"), { text: "Done." }]));
    await page.fill("#prompt", "Two commands");
    await page.keyboard.press("Enter");
    await asks(page);
    const stale = await page.$("#ask .primary");
    await page.evaluate(() => {
      const root = document.querySelector("#ask"), before = root.dataset.id;
      const click = () => root.dataset.id && root.dataset.id !== before && root.querySelector(".primary").dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 2 }));
      new MutationObserver(click).observe(root, { attributeFilter: ["data-id"] });
    });
    await answerByClick(page);
    await asks(page);
    await page.locator("#ask", { hasText: "touch second" }).waitFor();
    for (let at = 0; at < 20; at++) {
      await stale.evaluate((button) => button.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 })));
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
    await answerBy(page, "n");
    await rests(page);
    equal([existsSync(file("first")), existsSync(file("second"))], [true, false], "what was done");
  },

  async "only Shift says always, not Caps Lock; a key that is held down answers nothing"() {
    const bash = { tool_calls: [{ name: "bash", input: { command: "echo capitals" } }] };
    const page = await browser.open(server, await server.session([bash, bash, bash, { text: "Done." }]));
    await page.fill("#prompt", "The same again");
    await page.keyboard.press("Enter");
    await asks(page);
    await page.keyboard.press("Escape");
    const press = (init) => page.evaluate((init) => document.querySelector("#ask").dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...init })), init);
    await answerWith(page, "Y", () => press({ key: "Y" }));
    await asks(page);
    const question = await page.locator("#ask").getAttribute("data-id");
    for (let at = 0; at < 40; at++) {
      await press({ key: "y", repeat: true });
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
    equal(await page.locator("#ask").getAttribute("data-id"), question, "the question");
    await answerWith(page, "Shift y", () => press({ key: "y", shiftKey: true }));
    await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(await page.locator(".tool.completed").count(), 3, "commands");
  },

  async "who signs in after somebody else finds nothing of theirs"() {
    const id = await server.session([{ text: "A secret." }], { title: "Secret title" });
    await server.prompt(id);
    const page = await browser.open(server, id);
    await rests(page);
    await page.fill("#prompt", "secret draft");
    await page.evaluate(() => (location.hash = "#/"));
    await page.locator("body.home").waitFor();
    await browser.go(page, id);
    equal(await page.inputValue("#prompt"), "secret draft", "the draft");
    await page.route("**/messages", (route) => route.fulfill({ status: 401, json: { error: { code: "unauthenticated", message: "no" } } }));
    await page.press("#prompt", "Enter");
    await page.locator("#login").waitFor();
    const left = await page.evaluate(() => [document.documentElement.textContent.includes("ecret"), document.title, document.querySelectorAll("#sessions li, #conversation > *, #directories option").length, document.querySelector("#prompt").value, Object.keys(sessionStorage)]);
    equal(left, [false, "nuncio", 0, "", []], "what is left");
    await page.fill("#token", server.token);
    await page.keyboard.press("Enter");
    await page.locator(".message.assistant", { hasText: "A secret." }).waitFor();
  },

  async "while the server cannot be reached, it is asked once at a time and less and less"() {
    const page = await browser.page();
    await page.clock.install();
    let asked = 0, answered = 0;
    page.on("requestfailed", (request) => (answered += request.url().endsWith("/v1/status")));
    await page.goto(`${server.url}/`);
    await page.locator("#login").waitFor();
    await page.route("**/v1/status", (route) => (asked++, route.abort()));
    for (let at = 0; at < 6; at++) {
      const before = asked;
      await page.fill("#token", server.token);
      await page.keyboard.press("Enter");
      await becomes(() => asked > before, true, "an attempt asked");
    }
    for (let at = 0; at < 20; at++) {
      await becomes(() => answered, asked, "the answers");
      await page.evaluate(() => fetch("/console/icon.svg").then((answer) => answer.text()));
      await page.clock.runFor(1000);
    }
    ok(asked >= 8 && asked <= 16, `asked ${asked} times`);
    await page.unroute("**/v1/status");
    await page.clock.runFor(15_000);
    await page.waitForSelector("body.ready");
  },

  async "without room for a draft, a prompt is sent all the same"() {
    const id = await server.session([{ text: "Heard." }]);
    const page = await browser.open(server, id);
    await page.evaluate(() => {
      for (let size = 8_000_000, at = 0; size >= 1; ) {
        try {
          sessionStorage.setItem(`room-${at++}`, "x".repeat(size));
        } catch {
          size = Math.floor(size / 2);
        }
      }
    });
    await page.fill("#prompt", "A large paste");
    ok(await page.locator("#send").isEnabled(), "it cannot be sent");
    await page.click("#send");
    await page.locator(".message.assistant", { hasText: "Heard." }).waitFor();
  },

  async "what was opened for one session is not for the next"() {
    const [one, two] = [await server.session([{ text: "One." }]), await server.session([{ text: "Two." }])];
    const page = await browser.open(server, one);
    await page.click("#more button");
    await page.locator(".menu:popover-open button", { hasText: "Delete" }).click();
    await page.locator("#deleting[open]").waitFor();
    await browser.go(page, two);
    await page.locator("#deleting").waitFor({ state: "hidden" });
    await page.click(".picker.mode");
    await page.locator(".menu:popover-open").waitFor();
    await browser.go(page, one);
    equal(await page.locator(".menu:popover-open").count(), 0, "menus");
    await page.click("#more button");
    await page.locator(".menu:popover-open button", { hasText: "Delete" }).click();
    await page.locator("#deleting .danger").click();
    await page.waitForFunction(() => location.hash === "#/");
    equal((await server.call("GET", `/v1/sessions/${two}`)).sessionId, two, "the other");
    await page.goto(`${server.url}/#/session/%`);
    await page.reload();
    await page.waitForSelector("body.ready");
  },

  async "on a phone the list is a drawer"() {
    const id = await server.session([{ text: "Small." }], { title: "On a phone" });
    await server.prompt(id);
    const page = await browser.open(server, id, { viewport: { width: 360, height: 700 }, isMobile: true, hasTouch: true });
    await rests(page);
    ok(!(await page.locator("#sidebar").isVisible()), "the list is open");
    equal(await overhang(page), 0, "sideways");
    await page.tap("#open-drawer");
    await page.locator("#sessions a", { hasText: "On a phone" }).waitFor();
    equal(await overhang(page), 0, "sideways with the drawer");
    await page.locator("#sessions li:not(:has([aria-current])) a").first().tap();
    await page.locator("#sidebar").waitFor({ state: "hidden" });
    await page.goto(`${server.url}/#/`);
    equal(await overhang(page), 0, "sideways at home");
  },

  async "text can be read, by day and by night"() {
    const steps = [{ thinking: "Hm.", text: "Text, `code`, [a link](https://elsewhere.test/).\n\n> quoted\n\n```sh\nls\n```\n", tool_calls: [{ name: "write", input: { file_path: "new.txt", content: "a\n" } }, { name: "bash", input: { command: "false" } }] }, { text: "Done." }];
    const id = await server.session(steps);
    await server.prompt(id);
    for (const colorScheme of ["light", "dark"]) {
      const page = await browser.open(server, id, { colorScheme });
      if (colorScheme === "light") {
        await asks(page);
        equal(await faint(page), [], "faint in the question");
        await answerBy(page, "y");
        await answerBy(page, "y");
      }
      await rests(page);
      equal(await faint(page), [], `faint when ${colorScheme}`);
      const [page_, ink] = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map((colour) => Number(/\d+/.exec(colour)[0])));
      ok(colorScheme === "dark" ? page_ < 60 && ink > 190 : page_ > 240 && ink < 60, `${colorScheme} is ${ink} on ${page_}`);
    }
  },

  async "two pages on a session see the same; the first answer counts"() {
    const id = await server.session([{ text: "May I?", tool_calls: [{ name: "bash", input: { command: "echo shared" } }] }, { text: "Done." }]);
    const [one, two] = [await browser.open(server, id), await browser.open(server, id)];
    await one.fill("#prompt", "Share");
    await one.keyboard.press("Enter");
    await asks(two);
    await asks(one);
    await answerByClick(two);
    await asksNot(one);
    await asksNot(two);
    await rests(one);
    await rests(two);
    equal(await conversation(one), await conversation(two), "both");
    equal((await texts(one, ".tool")).length, 1, "calls");
  },

  async "a tab that nobody looked at catches up"() {
    const id = await server.session([{ text: SLOW, delay_ms: 40 }, { text: "The next." }]);
    const page = await browser.page();
    await page.clock.install();
    await page.goto(`${server.url}/#token=${server.token}`);
    await page.waitForSelector("body.ready");
    await browser.go(page, id);
    await server.prompt(id);
    await page.locator(".message.assistant", { hasText: "word9 " }).waitFor();
    const look = (hidden) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
      }, hidden);
    const streams = async () => Number(/^nuncio_http_streams (\d+)/m.exec(await server.metrics())[1]);
    await becomes(streams, 2, "streams of a tab");
    await look(true);
    await page.clock.fastForward(25_000);
    await becomes(streams, 1, "streams of a hidden tab");
    await becomes(async () => (await server.call("GET", `/v1/sessions/${id}`)).status, "idle", "the turn");
    await server.prompt(id, "More.");
    await becomes(async () => (await server.call("GET", `/v1/sessions/${id}`)).status, "idle", "the next turn");
    ok(!(await page.locator("#conversation").innerText()).includes("The next."), "it is followed all the same");
    await look(false);
    await page.locator(".message.assistant", { hasText: "The next." }).waitFor();
    equal(await texts(page, ".message.assistant .markdown"), [SLOW, "The next."], "what is shown");
  },

  async "shortcuts of one letter can be switched off"() {
    const page = await browser.open(server, await server.session([]));
    await page.locator("#scroller").focus();
    await page.keyboard.press("?");
    await page.locator("#letters").uncheck();
    await page.keyboard.press("Escape");
    await page.locator("#scroller").focus();
    await page.keyboard.press("w");
    await page.reload();
    await page.waitForSelector("body.ready");
    await page.locator("#welcome, #scroller").first().focus();
    await page.keyboard.press("?");
    equal(await page.locator("dialog[open]").count(), 0, "dialogs");
    await page.click("#show-keys");
    await page.locator("#letters").check();
    await page.keyboard.press("Escape");
    await page.locator("#scroller").focus();
    await page.keyboard.press("w");
    await page.locator("#workspaces[open]").waitFor();
  },

  async "an error is shown above a dialog"() {
    const page = await browser.open(server, await server.session([]));
    await page.route("**/v1/workspaces", (route) => (route.request().method() === "POST" ? route.fulfill({ status: 400, json: { error: { code: "invalid_params", message: "no repository here" } } }) : route.continue()));
    await page.locator("#scroller").focus();
    await page.keyboard.press("w");
    await page.locator("#workspaces[open]").waitFor();
    await page.click("#new-workspace");
    const toast = page.locator("#toast", { hasText: "No repository here" });
    await toast.waitFor();
    // The browser's hit test leaves out what is outside of a modal dialog.
    equal(await toast.evaluate((node) => node.matches(":popover-open")), true, "the error is in the top layer, above the dialog");
    equal(await page.locator("dialog[open]").count(), 1, "dialogs");
  },

  async "text that comes with a picture is pasted as text"() {
    const page = await browser.open(server);
    const paste = (withText) => page.evaluate((withText) => {
      const data = new DataTransfer();
      if (withText) data.setData("text/plain", "a\tb");
      data.items.add(new File([new Uint8Array([137, 80])], "cells.png", { type: "image/png" }));
      return document.querySelector("#prompt").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }, withText);
    equal(await paste(true), true, "the browser inserts the text");
    equal(await page.locator("#attachments .chip").count(), 0, "attachments");
    equal(await paste(false), false, "the browser inserts the picture");
    await page.locator("#attachments .chip", { hasText: "cells.png" }).waitFor();
  },

  async "keys: the prompt, the list, the help, and stop"() {
    const id = await server.session([{ text: SLOWER, delay_ms: 50 }], { title: "To be stopped" });
    const page = await browser.open(server, id);
    await page.locator("#title", { hasText: "To be stopped" }).waitFor();
    await page.locator("#scroller").focus();
    await page.keyboard.press("?");
    await page.locator("#keys[open]").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#keys").waitFor({ state: "hidden" });
    await page.locator("#scroller").focus();
    await page.keyboard.press("/");
    await page.keyboard.type("Go");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("on");
    await page.keyboard.press("Enter");
    await page.locator(".message.assistant", { hasText: "word1 " }).waitFor();
    equal(await page.locator(".said").textContent(), "Go\non", "the prompt");
    await page.keyboard.press("Escape");
    await page.locator(".note", { hasText: "Stopped" }).waitFor();
    await rests(page);
    await page.locator("#scroller").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForFunction((id) => !location.hash.endsWith(id), id);
  },

  async "while a turn runs, messages wait for their turn"() {
    const hold = server.hold("Slowly.");
    const id = await server.session([hold.step, { text: "Done." }, { text: "The next." }], { mode: "auto" });
    const page = await browser.open(server, id);
    await server.prompt(id);
    await page.locator(".tool.in_progress").waitFor();
    await page.fill("#prompt", "And then?");
    await page.keyboard.press("Enter");
    await page.locator("#queue", { hasText: "And then?" }).waitFor();
    hold.release();
    await page.locator(".message.assistant", { hasText: "The next." }).waitFor();
    await page.locator("#queue").waitFor({ state: "hidden" });
    equal((await texts(page, ".said")), ["Go.", "And then?"], "prompts");
  },

  async "queued messages are edited, steered and removed"() {
    const hold = server.hold("Slowly.");
    const id = await server.session([hold.step, { expect: "Better", text: "Seen." }], { mode: "auto" });
    const page = await browser.open(server, id);
    await server.prompt(id);
    await page.locator(".tool.in_progress").waitFor();
    for (const text of ["Worse", "Never"]) {
      await page.fill("#prompt", text);
      await page.keyboard.press("Enter");
      await page.locator("#queue", { hasText: text }).waitFor();
    }
    await page.locator("#queue li", { hasText: "Never" }).getByLabel("Remove this message").click();
    await page.locator("#queue li", { hasText: "Worse" }).getByLabel("Edit this message").click();
    await page.fill("#queue textarea", "Better");
    await page.keyboard.press("Enter");
    await page.locator("#queue li", { hasText: "Better" }).getByLabel("Steer the running turn").click();
    await page.locator("#queue", { hasText: "steers" }).waitFor();
    hold.release();
    await page.locator(".message.assistant", { hasText: "Seen." }).waitFor();
    await page.locator("#queue").waitFor({ state: "hidden" });
    equal((await texts(page, ".said")), ["Go.", "Better"], "prompts");
  },

  async "mode and thinking are chosen from menus, pictures come along"() {
    const id = await server.session([{ text: "Seen." }]);
    const page = await browser.open(server, id);
    await page.click(".picker.mode");
    await page.locator(".menu [role=menuitemradio]", { hasText: "Accept edits" }).click();
    await page.locator(".picker.mode", { hasText: "Accept edits" }).waitFor();
    await page.click(".picker.thinking");
    await page.locator(".menu:popover-open").getByRole("menuitemradio", { name: "High", exact: true }).click();
    await page.locator(".picker.thinking", { hasText: "high" }).waitFor();
    const view = await server.call("GET", `/v1/sessions/${id}`);
    equal([view.mode, view.thinking], ["accept-edits", "high"], "what the server says");
    const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
    await page.setInputFiles("#file", [{ name: "dot.png", mimeType: "image/png", buffer: png }, { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# Notes") }]);
    await page.locator("#attachments .chip", { hasText: "notes.md" }).waitFor();
    await page.click("#send");
    await page.waitForFunction(() => document.querySelector(".message.user img")?.naturalWidth === 1);
    equal(await texts(page, ".message.user .chip"), ["notes.md"], "the text");
    await rests(page);
  },

  async "an observer sees everything and decides nothing"() {
    const token = server.observer();
    const id = await server.session([{ tool_calls: [{ name: "bash", input: { command: "echo watched" } }] }, { text: "Done." }]);
    const page = await browser.open(server, id, { token });
    ok(!(await page.locator("#composer").isVisible()), "there is a prompt box");
    const other = await browser.open(server, id);
    await server.prompt(id);
    await asks(page);
    equal(await page.locator("#ask button.primary").count(), 0, "answers");
    await answerBy(other, "y");
    await asksNot(page);
    await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
  },

  async "twenty thousand pieces do not stop the page"() {
    const whole = Array.from({ length: 4000 }, (_, index) => `Sentence number ${index} of a long answer, with \`code\`.${index % 5 ? " " : "\n\n"}`).join("");
    const id = await server.session([{ text: whole }]);
    const page = await browser.open(server, id);
    await page.evaluate(() => {
      window.longest = 0;
      let last = performance.now();
      const beat = () => {
        window.longest = Math.max(window.longest, performance.now() - last);
        last = performance.now();
        setTimeout(beat, 0);
      };
      beat();
    });
    await server.prompt(id);
    await page.locator(".message.assistant", { hasText: "Sentence number 3999 " }).waitFor();
    await rests(page);
    const longest = await page.evaluate(() => window.longest);
    ok(longest < 4000, `the page stood still for ${Math.round(longest)} ms`);
    await page.waitForFunction(() => { const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#scroller"); return scrollHeight - scrollTop - clientHeight < 4; });
  },
};

Object.assign(CASES, decisions(browser, server, program), prompting(browser, server), changes(browser, server), following(browser, server), commonmark(browser, server), places(browser, server), long(browser, server), sessions(browser, server), settings(browser, server), reading(browser, server), hub(browser, server, program), translations(browser, server, program));

const only = process.argv[3];
let passed = 0, failed = 0;
for (const [name, run] of Object.entries(CASES)) {
  if (only && !name.includes(only)) continue;
  const started = Date.now();
  try {
    await run();
    for (const context of browser.contexts) {
      for (const page of context.pages()) equal(await page.evaluate(() => window.violations), [], "violations of the policy");
    }
    equal(browser.complaints, [], "complaints of the browser");
    passed++;
    console.log(`ok      ${name} (${Date.now() - started} ms)`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}\n${error.stack}\n${browser.complaints.join("\n")}`);
    const page = browser.contexts.at(-1)?.pages()[0];
    if (page && process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${failed}.png`) });
  }
  browser.complaints.length = 0;
  await browser.closePages();
}
await browser.chromium.close();
await server.down("SIGKILL");
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
