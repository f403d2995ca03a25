// Markdown as nodes: blocks, then inline spans. All text is inserted as text; only http(s) URLs
// become links.

import { add, exact, h, icon } from "./dom.js";
import { highlight } from "./highlight.js";

// The text is untrusted model output: every expression runs in linear time, and nesting is limited.
const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const FENCE_END = /^ {0,3}(`{3,}|~{3,})$/;
const HEADING = /^ {0,3}(#{1,6})\s/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/s;
const QUOTE = /^ {0,3}> ?/;
/** Maximum nesting depth of blocks and of spans; anything deeper is shown as plain text. */
const LEVELS_MAX = 20;

const isRule = (line) => /^ {0,3}[-*_]/.test(line) && /^(?:-{3,}|\*{3,}|_{3,})$/.test(line.replace(/\s+/g, ""));
const isRowRule = (line) => line !== undefined && cells(line).every((cell) => /^:?-+:?$/.test(cell));

/** The text of a heading, without its closing signs. */
function headingText(line, signs) {
  const text = line.slice(signs).trim();
  let end = text.length;
  while (text[end - 1] === "#") end--;
  return end === 0 || /\s/.test(text[end - 1]) ? text.slice(0, end).trimEnd() : text;
}

/**
 * Splits text into blocks, each `{type, from, …}`; `from` is the index of the block's first line. A
 * block does not depend on the blocks before it.
 */
export function blocks(lines) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at], from = at;
    const fence = FENCE.exec(line), heading = HEADING.exec(line);
    if (!line.trim()) {
      at++;
      continue;
    }
    if (fence) {
      const closes = (end) => end && end[1][0] === fence[1][0] && end[1].length >= fence[1].length;
      while (++at < lines.length && !closes(FENCE_END.exec(lines[at].trimEnd())));
      found.push({ type: "code", from, language: fence[2].trim().split(/\s/, 1)[0], lines: lines.slice(from + 1, at) });
      at++;
    } else if (heading) {
      found.push({ type: "heading", from, level: heading[1].length, text: headingText(line, heading[0].length) });
      at++;
    } else if (isRule(line)) {
      found.push({ type: "rule", from });
      at++;
    } else if (QUOTE.test(line)) {
      while (at < lines.length && QUOTE.test(lines[at])) at++;
      found.push({ type: "quote", from, lines: lines.slice(from, at).map((one) => one.replace(QUOTE, "")) });
    } else if (ITEM.test(line)) {
      at = endOfList(lines, at);
      found.push({ type: "list", from, lines: lines.slice(from, at) });
    } else if (line.includes("|") && isRowRule(lines[at + 1])) {
      while (at < lines.length && lines[at].includes("|") && lines[at].trim()) at++;
      found.push({ type: "table", from, lines: lines.slice(from, at) });
    } else {
      at++;
      while (at < lines.length && lines[at].trim() && !begins(lines[at])) at++;
      found.push({ type: "text", from, text: lines.slice(from, at).join("\n") });
    }
  }
  return found;
}

const begins = (line) => FENCE.test(line) || HEADING.test(line) || isRule(line) || QUOTE.test(line) || (ITEM.test(line) && !/^\s*\d+[.)]/.test(line)) || /^\s*1[.)]\s/.test(line);

/**
 * The index of the line after a list. A list continues over indented lines, and over one empty line
 * if an item or an indented line follows.
 */
function endOfList(lines, at) {
  const ordered = /\d/.test(ITEM.exec(lines[at])[2]);
  for (at++; at < lines.length; at++) {
    const line = lines[at];
    if (!line.trim()) {
      const next = lines[at + 1];
      if (next === undefined || !next.trim() || !(ITEM.test(next) || /^\s{2,}/.test(next))) return at;
      continue;
    }
    if (/^\s{2,}/.test(line)) continue;
    const item = ITEM.exec(line);
    if (item ? /\d/.test(item[2]) !== ordered && !item[1] : begins(line)) return at;
  }
  return at;
}

/**
 * The context of a block: its depth, and how many characters may still be searched without a match
 * in the whole text.
 */
const top = () => ({ level: 0, search: { left: SEARCH_CHARS_MAX } });
const below = ({ level, search }) => ({ level: level + 1, search });

function block(one, place) {
  if (place.level >= LEVELS_MAX && (one.type === "quote" || one.type === "list")) return h("p", {}, one.lines.join("\n"));
  switch (one.type) {
    case "code":
      return code(one.lines.join("\n"), one.language);
    case "heading":
      // Start at h3, because the page itself uses h1 and h2.
      return h(`h${Math.min(6, one.level + 2)}`, { class: `h${one.level}` }, inline(one.text, place));
    case "rule":
      return h("hr");
    case "quote":
      return h("blockquote", {}, blocks(one.lines).map((inner) => block(inner, below(place))));
    case "list":
      return list(one.lines, below(place));
    case "table":
      return table(one.lines, place);
    default:
      return h("p", {}, inline(one.text, place));
  }
}

function list(lines, place) {
  const first = ITEM.exec(lines[0]);
  const indent = first[1].length, ordered = /\d/.test(first[2]);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent + 1) items.push({ width: item[1].length + item[2].length + 1, lines: [item[4]] });
    else items[items.length - 1].lines.push(dedent(line, items[items.length - 1].width));
  }
  const nodes = items.map(({ lines: inner }) => {
    const task = /^\[([ xX])\]\s+/.exec(inner[0]);
    if (task) inner[0] = inner[0].slice(task[0].length);
    const parts = blocks(inner);
    const loose = inner.some((line, index) => !line.trim() && index < inner.length - 1);
    const children = parts.map((part) => (part.type === "text" && !loose ? inline(part.text, place) : block(part, place)));
    const mark = task && h("span", { class: "task", role: "img", "aria-label": task[1] === " " ? "open" : "done" }, task[1] === " " ? "☐" : "☑");
    // Put the check mark on the same line as the text, even if the text is a paragraph.
    if (mark && children[0]?.tagName === "P") children[0].prepend(mark);
    else if (mark) children.unshift(mark);
    return h("li", task ? { class: "has-task" } : {}, children);
  });
  return ordered ? h("ol", { start: parseInt(first[2], 10) }, nodes) : h("ul", {}, nodes);
}

function dedent(line, width) {
  let cut = 0;
  while (cut < width && line[cut] === " ") cut++;
  return line[0] === "\t" ? line.slice(1) : line.slice(cut);
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));

function table(lines, place) {
  const sides = cells(lines[1]).map((rule) => (/^:-+:$/.test(rule) ? "center" : /-:$/.test(rule) ? "right" : ""));
  const row = (line, name) => {
    const own = cells(line).slice(0, sides.length), missing = sides.length - own.length;
    return h("tr", {}, own.map((cell, index) => h(name, { class: sides[index] || undefined }, inline(cell, place))), missing > 0 && h(name, { colSpan: missing }));
  };
  const body = lines.slice(2).map((line) => row(line, "td"));
  return h("div", { class: "table", tabIndex: 0, role: "group", "aria-label": "Table" }, h("table", {}, h("thead", {}, row(lines[0], "th")), h("tbody", {}, body)));
}

/**
 * A block of code with a copy button. `isExact` makes every character visible, for permission
 * questions.
 */
export function code(text, language, isExact = false) {
  const copy = h("button", { type: "button", class: "copy", title: "Copy", "aria-label": "Copy the code" }, icon("copy", 14));
  copy.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    copy.replaceChildren(icon("check", 14));
    setTimeout(() => copy.replaceChildren(icon("copy", 14)), 1200);
  });
  const name = language && h("span", { class: "language" }, language.slice(0, 24));
  return h("div", { class: "code" }, h("div", { class: "bar" }, name, copy), h("pre", { tabIndex: 0 }, h("code", {}, isExact ? exact(text) : highlight(text, language))));
}

/** A code span ends at the next run of backticks of the same length. */
function codeSpan(rest) {
  const open = /^`+/.exec(rest)[0].length;
  const runs = /`+/g;
  runs.lastIndex = open;
  for (let run; (run = runs.exec(rest)); ) {
    if (run[0].length === open) return [rest.slice(0, runs.lastIndex), rest.slice(open, run.index)];
  }
  return null;
}

const find = (pattern) => (rest) => pattern.exec(rest);
const LINK = [find(/^!?\[((?:[^\[\]\\]|\\.|\[[^\]]*\])*)\]\(\s*<?([^\s)>]+)>?(?:\s+(?:["'(][^)]*)?)?\)/), (m, place) => link(m[2], inline(m[1], place), m[0])];
const EMPHASIS = [emphasis, ([, inner, strong], place) => h(strong ? "strong" : "em", {}, inline(inner, place))];
/** Maximum number of sign runs examined for one emphasis. */
const RUNS_MAX = 60;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—", ndash: "–", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", bull: "•", middot: "·", times: "×", larr: "←", rarr: "→", deg: "°" };

/** The character of an entity; null for control and invisible characters. */
function entity(rest) {
  const found = /^&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/.exec(rest);
  if (!found) return null;
  const number = found[1] ? parseInt(found[1], 10) : found[2] ? parseInt(found[2], 16) : 0;
  const char = found[3] ? Object.hasOwn(ENTITIES, found[3]) && ENTITIES[found[3]] : number <= 0x10ffff && String.fromCodePoint(number);
  return char && !/[\p{Cc}\p{Cf}\p{Cs}]/u.test(char) ? [found[0], char] : null;
}

/**
 * Parses emphasis at the start of the text: `[whole, inner, is strong]`. Runs of the same sign
 * within it open and close others (CommonMark, section 6.2, without its rule of three); escaped
 * characters and code are skipped.
 */
function emphasis(rest) {
  const sign = rest[0], length = runOf(rest, 0);
  if (length > 3 || !rest[length] || /\s/.test(rest[length])) return null;
  for (const outer of length === 3 ? [2, 1] : [length]) {
    const end = endOfEmphasis(rest, sign, length, outer);
    if (end > 0) return [rest.slice(0, end), rest.slice(outer, end - outer), outer === 2];
  }
  return null;
}

function runOf(text, at) {
  let end = at;
  while (text[end] === text[at]) end++;
  return end - at;
}

/** The end of the outer emphasis of the first run; 0 if it is not closed. */
function endOfEmphasis(rest, sign, length, outer) {
  const open = length > outer ? [outer, length - outer] : [outer], first = open.length;
  let isNested = first > 1;
  const signs = sign === "*" ? /\\.?|`+|\*+/gs : /\\.?|`+|_+/gs;
  signs.lastIndex = length;
  for (let found, runs = 0; runs < RUNS_MAX && (found = signs.exec(rest)); runs++) {
    const at = found.index;
    if (rest[at] === "`") signs.lastIndex += (codeSpan(rest.slice(at))?.[0].length ?? found[0].length) - found[0].length;
    if (rest[at] !== sign) continue;
    const run = found[0].length, before = rest[at - 1], after = rest[at + run] ?? " ";
    const isWord = (char) => sign === "_" && /\w/.test(char);
    const closes = !/\s/.test(before) && !isWord(after), opens = !/\s/.test(after) && !isWord(before);
    const same = open.lastIndexOf(run);
    let left = run;
    isNested &&= open.length >= first;
    // The first run has the other nesting order, which the caller tries next.
    if (closes && same === 0 && isNested) return 0;
    if (closes && same >= 0) {
      open.length = same;
      left = 0;
    } else if (closes && !opens) {
      while (open.length && open.at(-1) <= left) left -= open.pop();
    } else if (opens && run < 3 && open.length < LEVELS_MAX) {
      open.push(run);
    }
    if (!open.length) return at + run - left;
  }
  return 0;
}

/**
 * Kinds of spans by their first character. Spans with a character in WORDS_APART cannot start
 * within a word.
 */
const SPANS = {
  "`": [[codeSpan, (m) => h("code", {}, m[1].replace(/^ (.*) $/s, "$1"))]],
  "!": [LINK],
  "[": [LINK],
  "&": [[entity, (m) => m[1]]],
  "<": [[find(/^<br *\/?>/i), () => h("br")], [find(/^<(https?:\/\/[^\s>]+)>/), (m) => link(m[1], [m[1]], m[0])]],
  "h": [[find(/^(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])/), (m) => link(m[1], [m[1]], m[0])]],
  "*": [EMPHASIS],
  "_": [EMPHASIS],
  "~": [[find(/^~~(?=\S)((?:[^\\]|\\.)*?\S)~~/s), (m, place) => h("del", {}, inline(m[1], place))]],
  "\\": [[find(/^\\([\\`*_{}\[\]()#+\-.!|~<>])/), (m) => m[1]], [find(/^\\\n/), () => h("br")]],
  " ": [[find(/^ {2,}\n/), () => h("br")]],
};

const WORDS_APART = "h_";
const STARTS = /`+|!\[|\[|<|&|\*+|_+|~~|\\| {2,}|http/g;
const SPAN_CHARS_MAX = 4000;
/**
 * Maximum number of characters searched for closing signs that do not exist. Beyond the limit, the
 * rest is plain text.
 */
const SEARCH_CHARS_MAX = 4_000_000;

/** Inline text as nodes and strings. */
export function inline(text, at = top()) {
  if (at.level >= LEVELS_MAX) return [text];
  const { search } = at, place = below(at);
  const starts = new RegExp(STARTS), out = [];
  let plain = 0;
  for (let start; search.left > 0 && (start = starts.exec(text)); ) {
    const { index } = start, first = text[index];
    if (WORDS_APART.includes(first) && /\w/.test(text[index - 1] || "")) continue;
    const rest = text.slice(index, index + SPAN_CHARS_MAX);
    let match = null;
    for (const [seek, make] of SPANS[first]) {
      match = seek(rest);
      if (!match) continue;
      if (index > plain) out.push(text.slice(plain, index));
      out.push(make(match, place));
      plain = starts.lastIndex = index + match[0].length;
      break;
    }
    if (!match && !" \\&".includes(first)) search.left -= rest.length;
  }
  if (plain < text.length) out.push(text.slice(plain));
  return out;
}

function link(address, children, source) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return source;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return source;
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href }, children);
}

/** Draws a growing text: complete blocks are drawn once, only the last blocks are drawn again. */
export class Growing {
  constructor() {
    this.root = h("div", { class: "markdown" });
    this.done = 0;
    this.tail = [];
  }

  update(text, final) {
    const lines = text.slice(this.done).split("\n");
    const found = blocks(lines);
    for (const node of this.tail) node.remove();
    const place = top();
    const nodes = found.map((one) => block(one, place));
    add(this.root, nodes);
    if (final || found.length < 3) {
      this.tail = nodes;
      return;
    }
    // The last two blocks may still change when more text arrives.
    const kept = found.length - 2;
    this.tail = nodes.slice(kept);
    for (let line = 0; line < found[kept].from; line++) this.done += lines[line].length + 1;
  }
}
