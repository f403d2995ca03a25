// The queued messages of a session: each can be edited, steered into the running turn, and removed.

import { call } from "./api.js";
import { at, fill, h, icon } from "./dom.js";
import { host } from "./host.js";
import { t } from "./texts.js";

/** The text of a message in a line, with the number of its attachments. */
function summary({ text, parts }) {
  const attached = parts.filter((part) => part.type !== "text").length;
  return [text, attached && (attached === 1 ? t`1 attachment` : t`${attached} attachments`)].filter(Boolean).join(" · ");
}

export class QueueList {
  /**
   * `hooks`: `observes()` returns true if the token has the observer role; `failed(error)` reports
   * an error; `restore(text)` offers a text in the prompt editor.
   */
  constructor(hooks) {
    Object.assign(this, { hooks, root: at("queue"), editing: null });
  }

  /**
   * Shows the queued messages of session `id`, in which a turn runs if it is busy. The message that
   * is being edited keeps its field.
   */
  update(id, queued, isBusy) {
    if (this.id !== id || !queued.has(this.editing)) this.editing = null;
    const key = JSON.stringify([id, this.editing, isBusy, [...queued]]);
    if (key === this.key) return;
    Object.assign(this, { key, id, queued, isBusy });
    const field = this.root.querySelector("textarea");
    const draft = field && { id: field.dataset.id, text: field.value, focused: document.activeElement === field };
    fill(this.root, [...queued].map(([message, entry]) => this.row(message, entry)));
    this.root.hidden = !queued.size;
    const now = this.root.querySelector("textarea");
    if (!now || now.dataset.id !== draft?.id) return host.focus(now);
    now.value = draft.text;
    if (draft.focused) host.focus(now);
  }

  row(id, entry) {
    const steers = entry.delivery === "steer";
    if (this.editing === id) return h("li", { class: "editing" }, this.field(id, entry));
    const button = (name, glyph, does) => h("button", { type: "button", class: "bare", title: name, "aria-label": name, onclick: does }, icon(glyph, 13));
    const buttons = !this.hooks.observes() && [
      button(t`Edit this message`, "edit", () => this.edit(id)),
      this.isBusy && button(steers ? t`Run after the turn` : t`Steer the running turn`, steers ? "down" : "up", () => this.change(id, { delivery: steers ? "queue" : "steer" })),
      // Without a running turn, the last turn failed or was stopped: its messages wait for the user.
      !this.isBusy && h("button", { type: "button", class: "plain", onclick: () => this.send(id, entry) }, t`Send now`),
      button(t`Remove this message`, "cross", () => this.remove(id)),
    ];
    return h("li", {}, h("span", { class: "muted" }, steers ? t`steers` : t`queued`), h("span", { class: "text", title: entry.text }, summary(entry)), buttons);
  }

  field(id, entry) {
    const field = h("textarea", { value: entry.text, rows: 2, "aria-label": t`Queued message` });
    field.dataset.id = id;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.preventDefault();
        this.edit(null);
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.save(id, entry, field.value);
      }
    });
    const save = h("button", { type: "button", class: "plain", onclick: () => this.save(id, entry, field.value) }, t`Save`);
    const cancel = h("button", { type: "button", class: "quiet", onclick: () => this.edit(null) }, t`Cancel`);
    return [field, save, cancel];
  }

  /** Shows the field of a message; null closes it and returns the focus to its button. */
  edit(id) {
    const before = this.editing;
    this.editing = id;
    this.update(this.id, this.queued, this.isBusy);
    if (!id && before) host.focus(this.root.children[[...this.queued.keys()].indexOf(before)]?.querySelector("button"));
  }

  async save(id, entry, text) {
    this.edit(null);
    const others = entry.parts.filter((part) => part.type !== "text");
    if (text.trim() && text !== entry.text) await this.change(id, { parts: [{ type: "text", text }, ...others] });
  }

  /** Runs a queued message in a turn of its own. */
  async send(id, { parts, text }) {
    let isRemoved = false;
    try {
      await call("_nuncio/session/queue/remove", this.address(id));
      isRemoved = true;
      await call("_nuncio/session/message", { sessionId: this.id, parts });
    } catch (error) {
      if (isRemoved) this.hooks.restore(text);
      this.hooks.failed(error);
    }
  }

  /** Returns the params that name a queued message. */
  address(id) {
    return { sessionId: this.id, messageId: id };
  }

  change(id, change) {
    return call("_nuncio/session/queue/edit", { ...this.address(id), ...change }).catch(this.hooks.failed);
  }

  remove(id) {
    return call("_nuncio/session/queue/remove", this.address(id)).catch(this.hooks.failed);
  }
}
