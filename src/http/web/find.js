// Finds a text in the whole conversation, also in messages that are not drawn, and marks it in those
// that are.

import { at, h, icon } from "./dom.js";
import { host } from "./host.js";
import { shownTexts } from "./state.js";
import { t } from "./texts.js";

const MARKS_MAX = 500;

/** The texts of an item: what it says, also without the signs of Markdown, or the call of a tool. */
function textOf(item) {
  const { text, title, input, content, kind } = item;
  if (kind === "message") return `${text}\n${text.replace(/[*`~[\]]/g, "")}`;
  if (kind !== "tool") return shownTexts(item).filter(Boolean).join("\n");
  const results = content.flatMap((one) => [one.path, one.oldText, one.newText, one.output, one.content?.text]);
  return [title, input?.command, ...results].filter((one) => typeof one === "string").join("\n");
}

/** Returns ranges of a text in an element, regardless of the elements in it and of case. */
function rangesOf(root, query) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), nodes = [];
  let text = "";
  while (walker.nextNode()) {
    nodes.push([text.length, walker.currentNode]);
    // Some letters change their length with their case: those positions would not fit.
    const { data } = walker.currentNode, lower = data.toLowerCase();
    text += lower.length === data.length ? lower : data;
  }
  const placeOf = (index) => {
    const [from, node] = nodes[nodes.findLastIndex(([start]) => start <= index)];
    return [node, index - from];
  };
  const ranges = [];
  for (let from = text.indexOf(query); from >= 0 && ranges.length < MARKS_MAX; from = text.indexOf(query, from + query.length)) {
    const range = new Range();
    range.setStart(...placeOf(from));
    const [node, end] = placeOf(from + query.length - 1);
    range.setEnd(node, end + 1);
    ranges.push(range);
  }
  return ranges;
}

export class Find {
  /** `hooks`: `items()` returns the items of the conversation; `reveal(item)` shows one. */
  constructor(hooks) {
    Object.assign(this, { hooks, found: [], index: 0 });
    this.input = h("input", { type: "search", placeholder: t`Find in the conversation`, "aria-label": t`Find in the conversation`, spellcheck: false });
    this.count = h("span", { class: "muted count", role: "status" });
    const button = (label, glyph, does) => h("button", { type: "button", class: "bare", title: label, "aria-label": label, onclick: does }, icon(glyph, 14));
    this.root = h("div", { id: "find", role: "search", hidden: true }, this.input, this.count, button(t`Previous (Shift+Enter)`, "up", () => this.move(-1)), button(t`Next (Enter)`, "down", () => this.move(1)), button(t`Close (Esc)`, "cross", () => this.close()));
    this.input.addEventListener("input", () => this.search());
    this.root.addEventListener("keydown", (event) => this.key(event));
    at("offline").before(this.root);
  }

  get isOpen() {
    return !this.root.hidden;
  }

  open() {
    this.root.hidden = false;
    host.focus(this.input);
    this.input.select();
    this.search();
  }

  close() {
    if (!this.isOpen) return;
    this.root.hidden = true;
    this.mark(null);
    host.focus(at("scroller"), { preventScroll: true });
  }

  key(event) {
    if (event.isComposing || !["Enter", "Escape"].includes(event.key) || (event.target.tagName === "BUTTON" && event.key === "Enter")) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Escape") this.close();
    else this.move(event.shiftKey ? -1 : 1);
  }

  /** Begins at the last item that has the text, which is the nearest to the prompt. */
  search() {
    this.query = this.input.value.toLowerCase();
    this.found = this.query ? this.hooks.items().filter((item) => textOf(item).toLowerCase().includes(this.query)) : [];
    this.index = this.found.length - 1;
    this.show();
  }

  move(step) {
    if (!this.found.length) return;
    this.index = (this.index + step + this.found.length) % this.found.length;
    this.show();
  }

  show() {
    const { found, index, query } = this, item = found[index];
    this.count.textContent = !query ? "" : item ? t`${index + 1} of ${found.length}` : t`Not found`;
    if (item?.kind === "tool") item.isOpen = true;
    this.mark(item ? this.hooks.reveal(item) : null);
  }

  /** Marks the text in an element, and scrolls to it. */
  mark(root) {
    CSS.highlights?.delete("found");
    if (!root) return;
    // A thought is folded.
    for (const node of root.querySelectorAll("details")) node.open = true;
    const ranges = rangesOf(root, this.query);
    if (ranges.length && CSS.highlights) CSS.highlights.set("found", new Highlight(...ranges));
    (ranges[0]?.startContainer.parentElement ?? root).scrollIntoView({ block: "center" });
  }
}
