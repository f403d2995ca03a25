// A tool call as a row that opens: its title and status, and below it the diff, the output or the
// image.

import { base, duration, exact, fill, h, icon } from "./dom.js";
import { code } from "./markdown.js";
import * as diff from "./diff.js";
import * as fields from "./fields.js";
import { opens, placeLink } from "./places.js";
import * as known from "./results.js";
import { t } from "./texts.js";

const PREVIEW_LINES = 6;
const OUTPUT_CHARS_MAX = 200_000;
const ICONS = { read: "read", edit: "edit", search: "search", execute: "execute", think: "think", fetch: "fetch" };
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Terminal text without control sequences (ECMA-48). Overwritten lines show their last state. */
export function plain(text) {
  const clean = text.replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b./g, "").replace(/\r\n/g, "\n");
  return clean.replace(/^.*\r(?!$)/gm, "").replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
}

export function image(part) {
  if (!IMAGES.includes(part.mimeType)) return h("span", { class: "chip" }, t`${part.mimeType} image`);
  return h("img", { src: `data:${part.mimeType};base64,${part.data}`, alt: t`Image`, class: "picture" });
}

/** Content as nodes. `isExact` makes every character visible, for permission questions. */
export function contents(list, { cut = true, isExact = false } = {}) {
  const paths = new Set(list.filter((one) => one.type === "diff").map((one) => one.path));
  let last = null;
  return list.map((one) => {
    if (one.type === "diff" && paths.size > 1 && one.path !== last && !isExact) {
      last = one.path;
      return [h("p", { class: "muted path" }, placeLink({ path: one.path }, one.path)), contents([one], { cut })];
    }
    if (one.type === "diff") return diff.draw(diff.compare(one.oldText ?? "", one.newText), cut ? 60 : 400, isExact, one.path);
    const output = isExact ? exactOutput : plainOutput;
    if (one.type === "terminal") return output(one.output ?? "");
    const part = one.content;
    if (part.type === "image") return image(part);
    if (part.type === "resource_link") return h("p", { class: "chip" }, isExact ? exact(part.name) : part.name, " ", h("span", { class: "muted" }, isExact ? exact(part.uri) : part.uri));
    return output(part.text ?? "");
  });
}

const exactOutput = (text) => h("pre", { class: "output", tabIndex: 0 }, exact(text));

function plainOutput(text) {
  const shown = plain(text);
  const long = shown.length > OUTPUT_CHARS_MAX;
  return h("pre", { class: "output", tabIndex: 0 }, long ? `…${shown.slice(-OUTPUT_CHARS_MAX)}` : shown);
}

const textOf = (item) => item.content.map((one) => (one.type === "content" ? one.content.text : one.output) ?? "").join("\n");

/** The output of a command, without its exit code, which the row shows. */
function commandOutput(item) {
  const text = plain(textOf(item)).replace(/\n?exit code: -?\d+\s*$/, "");
  return text.trimEnd();
}

const hasFailedChecks = (item) => item.details?.passed === false;

/** The output of failed checks, without the lines about passed checks. */
const checkOutput = (item) => plain(textOf(item)).split("\n").filter((line) => !/^`.*` passed in [\d.]+ s$/.test(line)).join("\n").trimEnd();

const WORDS = { pending: t`pending`, in_progress: t`running`, completed: t`done`, failed: t`failed`, stopped: t`stopped` };

export class ToolView {
  constructor(item) {
    this.item = item;
    this.mark = h("span", { class: "mark" });
    this.title = h("span", { class: "name" });
    this.meta = h("span", { class: "meta" });
    this.row = h("button", { type: "button", class: "row", "aria-expanded": "false" }, this.mark, this.title, this.meta, h("span", { class: "fold" }, icon("chevron", 14)));
    this.row.addEventListener("click", () => this.toggle());
    this.body = h("div", { class: "body" });
    this.open = h("button", { type: "button", class: "bare open-file" }, icon("open", 14));
    this.root = h("div", { class: "tool" }, h("div", { class: "head" }, this.row, this.open), this.body);
  }

  get command() {
    return this.item.about === "execute" && typeof this.item.input?.command === "string" ? this.item.input.command : null;
  }

  toggle() {
    this.item.isOpen = !this.isOpen;
    this.drawn = null;
    this.update();
  }

  /** Whether the row is open. Tool calls with a diff are open by default. */
  get isOpen() {
    return this.item.isOpen ?? known.diffs(this.item).length > 0;
  }

  get isDenied() {
    const { decision } = this.item;
    return !!decision && !decision.outcome.startsWith("allow");
  }

  get status() {
    const { item } = this;
    if (item.asked) return "asked";
    if (item.stopped) return "stopped";
    return item.done && item.status !== "completed" && item.status !== "failed" ? "failed" : item.status;
  }

  /** The file that the call is about, `{path, line}`, or null. */
  get place() {
    const [first] = this.item.locations ?? [];
    const changed = new Set(known.diffs(this.item).map((one) => one.path));
    if (changed.size > 1) return null;
    const path = [...changed][0] ?? first?.path;
    return path ? { path, line: first?.path === path ? (first.line ?? undefined) : undefined } : null;
  }

  drawOpen() {
    const { place } = this;
    this.open.hidden = !place;
    if (!place) return;
    const { title, ...data } = opens(place);
    for (const [name, value] of Object.entries(data)) if (value) this.open.setAttribute(name, value);
    this.open.title = t`Open ${title}`;
    this.open.setAttribute("aria-label", t`Open ${title}`);
  }

  update() {
    const { item, command } = this;
    this.drawOpen();
    const status = this.status;
    const isBad = status === "completed" && !!item.details?.exitCode;
    this.root.className = `tool ${status}${isBad ? " bad" : ""}${command ? " command" : ""}`;
    const word = status === "asked" ? t`waiting for you` : WORDS[status];
    fill(this.mark, status === "in_progress" ? h("span", { class: "spinner" }) : icon(ICONS[item.about] || "other"), h("span", { class: "hidden" }, `${word}: `));
    this.title.textContent = command ? command.split("\n").map((line) => line.trim()).filter(Boolean).join(" ↵ ") : item.title;
    this.row.title = command || item.title;
    fill(this.meta, this.facts());
    this.row.setAttribute("aria-expanded", String(this.isOpen));
    this.root.classList.toggle("open", this.isOpen);
    this.draw();
  }

  facts() {
    const { item } = this;
    const { details = {}, decision } = item;
    const facts = [];
    const changes = known.diffs(item);
    if (changes.length && item.status === "completed") {
      const counts = changes.map((one) => diff.count(diff.compare(one.oldText ?? "", one.newText)));
      const sum = (key) => counts.reduce((all, one) => all + one[key], 0);
      if (sum("added")) facts.push(h("span", { class: "plus" }, `+${sum("added")}`));
      if (sum("removed")) facts.push(h("span", { class: "minus" }, `−${sum("removed")}`));
    }
    if (this.isDenied) facts.push(h("span", { class: "no" }, DECISIONS[decision.outcome] || t`denied`));
    else if (item.effect === "unknown") facts.push(h("span", { class: "no" }, t`effect unknown`));
    else if (item.stopped) facts.push(t`stopped`);
    else if (item.status === "failed") facts.push(h("span", { class: "no" }, t`failed`));
    if (details?.exitCode) facts.push(h("span", { class: "no" }, t`exit ${details.exitCode}`));
    if (details?.durationMs >= 1000) facts.push(duration(details.durationMs));
    return facts.flatMap((fact, index) => (index ? [" ", fact] : [fact]));
  }

  /**
   * Draws the input and the results. A file, a page or the output of a command is shown as it is,
   * even if it is JSON.
   */
  results() {
    const { item } = this;
    const isText = item.content.every((one) => one.type === "content" && one.content.type === "text");
    const special = isText && known.draw(item, plain(textOf(item)));
    if (special) return special;
    const changes = known.diffs(item);
    if (changes.length && isText) return [contents(changes), item.status === "failed" && contents(item.content)];
    const hasInput = !changes.length && item.about === "other" && Object.keys(item.input ?? {}).length > 0;
    const input = hasInput && h("div", { class: "input" }, fields.draw(item.input));
    const value = isText && !["read", "execute", "fetch"].includes(item.about) ? fields.parsed(textOf(item)) : undefined;
    const none = !item.content.length && h("p", { class: "muted no-output" }, item.done ? t`No output` : t`No output yet`);
    return [input, value === undefined ? contents(item.content) : fields.draw(value), none];
  }

  draw() {
    const { item, command } = this;
    // Unchanged content is not redrawn: the user may be reading or selecting it.
    const key = `${this.isOpen}${item.done}`;
    if (this.drawn === key && this.content === item.content) return;
    this.drawn = key;
    this.content = item.content;
    if (!this.isOpen) {
      // A denied call has no preview: the row already shows that it was denied.
      const text = hasFailedChecks(item) ? checkOutput(item) : command && !this.isDenied ? commandOutput(item) : "";
      const lines = text.split("\n");
      const preview = lines.slice(-PREVIEW_LINES).join("\n");
      fill(this.body, text && h("pre", { class: `output preview${lines.length > PREVIEW_LINES ? " more" : ""}` }, preview));
      return;
    }
    if (command) {
      const text = commandOutput(item);
      fill(this.body, command.includes("\n") || command.length > 60 ? code(command) : null, text ? plainOutput(text) : h("p", { class: "muted no-output" }, item.done ? t`No output` : t`No output yet`));
      return;
    }
    const { place } = this;
    const where = place && !item.title.includes(base(place.path)) ? h("p", { class: "muted path" }, placeLink(place, place.path)) : null;
    fill(this.body, where, this.results());
  }
}

const DECISIONS = { reject_once: t`rejected`, reject_always: t`rejected`, denied: t`denied`, cancelled: t`cancelled` };
