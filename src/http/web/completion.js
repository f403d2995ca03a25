// Completes `/commands` and `@paths` while the user types a prompt.

import { call } from "./api.js";
import { announce, fill, h, icon } from "./dom.js";
import { mentionOf } from "./mentions.js";
import { t } from "./texts.js";

const SHOWN_MAX = 50;
const QUERY_CHARS_MAX = 200;

/**
 * Returns the word at the caret that can be completed, `{kind: "command" | "path", from, to, query}`, or
 * null. A command is at the start of the text; a path follows `@`.
 */
export function wordAt(text, caret) {
  const before = text.slice(Math.max(0, caret - QUERY_CHARS_MAX), caret);
  const start = caret - before.length;
  const command = start === 0 && /^\/([^\s/]*)$/.exec(before);
  if (command) return { kind: "command", from: 0, to: caret, query: command[1] };
  const path = /(?:^|[\s(])@("[^"\n]*|[^\s"]*)$/.exec(before);
  return path ? { kind: "path", from: caret - path[1].length - 1, to: caret, query: path[1].replace(/^"/, "") } : null;
}

/** Ranks a name for a query: 0 for a prefix, 1 for its characters in their order, or null. */
export function rank(name, query) {
  const [text, wanted] = [name.toLowerCase(), query.toLowerCase()];
  if (text.startsWith(wanted)) return 0;
  let from = 0;
  for (const char of wanted) {
    from = text.indexOf(char, from) + 1;
    if (!from) return null;
  }
  return 1;
}

/** Reads the commands of a session, or of a directory, that match the word. */
async function commands(place, { query }) {
  const { commands: all } = await call("_nuncio/command/list", place);
  const ranked = all.map((command) => ({ ...command, rank: rank(command.name, query) })).filter((command) => command.rank !== null);
  return ranked.sort((a, b) => a.rank - b.rank).map(({ name, description, hint }) => ({ text: `/${name}`, about: description, takesInput: !!hint, glyph: "execute" }));
}

/** Reads the paths of a session, or of a directory, that match the word, without the word itself. */
async function paths(place, { query }) {
  const { paths: found } = await call("_nuncio/file/search", { ...place, query, limit: SHOWN_MAX });
  return found.filter((path) => path !== query).map((path) => ({ text: mentionOf(path), isDirectory: path.endsWith("/"), glyph: path.endsWith("/") ? "folder" : "read" }));
}

const READERS = { command: commands, path: paths };

export class Completion {
  /**
   * `input`: the textarea. `hooks`: `place(kind)` returns `{sessionId}` or `{cwd}`, whose commands or
   * files are suggested, or null; `typed()` is called after a suggestion was inserted.
   *
   * HTML allows no other role for a textarea: it stays a text box with `aria-activedescendant`.
   */
  constructor(input, hooks) {
    Object.assign(this, { input, hooks, word: null, choices: [], active: 0, isReading: false, dismissed: null });
    this.list = h("ul", { class: "completion", id: "completion", role: "listbox", "aria-label": t`Suggestions`, hidden: true });
    input.parentElement.append(this.list);
    input.setAttribute("aria-autocomplete", "list");
    input.addEventListener("input", () => this.update());
    input.addEventListener("click", () => this.update());
    input.addEventListener("keyup", (event) => ["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key) && this.update());
    input.addEventListener("blur", () => this.close());
    // The list must not take the focus from the text.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** Reads the suggestions for the word at the caret, unless Escape closed the list for it. */
  update() {
    const { value, selectionStart, selectionEnd } = this.input;
    const word = selectionStart === selectionEnd ? wordAt(value, selectionStart) : null;
    const place = word && `${word.kind}-${word.from}`;
    if (this.dismissed !== place) this.dismissed = null;
    if (!word || this.dismissed) return this.close();
    if (this.word && place !== `${this.word.kind}-${this.word.from}`) this.close();
    this.word = word;
    this.read();
  }

  /** Sends one request at a time. An answer to an earlier word is dropped. */
  async read() {
    if (this.isReading) return;
    this.isReading = true;
    for (let asked = null; this.word && this.word !== asked; ) {
      asked = this.word;
      const place = this.hooks.place(asked.kind);
      const found = place ? await READERS[asked.kind](place, asked).catch(() => []) : [];
      if (this.word === asked) this.show(found.slice(0, SHOWN_MAX));
    }
    this.isReading = false;
  }

  show(choices) {
    const isNew = !this.isOpen;
    Object.assign(this, { choices, active: 0 });
    fill(this.list, choices.map((choice, index) => this.option(choice, index)));
    this.list.hidden = !choices.length;
    this.mark();
    if (this.isOpen) this.input.setAttribute("aria-controls", this.list.id);
    if (isNew && choices.length) announce(choices.length === 1 ? t`1 suggestion` : t`${choices.length} suggestions`);
  }

  option({ text, about, glyph }, index) {
    const node = h("li", { role: "option", id: `completion-${index}` }, icon(glyph, 14), h("span", { class: "name" }, text), about && h("span", { class: "about" }, about));
    node.addEventListener("click", () => this.accept(index));
    return node;
  }

  mark() {
    [...this.list.children].forEach((node, index) => node.setAttribute("aria-selected", String(index === this.active)));
    const node = this.list.children[this.active];
    if (!node || !this.isOpen) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", node.id);
    node.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.word = null;
    this.list.hidden = true;
    this.list.replaceChildren();
    for (const name of ["aria-activedescendant", "aria-controls"]) this.input.removeAttribute(name);
  }

  /** Handles a key of the text while the list is open. Returns true if the key is for the list. */
  key(event) {
    if (!this.isOpen || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
    const { length } = this.choices;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.active = (this.active + step + length) % length;
      this.mark();
    } else if (event.key === "Escape") {
      this.dismissed = `${this.word.kind}-${this.word.from}`;
      this.close();
    } else if (event.key === "Tab" || (event.key === "Enter" && !this.isComplete())) {
      this.accept(this.active);
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }

  /** Whether the text already is the chosen command, so that Enter sends it. */
  isComplete() {
    const { kind, from, query } = this.word;
    return kind === "command" && this.choices[this.active].text === `/${query}` && this.input.value.slice(from).trimEnd() === `/${query}`;
  }

  /** Replaces the word by a suggestion. A directory can be completed further. */
  accept(index) {
    const { text, isDirectory, takesInput = true } = this.choices[index];
    const { from, to } = this.word;
    const after = this.input.value.slice(to);
    const space = isDirectory || !takesInput || /^\s/.test(after) ? "" : " ";
    this.close();
    // A directory in quotes stays open, so that it can be completed further.
    this.input.setRangeText((isDirectory ? text.replace(/"$/, "") : text) + space, from, to, "end");
    if (space === "" && !isDirectory && /^\s/.test(after)) this.input.selectionStart = this.input.selectionEnd += 1;
    this.hooks.typed();
    if (isDirectory) this.update();
    else this.dismissed = takesInput ? null : `command-${from}`;
  }
}
