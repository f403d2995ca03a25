// The difference of two texts, by lines, as nodes.

import { add, exact, h } from "./dom.js";
import { highlight, languageOf } from "./highlight.js";
import { t } from "./texts.js";

const CONTEXT = 3;
const EDITS_MAX = 1500;

/**
 * The lines of both texts, in order: `[sign, text, oldNumber, newNumber]` with the signs " ", "-",
 * "+". `first`: the numbers of the first lines.
 */
export function compare(before, after, first = [1, 1]) {
  const a = split(before), b = split(after);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const out = [];
  const same = (i, j) => out.push([" ", a[i], i + first[0], j + first[1]]);
  for (let i = 0; i < start; i++) same(i, i);
  for (const [sign, i, j] of script(a.slice(start, a.length - end), b.slice(start, b.length - end))) {
    if (sign === " ") same(start + i, start + j);
    else if (sign === "-") out.push(["-", a[start + i], start + i + first[0], null]);
    else out.push(["+", b[start + j], null, start + j + first[1]]);
  }
  for (let i = end; i > 0; i--) same(a.length - i, b.length - i);
  return out;
}

function split(text) {
  if (!text) return [];
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

/** Myers' shortest edit script. For texts that differ too much, one removal and one addition. */
function script(a, b) {
  const max = Math.min(a.length + b.length, EDITS_MAX);
  const reach = new Map([[1, 0]]), trace = [];
  let found = -1;
  search: for (let d = 0; d <= max; d++) {
    trace.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && reach.get(k - 1) < reach.get(k + 1)) ? reach.get(k + 1) : reach.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) {
        found = d;
        break search;
      }
    }
    if (d > 300 && d * d > 400_000) break;
  }
  if (found < 0) return [...a.map((_, i) => ["-", i, 0]), ...b.map((_, j) => ["+", 0, j])];
  const steps = [];
  let x = a.length, y = b.length;
  for (let d = found; d >= 0; d--) {
    const v = trace[d], k = x - y;
    const down = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : v.get(from);
    const startX = d === 0 ? 0 : down ? fromX : fromX + 1, startY = startX - k;
    while (x > startX && y > startY) steps.push([" ", --x, --y]);
    if (d > 0) steps.push(down ? ["+", x, --y] : ["-", --x, y]);
  }
  return steps.reverse();
}

/** Returns what draws a line of a file. */
export function coloured(path) {
  const language = languageOf(path);
  return (text) => highlight(text, language);
}

/** How many lines were added and removed. */
export function count(lines) {
  return { added: lines.filter(([sign]) => sign === "+").length, removed: lines.filter(([sign]) => sign === "-").length };
}

/**
 * A table of the changed lines with some lines around them. At most `limit` rows; a button shows
 * the rest. `isExact` makes every character visible, for permission questions; otherwise the lines
 * are highlighted as those of `path`.
 */
export function draw(lines, limit = 60, isExact = false, path = "") {
  const show = isExact ? exact : coloured(path);
  if (isExact && lines.length && lines.every(([, text]) => text.endsWith("\r"))) {
    const texts = lines.map(([sign, text, ...numbers]) => [sign, text.slice(0, -1), ...numbers]);
    return h("div", {}, draw(texts, limit, isExact, path), h("p", { class: "muted" }, t`All lines end with CRLF.`));
  }
  const shown = new Array(lines.length).fill(false);
  lines.forEach(([sign], index) => {
    if (sign === " ") return;
    for (let near = Math.max(0, index - CONTEXT); near <= Math.min(lines.length - 1, index + CONTEXT); near++) shown[near] = true;
  });
  const rows = [];
  let gap = false;
  lines.forEach((line, index) => {
    if (!shown[index]) {
      gap = true;
      return;
    }
    if (gap && rows.length) rows.push(h("tr", { class: "gap" }, h("td", { colSpan: 4 }, "⋯")));
    gap = false;
    rows.push(row(line, pair(lines, index), show));
  });
  const body = h("tbody", {}, rows.slice(0, limit));
  const table = h("div", { class: "diff", tabIndex: 0, role: "group", "aria-label": t`Changed lines` }, h("table", {}, body));
  if (rows.length <= limit) return table;
  const all = h("button", { type: "button", class: "quiet all" }, t`Show all ${rows.length} lines`);
  all.addEventListener("click", () => {
    add(body, rows.slice(limit));
    all.remove();
  });
  return h("div", {}, table, all);
}

/**
 * The counterpart of a changed line, if a single line replaces a single line. The difference
 * between the two lines is marked.
 */
export function pair(lines, index) {
  const [sign] = lines[index];
  const other = sign === "-" ? index + 1 : sign === "+" ? index - 1 : -1;
  if (other < 0 || !"-+".includes(lines[other]?.[0] ?? " ") || lines[other][0] === sign) return null;
  const outer = lines[sign === "-" ? index - 1 : index + 1], beyond = lines[sign === "-" ? index + 2 : index - 2];
  return outer?.[0] === sign || beyond?.[0] === lines[other][0] ? null : lines[other][1];
}

const SIGNS = { "-": ["removed", t`removed`], "+": ["added", t`added`], " ": [undefined, ""] };

/**
 * Draws a line as a row of the table. `twin` is its counterpart, or null; `show` draws its text.
 */
export function row([sign, text, before, after], twin, show) {
  const [name, word] = SIGNS[sign];
  const code = h("td", { class: "text" }, word && h("span", { class: "hidden" }, `${word}: `), twin === null ? show(text) : marked(text, twin, show));
  return h("tr", { class: name }, h("td", { class: "number old" }, before), h("td", { class: "number" }, after), h("td", { class: "sign", "aria-hidden": "true" }, sign), code);
}

function marked(text, twin, show) {
  let start = 0, end = 0;
  while (start < text.length && start < twin.length && text[start] === twin[start]) start++;
  while (end < text.length - start && end < twin.length - start && text[text.length - 1 - end] === twin[twin.length - 1 - end]) end++;
  const middle = text.slice(start, text.length - end);
  if (start + end < text.length / 3) return show(text);
  return [show(text.slice(0, start)), middle && h("mark", {}, show(middle)), show(text.slice(text.length - end))];
}
