// Parses Markdown with markdown-it. HTML is text, except a few tags without attributes. The text is
// untrusted output of models: nesting and the length of a paragraph are limited.

import MarkdownIt from "./vendor/markdown-it.js";

/** Maximum nesting depth of blocks; anything deeper is a paragraph of plain text. */
const LEVELS_MAX = 20;
/** A longer paragraph is plain text. */
const INLINE_CHARS_MAX = 30_000;
/** Maximum depth of images within the texts of images. */
const IMAGES_MAX = 3;
const TAG = /^<(\/?)(br|kbd|sub|sup) *\/?>/i;
const TAG_CHARS_MAX = 12;
/** Characters that an entity does not produce: controls and what changes the direction of text. */
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}]/u;

/** Whether an address is that of a page, or a path. Other addresses are shown as text. */
const isKnown = (address) => (/^https?:/i.test(address) ? URL.canParse(address) : !/^(?:[a-z][a-z0-9+.-]*:|\/\/|\\)/i.test(address));

/** A block that is nested too deeply. */
function deep(state, first, last, silent) {
  if (state.level < LEVELS_MAX) return false;
  if (silent) return true;
  let end = first + 1;
  while (end < last && (state.isEmpty(end) || state.sCount[end] >= state.blkIndent)) end++;
  state.line = end;
  state.push("paragraph_open", "p", 1).map = [first, end];
  state.push("plain", "", 0).content = state.getLines(first, end, state.blkIndent, false).trim();
  state.push("paragraph_close", "p", -1);
  return true;
}

/** A line with `<details>`, `<summary>…</summary>`, both, or `</details>`. */
function details(state, first, _, silent) {
  const line = state.src.slice(state.bMarks[first] + state.tShift[first], state.eMarks[first]).trim();
  if (line[0] !== "<") return false;
  const lower = line.toLowerCase();
  const isClose = lower === "</details>", isOpen = lower.startsWith("<details>");
  const rest = isOpen ? line.slice("<details>".length).trim() : line;
  const ends = [rest.slice(0, "<summary>".length), rest.slice(-"</summary>".length)].map((end) => end.toLowerCase());
  const hasSummary = ends[0] === "<summary>" && ends[1] === "</summary>";
  if (!isClose && !hasSummary && !(isOpen && !rest)) return false;
  if (silent) return true;
  const map = [first, first + 1];
  if (isClose || isOpen) Object.assign(state.push("tag_line", "details", 0), { map, meta: { name: "details", isClose }, content: isClose ? line : "<details>" });
  if (hasSummary) {
    state.push("summary_open", "summary", 1).map = map;
    Object.assign(state.push("inline", "", 0), { content: rest.slice("<summary>".length, -"</summary>".length).trim(), map, children: [] });
    state.push("summary_close", "summary", -1);
  }
  state.line = first + 1;
  return true;
}

function tag(state, silent) {
  if (state.src[state.pos] !== "<") return false;
  const found = TAG.exec(state.src.slice(state.pos, state.pos + TAG_CHARS_MAX));
  if (!found) return false;
  const [content, close, written] = found, name = written.toLowerCase();
  if (!silent && name === "br") state.push("hardbreak", "br", 0);
  else if (!silent) Object.assign(state.push("tag", name, 0), { meta: { name, isClose: !!close }, content });
  state.pos += content.length;
  return true;
}

/** Shows entities of invisible characters as they are written. The name of a language has none. */
function entities({ tokens, md }) {
  for (const block of tokens) {
    if (block.type === "fence") block.info = md.utils.unescapeAll(block.info);
    for (const token of block.children ?? []) if (token.info === "entity" && HIDDEN.test(token.content)) token.content = token.markup;
  }
}

const parser = new MarkdownIt({ linkify: true });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false }).add("ftp:", null).add("mailto:", null).add("//", null);
parser.validateLink = isKnown;
parser.block.ruler.before("table", "deep", deep);
parser.block.ruler.before("paragraph", "details", details, { alt: ["paragraph"] });
parser.inline.ruler.at("html_inline", tag);
parser.core.ruler.after("inline", "entities", entities);

// The text of an image is parsed on its own: images within images would take quadratic time.
const { inline } = parser, parseSpans = inline.parse.bind(inline);
let depth = 0;
inline.parse = (text, md, env, tokens) => {
  if (text.length > INLINE_CHARS_MAX || depth >= IMAGES_MAX) return void (new inline.State(text, md, env, tokens).push("plain", "", 0).content = text);
  depth++;
  try {
    parseSpans(text, md, env, tokens);
  } finally {
    depth--;
  }
};

/** Parses a text into markdown-it's tokens. `env` receives the link references. */
export const parse = (text, env = {}) => parser.parse(text, env);
