// Highlights code: comments, strings, numbers, keywords and calls, by a table of languages. Each
// text is read once from start to end.

import { h } from "./dom.js";

/** Longer texts, and what follows after this many spans, are not highlighted. */
const CHARS_MAX = 60_000;
const SPANS_MAX = 6000;

const words = (text) => new Set(text.split(" "));
const C = "auto break case char const continue default do double else enum extern float for goto if inline int long register return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false NULL";
const JAVA = "abstract boolean break byte case catch char class const continue default do double else enum extends final finally float for if implements import instanceof int interface long native new null package private protected public record return short static super switch synchronized this throw throws true false try var void volatile while yield";
const SCRIPT = "as async await break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of private protected public readonly return set static super switch this throw true try type typeof undefined var void while with yield";
const C_LIKE = { line: "//", open: "/*", close: "*/" };
const HASH = { line: "#" };

/**
 * Languages: `line` starts a comment, `open` and `close` enclose one; `multi` are the quotes of
 * strings with several lines, `char` says that `'` encloses one character, `plain` that it is text.
 */
const LANGUAGES = {
  js: { ...C_LIKE, multi: "`", keywords: words(SCRIPT) },
  rust: { ...C_LIKE, char: true, multi: '"', keywords: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while") },
  go: { ...C_LIKE, multi: "`", keywords: words("break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var") },
  c: { ...C_LIKE, keywords: words(`${C} class constexpr catch delete explicit export friend mutable namespace new noexcept nullptr operator override private protected public template this throw try typename using virtual`) },
  java: { ...C_LIKE, keywords: words(`${JAVA} as base bool companion data decimal delegate foreach fun get in internal is namespace object open operator out override readonly ref sealed set string using val virtual when where`) },
  swift: { ...C_LIKE, keywords: words("as associatedtype break case catch class continue default defer deinit do else enum extension false for func guard if import in init inout internal is let nil private protocol public repeat return self Self static struct subscript super switch throw throws true try typealias var where while") },
  php: { ...C_LIKE, keywords: words("abstract and array as break case catch class const continue declare default do echo else elseif empty endif enum extends final finally fn for foreach function global if implements instanceof interface isset match namespace new null or private protected public readonly return static switch throw trait true false try unset use var while yield") },
  python: { ...HASH, triple: true, keywords: words("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield") },
  ruby: { ...HASH, suffix: "[?!]?", keywords: words("alias and begin break case class def defined? do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require attr_accessor attr_reader") },
  sh: { ...HASH, multi: "\"'", spaced: true, keywords: words("if then else elif fi for while until do done case esac in function return local export set unset source exit cd echo test true false") },
  sql: { line: "--", open: "/*", close: "*/", fold: true, keywords: words("add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction union unique update using values view when where with") },
  lua: { line: "--", open: "--[[", close: "]]", keywords: words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while") },
  css: { open: "/*", close: "*/", keywords: words("important inherit initial none auto flex grid block inline absolute relative fixed sticky hidden solid transparent") },
  json: { ...C_LIKE, keywords: words("true false null") },
  toml: { ...HASH, spaced: true, triple: true, keywords: words("true false null yes no on off") },
  html: { open: "<!--", close: "-->", plain: true, tags: true, keywords: new Set() },
};

const NAMES = {
  js: "javascript jsx mjs cjs ts tsx typescript vue svelte", rust: "rs", go: "golang", c: "h cc cpp cxx hpp c++ objc m zig", java: "kt kts kotlin cs csharp c# scala groovy dart proto", python: "py pyi python3",
  ruby: "rb gemfile", sh: "bash zsh shell console fish dockerfile makefile make mk", json: "jsonc json5 jsonl", toml: "yaml yml ini conf cfg properties env", html: "xml svg xhtml htm", css: "scss less", sql: "psql mysql sqlite", lua: "", swift: "", php: "",
};
const BY_NAME = new Map(Object.entries(NAMES).flatMap(([name, others]) => [name, ...others.split(" ").filter(Boolean)].map((one) => [one, LANGUAGES[name]])));

/** The name of the language of a file, from the end of its path. */
export const languageOf = (path) => /([^./\\]+)$/.exec(path || "")?.[1] ?? "";

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

/** Builds the expression that finds the next token: one group for each kind of token. */
function pattern({ line, open, close, multi = "", triple, char, plain, spaced, tags, suffix = "" }) {
  const comments = [], strings = [];
  if (open) comments.push(`${escaped(open)}[^]*?(?:${escaped(close)}|$)`);
  // In a shell, `#` starts a comment only at the start of a word.
  if (line) comments.push(`${spaced ? "(?<![^\\s;(])" : ""}${escaped(line)}[^\\n]*`);
  if (triple) strings.push(`"""[^]*?(?:"""|$)`, `'''[^]*?(?:'''|$)`);
  for (const quote of multi) strings.push(quote === "'" ? `'[^']*(?:'|$)` : `${quote}(?:[^${quote}\\\\]|\\\\(?:[^]|$))*(?:${quote}|$)`);
  if (!multi.includes('"')) strings.push(`"(?:[^"\\\\\\n]|\\\\.)*"?`);
  if (char) strings.push(`'(?:[^'\\\\\\n]|\\\\[^\\n]{1,10}?)'`);
  else if (!plain && !multi.includes("'")) strings.push(`'(?:[^'\\\\\\n]|\\\\.)*'?`);
  const word = tags ? "<\\/?[A-Za-z][\\w:.-]*|\\/?>" : `[\\p{L}_$][\\p{L}\\p{N}_$]*${suffix}`;
  return new RegExp(`(${comments.join("|") || "(?!)"})|(${strings.join("|")})|(\\b\\d[\\w.]*)|(${word})`, "gu");
}

const KINDS = [null, "comment", "string", "number"];
const kindOfLine = (line) => (line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : line.startsWith("@@") || line.startsWith("***") ? "comment" : null);

/** The spans of a diff: its added and removed lines. */
function diffTokens(text) {
  return text.split(/(?<=\n)/).map((line) => [kindOfLine(line), line]);
}

/** Splits code into `[kind, text]`; the kind is null for a text without colour. */
export function tokens(text, name) {
  const lower = (name || "").toLowerCase();
  if (text.length > CHARS_MAX) return [[null, text]];
  if (lower === "diff" || lower === "patch") return diffTokens(text);
  const language = BY_NAME.get(lower);
  if (!language) return [[null, text]];
  const expression = new RegExp((language.pattern ??= pattern(language)));
  const found = [];
  let plain = 0;
  const add = (kind, from, to) => {
    if (from > plain) found.push([null, text.slice(plain, from)]);
    found.push([kind, text.slice(from, to)]);
    plain = to;
  };
  for (let token; found.length < SPANS_MAX && (token = expression.exec(text)); ) {
    const { index } = token, end = expression.lastIndex;
    const group = token.findIndex((part, at) => at > 0 && part !== undefined);
    if (group < 4) add(KINDS[group], index, end);
    else if (language.tags || language.keywords.has(language.fold ? token[4].toLowerCase() : token[4])) add("keyword", index, end);
    else if (text[end] === "(") add("call", index, end);
  }
  if (plain < text.length) found.push([null, text.slice(plain)]);
  return found;
}

/** Draws code as texts and coloured spans. */
export const highlight = (text, name) => tokens(text, name).map(([kind, part]) => (kind ? h("span", { class: `t-${kind}` }, part) : part));
