// Places in files that texts name: links of Markdown, code spans such as `src/main.rs:42`, the paths
// of tool calls and diffs. The host opens them.

import { h } from "./dom.js";

const PATH_CHARS_MAX = 1000;
/** A path with a directory or a line: a name alone is often no file, such as `console.log`. */
const SPAN = /^(?:(?:~|\.{0,2})\/)?(?:[^\s/:'"`<>|*?(){}]+\/)*[^\s/:'"`<>|*?(){}]+\.[A-Za-z]\w{0,9}$/;
const LINES = /(?:#L(\d+)(?:-L?\d+)?|:(\d+)(?:[:-]\d+)?)$/;

/** Returns the place that a text names: `{path, line}`; the line is undefined if it names none. */
export function placeOf(text) {
  const found = LINES.exec(text);
  return { path: found ? text.slice(0, found.index) : text, line: found ? Number(found[1] ?? found[2]) : undefined };
}

/** Returns the place that a code span names, or null. */
export function placeOfSpan(text) {
  if (text.length > PATH_CHARS_MAX) return null;
  const place = placeOf(text);
  return SPAN.test(place.path) && (place.line || place.path.includes("/")) ? place : null;
}

/**
 * The attributes of an element that opens a place when it is clicked. `cwd`: the directory of its
 * path; otherwise that of the shown session.
 */
export const opens = ({ path, line, cwd }) => ({ "data-path": path, "data-line": line || undefined, "data-cwd": cwd, title: line ? `${path}:${line}` : path });

/** A link that opens a place. */
export const placeLink = (place, children, name = "") => h("a", { role: "link", tabIndex: 0, class: `place ${name}`.trim(), ...opens(place) }, children);

/** Calls `open({path, line, cwd})` when the user clicks an element that opens a place, or presses Enter. */
export function listen(open) {
  const take = (event) => {
    const node = event.target.closest?.("[data-path]");
    if (!node || event.defaultPrevented) return;
    event.preventDefault();
    const { path, line, cwd } = node.dataset;
    open({ path, ...(line ? { line: Number(line) } : {}), ...(cwd ? { cwd } : {}) });
  };
  addEventListener("click", take);
  // Buttons are clicked by the browser.
  addEventListener("keydown", (event) => event.key === "Enter" && event.target.matches?.("a[data-path]") && take(event));
}
