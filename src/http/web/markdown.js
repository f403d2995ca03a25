// Markdown as nodes, built from the tokens of tokens.js. All text is inserted as text.

import { add, copyIcon, exact, h } from "./dom.js";
import { highlight } from "./highlight.js";
import { placeLink, placeOf, placeOfSpan } from "./places.js";
import { t } from "./texts.js";
import { parse } from "./tokens.js";
import { decoded } from "./transport.js";

/** Maximum depth of elements within a block or a paragraph; deeper ones are omitted, not their text. */
const FRAMES_MAX = 30;

/** Draws the elements by the type of their tokens, from their children. */
const ELEMENTS = {
  // The paragraph of an item of a list without empty lines.
  paragraph: (children, { hidden }) => (hidden ? children : h("p", {}, children)),
  // Start at h3, because the page itself uses h1 and h2.
  heading: (children, { tag }) => h(`h${Math.min(6, Number(tag[1]) + 1)}`, { class: tag }, children),
  ordered_list: (children, token) => h("ol", { start: Number(token.attrGet("start") ?? 1) }, children),
  list_item: (children, { task }) => h("li", task ? { class: "has-task" } : {}, children),
  table: (children) => h("div", { class: "table", tabIndex: 0, role: "group", "aria-label": t`Table` }, h("table", {}, children)),
  th: (children, token) => h("th", { class: side(token) }, children),
  td: (children, token) => h("td", { class: side(token) }, children),
  link: (children, token) => link(token.attrGet("href"), token.attrGet("title"), children),
  s: (children) => h("del", {}, children),
};

const LEAVES = {
  text: ({ content }) => content,
  plain: ({ content }) => content,
  softbreak: () => "\n",
  hardbreak: () => h("br"),
  hr: () => h("hr"),
  code_inline: ({ content }) => codeSpan(content),
  code_block: ({ content }) => code(content.replace(/\n$/, "")),
  fence: ({ content, info }) => code(content.replace(/\n$/, ""), info.trim().split(/\s/, 1)[0]),
  inline: ({ children }) => build(children),
  // Images are not loaded: their addresses are links.
  image: (token) => link(token.attrGet("src"), token.attrGet("title"), [textOf(token.children)], "image"),
};

/** The side of a table's cell; undefined for the left side. */
const side = (token) => /(center|right)$/.exec(token.attrGet("style") ?? "")?.[1];

const textOf = (tokens) => tokens.map((token) => (token.children ? textOf(token.children) : token.type === "softbreak" ? "\n" : token.content)).join("");

/** A code span; one that names a file is a link. */
function codeSpan(text) {
  const place = placeOfSpan(text), code = h("code", {}, text);
  return place ? placeLink(place, code) : code;
}

function link(address, title, children, name) {
  const titled = (url) => (title ? `${title}\n${url}` : url);
  if (!/^https?:/i.test(address)) return Object.assign(placeLink(placeOf(decoded(address)), children, name), { title: titled(address) });
  const { href } = new URL(address);
  return h("a", { class: name, href, target: "_blank", rel: "noopener noreferrer", title: titled(href) }, children);
}

/** Takes the mark of a task from the start of an item of a list: `[ ] ` or `[x] `. */
function taskOf(tokens, index) {
  const text = tokens[index + 1]?.type === "paragraph_open" ? tokens[index + 2].children?.[0] : null;
  const task = text?.type === "text" && /^\[([ xX])\]\s+/.exec(text.content);
  if (!task) return null;
  text.content = text.content.slice(task[0].length);
  const isOpen = task[1] === " ";
  tokens[index + 2].mark = h("span", { class: "task", role: "img", "aria-label": isOpen ? t`open` : t`done` }, isOpen ? "☐" : "☑");
  return task;
}

/**
 * Builds nodes from tokens, with a frame for each open element. A tag of the text that is not closed
 * within its element, or was not opened there, is text.
 */
function build(tokens) {
  const frames = [{ children: [] }];
  const put = (...nodes) => frames.at(-1).children.push(...nodes);
  const asText = ({ type, content }) => (type === "tag_line" ? h("p", {}, content) : content);
  const closeTags = () => {
    while (frames.at(-1).token?.meta?.name) {
      const { token, children } = frames.pop();
      put(asText(token), ...children);
    }
  };
  tokens.forEach((token, index) => {
    const type = token.type.replace(/_(open|close)$/, "");
    if (type === "tag" || type === "tag_line") {
      const { name, isClose } = token.meta;
      if (!isClose && frames.length < FRAMES_MAX) frames.push({ token, children: [] });
      else if (isClose && frames.at(-1).token?.meta?.name === name) put(h(name, {}, frames.pop().children));
      else put(asText(token));
    } else if (token.nesting > 0) {
      if (type === "list_item") token.task = taskOf(tokens, index);
      const isFlat = frames.length >= FRAMES_MAX;
      frames.push({ token, isFlat, children: isFlat ? frames.at(-1).children : [] });
    } else if (token.nesting < 0) {
      closeTags();
      const { token: open, isFlat, children } = frames.pop();
      if (!isFlat) put(ELEMENTS[type] ? ELEMENTS[type](children, open) : h(open.tag, {}, children));
    } else {
      put(token.mark, LEAVES[type](token));
    }
  });
  closeTags();
  return frames[0].children;
}

/**
 * A block of code with a copy button. `isExact` makes every character visible, for permission
 * questions.
 */
export function code(text, language, isExact = false) {
  const copy = copyIcon(t`Copy the code`, () => text);
  const name = language && h("span", { class: "language" }, language.slice(0, 24));
  return h("div", { class: "code" }, h("div", { class: "bar" }, name, copy), h("pre", { tabIndex: 0 }, h("code", {}, isExact ? exact(text) : highlight(text, language))));
}

/** Splits tokens into the blocks of the text; `<details>` and its end belong to one block. */
function blocks(tokens) {
  const found = [];
  let level = 0, details = 0;
  for (const token of tokens) {
    const isTag = token.type === "tag_line";
    if (isTag && level === 0 && token.meta.isClose && details > 0) details--;
    else if (level === 0 && details === 0) found.push({ from: token.map[0], tokens: [] });
    found.at(-1).tokens.push(token);
    if (isTag && level === 0 && !token.meta.isClose) details++;
    level += token.nesting;
  }
  return found;
}

/** The index of the start of a line, counted from 0. Line ends are those of CommonMark. */
function startOf(text, line) {
  const ends = /\r\n?|\n/g;
  for (let at = 0; at < line; at++) ends.exec(text);
  return ends.lastIndex;
}

/** Draws a growing text: complete blocks are drawn once, only the last blocks are drawn again. */
export class Growing {
  constructor() {
    this.root = h("div", { class: "markdown" });
    this.begin();
  }

  begin() {
    Object.assign(this, { done: 0, tail: [], hasReferences: false });
    this.root.replaceChildren();
  }

  update(text, final) {
    const env = {};
    let tokens = parse(text.slice(this.done), env);
    this.hasReferences ||= Object.keys(env.references ?? {}).length > 0;
    // The definitions of links can be below their uses.
    if (final && this.hasReferences && this.done > 0) {
      this.begin();
      tokens = parse(text);
    }
    for (const node of this.tail) node.remove();
    const found = blocks(tokens);
    const drawn = found.map((one) => build(one.tokens).flat(Infinity).filter(Boolean));
    add(this.root, drawn);
    // The last two blocks may still change when more text arrives.
    const kept = final ? 0 : Math.max(0, found.length - 2);
    this.tail = drawn.slice(kept).flat();
    if (kept > 0) this.done += startOf(text.slice(this.done), found[kept].from);
  }
}
