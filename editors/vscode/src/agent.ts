// The process `nuncio acp` and the connection to it: starts it, restarts it when it ends, and calls
// its methods.

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { homedir } from "node:os";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import { Follow, type FollowOptions, type FollowSink } from "./follow";
import { configPath, findProgram, type Program } from "./program";
import type { Params } from "./answers";

const RESTART_MS = [100, 500, 2000, 5000];
/** A process that ran for this long is restarted without delay. */
const STABLE_MS = 10_000;
/** How long a call waits for nuncio to be started. */
const CALL_WAITS_MS = 20_000;
const INITIALIZE_MS = 20_000;
const SHUTDOWN_MS = 3000;
const LOGIN_MS = 60_000;
const EVENT = "_nuncio/events/event";
const FOLLOW = "_nuncio/events/follow";
const UNFOLLOW = "_nuncio/events/unfollow";

/** Why nuncio does not run; the context key `nuncio.problem` selects a view for each. */
export type Problem = "missing" | "old" | "failed" | "untrusted";

export interface AgentState {
  running: boolean;
  problem: Problem | null;
  detail: string;
}

/** Requests of nuncio to the editor. */
export interface ClientHandlers {
  readFile(params: acp.ReadTextFileRequest): Promise<acp.ReadTextFileResponse>;
  writeFile(params: acp.WriteTextFileRequest): Promise<acp.WriteTextFileResponse>;
  /** Must not return before the request is cancelled: answers use `_nuncio/permission/answer`. */
  requestPermission(params: acp.RequestPermissionRequest, cancelled: AbortSignal): Promise<acp.RequestPermissionResponse>;
  /** Returns whether a turn of this window runs. It goes on when the process has lost its editor. */
  isBusy(): boolean;
}

/** A call that was not sent, or whose answer did not arrive before nuncio ended. */
export class Disconnected extends Error {}

interface Process {
  child: ChildProcess;
  connection: acp.ClientConnection;
  startedMs: number;
}

export class Agent implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<AgentState>();
  readonly onDidChangeState = this.changed.event;
  state: AgentState = { running: false, problem: null, detail: "" };
  /** The program that was found. */
  private program: Program | null = null;
  private process: Process | null = null;
  private failures = 0;
  private restart: NodeJS.Timeout | null = null;
  private waiting: (() => void)[] = [];
  private readonly follows = new Set<Follow>();
  private readonly bySubscription = new Map<unknown, Follow>();
  /** Events of subscriptions whose id is not known yet. */
  private readonly early = new Map<unknown, unknown[]>();
  private pendingFollows = 0;
  private disposed = false;
  /** Ends a start that is superseded. */
  private attempt = 0;

  constructor(
    private readonly extensionDirectory: string,
    private readonly handlers: ClientHandlers,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  // The process -----------------------------------------------------------------------------------

  /** Starts nuncio, unless it runs or the workspace is not trusted. */
  async start(): Promise<void> {
    if (this.process || this.disposed) return;
    const attempt = ++this.attempt;
    if (!vscode.workspace.isTrusted) return this.set({ running: false, problem: "untrusted", detail: "" });
    const settings = vscode.workspace.getConfiguration("nuncio");
    const env = settings.get<Record<string, string>>("env", {});
    const found = await findProgram({ command: settings.get<string>("command", "").trim().replace(/^~(?=\/)/, homedir()), env, extensionDirectory: this.extensionDirectory });
    if (attempt !== this.attempt || this.disposed) return;
    if ("problem" in found) {
      this.log.error(`nuncio cannot be started: ${found.problem} ${found.detail}`);
      return this.set({ running: false, problem: found.problem, detail: found.detail });
    }
    this.program = found;
    try {
      await this.connect(found.path, ["acp", ...settings.get<string[]>("args", [])], env);
    } catch (error) {
      if (attempt !== this.attempt || this.disposed) return;
      this.failed(error as Error);
    }
  }

  private async connect(path: string, args: string[], env: Record<string, string>): Promise<void> {
    const cwd = vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === "file")?.uri.fsPath ?? homedir();
    this.log.info(`starting ${path} ${args.join(" ")} in ${cwd}`);
    const child = spawn(path, args, { cwd, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.log.info(text.trimEnd()));
    const ended = new Promise<never>((_, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => reject(new Error(`nuncio ended with ${signal ?? `exit code ${code}`}`)));
    });
    ended.catch(() => {});
    // Without a listener, a broken pipe would end the extension host.
    child.stdin.on("error", (error) => this.log.debug(`stdin: ${error.message}`));
    const stream = acp.ndJsonStream(Writable.toWeb(child.stdin) as WritableStream<Uint8Array>, Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>);
    const { handlers } = this;
    const raw = (params: unknown) => params;
    const connection = acp
      .client({ name: "nuncio for VS Code" })
      .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => handlers.readFile(params))
      .onRequest(acp.methods.client.fs.writeTextFile, ({ params }) => handlers.writeFile(params))
      .onRequest(acp.methods.client.session.requestPermission, ({ params, signal }) => handlers.requestPermission(params, signal))
      .onNotification(EVENT, raw, ({ params }) => this.deliver(params as { subscription: unknown; result: unknown }))
      .onNotification("*", () => {})
      .connect(stream);
    const mine: Process = { child, connection, startedMs: Date.now() };
    this.process = mine;
    void ended.catch((error: Error) => {
      connection.close(error);
      if (this.process !== mine) return;
      this.process = null;
      this.failed(error, Date.now() - mine.startedMs);
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error("nuncio did not answer initialize")), INITIALIZE_MS)));
    try {
      const initialize = connection.agent.request<unknown>("initialize" as string, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientInfo: { name: "nuncio-vscode", title: "nuncio for VS Code", version: "0.1.0" },
        clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, _meta: { nuncio: { updates: false, exactText: true } } },
        _meta: { nuncio: { finishTurns: true } },
      });
      await Promise.race([initialize, ended, late]);
    } catch (error) {
      if (this.process !== mine) return;
      this.process = null;
      child.kill();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    if (this.process !== mine) return;
    this.log.info(`connected to nuncio ${this.program?.version}`);
    this.set({ running: true, problem: null, detail: "" });
    for (const follow of this.follows) void this.subscribe(follow);
  }

  /** Handles the end of the process: starts it again, later after each failure. */
  private failed(error: Error, ranMs = 0): void {
    if (this.disposed) return;
    this.failures = ranMs > STABLE_MS ? 0 : this.failures + 1;
    this.bySubscription.clear();
    this.early.clear();
    this.log.warn(`${error.message}; restart ${this.failures}`);
    const isHopeless = this.failures > RESTART_MS.length;
    this.set({ running: false, problem: isHopeless ? "failed" : null, detail: error.message });
    for (const follow of this.follows) follow.lost();
    if (isHopeless) return;
    const pause = ranMs > STABLE_MS ? 0 : RESTART_MS[Math.min(this.failures, RESTART_MS.length) - 1]!;
    this.restart = setTimeout(() => void this.start(), pause);
  }

  private set(state: AgentState): void {
    this.state = state;
    this.changed.fire(state);
    if (state.running || state.problem) for (const wake of this.waiting.splice(0)) wake();
  }

  /** Ends the process and starts it again, for example after a change of the settings. */
  async restartNow(): Promise<void> {
    this.stop();
    this.failures = 0;
    for (const follow of this.follows) follow.lost();
    this.set({ running: false, problem: null, detail: "" });
    await this.start();
  }

  /** Ends the process: closes its input, and kills it if it does not end. A process with turns ends with the last of them. */
  private stop(): void {
    this.attempt++;
    clearTimeout(this.restart ?? undefined);
    const { process } = this;
    this.process = null;
    this.bySubscription.clear();
    if (!process) return;
    process.child.stdin?.end();
    if (!this.handlers.isBusy()) {
      const timer = setTimeout(() => process.child.kill("SIGKILL"), SHUTDOWN_MS);
      process.child.once("exit", () => clearTimeout(timer));
    }
    process.connection.close(new Disconnected("nuncio was stopped"));
  }

  dispose(): void {
    this.disposed = true;
    this.stop();
    for (const wake of this.waiting.splice(0)) wake();
    this.changed.dispose();
  }

  // Calls -----------------------------------------------------------------------------------------

  /** Waits until nuncio runs. */
  private async ready(): Promise<Process> {
    const untilMs = Date.now() + CALL_WAITS_MS;
    while (!this.state.running || !this.process) {
      const left = untilMs - Date.now();
      if (this.disposed || this.state.problem || left <= 0) throw new Disconnected("nuncio is not running");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.waiting.push(() => (clearTimeout(timer), resolve()));
      });
    }
    return this.process;
  }

  /** Calls a method. Waits for a restart that is under way. */
  async request<T = unknown>(method: string, params: Params): Promise<T> {
    const { connection } = await this.ready();
    try {
      return await connection.agent.request<T>(method, params);
    } catch (error) {
      if (!connection.signal.aborted) throw error;
      throw new Disconnected(`nuncio ended before it answered ${method}`);
    }
  }

  async notify(method: string, params: Params): Promise<void> {
    const { connection } = await this.ready();
    await connection.agent.notify(method, params);
  }

  /** Returns the path of nuncio's settings file. */
  async configPath(): Promise<string> {
    if (!this.program) throw new Disconnected("nuncio is not running");
    return configPath(this.program.path, vscode.workspace.getConfiguration("nuncio").get<Record<string, string>>("env", {}));
  }

  /** Stores the key of a provider, which nuncio checks. Returns what nuncio printed. */
  login(provider: string, key: string): Promise<string> {
    const { program } = this;
    if (!program) return Promise.reject(new Disconnected("nuncio is not running"));
    const env = { ...process.env, ...vscode.workspace.getConfiguration("nuncio").get<Record<string, string>>("env", {}) };
    return new Promise((resolve, reject) => {
      const child = execFile(program.path, ["login", provider], { env, timeout: LOGIN_MS }, (error, stdout, stderr) => {
        // The first line is the error; the hint after it is for a terminal.
        if (error) reject(new Error(stderr.trim().split("\n", 1)[0]?.replace(/^nuncio: /, "") || error.message));
        else resolve(stdout.trim());
      });
      child.stdin?.on("error", () => {});
      child.stdin?.end(`${key}\n`);
    });
  }

  // Event streams ---------------------------------------------------------------------------------

  /** Follows events. The stream continues at its cursor when nuncio was restarted. */
  follow(options: FollowOptions, sink: FollowSink): vscode.Disposable {
    const follow = new Follow(options, sink);
    this.follows.add(follow);
    if (this.state.running) void this.subscribe(follow);
    return new vscode.Disposable(() => {
      this.follows.delete(follow);
      follow.close();
      if (follow.subscription !== null) this.unsubscribe(follow.subscription);
    });
  }

  private async subscribe(follow: Follow): Promise<void> {
    const { process } = this;
    if (!process) return;
    this.pendingFollows++;
    try {
      const answer = await process.connection.agent.request<unknown>(FOLLOW, follow.params);
      const subscription = typeof answer === "object" && answer ? (answer as { subscription?: unknown }).subscription : answer;
      if (this.process !== process) return;
      if (!this.follows.has(follow)) return this.unsubscribe(subscription);
      follow.started(subscription);
      this.bySubscription.set(subscription, follow);
      for (const result of this.early.get(subscription) ?? []) follow.take(result);
      this.early.delete(subscription);
    } catch (error) {
      if (this.process !== process || process.connection.signal.aborted) return;
      this.log.warn(`following events failed: ${(error as Error).message}`);
      this.follows.delete(follow);
      follow.refused(error);
    } finally {
      if (!--this.pendingFollows) this.early.clear();
    }
  }

  private unsubscribe(subscription: unknown): void {
    this.bySubscription.delete(subscription);
    this.process?.connection.agent.request(UNFOLLOW, [subscription]).catch((error: Error) => this.log.debug(`unfollow: ${error.message}`));
  }

  private deliver({ subscription, result }: { subscription: unknown; result: unknown }): void {
    const follow = this.bySubscription.get(subscription);
    if (follow) {
      if (follow.take(result)) return;
      // The server ended the stream: follow again at the cursor.
      this.bySubscription.delete(subscription);
      follow.lost();
      if (this.follows.has(follow)) setTimeout(() => this.follows.has(follow) && void this.subscribe(follow), RESTART_MS[2]);
    } else if (this.pendingFollows) {
      const list = this.early.get(subscription);
      if (list) list.push(result);
      else this.early.set(subscription, [result]);
    }
  }
}
