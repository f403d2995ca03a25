// Collects the English texts of the extension and of the console, which are the keys of translations.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const web = join(root, "../../src/http/web");
const CLOSING = { '"': '"', "'": "'", "`": "`", "{": "}" };

/** Reads the files of a directory whose names have an ending. */
const sources = (directory, ending) => readdirSync(directory).filter((name) => name.endsWith(ending)).map((name) => readFileSync(join(directory, name), "utf8"));

/** Returns the texts of calls: `t("…")`. */
const calls = (source) => [...source.matchAll(/\bt\(\s*("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text));

/** Returns the index after the string, template or block that begins at an index. */
function endOf(source, start) {
  const close = CLOSING[source[start]];
  for (let at = start + 1; at < source.length; ) {
    const char = source[at];
    if (char === close) return at + 1;
    if (char === "\\") at += 2;
    else if (close === "}" && char in CLOSING) at = endOf(source, at);
    else if (close === "`" && source.startsWith("${", at)) at = endOf(source, at + 1);
    else at++;
  }
  throw new Error(`no end: ${source.slice(start, start + 80)}`);
}

/** Returns the key of the template that begins at an index: its text, with {0}, {1}… for values. */
function keyOf(source, start) {
  const end = endOf(source, start) - 1;
  let key = "", count = 0;
  for (let at = start + 1; at < end; ) {
    if (source.startsWith("${", at)) {
      key += `{${count++}}`;
      at = endOf(source, at + 1);
    } else {
      key += source[at++];
    }
  }
  if (key.includes("\\")) throw new Error(`a text with an escape: ${key}`);
  return key;
}

/** Returns the keys of tagged templates (src/http/web/texts.js). */
export const templates = (source) => [...source.matchAll(/(?<![\w$.`])(?:t|withNodes|english)`/g)].map(({ 0: tag, index }) => keyOf(source, index + tag.length - 1));

/**
 * Returns the texts and attributes of a page that `translatePage` finds, without keys and code. The
 * elements `noscript` and `#refused` are for pages without scripts.
 */
function pageTexts(html) {
  const [, body] = /<body[^>]*>([\s\S]*)<\/body>/.exec(html);
  const shown = body.replace(/<!--[\s\S]*?-->|<noscript>.*<\/noscript>|<p id="refused">.*<\/p>/g, "").replace(/<(kbd|code)>.*?<\/\1>/g, "<$1>");
  const found = [...shown.matchAll(/>([^<]+)</g), ...shown.matchAll(/ (?:title|aria-label|placeholder|data-reading)="([^"]*)"/g)];
  return found.map(([, text]) => text.trim()).filter((text) => /\p{L}/u.test(text) && text !== "nuncio");
}

/** Returns all texts, sorted. */
export function texts() {
  const found = [
    ...sources(join(root, "src"), ".ts").flatMap(calls),
    ...[...sources(web, ".js"), ...sources(join(root, "webview"), ".ts")].flatMap(templates),
    ...pageTexts(readFileSync(join(web, "index.html"), "utf8")),
  ];
  return [...new Set(found)].sort();
}
