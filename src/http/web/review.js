// The changes of a turn or of a call in a permission question: each hunk is accepted, rejected or
// replaced by the user's own text.

import * as diff from "./diff.js";
import { exact, h } from "./dom.js";
import { host } from "./host.js";
import { t } from "./texts.js";

const linesOf = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
const slice = (text, start, count) => linesOf(text).slice(start - 1, start - 1 + count).join("");

/** The decisions about one question. `parts`: one for each hunk, or for a file without hunks. */
export class Review {
  /** `chose()` is called when the user chooses about a part. */
  constructor(ask, chose) {
    const { optionId } = ask.options.find(({ kind }) => kind === "allow_once");
    Object.assign(this, { chose, option: optionId, hasChoice: false });
    this.parts = ask.review.files.flatMap((file) => this.ofFile(file, ask.content.find((one) => one.type === "diff" && one.path === file.path)));
  }

  ofFile({ path, hunks }, change) {
    const before = change?.oldText ?? "", after = change?.newText ?? "";
    if (!hunks.length) return [{ path, before, after, isKnown: !!change }];
    // A question about one hunk shows only the lines of this hunk.
    const isWhole = hunks.length > 1 || linesOf(after).length !== hunks[0].newLines || linesOf(before).length !== hunks[0].oldLines;
    return hunks.map(({ hunk, oldStart, oldLines, newStart, newLines }) => ({
      path,
      hunk,
      before: isWhole ? slice(before, oldStart, oldLines) : before,
      after: isWhole ? slice(after, newStart, newLines) : after,
      first: [oldStart, newStart],
      isKnown: !!change,
    }));
  }

  /** The parts as nodes, each with its choices. */
  draw() {
    let path = null;
    return this.parts.map((part) => {
      const title = part.path === path ? null : h("p", { class: "path" }, exact((path = part.path)));
      return [title, this.part(part)];
    });
  }

  part(part) {
    const name = `part-${this.parts.indexOf(part)}`;
    const own = h("textarea", { class: "own", rows: 6, hidden: true, "aria-label": t`Your own text`, value: part.after });
    part.choice = "accept";
    part.text = () => own.value;
    const choice = (value, label) => {
      const input = h("input", { type: "radio", name, value, checked: value === "accept" });
      input.addEventListener("change", () => {
        part.choice = value;
        own.hidden = value !== "edit";
        this.hasChoice = true;
        this.chose();
        if (value === "edit") host.focus(own);
      });
      return h("label", {}, input, ` ${label}`);
    };
    const change = part.isKnown ? diff.draw(diff.compare(part.before, part.after, part.first), 400, true) : h("p", { class: "muted" }, t`The change cannot be shown`);
    const label = part.hunk ? t`Hunk ${part.hunk}` : t`File`;
    return h("div", { class: "part", role: "group", "aria-label": label }, change, h("div", { class: "choices" }, choice("accept", t`Accept`), choice("reject", t`Reject`), part.isKnown && choice("edit", t`Own text`)), own);
  }

  /** The answer with the choices about the parts. */
  answer() {
    const place = ({ path, hunk }) => (hunk ? { path, hunk } : { path });
    const chosen = (choice) => this.parts.filter((part) => part.choice === choice);
    return {
      optionId: this.option,
      hunks: chosen("reject").map((part) => ({ ...place(part), accept: false })),
      edits: chosen("edit").map((part) => ({ ...place(part), text: part.text() })),
    };
  }
}
