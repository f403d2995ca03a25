// A server, a browser, and what the cases have in common. Nothing here waits by the clock: only for what happens.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const WAIT_MS = 30_000;

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** A server with its own data and project. */
export class Server {
  static async start(program, script, settings = "") {
    const server = new Server();
    server.program = program;
    server.dir = realpathSync(mkdtempSync(join(tmpdir(), "console-")));
    server.home = join(server.dir, "home");
    server.project = join(server.dir, "project");
    mkdirSync(server.home);
    mkdirSync(server.project);
    if (settings) writeFileSync(join(server.home, "config.toml"), settings);
    server.script = server.write("default.json", script);
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    await server.up();
    return server;
  }

  /** A script of the model as a file; answers its path. */
  write(name, steps) {
    const path = join(this.dir, name);
    writeFileSync(path, JSON.stringify({ steps }));
    return path;
  }

  async up() {
    const args = ["serve", "--http", `127.0.0.1:${this.port}`, "--cwd", this.project, "--model", `scripted:${this.script}`];
    this.child = spawn(this.program, args, { env: { ...process.env, NUNCIO_HOME: this.home }, stdio: ["ignore", "pipe", "pipe"] });
    this.log = "";
    await new Promise((resolve, reject) => {
      this.child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${this.log}`)));
      this.child.stderr.on("data", (bytes) => (this.log += bytes));
      this.child.stdout.on("data", (bytes) => String(bytes).includes("listens on") && resolve());
    });
    this.token = readFileSync(join(this.home, "token"), "utf8").trim();
  }

  async down(signal) {
    this.child.removeAllListeners("exit");
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await ended;
  }

  async call(verb, path, body) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json", prefer: "respond-async" };
    const response = await fetch(this.url + path, { method: verb, headers, body: body && JSON.stringify(body) });
    const value = await response.json();
    if (!response.ok) throw new Error(`${verb} ${path}: ${response.status} ${JSON.stringify(value)}`);
    return value;
  }

  /** A token with the observer role. */
  observer() {
    const name = `watcher-${Math.random().toString(36).slice(2)}`;
    const env = { ...process.env, NUNCIO_HOME: this.home };
    return execFileSync(this.program, ["token", "new", name, "--role", "observer"], { env, stdio: ["ignore", "pipe", "ignore"] }).toString().trim().split(/\s+/).pop();
  }

  async metrics() {
    return (await fetch(`${this.url}/metrics`, { headers: { authorization: `Bearer ${this.token}` } })).text();
  }

  /** A session whose model follows these steps. */
  async session(steps, fields = {}) {
    const script = this.write(`script-${Math.random().toString(36).slice(2)}.json`, steps);
    return (await this.call("POST", "/v1/sessions", { model: `scripted:${script}`, ...fields })).sessionId;
  }

  /** A step whose call runs until `release()`, in a session with mode `auto`. So the turn lasts as long as a case needs it. */
  hold(text) {
    const name = `released-${Math.random().toString(36).slice(2)}`;
    const step = { ...(text && { text }), tool_calls: [{ name: "bash", input: { command: `until [ -e ${name} ]; do sleep 0.05; done` } }] };
    return { step, release: () => writeFileSync(join(this.project, name), "") };
  }

  prompt(id, text = "Go.") {
    return this.call("POST", `/v1/sessions/${id}/prompt`, { prompt: [{ type: "text", text }] });
  }
}

/** An editor: another process with the data and the project of a server, which speaks ACP. */
export class Editor {
  constructor(server, steps) {
    const model = server.write(`script-${Math.random().toString(36).slice(2)}.json`, steps);
    const args = ["acp", "--cwd", server.project, "--model", `scripted:${model}`];
    const options = { env: { ...process.env, NUNCIO_HOME: server.home }, stdio: ["pipe", "pipe", "inherit"] };
    this.child = spawn(server.program, args, options);
    this.pending = new Map();
    let rest = "";
    this.child.stdout.on("data", (bytes) => {
      const lines = (rest + bytes).split("\n");
      rest = lines.pop();
      for (const message of lines.map((line) => JSON.parse(line))) {
        if (!message.method) this.pending.get(message.id)?.(message);
      }
    });
  }

  async call(method, params) {
    const id = this.pending.size + 1;
    const answered = new Promise((resolve) => this.pending.set(id, resolve));
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const { result, error } = await answered;
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async session(cwd) {
    await this.call("initialize", { protocolVersion: 1 });
    return (await this.call("session/new", { cwd, mcpServers: [] })).sessionId;
  }

  prompt(sessionId, text) {
    return this.call("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  async end() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.stdin.end();
    await ended;
  }
}

/** A browser whose pages must not complain. */
export class Browser {
  /** `options`: of playwright's launch. */
  static async start(options = {}) {
    const browser = new Browser();
    const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
    browser.chromium = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args, ...options });
    browser.complaints = [];
    browser.contexts = [];
    return browser;
  }

  async page(options = {}) {
    const context = await this.chromium.newContext({ viewport: { width: 1200, height: 800 }, ...options });
    this.contexts.push(context);
    return this.tab(context);
  }

  async tab(context) {
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    page.on("pageerror", (error) => this.complaints.push(error.stack));
    page.on("console", (message) => {
      // A server that is gone is part of the cases.
      if (message.type() === "error" && !/net::ERR_|Failed to load resource/.test(message.text())) this.complaints.push(message.text());
    });
    await page.addInitScript(() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    return page;
  }

  /** A page on a session, or on none. */
  async open(server, id, options = {}) {
    const page = await this.page(options);
    await page.goto(`${server.url}/#token=${options.token || server.token}`);
    await page.waitForSelector("body.ready");
    if (id) await this.go(page, id);
    return page;
  }

  async go(page, id) {
    await page.evaluate((id) => (location.hash = `#/session/${id}`), id);
    await page.waitForFunction((id) => location.hash.endsWith(id) && document.querySelector("#conversation").getAttribute("aria-busy") === "false", id);
  }

  async closePages() {
    await Promise.all(this.contexts.splice(0).map((context) => context.close()));
  }
}

export function equal(actual, expected, what) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

export function ok(value, what) {
  if (!value) throw new Error(what);
}

/** Waits until `read` answers `expected`. */
export async function becomes(read, expected, what) {
  const until = Date.now() + WAIT_MS;
  let actual;
  do {
    actual = await read();
    if (JSON.stringify(actual) === JSON.stringify(expected)) return;
    await new Promise((resolve) => setImmediate(resolve));
  } while (Date.now() < until);
  equal(actual, expected, what);
}
