// The dialog with the changed files of a session and their diff.

import { call } from "./api.js";
import { fill, h } from "./dom.js";
import * as patch from "./patch.js";
import { t } from "./texts.js";

/** Maximum size of the diff that the server returns, in bytes. */
const DIFF_BYTES_MAX = 256 * 1024;

/** A button that copies a text, and says so. */
export function copyButton(label, text) {
  const button = h("button", { type: "button", class: "plain" }, label);
  button.addEventListener("click", async () => {
    const copied = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    button.textContent = copied ? t`Copied` : t`Not copied`;
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

/** Draws the changes in a result of a session: the sums, the files, and what is missing. */
export function drawResult({ cwd, workspaceId, changes, diff }) {
  const where = workspaceId ? t`since the workspace was created` : t`uncommitted in ${cwd}`;
  if (diff === undefined || diff === null) return h("p", { class: "muted" }, t`The changes cannot be read: ${cwd} is not in a git repository.`);
  const files = patch.parse(diff);
  const none = workspaceId ? t`No changes since the workspace was created.` : t`No changes are uncommitted in ${cwd}.`;
  if (!files.length) return h("p", { class: "muted" }, changes ? h("pre", { class: "output" }, changes) : none);
  const sum = (key) => files.reduce((all, file) => all + file[key], 0);
  const isCut = new TextEncoder().encode(diff).length > DIFF_BYTES_MAX - 4;
  return [
    h("p", { class: "total" }, files.length === 1 ? t`1 file` : t`${files.length} files`, " ", patch.sums({ added: sum("added"), removed: sum("removed") }), h("span", { class: "muted" }, ` ${where}`)),
    isCut && [h("p", { class: "cut", role: "note" }, t`The diff is longer than 256 KiB: the rest is not shown.`), h("details", { class: "file" }, h("summary", {}, t`All changed files`), h("pre", { class: "output" }, changes))],
    patch.draw(diff, files, cwd),
  ];
}

export class Changes {
  /** `hooks`: `failed(error)` reports an error. */
  constructor(hooks) {
    Object.assign(this, { hooks, id: null, asked: 0, diff: "" });
    this.body = h("div", { class: "changes" });
    this.copy = copyButton(t`Copy`, () => this.diff);
    this.refresh = h("button", { type: "button", class: "plain", onclick: () => this.load() }, t`Refresh`);
    const close = h("form", { method: "dialog" }, this.copy, this.refresh, h("span", { class: "space" }), h("button", { class: "plain" }, t`Close`));
    this.dialog = h("dialog", { class: "page", "aria-labelledby": "changes-title" }, h("h2", { id: "changes-title" }, t`Changes`), this.body, close);
    this.dialog.addEventListener("close", () => this.empty());
    document.body.append(this.dialog);
  }

  /** Shows the changes of a session. */
  show(id) {
    this.id = id;
    this.empty();
    this.dialog.showModal();
    return this.load();
  }

  close() {
    this.dialog.close();
  }

  empty() {
    this.asked++;
    this.diff = "";
    this.copy.hidden = true;
    this.body.replaceChildren();
  }

  async load() {
    this.empty();
    fill(this.body, h("p", { class: "muted" }, t`Reading…`));
    const { asked } = this;
    try {
      const result = await call("_nuncio/session/result", { sessionId: this.id, diff: true });
      if (asked !== this.asked) return;
      this.diff = result.diff || "";
      this.copy.hidden = !this.diff;
      fill(this.body, drawResult(result));
    } catch (error) {
      if (asked !== this.asked) return;
      this.dialog.close();
      this.hooks.failed(error);
    }
  }
}
