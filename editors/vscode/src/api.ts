// Calls of nuncio's methods, with what this window adds to them.

import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Agent } from "./agent";
import { lifted, type Params } from "./answers";

/** Methods that start or continue work in a session, for which this process should own it. */
const WORKS = new Set(["_nuncio/session/message", "_nuncio/session/retry", "_nuncio/session/execute", "_nuncio/session/compact"]);

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

  /** Calls a method. Returns its result, with the fields of `_meta.nuncio` at the top level. */
  async call(method: string, params: Params = {}): Promise<any> {
    if (method === "_nuncio/permission/answer") params = this.answer(String(params.permissionId), params);
    if (method === "session/new") params = newSession(params);
    // A notification has no result.
    if (method === "session/cancel") return this.agent.notify(method, params);
    const id = String(params.sessionId ?? "");
    if (WORKS.has(method)) await this.open(id);
    const result = await this.agent.request<Params>(method, params);
    if (method === "session/new") this.opened.set(String(result.sessionId), Promise.resolve());
    if (method === "session/resume") this.opened.set(id, Promise.resolve());
    if (method === "session/close" || method === "session/delete") this.opened.delete(id);
    return lifted(result);
  }

  /** Opens a session by ACP, without its history, unless this connection has opened it. */
  async open(id: string): Promise<void> {
    const known = this.opened.get(id);
    if (known) return void (await known);
    const opening = this.agent.request("session/resume", { sessionId: id, cwd: "" });
    this.opened.set(id, opening);
    try {
      await opening;
    } catch (error) {
      this.opened.delete(id);
      throw error;
    }
  }
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
