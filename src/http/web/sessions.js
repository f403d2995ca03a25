// The list of sessions: loaded once, then updated by the stream of all sessions.

import { call, follow } from "./api.js";
import { ago, at, base, fill, h, icon } from "./dom.js";
import { grouped, matches, workspaceOf } from "./groups.js";
import { host } from "./host.js";
import { t } from "./texts.js";

const TYPES = "session.*,turn.started,turn.completed,turn.failed,turn.cancelled,turn.interrupted,permission.*,agent.status";

/** Maximum number of sessions that a search finds. */
const FOUND_MAX = 200;
/** Time since the last key after which the texts of the sessions are searched, in milliseconds. */
const SEARCH_PAUSE_MS = 200;

/** The status of a session or of an agent in a terminal, in words; `none` has no word. */
export const STATUS = { waiting: t`waiting`, busy: t`busy`, idle: t`idle`, none: "" };

/** The row of an agent in a terminal. */
const terminal = ({ agent, cwd, status }) =>
  h("li", { class: status, title: cwd }, h("div", { class: "session" }, h("span", { class: "dot" }), h("span", { class: "title" }, agent), h("span", { class: "when" }, STATUS[status] ?? status), h("span", { class: "where" }, base(cwd))));

/** The name of a hosted agent; null for nuncio's own agent. */
const hosted = (agent) => (agent && agent !== "nuncio" ? agent : null);

export class Sessions {
  /**
   * `hooks`: `changed()` is called when the list changed; `deleted(id)` when a session was deleted;
   * `state(word)` with the connection's state; `again()` when the server's data was replaced;
   * `refused(error)` when the stream was refused; `failed(error)` when a request failed.
   */
  constructor(hooks) {
    Object.assign(this, { hooks, rows: new Map(), current: null, stream: null, next: null, nodes: new Map(), folded: new Set(), found: new Map(), reader: {} });
    // The agents in terminals, by session id.
    this.terminals = new Map();
    this.list = at("sessions");
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.search = at("search");
    this.search.addEventListener("input", () => this.searched());
    this.search.addEventListener("keydown", (event) => this.searchKey(event));
    at("more-sessions").addEventListener("click", () => this.page().catch(this.hooks.failed));
    // Update the displayed times, for example from "5m" to "6m".
    setInterval(() => this.draw(), 30_000);
  }

  /**
   * Loads the list and returns the server's status. Events after its cursor come from the stream.
   */
  async load() {
    const { reader } = this;
    const status = await call("_nuncio/status");
    const [, { permissions = [] }] = await Promise.all([this.page(), call("_nuncio/permission/list").catch(() => ({}))]);
    if (reader !== this.reader) return status;
    for (const { sessionId, permissionId } of permissions) this.rows.get(sessionId)?.asks.add(permissionId);
    this.draw();
    this.stream?.close();
    this.stream = follow({ after: status.cursor, types: TYPES }, {
      events: (batch) => this.on(batch),
      status: (change) => this.agents(change),
      state: this.hooks.state,
      refused: (error) => (error.code === "invalid_params" ? this.hooks.again() : this.hooks.refused(error)),
    });
    return status;
  }

  /** Clears the list for another token. Responses that are still pending are ignored. */
  forget() {
    this.stream?.close();
    Object.assign(this, { stream: null, current: null, next: null, reader: {} });
    for (const known of [this.rows, this.terminals, this.folded, this.found]) known.clear();
    this.search.value = "";
    this.draw();
  }

  async page() {
    const { reader } = this;
    // A session that was just created has no message yet, and is shown, too.
    const { sessions, nextCursor } = await call("session/list", { cursor: this.next ?? undefined, _meta: { nuncio: { empty: true } } });
    if (reader !== this.reader) return;
    for (const info of sessions) this.put(info);
    this.next = nextCursor || null;
    this.draw();
  }

  put(info) {
    const known = this.rows.get(info.sessionId);
    const row = known || { id: info.sessionId, asks: new Set() };
    const updatedMs = Date.parse(info.updatedAt) || Date.now();
    Object.assign(row, { title: info.title, cwd: info.cwd, agent: hosted(info.agent), status: info.status || "none", waiting: !!info.waiting, updatedMs });
    this.rows.set(row.id, row);
    return row;
  }

  on(batch) {
    for (const { sessionId, atMs, body } of batch) {
      if (body.type === "session.deleted") {
        this.rows.delete(sessionId);
        this.hooks.deleted(sessionId);
        continue;
      }
      let row = this.rows.get(sessionId);
      if (!row) {
        row = this.put({ sessionId, cwd: "", status: "idle" });
        if (body.type !== "session.created") this.refresh(sessionId);
      }
      row.updatedMs = Math.max(row.updatedMs, atMs);
      this.change(row, body);
    }
    this.draw();
    this.hooks.changed();
  }

  /** Applies a change of the agents' status: the rows that changed, or all rows. */
  agents({ complete, sessions, terminals }) {
    if (complete) {
      this.terminals.clear();
      for (const row of this.rows.values()) Object.assign(row, { status: "none", waiting: false });
    }
    for (const { sessionId, status } of sessions) {
      const isWaiting = status === "waiting";
      const row = this.rows.get(sessionId);
      if (row) Object.assign(row, { status: isWaiting ? "busy" : status, waiting: isWaiting });
    }
    for (const row of terminals) {
      if (row.status === "none") this.terminals.delete(row.agentSession);
      else this.terminals.set(row.agentSession, row);
    }
    this.draw();
    this.hooks.changed();
  }

  change(row, body) {
    if (body.type.startsWith("session.")) {
      row.title = body.title || row.title;
      row.cwd = body.cwd || row.cwd;
      row.agent = hosted(body.agent) || row.agent;
    }
    if (body.type === "turn.started") row.status = "busy";
    else if (body.type === "session.closed") row.status = "none";
    else if (body.type.startsWith("turn.")) {
      row.status = "idle";
      row.asks.clear();
      row.waiting = false;
    }
    // Other events leave `waiting` as listed: the session can have a request from before.
    if (body.type === "permission.requested") row.asks.add(body.permissionId);
    if (body.type === "permission.resolved") row.asks.delete(body.permissionId);
    if (body.type.startsWith("permission.")) row.waiting = row.asks.size > 0;
  }

  async refresh(id) {
    const { reader } = this;
    const info = await call("_nuncio/session/get", { sessionId: id }).catch(() => null);
    if (reader !== this.reader) return;
    if (info) this.put(info);
    this.draw();
  }

  /** Whether a process has opened the session. */
  isOpen(id) {
    return (this.rows.get(id)?.status ?? "none") !== "none";
  }

  get ordered() {
    return [...this.rows.values()].sort((a, b) => b.updatedMs - a.updatedMs);
  }

  get waiting() {
    return this.ordered.filter((row) => row.waiting).length;
  }

  /** The working directories of the listed sessions, the latest first. */
  get directories() {
    return [...new Set(this.ordered.map((row) => row.cwd).filter(Boolean))];
  }

  select(id) {
    this.current = id;
    this.draw();
  }

  /** Searches the sessions on the server after a pause, and shows those that are known at once. */
  searched() {
    clearTimeout(this.pause);
    this.found.clear();
    this.draw();
    if (this.query) this.pause = setTimeout(() => this.find().catch(this.hooks.failed), SEARCH_PAUSE_MS);
  }

  /** Shows the sessions that have the words, with the part of the message that has them. */
  async find() {
    const { reader, query } = this;
    let cursor;
    // The field may have been emptied since.
    if (!query) return;
    do {
      const page = await call("session/list", { cursor, _meta: { nuncio: { text: query } } });
      if (reader !== this.reader || query !== this.query) return;
      for (const info of page.sessions) this.found.set(this.put(info).id, info.excerpt);
      this.draw();
      cursor = page.nextCursor;
    } while (cursor && this.found.size < FOUND_MAX);
  }

  get query() {
    return this.search.value.trim();
  }

  searchKey(event) {
    if (event.isComposing) return;
    if (event.key === "Escape" && this.search.value) {
      this.search.value = "";
      this.found.clear();
    }
    else if (event.key === "Escape") this.search.blur();
    else if (event.key === "ArrowDown" || event.key === "Enter") host.focus(this.list.querySelector("a"));
    else return;
    event.preventDefault();
    this.draw();
  }

  draw() {
    const { query } = this;
    const rows = query ? this.ordered.filter((row) => this.found.has(row.id) || matches(row, query)) : this.ordered;
    const entries = grouped(rows, (project) => !query && this.folded.has(project), Date.now());
    const keys = new Set(entries.map((entry) => entry.key));
    for (const key of this.nodes.keys()) if (!keys.has(key)) this.nodes.delete(key);
    const nodes = entries.map((entry) => this.entry(entry));
    const focused = document.activeElement;
    if (nodes.some((node, index) => this.list.children[index] !== node) || this.list.children.length !== nodes.length) {
      this.list.replaceChildren(...nodes);
      if (focused && this.list.contains(focused)) host.focus(focused, { preventScroll: true });
    }
    fill(at("terminals"), [...this.terminals.values()].map(terminal));
    at("no-sessions").hidden = rows.length > 0;
    at("no-sessions").textContent = query ? t`No session matches.` : t`Sessions appear here.`;
    at("more-sessions").hidden = !this.next;
  }

  entry(entry) {
    if (entry.kind === "row") return this.node(entry.row);
    let parts = this.nodes.get(entry.key);
    if (!parts && entry.kind === "day") parts = { item: h("li", { class: "day" }, entry.label) };
    if (!parts) {
      parts = { name: h("span", { class: "name" }), count: h("span", { class: "count" }) };
      parts.fold = h("button", { type: "button", title: entry.project, onclick: () => this.toggle(entry.project) }, h("span", { class: "fold" }, icon("chevron", 12)), parts.name, parts.count);
      parts.item = h("li", { class: "project" }, parts.fold);
    }
    this.nodes.set(entry.key, parts);
    if (entry.kind === "day") return parts.item;
    parts.name.textContent = entry.name;
    parts.count.textContent = entry.folded ? entry.count : "";
    parts.item.classList.toggle("waiting", entry.folded && entry.waits);
    parts.fold.setAttribute("aria-expanded", String(!entry.folded));
    return parts.item;
  }

  /** Folds or unfolds a project. */
  toggle(project) {
    if (!this.folded.delete(project)) this.folded.add(project);
    this.draw();
  }

  node(row) {
    let parts = this.nodes.get(row.id);
    if (!parts) {
      parts = { dot: h("span", { class: "dot" }), title: h("span", { class: "title" }), where: h("span", { class: "where" }), when: h("span", { class: "when" }) };
      parts.word = h("span", { class: "hidden" });
      parts.link = h("a", { href: `#/session/${encodeURIComponent(row.id)}`, class: "session" }, parts.dot, parts.title, parts.when, parts.where, parts.word);
      parts.item = h("li", {}, parts.link);
      this.nodes.set(row.id, parts);
    }
    const word = row.waiting ? t`waiting for you` : STATUS[row.status] ?? row.status;
    const set = (node, text) => node.textContent !== text && (node.textContent = text);
    set(parts.title, row.title || t`Untitled`);
    set(parts.where, this.found.get(row.id) || [row.waiting && t`Waiting for you`, row.agent, workspaceOf(row.cwd)].filter(Boolean).join(" · "));
    set(parts.when, ago(row.updatedMs));
    set(parts.word, word);
    parts.link.title = row.cwd;
    parts.item.className = `${row.waiting ? "waiting" : row.status}${row.title ? "" : " untitled"}`;
    if (row.id === this.current) parts.link.setAttribute("aria-current", "page");
    else parts.link.removeAttribute("aria-current");
    return parts.item;
  }

  key(event) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.move(step);
  }

  /** Moves the focus to the next or the previous session. */
  move(step) {
    const links = [...this.list.querySelectorAll("a")];
    const from = links.indexOf(document.activeElement);
    const start = links.findIndex((link) => link.hasAttribute("aria-current"));
    const to = from < 0 ? Math.max(0, start) : Math.min(links.length - 1, Math.max(0, from + step));
    host.focus(links[to]);
  }
}
