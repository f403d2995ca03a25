// JSON values as readable nodes: the input of a tool call, and the results of hosted agents, which
// often report JSON.

import { h } from "./dom.js";
import { code } from "./markdown.js";
import { t } from "./texts.js";

const CHARS_MAX = 100_000;
const LEVELS_MAX = 5;
const ENTRIES_MAX = 200;

/** The object or list that a text consists of; undefined for any other text. */
export function parsed(text) {
  if (text.length > CHARS_MAX || !/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value) => typeof value === "object" && value !== null;

/** Draws a value: an object as its fields, a list of objects as a list, a text as it is. */
export function draw(value, level = 0) {
  if (typeof value === "string") return value.includes("\n") ? h("pre", { class: "output", tabIndex: 0 }, value) : h("span", { class: "value" }, value);
  if (!isObject(value)) return h("span", { class: "value" }, String(value));
  const texts = textsOf(value);
  if (texts !== null) return draw(texts, level);
  const entries = Object.entries(value);
  if (level >= LEVELS_MAX || entries.length > ENTRIES_MAX) return code(JSON.stringify(value, null, 2));
  if (!entries.length) return h("span", { class: "value muted" }, t`none`);
  if (!Array.isArray(value)) return h("dl", { class: "fields" }, entries.map(([name, inner]) => h("div", {}, h("dt", {}, name), h("dd", {}, draw(inner, level + 1)))));
  if (!value.some(isObject)) return draw(value.join(value.some((one) => String(one).length > 30) ? "\n" : ", "), level);
  return h("ol", { class: "fields" }, value.map((inner) => h("li", {}, draw(inner, level + 1))));
}

/** The texts of a list of text blocks, as in results of MCP tools; null for other values. */
function textsOf(value) {
  const list = Array.isArray(value) ? value : value.content;
  const isText = (one) => isObject(one) && one.type === "text" && typeof one.text === "string";
  return Array.isArray(list) && list.length > 0 && list.every(isText) ? list.map((one) => one.text).join("\n") : null;
}
