// The dialog of the workspaces (git worktrees): their state, new ones, taking over their work, and
// deletion in two steps.

import { call } from "./api.js";
import { at, fill, h } from "./dom.js";
import { host } from "./host.js";
import { t } from "./texts.js";

const counted = (count, one, more) => count > 0 && (count === 1 ? one : more);

/** Lists paths, of which the server returns the first ones. */
export const listed = ({ count, paths }) => (count > paths.length ? t`${paths.join(", ")} and ${count - paths.length} more` : paths.join(", "));

function size(bytes) {
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000;
  while (value >= 1000 && units.length > 1) [value] = [value / 1000, units.shift()];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[0]}`;
}

export class Workspaces {
  /**
   * `hooks`: `open(path)` prepares a session in a directory; `observes()` returns whether the token
   * only reads; `failed(error)` reports an error; `directory()` returns the chosen directory.
   */
  constructor(hooks) {
    Object.assign(this, { hooks, dialog: at("workspaces"), list: at("workspace-list"), create: at("new-workspace") });
    this.create.addEventListener("click", () => this.add());
  }

  async show() {
    this.create.hidden = this.hooks.observes();
    fill(this.list, h("li", { class: "muted" }, t`Reading…`));
    this.dialog.showModal();
    await this.load();
  }

  async load() {
    try {
      const { workspaces } = await call("_nuncio/workspace/list");
      fill(this.list, workspaces.map((workspace) => this.row(workspace)));
      if (!workspaces.length) fill(this.list, h("li", { class: "muted" }, t`A workspace is a git worktree with a branch of its own, so that several agents can work on one repository.`));
    } catch (error) {
      this.dialog.close();
      this.hooks.failed(error);
    }
  }

  row(workspace, ...below) {
    const { name, branch, repository, path, state, problem } = workspace;
    const isReady = state === "ready";
    const button = (text, does, className = "plain") => h("button", { type: "button", class: className, onclick: does }, text);
    const row = h("li", { class: "workspace" },
      h("div", {}, h("strong", {}, name), " ", h("span", { class: "muted" }, branch === `nuncio/${name}` ? "" : branch || t`detached HEAD`, isReady ? "" : ` ${state}`)),
      h("div", { class: "muted path", title: path }, repository),
      h("div", {}, summary(workspace)),
      problem && h("div", { class: "error" }, problem),
      below.length ? below : !this.hooks.observes() && h("div", { class: "buttons" },
        isReady && button(t`New session`, () => this.open(path)),
        isReady && hasWork(workspace) && button(t`Apply`, (event) => this.apply(workspace, row, event.target)),
        button(t`Delete…`, () => this.lose(workspace, row))));
    return row;
  }

  open(path) {
    this.dialog.close();
    this.hooks.open(path);
  }

  async add() {
    this.create.disabled = true;
    try {
      const { workspace, warnings } = await call("_nuncio/workspace/create", { cwd: this.hooks.directory() || undefined });
      if (warnings.length) this.hooks.failed(new Error(warnings.join("; ")));
      this.open(workspace.path);
    } catch (error) {
      this.hooks.failed(error);
    }
    this.create.disabled = false;
  }

  /** Takes the work of a workspace into the main worktree of its repository. */
  async apply(workspace, row, pressed) {
    pressed.disabled = true;
    try {
      const answer = await call("_nuncio/workspace/apply", { workspaceId: workspace.workspaceId });
      row.querySelector(".applied")?.remove();
      pressed.closest(".buttons").before(h("div", { class: answer.conflicts.count ? "applied error" : "applied", role: "status" }, applied(answer)));
    } catch (error) {
      this.hooks.failed(error);
    }
    pressed.disabled = false;
  }

  /** Asks for what the deletion loses, and deletes after a confirmation with the same state. */
  async lose(workspace, row, confirm) {
    try {
      const answer = await call("_nuncio/workspace/delete", { workspaceId: workspace.workspaceId, confirm });
      if (answer.deleted) return await this.load();
      const lost = losses(answer);
      const text = lost.length ? [answer.changed ? t`It has changed. This is lost now:` : t`This is lost:`, h("ul", {}, lost.map((one) => h("li", {}, one)))] : t`Nothing is lost.`;
      const keep = h("button", { type: "button", class: "plain", onclick: () => next.replaceWith(this.row(answer.workspace)) }, t`Keep`);
      const remove = h("button", { type: "button", class: "primary danger", onclick: () => this.lose(workspace, next, answer.confirm) }, t`Delete`);
      const next = this.row(answer.workspace, h("div", { class: "losses" }, text), h("div", { class: "buttons" }, keep, remove));
      row.replaceWith(next);
      host.focus(keep);
    } catch (error) {
      this.hooks.failed(error);
    }
  }
}

const hasWork = ({ changes, unmergedCommits }) => changes.modified.count + changes.untracked.count + unmergedCommits > 0;

/** What was taken into the user's working tree, or why nothing was. */
export function applied({ applied: done, commit, directory, files, conflicts, deleted }) {
  if (conflicts.count) return t`Nothing was changed, because of conflicts in ${listed(conflicts)}`;
  if (!done) return t`${directory} already has all changes`;
  const text = commit ? t`Applied to ${directory} as commit ${commit.slice(0, 12)}: ${listed(files)}` : t`Applied to ${directory}, not committed: ${listed(files)}`;
  return deleted.length ? t`${text}; deleted unchanged workspaces: ${deleted.join(", ")}` : text;
}

/** The state of a workspace in a line. */
function summary({ changes, unmergedCommits, sessions, processes, size: bytes }) {
  const { modified, untracked } = changes;
  return [
    counted(modified.count, t`1 changed file`, t`${modified.count} changed files`),
    counted(untracked.count, t`1 new file`, t`${untracked.count} new files`),
    counted(unmergedCommits, t`1 commit not merged`, t`${unmergedCommits} commits not merged`),
    counted(sessions.length, t`1 session`, t`${sessions.length} sessions`),
    counted(processes.length, t`1 process`, t`${processes.length} processes`),
    size(bytes),
  ].filter(Boolean).join(" · ");
}

function losses({ workspace, lostCommits }) {
  const { modified, untracked, ignored, submodules } = workspace.changes;
  const more = lostCommits.count - lostCommits.commits.length, working = workspace.processes.length;
  return [
    modified.count > 0 && t`changed: ${listed(modified)}`,
    untracked.count > 0 && t`new: ${listed(untracked)}`,
    ignored.count > 0 && t`ignored by git: ${listed(ignored)}`,
    submodules.count > 0 && t`submodules: ${listed(submodules)}`,
    ...lostCommits.commits.map((commit) => t`commit ${commit}`),
    more > 0 && t`${more} more commits`,
    counted(working, t`1 process works there`, t`${working} processes work there`),
  ].filter(Boolean);
}
