// The conversation: one node per item, for a window of the items. Changed items are drawn at most
// once per frame.

import { add, announce, at, copyIcon, duration, fill, h, icon } from "./dom.js";
import { Growing } from "./markdown.js";
import { EndFollower } from "./scroll.js";
import { shownTexts } from "./state.js";
import { t } from "./texts.js";
import { ToolView, image } from "./tool.js";
import { decoded } from "./transport.js";

/** Distance from the end of the window at which more items are drawn, in pixels. */
const EARLY_PX = 800;
/** Number of items that are drawn at once, and maximum number of nodes. */
const PAGE = 100;
const NODES_MAX = 400;
/** Drawing takes at most 1/SHARE of the time. */
const SHARE = 6;

/** The name of an attachment: the last part of its address, with its lines as `:3-9`. */
const nameOf = (uri) => decoded(uri.split("/").pop().replace(/^nuncio:/, "")).replace(/#L(\d+)(-)?L?(\d*)$/, ":$1$2$3");

class MessageView {
  constructor(item) {
    this.item = item;
    this.root = h("article", { class: `message ${item.role}` });
    if (item.role === "assistant") {
      this.text = new Growing();
      this.root.append(h("span", { class: "hidden" }, t`nuncio says:`), this.text.root, h("div", { class: "answer-tools" }, copyIcon(t`Copy the answer`, () => item.text)));
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
    if (this.label) this.label.textContent = item.done ? t`Thought` : t`Thinking`;
    this.root.hidden = item.done && !item.text.trim() && !item.parts.some((part) => part.type !== "text");
  }

  /** Draws a user message. Its text is not Markdown and is shown unchanged. */
  parts() {
    const parts = this.item.parts.length ? this.item.parts : [{ type: "text", text: this.item.text }];
    const nodes = parts.map((part) => {
      if (part.type === "text") return h("p", { class: "said" }, part.text);
      if (part.type === "image") return image(part);
      const name = part.name || nameOf(part.uri);
      const chip = h("span", { class: "chip" }, icon("read", 14), name);
      if (part.type !== "resource") return chip;
      return h("details", { class: "resource" }, h("summary", {}, chip), h("pre", { class: "output" }, part.text));
    });
    fill(this.root, h("span", { class: "hidden" }, this.item.role === "system" ? t`Note:` : t`You said:`), h("div", { class: "bubble" }, nodes));
  }
}

class NoteView {
  constructor(item, hooks) {
    Object.assign(this, { item, hooks });
    const [text, hint] = shownTexts(item);
    this.root = h("div", { class: `note ${item.severity}` }, h("span", { class: "what" }, text), hint && h("span", { class: "hint" }, hint));
  }

  /** The note about the end of the last turn has a button that runs the turn again. */
  update() {
    this.again?.remove();
    if (!this.item.isLast || this.hooks.observes()) return;
    this.again = h("button", { type: "button", class: "plain again", onclick: () => this.retry() }, t`Retry`);
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

/** Draws the items from `from` up to `to`, which the user moves by scrolling. */
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
    this.end = new EndFollower(this.scroller, { isWhole: () => this.isWhole, toEnd: () => this.toEnd(), changed: () => (this.latest.hidden = this.end.isOn) });
    this.views = new Map();
    this.from = this.to = this.length = 0;
    this.earlier = h("button", { type: "button", class: "quiet earlier-items", hidden: true, onclick: () => this.extend(-PAGE) }, t`Show earlier messages`);
    this.root.before(this.earlier);
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
    this.begin(0);
    this.length = 0;
    this.earlier.hidden = true;
    this.end.set(true);
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
    const { state, ready, hasHistory } = this.live;
    // A long history is drawn once, not while it is read.
    if (!hasHistory) return;
    const { items } = state;
    const changed = [...state.changed];
    state.changed.clear();
    for (const item of changed) {
      if (this.views.has(item)) this.drawn(item);
      if (ready && item.done && item.kind === "message" && item.role === "assistant") announce(item.text);
    }
    this.follow(items);
    this.root.setAttribute("aria-busy", String(!ready));
    this.tick();
    this.keep();
    this.drawnAt = performance.now();
    this.cost = this.drawnAt - started;
  }

  /** Draws new items at the end of the window, and removes its first nodes if it becomes long. */
  follow(items) {
    const wasWhole = this.to === this.length;
    this.length = items.length;
    if (this.end.isOn) {
      if (!this.views.size || items.length - this.to > NODES_MAX) this.begin(Math.max(0, items.length - PAGE));
      this.insert(items, this.to, items.length, null);
      this.remove(items, this.from, this.to - NODES_MAX);
    } else if (wasWhole) {
      // The user reads: nothing that may be visible is removed.
      this.insert(items, this.to, Math.min(items.length, this.from + 2 * NODES_MAX), null);
    }
  }

  /** Removes all nodes; the window begins at an item. */
  begin(from) {
    this.views.clear();
    this.root.replaceChildren();
    this.from = this.to = from;
  }

  /** Draws the items from `from` up to `to` before a node, and makes them part of the window. */
  insert(items, from, to, before) {
    if (from >= to) return;
    const roots = items.slice(from, to).map((item) => this.drawn(item).root);
    const group = document.createDocumentFragment();
    add(group, roots);
    this.root.insertBefore(group, before);
    this.from = Math.min(this.from, from);
    this.to = Math.max(this.to, to);
    this.earlier.hidden = this.from === 0;
  }

  /** Removes the nodes of items at the start or at the end of the window. */
  remove(items, from, to) {
    if (from >= to) return;
    for (const item of items.slice(from, to)) {
      this.views.get(item)?.root.remove();
      this.views.delete(item);
    }
    if (from === this.from) this.from = to;
    else this.to = from;
    this.earlier.hidden = this.from === 0;
  }

  /** Moves the window by a number of items. What the user sees stays in its place. */
  extend(count) {
    const items = this.live?.state.items ?? [], { from, to } = this;
    const anchor = count < 0 ? this.root.firstElementChild : this.root.lastElementChild;
    if (!anchor) return;
    if (count < 0) this.end.set(false);
    const before = anchor.getBoundingClientRect().top;
    this.scroller.style.overflowAnchor = "none";
    if (count < 0) {
      this.insert(items, Math.max(0, from + count), from, anchor);
      this.remove(items, this.from + NODES_MAX, this.to);
    } else {
      this.insert(items, to, Math.min(items.length, to + count), null);
      this.remove(items, this.from, this.to - NODES_MAX);
    }
    this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.scroller.style.overflowAnchor = "";
  }

  /** Draws an item. If that fails, its plain text is shown, so that the others are still drawn. */
  drawn(item) {
    let view = this.views.get(item);
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
    const { writing } = state;
    const work = writing ? t`Writing ${writing.path ?? writing.name}, ${Math.ceil(writing.bytes / 1000)} kB` : t`Working`;
    const text = `${waits ? t`Waiting for you` : work} · ${duration(Date.now() - state.turn.startedMs)}`;
    if (this.working.lastChild.textContent !== text) this.working.lastChild.textContent = text;
    this.working.classList.toggle("waiting", waits);
  }

  /** Shows an item in the middle of the view, and returns its element. */
  reveal(item) {
    const items = this.live?.state.items ?? [], index = items.indexOf(item);
    if (index < 0) return null;
    this.end.set(false);
    if (index < this.from || index >= this.to) {
      this.begin(Math.max(0, index - PAGE / 2));
      this.insert(items, this.from, Math.min(items.length, this.from + PAGE), null);
    }
    return this.drawn(item).root;
  }

  /** Whether the last item is drawn. */
  get isWhole() {
    return this.to >= (this.live?.state.items.length ?? 0);
  }

  scrolled() {
    if (this.scroller.scrollTop < EARLY_PX && this.from > 0 && !this.end.isOn) this.extend(-PAGE);
    else if (this.end.below < EARLY_PX && !this.isWhole) this.extend(PAGE);
  }

  keep() {
    this.end.keep();
  }

  /** Shows the last items. */
  toEnd() {
    this.end.set(true);
    if (this.live && this.to < this.live.state.items.length) {
      this.begin(0);
      this.draw();
    }
    this.keep();
  }
}
