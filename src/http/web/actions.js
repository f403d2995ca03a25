// The menu of the shown session: copy its id, export, rename, fork, close, delete.

import { call } from "./api.js";
import { at } from "./dom.js";
import { fileName, jsonLines, markdown } from "./export.js";
import { host } from "./host.js";
import { Menu } from "./menu.js";
import { t } from "./texts.js";

/** Rows of the menu. An observer does not see those that change something. */
const ACTIONS = [
  { id: "copy", name: t`Copy the session's id` },
  { id: "markdown", name: t`Export as Markdown` },
  { id: "lines", name: t`Export as JSON lines` },
  { id: "rename", name: t`Rename…`, changes: true },
  { id: "fork", name: t`Fork`, hint: t`A new session with the same conversation`, changes: true },
  { id: "end", name: t`Close`, hint: t`Cancels the running turn; the session is kept`, changes: true },
  { id: "remove", name: t`Delete…`, danger: true, changes: true },
];

export class Actions {
  /**
   * `hooks`: `live()` returns the shown session; `observes()` returns true if the token has the
   * observer role; `failed(error)` reports an error; `toast(text)` shows a text; `go(id)` opens
   * another session, or the page of a new one.
   */
  constructor(hooks) {
    Object.assign(this, { hooks, renamed: null, removed: null });
    this.menu = new Menu(t`More`, {
      glyph: "more",
      className: "bare",
      choices: () => ACTIONS.filter((action) => !action.changes || !hooks.observes()),
      choose: (id) => this[id](hooks.live()),
    });
    at("keep-title").addEventListener("click", () => at("renaming").close("keep"));
    at("renaming").addEventListener("close", () => this.doRename());
    at("deleting").addEventListener("close", () => this.doRemove());
  }

  /** Closes the menu and its dialogs. */
  close() {
    this.menu.close();
    for (const id of ["deleting", "renaming"]) at(id).close("keep");
  }

  async copy({ id }) {
    await navigator.clipboard?.writeText(id).catch(() => {});
    this.hooks.toast(t`Copied`);
  }

  markdown({ state }) {
    host.save(fileName(state.title, "md"), markdown(state), "text/markdown");
  }

  async lines({ id, state }) {
    await jsonLines(id).then((text) => host.save(fileName(state.title, "jsonl"), text, "application/jsonl")).catch(this.hooks.failed);
  }

  rename({ id, state }) {
    this.renamed = id;
    at("new-title").value = state.title || "";
    at("renaming").returnValue = "";
    at("renaming").showModal();
    at("new-title").select();
  }

  async doRename() {
    const title = at("new-title").value.trim(), id = this.renamed;
    this.renamed = null;
    if (at("renaming").returnValue === "rename" && title && id) await call("_nuncio/session/configure", { sessionId: id, title }).catch(this.hooks.failed);
  }

  /** Creates a session with the history of the shown one, and opens it. */
  async fork({ id }) {
    try {
      const { sessionId } = await call("session/fork", { sessionId: id });
      if (id === this.hooks.live()?.id) this.hooks.go(sessionId);
    } catch (error) {
      this.hooks.failed(error);
    }
  }

  end({ id }) {
    return call("session/close", { sessionId: id }).catch(this.hooks.failed);
  }

  remove({ id }) {
    this.removed = id;
    at("deleting").returnValue = "";
    at("deleting").showModal();
  }

  async doRemove() {
    const id = this.removed;
    this.removed = null;
    const shown = () => id === this.hooks.live()?.id;
    if (at("deleting").returnValue !== "delete" || !id || !shown()) return;
    await call("session/delete", { sessionId: id }).then(() => shown() && this.hooks.go(null)).catch(this.hooks.failed);
  }
}
