// Cases about what a reader sees: questions character by character, markdown, sizes, the plan, and
// what axe-core finds.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { becomes, equal, ok } from "./harness.mjs";
import { answerBy, asks, faint, rests, text, texts } from "./pages.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PHONE = { viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true };
const bash = (command) => ({ tool_calls: [{ name: "bash", input: { command } }] });

/** What axe-core finds on a page: `rule: selector`. */
async function violations(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target}`));
}

/** Boxes of an element's text, line by line. */
const boxes = (page, selector) =>
  page.evaluate((selector) => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector(selector));
    return [...range.getClientRects()].map(({ left, top, right, bottom }) => ({ left, top, right, bottom }));
  }, selector);

export const reading = (browser, server) => ({
  async "on a phone the copy button covers nothing of the command that is asked about"() {
    const command = `${"program".repeat(40)}; rm -rf victim`;
    for (const options of [PHONE, {}]) {
      const page = await browser.open(server, await server.session([bash(command), { text: "Done." }]), options);
      await page.fill("#prompt", "Run it");
      await page.click("#send");
      await asks(page);
      await page.hover("#ask .code");
      const copy = await page.locator("#ask .copy").boundingBox();
      const covered = (await boxes(page, "#ask code")).filter((box) => box.left < copy.x + copy.width && box.right > copy.x && box.top < copy.y + copy.height && box.bottom > copy.y);
    equal(covered, [], "covered lines");
      await answerBy(page, "n");
      await rests(page);
    }
  },

  async "the file that the model is writing is named, with its size so far"() {
    const write = { name: "write", input: { file_path: "long.txt", content: "line\n".repeat(1000) } };
    const page = await browser.open(server, await server.session([{ delay_ms: 300, tool_calls: [write] }, { text: "Done." }], { mode: "auto" }));
    await page.fill("#prompt", "Write it");
    await page.click("#send");
    await page.locator("#working", { hasText: /Writing long\.txt, \d kB/ }).waitFor();
    await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
  },

  async "a question shows each character of a command, in the order of execution"() {
    const command = "echo safe\u202e # \u200btxt\u2066.exe\r\u001b[2Kls -la \u05d0; rm 1 \u05d1";
    const page = await browser.open(server, await server.session([bash(command), { text: "Done." }]));
    await page.fill("#prompt", "Run it");
    await page.click("#send");
    await asks(page);
    equal(await page.locator("#ask code").textContent(), "echo safe<U+202E> # <U+200B>txt<U+2066>.exe^M^[[2Kls -la \u05d0; rm 1 \u05d1", "the command");
    const places = await page.evaluate(() => {
      const walker = document.createTreeWalker(document.querySelector("#ask code"), NodeFilter.SHOW_TEXT);
      const places = [];
      while (walker.nextNode()) {
        const node = walker.currentNode;
        for (let at = 0; at < node.length; at++) {
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, at + 1);
          const { left, top } = range.getBoundingClientRect();
          places.push([Math.round(top / 8), left]);
        }
      }
      return places;
    });
    const later = (a, b) => a[0] < b[0] || (Math.abs(a[0] - b[0]) <= 1 && a[1] <= b[1]);
    equal(places.filter((place, index) => index > 0 && !later(places[index - 1], place)), [], "characters that stand before those they follow");
    await answerBy(page, "n");
    await rests(page);
  },

  async "the hunks of a question have the numbers of their lines, and CRLF is named once"() {
    const lines = (changed) => Array.from({ length: 30 }, (_, index) => `line ${index + 1}${changed.includes(index + 1) ? " changed" : ""}\r\n`).join("");
    const write = (content) => ({ tool_calls: [{ name: "write", input: { file_path: "crlf.txt", content } }] });
    const page = await browser.open(server, await server.session([write(lines([])), write(lines([2, 25])), { text: "Done." }]));
    await page.fill("#prompt", "Write it");
    await page.click("#send");
    await asks(page);
    await answerBy(page, "y");
    await page.locator("#ask .part").nth(1).waitFor();
    equal(await texts(page, "#ask .added .text"), ["added: line 2 changed", "added: line 25 changed"], "the changes");
    equal(await texts(page, "#ask .added .number:not(.old)"), ["2", "25"], "the numbers");
    equal(await texts(page, "#ask .part p.muted"), ["All lines end with CRLF.", "All lines end with CRLF."], "the line ends");
    await answerBy(page, "n");
    await rests(page);
  },

  async "a question about a file shows each character of its name and of the change"() {
    const write = { name: "write", input: { file_path: "gnp\u202etxt.sh", content: "one\u2067two\n\u200bthree\u001b[8m\n" } };
    const page = await browser.open(server, await server.session([{ tool_calls: [write] }, { text: "Done." }]));
    await page.fill("#prompt", "Write it");
    await page.click("#send");
    await asks(page);
    ok((await page.locator("#ask .subtitle").textContent()).endsWith("gnp<U+202E>txt.sh"), await page.locator("#ask .subtitle").textContent());
    equal(await texts(page, "#ask .diff .text"), ["added: one<U+2067>two", "added: <U+200B>three^[[8m"], "the change");
    await answerBy(page, "n");
    await rests(page);
  },

  async "closed and open sessions are of one size"() {
    const [open, closed] = [await server.session([], { title: "Open one" }), await server.session([], { title: "Closed one" })];
    await server.call("POST", `/v1/sessions/${closed}/close`, {});
    const page = await browser.open(server);
    await page.locator("#sessions li.none", { hasText: "Closed one" }).waitFor();
    const size = (title) => page.locator("#sessions .title", { hasText: title }).evaluate((node) => getComputedStyle(node).fontSize);
    equal([await size("Open one"), await size("Closed one")], ["14px", "14px"], "sizes");
    ok(open !== closed, "sessions");
  },

  async "of a long directory the end is shown"() {
    const directory = join(server.project, "a-rather-long-name-of-a-directory/and-one-more-below-it/the-end");
    mkdirSync(directory, { recursive: true });
    const page = await browser.open(server, null, { viewport: { width: 300, height: 640 } });
    const field = page.locator("#directory");
    equal(await field.getAttribute("placeholder"), `…/${server.project.split("/").slice(-2).join("/")}`, "the directory of the server");
    await field.fill(directory);
    await field.blur();
    await becomes(() => field.evaluate((node) => [node.title.endsWith("the-end"), node.scrollLeft > 100]), [true, true], "the end");
  },

  async "at 300 px a request leaves room for the conversation, and a queued message can be read"() {
    const directory = join(server.project, "a-rather-long-name-of-a-directory/and-one-more-below-it");
    mkdirSync(directory, { recursive: true });
    const write = { name: "write", input: { file_path: "named.txt", content: "one\ntwo\n" } };
    const page = await browser.open(server, await server.session([{ text: "A text.\n\n".repeat(10), tool_calls: [write] }, { text: "Done." }], { cwd: directory }), { viewport: { width: 300, height: 640 } });
    await page.fill("#prompt", "Write it");
    await page.click("#send");
    await asks(page);
    equal(await text(page, "#ask .subtitle"), "named.txt", "the file");
    const height = await page.locator("#scroller").evaluate((node) => node.clientHeight);
    ok(height >= 120, `the conversation is ${height} px high`);
    equal(await page.locator("#ask .always").isVisible(), false, "the rarer answers at first");
    await page.locator("#ask summary", { hasText: "Always…" }).click();
    ok(await page.locator("#ask .always button").first().isVisible(), "they cannot be opened");
    await page.locator("#ask summary", { hasText: "Always…" }).click();
    await page.fill("#prompt", "Then use tabs in the file and run all of the tests again");
    await page.keyboard.press("Enter");
    const queued = page.locator("#queue .text");
    await queued.waitFor();
    equal(await queued.evaluate((node) => [node.scrollWidth <= node.clientWidth, node.scrollHeight <= node.clientHeight]), [true, true], "the queued message is whole");
    await page.keyboard.press("Escape");
    await answerBy(page, "n");
    await rests(page);
  },

  async "a wide table is scrolled, not crushed"() {
    const columns = ["Name", "Description", "Configuration", "Environment", "Maintainer", "Repository", "Documentation"];
    const table = [`| ${columns.join(" | ")} |`, `|${"---|".repeat(columns.length)}`, `| ${columns.map((name) => `${name} value`).join(" | ")} |`].join("\n");
    const page = await browser.open(server, await server.session([{ text: table }]), PHONE);
    await page.fill("#prompt", "A table");
    await page.click("#send");
    await page.locator(".table td").first().waitFor();
    await rests(page);
    const crushed = await page.evaluate(() =>
      [...document.querySelectorAll(".table th")].filter((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length > 1;
      }).map((cell) => cell.textContent));
    equal(crushed, [], "words that are broken");
    ok(await page.evaluate(() => document.querySelector(".table").scrollWidth > document.querySelector(".table").clientWidth), "it does not scroll");
    equal(await page.evaluate(() => document.querySelector("#scroller").scrollWidth - document.querySelector("#scroller").clientWidth), 0, "sideways");
  },

  async "a list below a task keeps its indent"() {
    const list = "- [ ] Open task\n  - Inner of a task\n- [x] Done task\n\n  With a paragraph.\n\nText.\n\n- Plain item\n  - Inner of a plain one\n";
    const page = await browser.open(server, await server.session([{ text: list }]));
    await page.fill("#prompt", "A list");
    await page.click("#send");
    await page.locator(".markdown li", { hasText: "Inner of a plain one" }).first().waitFor();
    await rests(page);
    const left = (name) => page.evaluate((name) => {
      const walker = document.createTreeWalker(document.querySelector("#conversation .assistant"), NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        if (!walker.currentNode.data.includes(name)) continue;
        const range = document.createRange();
        range.selectNodeContents(walker.currentNode);
        return Math.round(range.getBoundingClientRect().left);
      }
      return null;
    }, name);
    equal(await left("Open task"), await left("Plain item"), "tasks and items");
    equal(await left("Inner of a task"), await left("Inner of a plain one"), "what is below them");
    ok((await left("Inner of a task")) > (await left("Open task")) + 10, "the indent");
    const [mark, paragraph] = await page.evaluate(() => [...document.querySelectorAll(".has-task")].at(-1).querySelectorAll(".task, p").values().map((node) => Math.round(node.getBoundingClientRect().top)).toArray());
    ok(Math.abs(mark - paragraph) < 6, `the mark stands at ${mark}, its text at ${paragraph}`);
  },

  async "entities, line breaks and nested emphasis are drawn"() {
    const page = await browser.open(server);
    const drawn = await page.evaluate(async () => {
      const { Growing } = await import("/console/markdown.js");
      const { h } = await import("/console/dom.js");
      const tags = (node) => [...node.childNodes].map((one) => (one.nodeType === 3 ? one.data : one.tagName === "BR" ? "/" : `${one.tagName.toLowerCase()}(${tags(one)})`)).join("");
      const draw = (text) => {
        const growing = new Growing();
        growing.update(text, true);
        return tags(h("div", {}, ...growing.root.firstChild.childNodes));
      };
      return ["a &amp; b &lt;c&gt; &#33; &#x2014; &nope; &#8238;x AT&T", "one<br>two<br/>three", "`&amp;<br>`", "**bold *with* emphasis**", "**bold *at the end***", "***both***", "***both* then bold**", "***both** then not*",
        "*em **strong** em*", "__bold _it_ bold__", "snake_case_name and 2 * 3 * 4", "**a `**` b**", "**not closed *here*", "~~gone **bold** gone~~", "a\\*b\\*", "**\u201cquoted\u201d** and*in*word"].map(draw);
    });
    equal(drawn, ["a & b <c> ! \u2014 &nope; &#8238;x AT&T", "one/two/three", "code(&amp;<br>)", "strong(bold em(with) emphasis)", "strong(bold em(at the end))", "em(strong(both))", "strong(em(both) then bold)", "em(strong(both) then not)",
      "em(em strong(strong) em)", "strong(bold em(it) bold)", "snake_case_name and 2 * 3 * 4", "strong(a code(**) b)", "**not closed em(here)", "del(gone strong(bold) gone)", "a*b*", "strong(\u201cquoted\u201d) andem(in)word"], "what is drawn");
  },

  async "code is highlighted in blocks and diffs, and stays text"() {
    const hostile = `<img src=x onerror="window.hacked=1">`;
    const code = `// comment ${hostile}\nfn main() {\n    let name = "text ${hostile.replaceAll('"', "'")}";\n    print(42);\n}\n`;
    const write = { name: "write", input: { file_path: "colours.rs", content: code } };
    const edit = { name: "edit", input: { file_path: "colours.rs", old_string: "let name", new_string: "const NAME: &'static str" } };
    const answer = `\`\`\`rust\n${code}\`\`\`\n\n\`\`\`unknown\nlet x = "1";\n\`\`\``;
    const id = await server.session([{ text: answer, tool_calls: [write] }, { tool_calls: [edit] }, { text: "Done." }], { mode: "auto" });
    await server.prompt(id);
    for (const colorScheme of ["light", "dark"]) {
      const page = await browser.open(server, id, { colorScheme });
      await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
      await rests(page);
      const block = page.locator(".markdown .code").first();
      equal(await block.locator("code").textContent(), code.trimEnd(), "the code");
      equal(await block.locator(".t-keyword").allTextContents(), ["fn", "let"], "keywords");
      equal([await block.locator(".t-call").allTextContents(), await block.locator(".t-number").allTextContents()], [["main", "print"], ["42"]], "calls and numbers");
      equal(await page.locator(".markdown .code").nth(1).locator("span[class^=t-]").count(), 0, "colours in an unknown language");
      ok((await page.locator(".diff .added .t-keyword").allTextContents()).includes("const"), "no colours in a diff");
      equal(await faint(page), [], `faint texts when ${colorScheme}`);
      equal([await page.locator("#conversation img").count(), await page.evaluate(() => window.hacked ?? null)], [0, null], "what the text did");
    }
  },

  async "tokens of code are found in linear time"() {
    const page = await browser.open(server);
    const [found, slow] = await page.evaluate(async () => {
      const { tokens } = await import("/console/highlight.js");
      const show = ([text, name]) => tokens(text, name).map(([kind, part]) => (kind ? `${kind}(${part})` : part)).join("");
      const cases = [["&'a str 'x' // c", "rs"], ["x = '''a\n# b''' # c", "py"], [`echo a#b "$#" # c`, "sh"], ["SELECT x -- c", "sql"], [`<a b="c">it's</a>`, "html"], ["+a\n-b\n c", "diff"], ["no language", "none"], ["`a\n${1}`", "ts"]];
      const texts = { quotes: '"', backslashes: '"\\', apostrophes: "'a", comments: "/*", html: "<!--", hashes: " #", words: "a$", numbers: "1.", triple: `"""'`, lua: "--[[" };
      const slow = [];
      for (const [name, text] of Object.entries(texts)) {
        for (const language of ["js", "rs", "py", "sh", "html", "sql", "lua", "yaml"]) {
          const started = performance.now();
          tokens(text.repeat(59_000 / text.length), language);
          if (performance.now() - started > 3000) slow.push(`${name} as ${language}`);
        }
      }
      return [cases.map(show), slow];
    });
    const wanted = ["&'a str string('x') comment(// c)", "x = string('''a\n# b''') comment(# c)", `keyword(echo) a#b string("$#") comment(# c)`, "keyword(SELECT) x comment(-- c)", `keyword(<a) b=string("c")keyword(>)it'skeyword(</a)keyword(>)`, "plus(+a\n)minus(-b\n) c", "no language", "string(`a\n${1}`)"];
    equal(found, wanted, "tokens");
    equal(slow, [], "what took long");
  },

  async "a command that was stopped did not fail"() {
    const page = await browser.open(server, await server.session([bash("false"), bash("echo begun; sleep 1000"), { text: "Done." }]));
    await page.fill("#prompt", "Run it");
    await page.click("#send");
    await answerBy(page, "y");
    await page.locator(".tool.bad .meta", { hasText: "exit 1" }).waitFor();
    await answerBy(page, "y");
    await page.locator(".tool.in_progress .output", { hasText: "begun" }).waitFor();
    await page.click("#stop");
    await page.locator(".note", { hasText: "Stopped" }).waitFor();
    await rests(page);
    equal(await texts(page, ".tool .meta"), ["exit 1", "stopped"], "how they ended");
    equal(await page.locator(".tool.failed, .tool.stopped .no").count(), 0, "failures");
  },

  async "the plan of a turn that has ended is not docked any more"() {
    const plan = { name: "plan", input: { entries: [{ content: "First", priority: "high", status: "completed" }, { content: "Second", priority: "high", status: "in_progress" }] } };
    const page = await browser.open(server, await server.session([{ tool_calls: [plan] }, bash("true"), { text: "Done." }]));
    await page.fill("#prompt", "Plan it");
    await page.click("#send");
    await asks(page);
    equal(await text(page, "#plan-now"), "Second", "the plan of the running turn");
    await answerBy(page, "y");
    await rests(page);
    ok(!(await page.locator("#plan").isVisible()), "it stays");
  },

  async "home shows the mode, the model and the directory of a new session"() {
    const page = await browser.open(server);
    await page.locator(".picker.mode", { hasText: "Ask" }).waitFor();
    equal(await page.getAttribute("#directory", "placeholder"), `…/${server.project.split("/").slice(-2).join("/")}`, "the directory");
    equal(await texts(page, ".picker.mode"), ["Ask"], "the mode");
  },

  async "axe finds nothing"() {
    const steps = (file) => [
      { text: "# Heading\n\nText.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [ ] task\n\n```sh\nls\n```\n", tool_calls: [{ name: "write", input: { file_path: file, content: "a\nb\n" } }] },
      { tool_calls: [{ name: "edit", input: { file_path: file, old_string: "b", new_string: "c" } }] },
      bash("ls"), { text: "Done." },
    ];
    for (const colours of [{ colorScheme: "light" }, { colorScheme: "dark" }, { colorScheme: "dark", forcedColors: "active" }]) {
      for (const size of colours.forcedColors ? [{}] : [{}, PHONE, { viewport: { width: 300, height: 640 } }]) {
        const options = { ...size, ...colours };
        const what = `${Object.values(colours).join(" ")} at ${size.viewport?.width ?? 1200}`;
        const login = await browser.page(options);
        await login.goto(`${server.url}/`);
        await login.locator("#login").waitFor();
        equal(await violations(login), [], `login, ${what}`);
        const page = await browser.open(server, null, options);
        await page.locator(".picker.mode", { hasText: "Ask" }).waitFor();
        equal(await violations(page), [], `home, ${what}`);
        const id = await server.session(steps(`axe ${what}.txt`), { title: "For axe" });
        await browser.go(page, id);
        await server.prompt(id);
        await asks(page);
        equal(await violations(page), [], `a question, ${what}`);
        for (let count = 0; count < 3; count++) await answerBy(page, "y");
        await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
        await rests(page);
        equal(await violations(page), [], `a conversation, ${what}`);
        await page.keyboard.press("Escape");
        for (const [key, ready] of [["d", ".changes p"], ["v", ".comparisons form"], ["w", "#workspace-list li"]]) {
          await page.locator("#scroller").focus();
          await page.keyboard.press(key);
          await page.locator(ready).first().waitFor();
          equal(await violations(page), [], `the dialog of ${key}, ${what}`);
          await page.keyboard.press("Escape");
        }
        await page.locator("#prompt").fill("/");
        await page.locator("#prompt").press("End");
        await page.locator(".completion li").first().waitFor();
        equal(await violations(page), [], `suggestions, ${what}`);
        await browser.closePages();
      }
    }
  },
});
