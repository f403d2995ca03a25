// The page of comparisons: the same task for several agents, each in a workspace, with their
// answers and diffs side by side.

import { call } from "./api.js";
import { drawResult } from "./changes.js";
import { ago, base, dollars, duration, fill, h } from "./dom.js";
import { Growing } from "./markdown.js";
import { t } from "./texts.js";
import { applied, listed } from "./workspaces.js";

const AGENTS_MAX = 8;
const LISTED_MAX = 100;

const button = (text, does, className = "plain") => h("button", { type: "button", class: className, onclick: does }, text);

/** Groups workspaces by the comparison they belong to, the latest first. */
export function comparisonsOf(workspaces) {
  const found = new Map();
  for (const workspace of workspaces) {
    const { comparison, agent, title } = workspace.metadata ?? {};
    const session = workspace.sessions?.[0]?.sessionId;
    if (typeof comparison !== "string" || !session) continue;
    const known = found.get(comparison) ?? { id: comparison, title: String(title || t`Untitled`), repository: workspace.repository, createdAtMs: workspace.createdAtMs ?? 0, agents: [] };
    found.set(comparison, known);
    known.agents.push({ agent: String(agent || t`agent`), sessionId: session, workspaceId: workspace.workspaceId, workspace: workspace.name });
  }
  for (const { agents } of found.values()) agents.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
  return [...found.values()].sort((a, b) => b.createdAtMs - a.createdAtMs).slice(0, LISTED_MAX);
}

/** The result of one agent: its state, its answer, its changes, and what can be done with it. */
class Column {
  constructor(compared, name, hooks) {
    Object.assign(this, { compared, hooks, name, asked: 0, seen: null });
    this.state = h("p", { class: "muted", role: "status" }, t`Reading…`);
    this.answer = h("div", { class: "answer", tabIndex: 0, role: "group", "aria-label": t`Answer of ${name}`, hidden: true });
    this.changes = h("div", { class: "found" });
    this.outcome = h("div", { class: "outcome", role: "status" });
    this.take = button(t`Take this result`, () => this.apply(), "primary");
    this.take.hidden = hooks.observes();
    const foot = h("div", { class: "buttons" }, button(t`Open session`, () => hooks.go(compared.sessionId)), this.take);
    this.root = h("section", { class: "compared", "aria-label": name }, h("h3", {}, name), this.state, this.answer, this.changes, this.outcome, foot);
  }

  /** Reads the result again if the status of the session changed since. */
  changed() {
    const row = this.hooks.row(this.compared.sessionId);
    const seen = `${row?.status} ${row?.waiting} ${row?.cwd}`;
    if (seen !== this.seen) this.load(seen);
  }

  async load(seen = this.seen) {
    this.seen = seen;
    const asked = ++this.asked;
    try {
      const result = await call("_nuncio/session/result", { sessionId: this.compared.sessionId, diff: true });
      if (asked === this.asked) this.draw(result);
    } catch (error) {
      if (asked === this.asked) this.state.textContent = error.message;
    }
  }

  draw(result) {
    const { status, waiting, lastTurn, cost, durationMs, answer } = result;
    const isBusy = status === "busy";
    const ends = { failed: t`Failed: ${lastTurn?.error?.message ?? ""}`, cancelled: t`Stopped`, interrupted: t`Interrupted`, completed: t`Done` };
    const word = waiting ? t`Waiting for you` : isBusy ? t`Working` : ends[lastTurn?.status] ?? t`Not started`;
    this.state.textContent = [word, durationMs > 0 && duration(durationMs), typeof cost === "number" && dollars(cost)].filter(Boolean).join(" · ");
    this.root.className = `compared ${waiting ? "waiting" : isBusy ? "busy" : "idle"}`;
    this.answer.hidden = !answer;
    const text = new Growing();
    text.update(answer || "", true);
    fill(this.answer, text.root);
    fill(this.changes, drawResult(result));
    this.take.disabled = isBusy;
    this.take.title = isBusy ? t`The agent is still working` : "";
  }

  async apply() {
    this.take.disabled = true;
    try {
      const answer = await call("_nuncio/workspace/apply", { workspaceId: this.compared.workspaceId });
      this.outcome.className = answer.conflicts.count ? "outcome error" : "outcome";
      this.outcome.textContent = applied(answer);
      if (answer.applied) this.take.textContent = t`Take it again`;
      this.hooks.removed(answer.deleted);
    } catch (error) {
      this.hooks.failed(error);
    }
    this.take.disabled = false;
  }

  /** Shows that the workspace was deleted, because nothing was changed in it. */
  end() {
    this.asked++;
    this.take.hidden = true;
    fill(this.changes, h("p", { class: "muted" }, t`Nothing was changed; the workspace was deleted.`));
  }
}

export class Comparisons {
  /**
   * `hooks`: `row(id)` returns the listed session; `go(id)` opens a session; `directory()` returns
   * the chosen directory; `modes()` returns the modes; `observes()` returns true if the token has
   * the observer role; `failed(error)` reports an error.
   */
  constructor(hooks) {
    Object.assign(this, { hooks, columns: [], visit: 0 });
    this.title = h("h2", { id: "comparisons-title" });
    this.body = h("div", { class: "comparisons" });
    this.back = button(t`Back`, () => this.list());
    this.refresh = button(t`Refresh`, () => this.columns.forEach((column) => column.load()));
    this.dialog = h("dialog", { class: "page wide", "aria-labelledby": "comparisons-title" }, this.title, this.body,
      h("form", { method: "dialog" }, this.back, this.refresh, h("span", { class: "space" }), h("button", { class: "plain" }, t`Close`)));
    this.dialog.addEventListener("close", () => this.empty());
    document.body.append(this.dialog);
  }

  show() {
    if (!this.dialog.open) this.dialog.showModal();
    return this.list();
  }

  /** Follows the status of the shown sessions. */
  changed() {
    for (const column of this.columns) column.changed();
  }

  empty(title = "") {
    this.visit++;
    this.columns = [];
    this.title.textContent = title;
    this.back.hidden = this.refresh.hidden = true;
    this.body.replaceChildren();
  }

  /** Shows the form of a new comparison and the earlier ones. */
  async list() {
    this.empty(t`Comparisons`);
    const { visit } = this;
    const earlier = h("div", { class: "earlier" }, h("p", { class: "muted" }, t`Reading…`));
    const form = h("div");
    fill(this.body, form, earlier);
    try {
      const { agents } = await call("_nuncio/agent/list");
      if (visit !== this.visit) return;
      if (!this.hooks.observes()) fill(form, this.form(agents));
      // Reading the state of the workspaces takes time.
      const { workspaces } = await call("_nuncio/workspace/list");
      if (visit !== this.visit) return;
      const found = comparisonsOf(workspaces);
      fill(earlier, found.length > 0 && h("h3", {}, t`Earlier`), h("ul", {}, found.map((one) => this.row(one))));
    } catch (error) {
      if (visit !== this.visit) return;
      this.dialog.close();
      this.hooks.failed(error);
    }
  }

  row(comparison) {
    const names = comparison.agents.map(({ agent }) => agent).join(", ");
    const about = [names, base(comparison.repository), comparison.createdAtMs && ago(comparison.createdAtMs)].filter(Boolean).join(" · ");
    return h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => this.open(comparison) }, h("span", { class: "task" }, comparison.title), h("span", { class: "muted" }, about)));
  }

  /** The form of a new comparison. An agent can take part more than once. */
  form(agents) {
    const task = h("textarea", { rows: 4, "aria-label": t`Task`, placeholder: t`Describe a task for all agents`, required: true });
    const directory = h("input", { value: this.hooks.directory(), "aria-label": t`Directory in the repository`, placeholder: t`Directory in the repository`, spellcheck: false });
    const counts = agents.map(({ name, problem }) => {
      const input = h("input", { type: "number", min: 0, max: AGENTS_MAX, value: problem ? 0 : 1, disabled: !!problem });
      return { name, input, label: h("label", { title: problem || "" }, input, name, problem && h("span", { class: "muted" }, ` ${problem}`)) };
    });
    const mode = h("select", { "aria-label": t`Mode` }, this.hooks.modes().map(({ id, name }) => h("option", { value: id, selected: id === "accept-edits" }, name)));
    const start = h("button", { class: "primary" }, t`Start`);
    const form = h("form", { class: "new" }, task, directory, h("fieldset", {}, h("legend", {}, t`Agents`), counts.map(({ label }) => label)), h("div", { class: "buttons" }, mode, start));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const chosen = counts.flatMap(({ name, input }) => Array(Math.min(AGENTS_MAX, Math.max(0, Number(input.value) || 0))).fill(name));
      if (!chosen.length || chosen.length > AGENTS_MAX) return this.hooks.failed(new Error(t`choose 1 to ${AGENTS_MAX} agents`));
      start.disabled = true;
      await this.start(task.value, directory.value.trim(), chosen, mode.value);
      start.disabled = false;
    });
    return form;
  }

  async start(text, cwd, agents, mode) {
    const { visit } = this;
    try {
      const answer = await call("_nuncio/comparison/start", { agents, parts: [{ type: "text", text }], cwd: cwd || undefined, mode: mode || undefined });
      const warnings = answer.agents.flatMap((one) => one.warnings.map((warning) => `${one.agent}: ${warning}`));
      const { uncommitted } = answer;
      if (uncommitted?.count) warnings.push(t`The workspaces do not contain uncommitted changes: ${listed(uncommitted)}`);
      if (visit === this.visit) this.open({ title: text.trim().split("\n", 1)[0], agents: answer.agents }, warnings);
    } catch (error) {
      this.hooks.failed(error);
    }
  }

  /** Shows the results of a comparison side by side. */
  open({ title, agents }, warnings = []) {
    this.empty(title.slice(0, 200));
    const name = ({ agent }, index) => {
      const same = agents.slice(0, index).filter((one) => one.agent === agent).length;
      return same || agents.some((one, at) => at > index && one.agent === agent) ? `${agent} ${same + 1}` : agent;
    };
    const hooks = { ...this.hooks, go: (id) => (this.dialog.close(), this.hooks.go(id)), removed: (names) => this.removed(names) };
    this.columns = agents.map((compared, index) => new Column(compared, name(compared, index), hooks));
    fill(this.body, warnings.length > 0 && h("ul", { class: "cut", role: "note" }, warnings.map((warning) => h("li", {}, warning))), h("div", { class: "columns" }, this.columns.map((column) => column.root)));
    this.back.hidden = this.refresh.hidden = false;
    this.changed();
  }

  removed(names) {
    for (const column of this.columns) if (names.includes(column.compared.workspace)) column.end();
  }
}
