// Cases about the list of sessions and the menu of a session.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { becomes, equal, ok } from "./harness.mjs";
import { rests, text, texts } from "./pages.mjs";

/** The QR code of the text "nuncio". */
const KNOWN_CODE = [
  "#######..#.#..#######",
  "#.....#..####.#.....#",
  "#.###.#.#.#...#.###.#",
  "#.###.#.#.#.#.#.###.#",
  "#.###.#.#..##.#.###.#",
  "#.....#.#...#.#.....#",
  "#######.#.#.#.#######",
  "........#.###........",
  "#.#####..#..#.#####..",
  "#..#.#.#....#..#.####",
  ".##.#.#.##.#.#..####.",
  "#.##.#...##....####.#",
  "....#.##..##.#..#..##",
  "........#..#####.#..#",
  "#######...#.#.##...#.",
  "#.....#.#.#####.###.#",
  "#.###.#.#...#...#..#.",
  "#.###.#.##..#..##.#..",
  "#.###.#.#.##.#...#...",
  "#.....#...#......##..",
  "#######.####.#.##..#.",
];

const titles = (page) => texts(page, "#sessions .title");

export const sessions = (browser, server) => ({
  async "sessions are grouped by project and day"() {
    const page = await browser.open(server);
    const found = await page.evaluate(async () => {
      const { grouped, matches } = await import("/console/groups.js");
      const now = new Date(2026, 10, 26, 12).getTime(), hour = 3_600_000;
      const row = (id, cwd, hours, more) => ({ id, cwd, title: id, updatedMs: now - hours * hour, ...more });
      const rows = [row("a", "/p/one", 0), row("b", "/data/worktrees/one-0123abcd/fix", 1), row("c", "/p/two", 2, { agent: "claude" }), row("d", "/p/one", 20), row("e", "/p/one", 24 * 40), row("f", "/p/two", 24 * 400)];
      const lines = (folded) => grouped(rows, (project) => project === folded, now).map(({ kind, name, label, row }) => name ?? label ?? `${kind} ${row.id}`);
      return [lines(null).map((line) => line.replace(/^(?!row|one|two|Yesterday).*(2025)?.*$/, "date $1")), lines("/p/one"), rows.filter((one) => matches(one, "CLAUDE p/tw")).map((one) => one.id)];
    });
    equal(found[0].map((line) => line.trim()), ["one", "row a", "row b", "Yesterday", "row d", "date", "row e", "two", "row c", "date", "row f"], "the list");
    equal(found[1].slice(0, 2), ["one", "two"], "with a folded project");
    equal(found[2], ["c"], "what matches");
  },

  async "sessions are searched, and folded by project, with the keyboard"() {
    const [left, right] = ["left-project", "right-project"].map((name) => join(server.project, name));
    for (const path of [left, right]) mkdirSync(path, { recursive: true });
    const id = await server.session([{ text: "Found." }], { title: "Needle in the left", cwd: left });
    await server.session([], { title: "Other in the right", cwd: right });
    const page = await browser.open(server, id);
    await page.locator("#scroller").focus();
    await page.keyboard.press("s");
    await page.keyboard.type("needle LEFT-proj");
    await becomes(() => titles(page), ["Needle in the left"], "sessions that match");
    await page.keyboard.press("Enter");
    equal(await page.evaluate(() => document.activeElement.textContent.includes("Needle")), true, "the focus");
    await page.locator("#search").focus();
    await page.keyboard.type("x");
    await page.locator("#no-sessions", { hasText: "No session matches." }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#sessions .title", { hasText: "Other in the right" }).waitFor();
    const project = page.locator("#sessions .project button", { hasText: "left-project" });
    await project.focus();
    await page.keyboard.press("Enter");
    await page.locator("#sessions .title", { hasText: "Needle in the left" }).waitFor({ state: "detached" });
    equal([await project.getAttribute("aria-expanded"), await project.locator(".count").innerText()], ["false", "1"], "the project");
    await page.fill("#search", "needle");
    await becomes(() => titles(page), ["Needle in the left"], "a search in folded projects");
  },

  async "a search finds sessions that are not loaded, by their title and their messages"() {
    const id = await server.session([{ text: "The **marmot** sleeps." }], { title: "About animals" });
    await server.prompt(id, "Which one sleeps <b>long</b>?");
    for (let at = 0; at < 51; at++) await server.prompt(await server.session([{ text: "Other." }], { title: `Newer ${at}` }), "Go");
    const page = await browser.open(server);
    ok(!(await titles(page)).includes("About animals"), "the session is loaded");
    for (const [words, where] of [["about ANIMALS", ""], ["Marmot", "The **marmot** sleeps."], ["long which", "Which one sleeps <b>long</b>?"]]) {
      await page.fill("#search", words);
      await becomes(() => titles(page), ["About animals"], words);
      equal(await page.locator("#sessions .where").innerText(), where, `the excerpt of ${words}`);
    }
    const answered = page.waitForResponse((response) => response.url().includes("marmot"));
    await page.fill("#search", "marmot other");
    await answered;
    await page.locator("#no-sessions", { hasText: "No session matches." }).waitFor();
    // A search that was given up asks nothing.
    let asked = 0;
    await page.route("**/v1/sessions?*", (route) => (asked++, route.continue()));
    await page.clock.install();
    await page.fill("#search", "given up");
    await page.press("#search", "Escape");
    await page.clock.runFor(1000);
    await page.evaluate(() => fetch("/console/icon.svg").then((answer) => answer.text()));
    equal([await page.inputValue("#search"), asked], ["", 0], "the field and what was asked");
  },

  async "a session is renamed and forked"() {
    const id = await server.session([{ text: "Before." }, { text: "After." }], { title: "Old name" });
    await server.prompt(id, "Start");
    const page = await browser.open(server, id);
    await rests(page);
    const choose = async (name) => {
      await page.click("#more button");
      await page.locator(".menu:popover-open button", { hasText: name }).click();
    };
    await choose("Rename");
    await page.locator("#renaming[open]").waitFor();
    equal(await page.inputValue("#new-title"), "Old name", "the title in the field");
    await page.keyboard.type("<b>New</b> name");
    await page.keyboard.press("Enter");
    await page.locator("#title", { hasText: "<b>New</b> name" }).waitFor();
    await page.locator("#sessions [aria-current] .title", { hasText: "<b>New</b> name" }).waitFor();
    await choose("Rename");
    await page.keyboard.type("Not this");
    await page.locator("#renaming button", { hasText: "Cancel" }).click();
    await choose("Fork");
    await page.waitForFunction((id) => location.hash.startsWith("#/session/") && !location.hash.endsWith(id), id);
    await page.locator(".message.assistant", { hasText: "Before." }).waitFor();
    await page.fill("#prompt", "More");
    await page.keyboard.press("Enter");
    await page.locator(".message.assistant").nth(1).waitFor();
    await rests(page);
    equal((await server.call("GET", `/v1/sessions/${id}`)).title, "<b>New</b> name", "the title of the first session");
    await browser.go(page, id);
    equal(await texts(page, ".said"), ["Start"], "prompts of the first session");
    ok((await text(page, "#title")).includes("New"), "the title");
  },

  async "a session is exported as Markdown and as JSON lines"() {
    writeFileSync(join(server.project, "exported.txt"), "old\n");
    const edit = { name: "edit", input: { file_path: "exported.txt", old_string: "old", new_string: "new" } };
    const id = await server.session([{ thinking: "Hm.", text: "I *see*.", tool_calls: [edit, { name: "bash", input: { command: "echo '```'" } }] }, { text: "Done." }], { title: "Über: the/export", mode: "auto" });
    await server.prompt(id, "Export <b>this</b>");
    const page = await browser.open(server, id);
    await page.locator(".message.assistant", { hasText: "Done." }).waitFor();
    await rests(page);
    const saved = async (name) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#more button").then(() => page.locator(".menu:popover-open button", { hasText: name }).click())]);
      return [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
    };
    const [name, text] = await saved("Export as Markdown");
    equal(name, "Über-the-export.md", "the name of the file");
    for (const part of ["# Über: the/export\n", "## You\n\nExport <b>this</b>\n", "## Assistant\n\nI *see*.\n", "```diff\n-old\n+new\n```", "````\n```\n", "Done.\n"]) ok(text.includes(part), `${JSON.stringify(part)} is not in ${text}`);
    ok(!text.includes("Hm."), "the thoughts are exported");
    const [other, lines] = await saved("Export as JSON lines");
    equal(other, "Über-the-export.jsonl", "the name of the other file");
    const values = lines.trimEnd().split("\n").map((line) => JSON.parse(line));
    equal([values[0].sessionId, values.slice(1).map((value) => value.role).filter((role) => role !== "thought")], [id, ["user", "assistant", "tool", "tool", "assistant"]], "the lines");
  },

  async "a session that waits or is done is reported, once the user has turned it on"() {
    const waits = () => server.session([{ tool_calls: [{ name: "bash", input: { command: "true" } }] }, { text: "Done." }], { title: "It waits" });
    const page = await browser.page();
    await page.addInitScript(() => {
      [window.reported, window.closedReports] = [[], []];
      window.Notification = class extends EventTarget {
        static permission = sessionStorage.getItem("granted") || "default";
        static async requestPermission() {
          sessionStorage.setItem("granted", (this.permission = "granted"));
          return this.permission;
        }
        constructor(title, { tag }) {
          super();
          this.title = title;
          window.reported.push([title, tag]);
          window.last = this;
        }
        close() {
          window.closedReports.push(this.title);
        }
      };
    });
    await page.goto(`${server.url}/#token=${server.token}`);
    await page.waitForSelector("body.ready");
    const [first, second, shown] = [await waits(), await waits(), await waits()];
    const row = (id) => page.locator(`#sessions .waiting a[href$="${id}"]`);
    await server.prompt(first);
    await row(first).waitFor();
    const reported = () => page.evaluate(() => window.reported);
    equal(await reported(), [], "reports before it is on");
    await page.click("#notify");
    await page.locator("#notify[aria-pressed=true]").waitFor();
    await browser.go(page, shown);
    await server.prompt(shown);
    await row(shown).waitFor();
    await server.prompt(second);
    await row(second).waitFor();
    equal(await reported(), [["It waits waits for you", second]], "reports");
    const [{ permissionId }] = (await server.call("GET", "/v1/permissions")).permissions.filter(({ sessionId }) => sessionId === second);
    await server.call("POST", `/v1/permissions/${permissionId}`, { optionId: "allow_once" });
    await becomes(reported, [["It waits waits for you", second], ["It waits is done", `${second} done`]], "reports after the turn");
    equal(await page.evaluate(() => window.closedReports), ["It waits waits for you"], "closed reports");
    await page.evaluate(() => window.last.dispatchEvent(new Event("click")));
    await page.waitForFunction((id) => location.hash.endsWith(id), second);
    await page.reload();
    await page.waitForSelector("body.ready");
    equal([await reported(), await page.getAttribute("#notify", "aria-pressed")], [[], "true"], "after a reload");
    await page.click("#notify");
    equal(await page.getAttribute("#notify", "aria-pressed"), "false", "turned off");
    for (const id of [first, second, shown]) await server.call("POST", `/v1/sessions/${id}/cancel`, {});
  },

  async "the console can be installed"() {
    const page = await browser.open(server);
    const href = await page.getAttribute("link[rel=manifest]", "href");
    const response = await fetch(server.url + href);
    equal(response.headers.get("content-type"), "application/manifest+json", "content type");
    const { start_url: start, display, icons } = await response.json();
    equal([start, display, icons.length], ["/", "standalone", 1], "the manifest");
    equal((await fetch(server.url + icons[0].src)).status, 200, "the icon");
    const { errors } = await (await page.context().newCDPSession(page)).send("Page.getAppManifest");
    equal(errors, [], "faults that the browser finds");
  },

  async "a QR code signs in once, and leaves with its dialog"() {
    const page = await browser.open(server);
    const answered = page.waitForResponse("**/console/code");
    await page.locator("#welcome").click();
    await page.keyboard.press("?");
    await page.click("#show-phone");
    await page.locator(".qr").waitFor();
    const { code } = await (await answered).json();
    ok((await text(page, ".phone")).includes("reachable only from this computer"), "the note about the loopback address");
    const [drawn, size, known] = await page.evaluate(async () => {
      const { encode } = await import("/console/qr.js");
      const rows = (text) => encode(text).map((row) => row.map((isDark) => (isDark ? "#" : ".")).join(""));
      const svg = document.querySelector(".qr");
      const width = Number(svg.getAttribute("viewBox").split(" ")[2]) - 8;
      return [[...svg.firstChild.getAttribute("d").matchAll(/M/g)].length, width, rows("nuncio")];
    });
    const modules = await page.evaluate(async (url) => (await import("/console/qr.js")).encode(url), `${server.url}/#code=${code}`);
    equal([size, drawn], [modules.length, modules.flat().filter(Boolean).length], "the drawn code");
    // jsQR reads this code as "nuncio".
    equal(known, KNOWN_CODE, "a known code");
    equal(await page.evaluate(async () => (await import("/console/qr.js")).encode("x".repeat(300))), null, "a text that is too long");
    await page.keyboard.press("Escape");
    await page.locator(".qr").waitFor({ state: "detached" });
    const phone = await browser.page();
    await phone.goto(`${server.url}/#code=${code}`);
    await phone.waitForSelector("body.ready");
    const [cookie] = await phone.context().cookies();
    equal([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.expires > Date.now() / 1000 + 29 * 86_400], [`nuncio-${server.port}`, true, "Strict", true], "the cookie");
    const thief = await browser.page();
    await thief.goto(`${server.url}/#code=${code}`);
    await thief.locator("#login-error", { hasText: "This code was used" }).waitFor();
  },

  async "a browser that shows notifications only through a service worker gets one"() {
    const id = await server.session([{ tool_calls: [{ name: "bash", input: { command: "true" } }] }, { text: "Done." }], { title: "On the phone" });
    const page = await browser.page();
    await page.context().grantPermissions(["notifications"]);
    await page.addInitScript(() => {
      const { requestPermission } = Notification;
      window.Notification = class {
        static permission = "granted";
        static requestPermission = requestPermission.bind(Notification);
        constructor() {
          throw new TypeError("Illegal constructor: use ServiceWorkerRegistration.showNotification()");
        }
      };
      const { showNotification } = ServiceWorkerRegistration.prototype;
      window.shown = 0;
      ServiceWorkerRegistration.prototype.showNotification = async function (...values) {
        await showNotification.apply(this, values);
        window.shown += 1;
      };
      localStorage.setItem("nuncio.notify", "on");
    });
    await page.goto(`${server.url}/#token=${server.token}`);
    await page.waitForSelector("body.ready");
    // A session that waits before the list is read is not reported.
    await page.locator(`#sessions a[href$="${id}"]`).waitFor();
    await server.prompt(id);
    // Chromium removes a notification from its list for good if the list is read before the notification is displayed.
    const shown = async (count) => {
      await page.waitForFunction((count) => window.shown === count, count);
      return page.evaluate(async () => (await (await navigator.serviceWorker.getRegistration("/console/")).getNotifications()).map(({ title, tag }) => [title, tag]));
    };
    equal(await shown(1), [["On the phone waits for you", id]], "notifications");
    const { permissions } = await server.call("GET", `/v1/permissions?sessionId=${id}`);
    await server.call("POST", `/v1/permissions/${permissions[0].permissionId}`, { outcome: "allow_once" });
    equal(await shown(2), [["On the phone is done", `${id} done`]], "notifications after the answer");
  },
});
