// The dialog with a file that a conversation names, at its line. Only some lines around are drawn.

import { call } from "./api.js";
import { add, fill, h } from "./dom.js";
import { highlight, languageOf } from "./highlight.js";
import { t } from "./texts.js";

const LINES_SHOWN = 400;
const LINE_CHARS_MAX = 2000;

export class FileView {
  constructor() {
    this.asked = 0;
    this.title = h("h2", { id: "file-title", class: "path" });
    this.body = h("div", { class: "file-lines", tabIndex: 0, role: "group", "aria-label": t`Text of the file` });
    const close = h("form", { method: "dialog" }, h("span", { class: "space" }), h("button", { class: "plain" }, t`Close`));
    this.dialog = h("dialog", { class: "page file-view", "aria-labelledby": "file-title" }, this.title, this.body, close);
    this.dialog.addEventListener("close", () => this.empty());
    document.body.append(this.dialog);
  }

  empty() {
    this.asked++;
    fill(this.title);
    fill(this.body);
  }

  /** Shows a file of a session. Throws an error of the server. */
  async show({ session, path, line, cwd }) {
    this.empty();
    const { asked } = this;
    const isRelative = cwd && !/^[/~]/.test(path);
    const file = await call("_nuncio/file/read", { sessionId: session, path: isRelative ? `${cwd}/${path}` : path });
    if (asked !== this.asked) return;
    this.title.textContent = file.name;
    if (file.text === undefined) fill(this.body, h("img", { class: "picture", src: `data:${file.mimeType};base64,${file.data}`, alt: file.name }));
    else this.draw(file.text, languageOf(file.name), line);
    if (!this.dialog.open) this.dialog.showModal();
    this.body.querySelector(".current")?.scrollIntoView({ block: "center" });
  }

  /** Draws the lines around `line`, with buttons for those before and after. */
  draw(text, language, line = 1) {
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    let from = Math.max(0, Math.min(line - 1, lines.length) - LINES_SHOWN / 2), to = Math.min(lines.length, from + LINES_SHOWN);
    const rows = h("tbody");
    const row = (index) => {
      const content = lines[index].replace(/\r$/, "");
      const shown = content.length > LINE_CHARS_MAX ? `${content.slice(0, LINE_CHARS_MAX)}…` : content;
      return h("tr", { class: index === line - 1 ? "current" : undefined }, h("td", { class: "number" }, index + 1), h("td", { class: "text" }, highlight(shown, language)));
    };
    const range = (start, end) => Array.from({ length: end - start }, (_, index) => row(start + index));
    const button = (label, does) => h("button", { type: "button", class: "quiet all", onclick: does }, label);
    const before = button(t`Show earlier lines`, () => {
      const start = Math.max(0, from - LINES_SHOWN);
      rows.prepend(...range(start, from));
      before.hidden = (from = start) === 0;
    });
    const after = button(t`Show more lines`, () => {
      const end = Math.min(lines.length, to + LINES_SHOWN);
      add(rows, range(to, end));
      after.hidden = (to = end) === lines.length;
    });
    before.hidden = from === 0;
    after.hidden = to === lines.length;
    add(rows, range(from, to));
    fill(this.body, before, h("div", { class: "diff" }, h("table", {}, rows)), after);
  }
}
