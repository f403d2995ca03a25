// A unified diff as a list of files. Each file is drawn when it is opened, and in pieces.

import { coloured, pair, row } from "./diff.js";
import { add, h, icon } from "./dom.js";
import { placeLink } from "./places.js";
import { t } from "./texts.js";

const FILES_SHOWN = 200;
const OPEN_LINES_MAX = 300;
const FIRST_LINES = 400;
const MORE_LINES = 2000;
const LINE_CHARS_MAX = 2000;

/** Decodes a path that git quoted: `"a\303\244"`. */
function unquoted(path) {
  if (!path.startsWith('"')) return path;
  const bytes = [];
  const escapes = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11 };
  for (const [one, octal, char] of path.slice(1).replace(/"$/, "").matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/gs)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else if (char) bytes.push(escapes[char] ?? char.charCodeAt(0));
    else bytes.push(...new TextEncoder().encode(one));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** The path in a line such as `+++ b/PATH`; null for /dev/null. */
function pathOf(text) {
  const path = unquoted(text.replace(/\t$/, ""));
  return path === "/dev/null" ? null : path.replace(/^[ab]\//, "");
}

/** The path of both sides of `diff --git a/PATH b/PATH`, if they are equal. */
function samePath(line) {
  const names = line.slice("diff --git ".length);
  const half = names.slice(0, (names.length - 1) / 2);
  return pathOf(half) === pathOf(names.slice(half.length + 1)) ? pathOf(half) : null;
}

/** Calls `each(line, end)` for the lines of a part of a text; `end` is the index after the line. */
function eachLine(text, from, to, each) {
  for (let at = from; at < to; ) {
    const found = text.indexOf("\n", at);
    const end = found < 0 || found >= to ? to : found;
    if (each(text.slice(at, end), end + 1) === false) return;
    at = end + 1;
  }
}

/**
 * Parses the output of `git diff`: `{path, before, word, isDeleted, added, removed, lines, from, to}`
 * for each file. `from` and `to` are the place of its hunks in the text, `word` is the change of the
 * file in the user's language.
 */
export function parse(text) {
  const files = [];
  let file = null, old = 0, now = 0;
  eachLine(text, 0, text.length, (line, end) => {
    if (old > 0 || now > 0) {
      const sign = line[0];
      file.to = Math.min(end, text.length);
      file.lines++;
      if (sign !== "+" && sign !== "\\") old--;
      if (sign !== "-" && sign !== "\\") now--;
      if (sign === "+") file.added++;
      if (sign === "-") file.removed++;
      return;
    }
    const hunk = file && /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (hunk) {
      [old, now] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      file.from ??= end - line.length - 1;
      file.to = Math.min(end, text.length);
    } else if (line.startsWith("diff --git ")) {
      files.push((file = { path: samePath(line), before: null, word: "", isDeleted: false, added: 0, removed: 0, lines: 0, from: null, to: null }));
    } else if (!file) {
      return;
    } else if (line.startsWith("+++ ")) {
      file.path = pathOf(line.slice(4)) ?? file.path;
    } else if (line.startsWith("--- ")) {
      file.path ??= pathOf(line.slice(4));
    } else if (line.startsWith("rename from ")) {
      file.before = unquoted(line.slice(12));
    } else if (line.startsWith("rename to ")) {
      Object.assign(file, { path: unquoted(line.slice(10)), word: t`renamed` });
    } else if (line.startsWith("new file")) {
      file.word = t`new`;
    } else if (line.startsWith("deleted file")) {
      Object.assign(file, { word: t`deleted`, isDeleted: true });
    } else if (line.startsWith("Binary files") || line.startsWith("GIT binary")) {
      file.word = [file.word, t`binary`].filter(Boolean).join(", ");
    } else if (line.startsWith("new mode ")) {
      file.word ||= t`mode ${line.slice(9)}`;
    }
  });
  return files;
}

/**
 * Reads up to `count` lines of a file from a place in its hunks: `{lines, next}`. A line with the
 * sign "@" starts a hunk.
 */
function linesFrom(text, file, place, count) {
  const lines = [];
  let { at, old, now } = place;
  eachLine(text, at, file.to, (line, end) => {
    if (lines.length >= count) return false;
    at = end;
    const sign = line[0] ?? " ";
    const hunk = sign === "@" && /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/.exec(line);
    if (hunk) {
      if (old || now) lines.push([sign, hunk[3].slice(0, 120) || "⋯"]);
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
    } else if (sign !== "\\") {
      const content = line.length > LINE_CHARS_MAX ? `${line.slice(1, LINE_CHARS_MAX)}…` : line.slice(1);
      lines.push([sign, content, sign === "+" ? null : old, sign === "-" ? null : now]);
      if (sign !== "+") old++;
      if (sign !== "-") now++;
    }
  });
  return { lines, next: { at, old, now } };
}

/** Draws the first lines of a file, with a button for more. */
function hunks(text, file, cwd) {
  const where = file.isDeleted ? null : h("p", { class: "muted path" }, placeLink({ path: file.path, cwd }, t`Open the file`));
  if (file.from === null) return [where, h("p", { class: "muted" }, file.word || t`No changed lines`)];
  const body = h("tbody"), show = coloured(file.path);
  const more = h("button", { type: "button", class: "quiet all" });
  let drawn = 0, place = { at: file.from, old: 0, now: 0 };
  const draw = (count) => {
    const { lines, next } = linesFrom(text, file, place, count);
    add(body, lines.map((line, index) => (line[0] === "@" ? h("tr", { class: "gap" }, h("td", { colSpan: 4 }, line[1])) : row(line, pair(lines, index), show))));
    drawn += lines.length;
    place = next;
    more.hidden = place.at >= file.to;
    more.textContent = t`Show more lines (about ${Math.max(1, file.lines - drawn)} are left)`;
  };
  more.addEventListener("click", () => draw(MORE_LINES));
  draw(FIRST_LINES);
  return [where, h("div", { class: "diff", tabIndex: 0, role: "group", "aria-label": t`Changed lines of ${file.path}` }, h("table", {}, body)), more];
}

/** Draws the sums of added and removed lines. */
export const sums = ({ added, removed }) => [added > 0 && h("span", { class: "plus" }, `+${added}`), added > 0 && removed > 0 && " ", removed > 0 && h("span", { class: "minus" }, `−${removed}`)];

function fileNode(text, file, isOpen, cwd) {
  const name = file.before ? `${file.before} → ${file.path}` : file.path || "?";
  const summary = h("summary", { title: name }, h("span", { class: "fold" }, icon("chevron", 14)), h("span", { class: "name" }, h("bdi", {}, name)), file.word && h("span", { class: "muted word" }, file.word), h("span", { class: "sums" }, sums(file)));
  const node = h("details", { class: "file" }, summary);
  const draw = () => node.open && node.childElementCount === 1 && add(node, [hunks(text, file, cwd)]);
  node.addEventListener("toggle", draw);
  node.open = isOpen;
  draw();
  return node;
}

/**
 * Draws the files of a diff, whose paths are relative to `cwd`. The first files are open, as long as
 * they are short together.
 */
export function draw(text, files, cwd) {
  let left = OPEN_LINES_MAX;
  const root = h("div", { class: "files" });
  const nodes = (from) => files.slice(from, from + FILES_SHOWN).map((file) => fileNode(text, file, from === 0 && (left -= file.lines) > 0, cwd));
  const page = (from) => {
    add(root, nodes(from));
    const rest = files.length - from - FILES_SHOWN;
    if (rest <= 0) return;
    const more = h("button", { type: "button", class: "quiet all" }, t`Show more files (${rest} are left)`);
    more.addEventListener("click", () => {
      more.remove();
      page(from + FILES_SHOWN);
    });
    root.append(more);
  };
  page(0);
  return root;
}
