// The sessions: loaded once, then updated by the stream of all sessions, and shown as a tree.

import { basename } from "node:path";
import * as vscode from "vscode";
import type { Api } from "./api";
import type { NuncioEvent } from "./follow";
import { treeItem } from "./ui";

const TYPES = "session.*,turn.started,turn.completed,turn.failed,turn.cancelled,turn.interrupted,permission.*,agent.status";
const PAGES_MAX = 5;

export interface SessionRow {
  id: string;
  title: string;
  cwd: string;
  agent?: string;
  /** none: no process has opened it; idle, busy. */
  status: string;
  waiting: boolean;
  updatedMs: number;
  asks: Set<string>;
}

type Node = { kind: "session"; row: SessionRow } | { kind: "others" } | { kind: "more" };

export class Sessions implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  /** The list changed. */
  readonly onDidChange = this.changed.event;
  private readonly tree = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.tree.event;
  private readonly events = new vscode.EventEmitter<NuncioEvent>();
  /** Events of all sessions: sessions, turns and permission requests. */
  readonly onEvent = this.events.event;
  readonly rows = new Map<string, SessionRow>();
  /** Sessions of the extension itself, which are not listed. */
  readonly hidden = new Set<string>();
  /** The session that the conversation view shows. */
  shown: string | null = null;
  private stream: vscode.Disposable | null = null;
  private view: vscode.TreeView<Node> | null = null;
  private selected: string | null = null;
  private next: string | null = null;
  private drawing: NodeJS.Timeout | null = null;
  private loading = 0;

  constructor(private readonly api: Api) {
    this.onDidChange(() => {
      // Many events in a row draw the tree once.
      this.drawing ??= setTimeout(() => {
        this.drawing = null;
        this.tree.fire();
        this.select();
      }, 100);
    });
  }

  /** Shows the tree in its view. */
  showIn(view: vscode.TreeView<Node>): void {
    this.view = view;
    view.onDidChangeVisibility(() => this.select());
  }

  /** Selects the row of the shown session, once for each session and if the tree is visible. */
  private select(): void {
    const row = this.shown ? this.rows.get(this.shown) : undefined;
    if (!row || !this.view?.visible || this.selected === row.id) return;
    this.selected = row.id;
    // Fails if the row is on a page that is not loaded.
    this.view.reveal({ kind: "session", row }, { select: true, focus: false }).then(undefined, () => {});
  }

  dispose(): void {
    this.stream?.dispose();
    clearTimeout(this.drawing ?? undefined);
  }

  /** Loads the list and follows all sessions. */
  async load(): Promise<void> {
    const load = ++this.loading;
    const status = await this.api.call("_nuncio/status");
    this.rows.clear();
    this.next = null;
    await this.page();
    const { permissions = [] } = await this.api.call("_nuncio/permission/list").catch(() => ({}));
    if (load !== this.loading) return;
    for (const { sessionId, permissionId } of permissions) this.rows.get(sessionId)?.asks.add(permissionId);
    this.stream?.dispose();
    this.stream = this.api.agent.follow(
      { after: status.cursor, types: TYPES },
      {
        event: (event) => this.take(event),
        status: (change) => this.agents(change),
        refused: () => void this.load().catch(() => {}),
      },
    );
    this.changed.fire();
  }

  /** Draws the tree again. */
  redraw(): void {
    this.changed.fire();
  }

  /** Loads the next page of the list. */
  async page(): Promise<void> {
    const { sessions, nextCursor } = await this.api.call("session/list", { cursor: this.next ?? undefined, _meta: { nuncio: { empty: true } } });
    for (const info of sessions) this.put(info);
    this.next = nextCursor || null;
    this.changed.fire();
  }

  private put(info: any): SessionRow {
    const known = this.rows.get(info.sessionId);
    const row: SessionRow = known ?? { id: info.sessionId, title: "", cwd: "", status: "none", waiting: false, updatedMs: 0, asks: new Set() };
    Object.assign(row, {
      title: info.title ?? "",
      cwd: info.cwd,
      agent: info.agent,
      status: info.status || "none",
      waiting: !!info.waiting,
      updatedMs: Date.parse(info.updatedAt) || Date.now(),
    });
    this.rows.set(row.id, row);
    return row;
  }

  private take(event: NuncioEvent): void {
    const { sessionId: id, atMs, body } = event;
    if (body.type === "session.deleted") this.rows.delete(id);
    else {
      let row = this.rows.get(id);
      if (!row) {
        row = this.put({ sessionId: id, cwd: "", status: "idle" });
        if (body.type !== "session.created") void this.refresh(id);
      }
      row.updatedMs = Math.max(row.updatedMs, atMs);
      change(row, body);
    }
    this.events.fire(event);
    this.changed.fire();
  }

  /** Applies a change of the status of sessions in all processes. */
  private agents({ complete, sessions = [] }: { complete?: boolean; sessions?: { sessionId: string; status: string }[] }): void {
    if (complete) for (const row of this.rows.values()) Object.assign(row, { status: "none", waiting: false });
    for (const { sessionId, status } of sessions) {
      const row = this.rows.get(sessionId);
      if (row) Object.assign(row, { status: status === "waiting" ? "busy" : status, waiting: status === "waiting" });
    }
    this.changed.fire();
  }

  private async refresh(id: string): Promise<void> {
    const info = await this.api.call("_nuncio/session/get", { sessionId: id }).catch(() => null);
    if (info && this.rows.has(id)) this.put(info);
    this.changed.fire();
  }

  /** The listed sessions, the latest first. */
  get ordered(): SessionRow[] {
    return [...this.rows.values()].filter((row) => !this.hidden.has(row.id)).sort((a, b) => b.updatedMs - a.updatedMs);
  }

  get waiting(): SessionRow[] {
    return this.ordered.filter((row) => row.waiting);
  }

  // The tree --------------------------------------------------------------------------------------

  /** Returns whether the session works in a folder of this window. */
  private isHere(row: SessionRow): boolean {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return !folders.length || folders.some(({ uri }) => row.cwd === uri.fsPath || row.cwd.startsWith(`${uri.fsPath}/`));
  }

  getParent(node: Node): Node | undefined {
    return node.kind === "session" && !this.isHere(node.row) ? { kind: "others" } : undefined;
  }

  getChildren(node?: Node): Node[] {
    const rows = this.ordered;
    const of = (list: SessionRow[]): Node[] => list.map((row) => ({ kind: "session", row }));
    if (node?.kind === "others") return of(rows.filter((row) => !this.isHere(row)));
    if (node) return [];
    const here = of(rows.filter((row) => this.isHere(row)));
    if (here.length < rows.length) here.push({ kind: "others" });
    if (this.next) here.push({ kind: "more" });
    return here;
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.kind === "others") {
      const item = treeItem({ label: vscode.l10n.t("Other folders"), isCollapsed: true });
      item.id = "others";
      return item;
    }
    if (node.kind === "more") {
      const item = treeItem({ label: vscode.l10n.t("Show older") });
      item.command = { command: "nuncio.moreSessions", title: "" };
      return item;
    }
    const { row } = node;
    const title = row.title || vscode.l10n.t("Untitled");
    const description = [row.waiting ? vscode.l10n.t("waiting for you") : row.status === "busy" ? vscode.l10n.t("working") : "", row.agent, this.isHere(row) ? "" : basename(row.cwd), ago(row.updatedMs)].filter(Boolean).join(" · ");
    const tooltip = [title, row.cwd, new Date(row.updatedMs).toLocaleString()];
    const item = treeItem({ label: title, description, tooltip, icon: icon(row, row.id === this.shown) });
    item.id = row.id;
    item.contextValue = ["session", row.waiting && "waiting", row.status === "busy" && "busy", row.status !== "none" && "open"].filter(Boolean).join(" ");
    item.command = { command: "nuncio.session.open", title: vscode.l10n.t("Open"), arguments: [node] };
    return item;
  }

  /** Loads further pages until `PAGES_MAX`, for the list of the quick pick. */
  async loadMore(): Promise<void> {
    for (let page = 0; page < PAGES_MAX && this.next; page++) await this.page();
  }
}

function change(row: SessionRow, body: NuncioEvent["body"]): void {
  const { type } = body;
  if (type.startsWith("session.")) {
    row.title = body.title || row.title;
    row.cwd = body.cwd || row.cwd;
    row.agent = body.agent || row.agent;
  }
  if (type === "turn.started") row.status = "busy";
  else if (type === "session.closed") row.status = "none";
  else if (type.startsWith("turn.")) {
    row.status = "idle";
    row.asks.clear();
    row.waiting = false;
  }
  if (type === "permission.requested") row.asks.add(body.permissionId);
  if (type === "permission.resolved") row.asks.delete(body.permissionId);
  if (type.startsWith("permission.")) row.waiting = row.asks.size > 0;
}

function icon(row: SessionRow, isShown: boolean): vscode.ThemeIcon {
  if (row.waiting) return new vscode.ThemeIcon("bell-dot", new vscode.ThemeColor("notificationsWarningIcon.foreground"));
  if (row.status === "busy") return new vscode.ThemeIcon("loading~spin");
  if (isShown) return new vscode.ThemeIcon("comment-discussion");
  return new vscode.ThemeIcon(row.status === "none" ? "circle-outline" : "circle-filled");
}

/** Formats the time that has elapsed since `ms`, for example `5m`. */
export function ago(ms: number): string {
  const minutes = Math.floor((Date.now() - ms) / 60_000);
  if (minutes < 1) return vscode.l10n.t("now");
  if (minutes < 60) return `${minutes}m`;
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)}h`;
  return `${Math.floor(minutes / (60 * 24))}d`;
}
