// Markdown as nodes: blocks, then what stands in a line. Every piece of text goes in as text; of links only http(s) ones are links.

import { h, icon } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const ROW_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** Splits text into blocks, each `{type, from, …}`; `from` is the line it begins with. A block does not depend on those before it. */
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
      const close = new RegExp(`^ {0,3}${fence[1][0]}{${fence[1].length},}\\s*$`);
      while (++at < lines.length && !close.test(lines[at]));
      found.push({ type: "code", from, language: fence[2], lines: lines.slice(from + 1, at) });
      at++;
    } else if (heading) {
      found.push({ type: "heading", from, level: heading[1].length, text: heading[2] });
      at++;
    } else if (RULE.test(line)) {
      found.push({ type: "rule", from });
      at++;
    } else if (QUOTE.test(line)) {
      while (at < lines.length && QUOTE.test(lines[at])) at++;
      found.push({ type: "quote", from, lines: lines.slice(from, at).map((one) => one.replace(QUOTE, "")) });
    } else if (ITEM.test(line)) {
      at = endOfList(lines, at);
      found.push({ type: "list", from, lines: lines.slice(from, at) });
    } else if (line.includes("|") && ROW_RULE.test(lines[at + 1] || "") && lines[at + 1].includes("-")) {
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

const begins = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || (ITEM.test(line) && !/^\s*\d+[.)]/.test(line)) || /^\s*1[.)]\s/.test(line);

/** A list goes on over what is indented, and over one empty line when an item or something indented follows. */
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

export function render(text) {
  return blocks(text.split("\n")).map(block);
}

function block(one) {
  switch (one.type) {
    case "code":
      return code(one.lines.join("\n"), one.language);
    case "heading":
      // The page has its own first two.
      return h(`h${Math.min(6, one.level + 2)}`, { class: `h${one.level}` }, inline(one.text));
    case "rule":
      return h("hr");
    case "quote":
      return h("blockquote", {}, blocks(one.lines).map(block));
    case "list":
      return list(one.lines);
    case "table":
      return table(one.lines);
    default:
      return h("p", {}, inline(one.text));
  }
}

function list(lines) {
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
    const children = parts.map((part) => (part.type === "text" && !loose ? inline(part.text) : block(part)));
    const mark = task && h("span", { class: "task", role: "img", "aria-label": task[1] === " " ? "open" : "done" }, task[1] === " " ? "☐" : "☑");
    return h("li", task ? { class: "has-task" } : {}, mark, children);
  });
  return ordered ? h("ol", { start: parseInt(first[2], 10) }, nodes) : h("ul", {}, nodes);
}

function dedent(line, width) {
  let cut = 0;
  while (cut < width && line[cut] === " ") cut++;
  return line[0] === "\t" ? line.slice(1) : line.slice(cut);
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));

function table(lines) {
  const sides = cells(lines[1]).map((rule) => (/^:-+:$/.test(rule) ? "center" : /-:$/.test(rule) ? "right" : ""));
  const row = (line, name) => h("tr", {}, sides.map((side, index) => h(name, { class: side || undefined }, inline(cells(line)[index] ?? ""))));
  const body = lines.slice(2).map((line) => row(line, "td"));
  return h("div", { class: "table" }, h("table", {}, h("thead", {}, row(lines[0], "th")), h("tbody", {}, body)));
}

/** A block of code with a button that copies it. */
export function code(text, language) {
  const copy = h("button", { type: "button", class: "copy", title: "Copy", "aria-label": "Copy the code" }, icon("copy", 14));
  copy.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    copy.replaceChildren(icon("check", 14));
    setTimeout(() => copy.replaceChildren(icon("copy", 14)), 1200);
  });
  const name = language && h("span", { class: "language" }, language.slice(0, 24));
  return h("div", { class: "code" }, h("div", { class: "bar" }, name, copy), h("pre", { tabIndex: 0 }, h("code", {}, text)));
}

const SPANS = [
  [/^(`+)([^]*?[^`])\1(?!`)/, (m) => h("code", {}, m[2].replace(/^ (.*) $/s, "$1"))],
  [/^!?\[((?:[^\[\]\\]|\\.|\[[^\]]*\])*)\]\(\s*<?([^\s)>]+)>?(?:\s+["'(][^)]*)?\s*\)/, (m) => link(m[2], inline(m[1]), m[0])],
  [/^<(https?:\/\/[^\s>]+)>/, (m) => link(m[1], [m[1]], m[0])],
  [/^(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])/, (m) => link(m[1], [m[1]], m[0]), true],
  [/^(\*\*|__)(?=\S)((?:[^\\]|\\.)*?\S)\1/s, (m) => h("strong", {}, inline(m[2])), "_"],
  [/^\*(?=[^\s*])((?:[^\\*]|\\.)*?[^\s*])\*(?!\*)/s, (m) => h("em", {}, inline(m[1]))],
  [/^_(?=[^\s_])((?:[^\\_]|\\.)*?[^\s_])_(?!\w)/s, (m) => h("em", {}, inline(m[1])), true],
  [/^~~(?=\S)((?:[^\\]|\\.)*?\S)~~/s, (m) => h("del", {}, inline(m[1]))],
  [/^\\([\\`*_{}\[\]()#+\-.!|~<>])/, (m) => m[1]],
  [/^ {2,}\n|^\\\n/, () => h("br")],
];

const STARTS = /[`[!<*_~\\h ]/g;
const SPAN_CHARS_MAX = 4000;

/** What stands in lines, as nodes and strings. */
export function inline(text) {
  const out = [];
  let plain = 0, at = 0;
  while (at < text.length) {
    STARTS.lastIndex = at;
    const next = STARTS.exec(text);
    if (!next) break;
    at = next.index;
    const rest = text.slice(at, at + SPAN_CHARS_MAX);
    const inWord = /\w/.test(text[at - 1] || "");
    let taken = 0;
    for (const [pattern, make, apart] of SPANS) {
      if (inWord && (apart === true || (apart === "_" && rest[0] === "_"))) continue;
      const match = pattern.exec(rest);
      if (!match) continue;
      if (at > plain) out.push(text.slice(plain, at));
      out.push(make(match));
      taken = match[0].length;
      break;
    }
    at += taken || 1;
    if (taken) plain = at;
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

/** A text that grows: what is complete is made once, only its last blocks anew. */
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
    const nodes = found.map(block);
    this.root.append(...nodes);
    if (final || found.length < 3) {
      this.tail = nodes;
      return;
    }
    // The last two may still become something else.
    const kept = found.length - 2;
    this.tail = nodes.slice(kept);
    for (let line = 0; line < found[kept].from; line++) this.done += lines[line].length + 1;
  }
}
