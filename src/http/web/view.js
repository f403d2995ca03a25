// The conversation: one node per item. Changed items are drawn at most once per frame.

import { add, announce, at, duration, fill, h, icon } from "./dom.js";
import { Growing } from "./markdown.js";
import { ToolView, image } from "./tool.js";

const NEAR_PX = 60;
/** Drawing takes at most 1/SHARE of the time. */
const SHARE = 6;

class MessageView {
  constructor(item) {
    this.item = item;
    this.root = h("article", { class: `message ${item.role}` });
    if (item.role === "assistant") {
      this.text = new Growing();
      this.root.append(h("span", { class: "hidden" }, "nuncio says:"), this.text.root);
    } else if (item.role === "thought") {
      this.text = new Growing();
      this.label = h("span");
      this.root.append(h("details", {}, h("summary", {}, h("span", { class: "fold" }, icon("chevron", 14)), this.label), this.text.root));
    }
  }

  update() {
    const { item } = this;
    this.root.classList.toggle("discarded", !!item.discarded);
    this.root.classList.toggle("growing", !item.done);
    if (this.text) this.text.update(item.text, item.done);
    else this.parts();
    if (this.label) this.label.textContent = item.done ? "Thought" : "Thinking";
    this.root.hidden = item.done && !item.text.trim() && !item.parts.some((part) => part.type !== "text");
  }

  /** Draws a user message. Its text is not Markdown and is shown unchanged. */
  parts() {
    const parts = this.item.parts.length ? this.item.parts : [{ type: "text", text: this.item.text }];
    const nodes = parts.map((part) => {
      if (part.type === "text") return h("p", { class: "said" }, part.text);
      if (part.type === "image") return image(part);
      const name = part.name || part.uri.split("/").pop();
      const chip = h("span", { class: "chip" }, icon("read", 14), name);
      if (part.type !== "resource") return chip;
      return h("details", { class: "resource" }, h("summary", {}, chip), h("pre", { class: "output" }, part.text));
    });
    fill(this.root, h("span", { class: "hidden" }, this.item.role === "system" ? "Note:" : "You said:"), h("div", { class: "bubble" }, nodes));
  }
}

class NoteView {
  constructor(item, hooks) {
    Object.assign(this, { item, hooks });
    this.root = h("div", { class: `note ${item.severity}` }, h("span", { class: "what" }, item.text), item.hint && h("span", { class: "hint" }, item.hint));
  }

  /** The note about the end of the last turn has a button that runs the turn again. */
  update() {
    this.again?.remove();
    if (!this.item.isLast || this.hooks.observes()) return;
    this.again = h("button", { type: "button", class: "plain again", onclick: () => this.retry() }, "Retry");
    this.root.append(this.again);
  }

  async retry() {
    this.again.disabled = true;
    await this.hooks.retry(this.item.turnId);
    this.again.disabled = false;
  }
}

/** Fallback for an item whose view failed: its plain text. */
class PlainView {
  constructor(item, root = h("article")) {
    Object.assign(this, { item, root });
    root.className = `message ${item.role || item.kind}`;
    root.hidden = false;
  }

  update() {
    const { text, title, hint, content } = this.item;
    const inner = Array.isArray(content) ? content.map((one) => one?.content?.text ?? one?.newText) : [];
    fill(this.root, h("p", { class: "said" }, [text, title, hint, ...inner].filter((one) => one && typeof one === "string").join("\n")));
  }
}

const VIEWS = { message: MessageView, tool: ToolView, notice: NoteView, end: NoteView };

export class ConversationView {
  /**
   * `hooks`: `observes()` returns true if the token has the observer role; `retry(turnId)` runs a
   * turn again.
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.scroller = at("scroller");
    this.root = at("conversation");
    this.working = at("working");
    this.latest = at("latest");
    this.stuck = true;
    this.views = new Map();
    this.scheduled = false;
    this.cost = 0;
    this.drawnAt = 0;
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.latest.addEventListener("click", () => this.toEnd());
    new ResizeObserver(() => this.keep()).observe(this.root);
    new ResizeObserver(() => this.keep()).observe(this.scroller);
    setInterval(() => this.tick(), 1000);
  }

  /** Shows another session. */
  show(live) {
    this.live = live;
    this.views.clear();
    this.root.replaceChildren();
    this.stuck = true;
    this.latest.hidden = true;
    this.root.setAttribute("aria-busy", "true");
    this.tick();
    this.changed();
  }

  changed() {
    if (this.scheduled) return;
    this.scheduled = true;
    const pause = Math.min(500, this.cost * SHARE - (performance.now() - this.drawnAt));
    if (pause > 16) setTimeout(() => requestAnimationFrame(() => this.draw()), pause);
    else requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.scheduled = false;
    if (!this.live) return;
    const started = performance.now();
    const { state, ready } = this.live;
    const fresh = [];
    const items = [...state.changed];
    state.changed.clear();
    for (const item of items) {
      const known = this.views.get(item);
      const view = this.drawn(item, known);
      if (!known) fresh.push(view.root);
      if (ready && item.done && item.kind === "message" && item.role === "assistant") announce(item.text);
    }
    add(this.root, fresh);
    this.root.setAttribute("aria-busy", String(!ready));
    this.tick();
    this.keep();
    this.drawnAt = performance.now();
    this.cost = this.drawnAt - started;
  }

  /** Draws an item. If that fails, its plain text is shown, so that the others are still drawn. */
  drawn(item, known) {
    let view = known;
    try {
      view ||= new VIEWS[item.kind](item, this.hooks);
      view.update();
    } catch (error) {
      console.error(error);
      view = new PlainView(item, view?.root);
      view.update();
    }
    view.root.dataset.key = item.key;
    this.views.set(item, view);
    return view;
  }

  /** Updates the line below the conversation: the state and the duration of the running turn. */
  tick() {
    const state = this.live?.state;
    const open = !!state?.busy && this.live.ready;
    this.working.hidden = !open;
    if (!open) return;
    const waits = state.asks.size > 0;
    const text = `${waits ? "Waiting for you" : "Working"} · ${duration(Date.now() - state.turn.startedMs)}`;
    if (this.working.lastChild.textContent !== text) this.working.lastChild.textContent = text;
    this.working.classList.toggle("waiting", waits);
  }

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    this.stuck = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    this.latest.hidden = this.stuck;
  }

  /** Keeps the view scrolled to the end if it was at the end. */
  keep() {
    if (this.stuck) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  toEnd() {
    this.stuck = true;
    this.latest.hidden = true;
    this.keep();
  }
}
