// The API of nuncio with the REST vocabulary of the console's modules.

import { homedir } from "node:os";
import * as vscode from "vscode";
import routes from "virtual:routes";
import { type Agent, Disconnected } from "./agent";
import { type Params, type RestError, toMethod, toRest, toRestError } from "./rest";

/** Methods that start or continue work in a session, for which this process should own it. */
const WORKS = new Set(["_nuncio/session/message", "_nuncio/session/retry", "_nuncio/session/execute", "_nuncio/session/compact"]);

export class ApiError extends Error {
  constructor(readonly rest: RestError) {
    super(rest.hint ? `${rest.message}: ${rest.hint}` : rest.message);
  }
}

/** Answers a permission request, with the user's own text from the diff tabs. */
export type Answer = (permissionId: string, params: Params) => Params;

export class Api {
  /** Sessions that this connection has opened, so that nuncio uses the editor's files for them. */
  private readonly opened = new Map<string, Promise<unknown>>();
  /** Completes the answer to a permission request. */
  answer: Answer = (_, params) => params;

  constructor(readonly agent: Agent) {
    agent.onDidChangeState(({ running }) => running || this.opened.clear());
  }

  /** Returns whether this window has opened the session. */
  isOpened(id: string): boolean {
    return this.opened.has(id);
  }

  /** Calls the method of a REST route. Throws ApiError. */
  async call<T = any>(verb: string, path: string, body?: unknown): Promise<T> {
    try {
      return (await this.dispatch(verb, path, body)) as T;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(error instanceof Disconnected ? { status: 503, message: error.message } : toRestError(error));
    }
  }

  private async dispatch(verb: string, path: string, body: unknown): Promise<unknown> {
    const mapped = toMethod(routes, verb, path, body);
    if (!mapped) throw new ApiError({ status: 404, message: `no method for ${verb} ${path}` });
    let { method, params } = mapped;
    // `session/prompt` answers at the end of the turn. A message answers when it is in the log.
    if (method === "session/prompt") [method, params] = ["_nuncio/session/message", toMessage(params)];
    if (method === "_nuncio/permission/answer") params = this.answer(String(params.permissionId), params);
    if (method === "session/new") params = newSession(params);
    if (method === "session/resume") params = { cwd: "", mcpServers: [], ...params };
    const id = String(params.sessionId ?? "");
    if (mapped.notification) {
      await this.agent.notify(method, params);
      return {};
    }
    if (WORKS.has(method)) await this.open(id);
    const result = await this.agent.request<Params>(method, params);
    if (method === "session/new") this.opened.set(String(result.sessionId), Promise.resolve());
    if (method === "session/resume") this.opened.set(id, Promise.resolve());
    if (method === "session/close" || method === "session/delete") this.opened.delete(id);
    return toRest(result);
  }

  /** Opens a session by ACP, without its history, unless this connection has opened it. */
  async open(id: string): Promise<void> {
    const known = this.opened.get(id);
    if (known) return void (await known);
    const opening = this.agent.request("session/resume", { sessionId: id, cwd: "", mcpServers: [] });
    this.opened.set(id, opening);
    try {
      await opening;
    } catch (error) {
      this.opened.delete(id);
      throw error;
    }
  }
}

/** Converts params of `session/prompt` to params of a message, whose resources are flat. */
function toMessage({ prompt, sessionId }: Params): Params {
  const flat = (part: any) => (part.type === "resource" ? { type: "resource", ...part.resource } : part);
  return { sessionId, role: "user", parts: (prompt as unknown[]).map(flat) };
}

/** Completes params of `session/new`: in a folder of the window, the others are used, too. */
function newSession(params: Params): Params {
  const cwd = String(params.cwd || defaultDirectory());
  const folders = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
  const others = folders.includes(cwd) ? folders.filter((folder) => folder !== cwd) : [];
  return { mcpServers: [], ...(others.length && { additionalDirectories: others }), ...params, cwd };
}

/** Returns the directory of a new session: the folder of the active editor, or the first folder. */
export function defaultDirectory(): string {
  const active = vscode.window.activeTextEditor?.document.uri;
  const folder = (active && vscode.workspace.getWorkspaceFolder(active)) ?? vscode.workspace.workspaceFolders?.[0];
  return folder?.uri.scheme === "file" ? folder.uri.fsPath : homedir();
}

/** Returns the REST path of a session. */
export const sessionPath = (id: string, rest = "") => `/v1/sessions/${encodeURIComponent(id)}${rest}`;
