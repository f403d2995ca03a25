// Creates elements. The console never parses HTML: text always stays text.

import { t } from "./texts.js";

/**
 * Creates an element. `props`: `class`, `on…` listeners, `data` and ARIA as attributes, the rest as
 * properties. Falsy children are left out.
 */
export function h(name, props, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key.includes("-") || key === "role" || key === "for" || key === "popover") node.setAttribute(key, value);
    else node[key] = value;
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child || child === 0) node.append(child.nodeType ? child : String(child));
  }
}

/** Replaces all children. */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
}

const SHAPES = {
  chevron: "M6 4l4 4-4 4",
  down: "M8 3v10M3.5 8.5L8 13l4.5-4.5",
  up: "M8 13V3M3.5 7.5L8 3l4.5 4.5",
  check: "M3 8.5l3.2 3.2L13 5",
  cross: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  clip: "M13 7.5l-5.3 5.3a3 3 0 01-4.3-4.3l5.8-5.8a2 2 0 012.9 2.9l-5.6 5.6a1 1 0 01-1.4-1.4L9.8 5",
  open: "M9.5 3H13v3.5M13 3L7.5 8.5M11.5 9.5V12a1 1 0 01-1 1H4a1 1 0 01-1-1V5.5a1 1 0 011-1h2.5",
  copy: "M5.5 5.5v-2a1 1 0 011-1h6a1 1 0 011 1v6a1 1 0 01-1 1h-2M3.5 5.5h6a1 1 0 011 1v6a1 1 0 01-1 1h-6a1 1 0 01-1-1v-6a1 1 0 011-1z",
  folder: "M2 4.5a1 1 0 011-1h3l1.5 1.7H13a1 1 0 011 1v6a1 1 0 01-1 1H3a1 1 0 01-1-1z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  branch: "M5 4.5v7M5 4.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM5 14.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM11 6a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM11 6c0 3-6 2.5-6 5.5",
  diff: "M4 2.5h8v11H4zM6 5.5h4M8 3.5v4M6 10.5h4",
  compare: "M3 3h4v10H3zM9 3h4v10H9z",
  bell: "M4 11.5V7a4 4 0 018 0v4.5l1 1H3zM7 14h2",
  sliders: "M2.5 5h6M11.5 5h2M10 3.5v3M2.5 11h2M7.5 11h6M6 9.5v3",
  keys: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.3h6",
  read: "M4 2.5h5.5L12 5v8.5H4zM6.3 8h3.4M6.3 10.5h3.4",
  edit: "M3 13l.6-2.7 7-7 2.1 2.1-7 7z",
  search: "M7 11.5a4.5 4.5 0 100-9 4.5 4.5 0 000 9zM10.3 10.3l3.2 3.2",
  execute: "M3 4.5L6.5 8 3 11.5M8 12h5",
  think: "M4 5h8M4 8h8M4 11h5",
  fetch: "M8 13.5a5.5 5.5 0 100-11 5.5 5.5 0 000 11zM2.5 8h11M8 2.5c3 3.3 3 7.7 0 11-3-3.3-3-7.7 0-11z",
  other: "M8 2.5l5 2.8v5.4l-5 2.8-5-2.8V5.3z",
  shield: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
};

/** Creates an icon: a line drawing on a grid of 16 by 16. */
export function icon(name, size = 16) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true", class: "icon" })) {
    svg.setAttribute(key, value);
  }
  path.setAttribute("d", SHAPES[name] || SHAPES.other);
  svg.append(path);
  return svg;
}

/** Creates a button that copies a text. */
export function copyIcon(label, text) {
  const copy = h("button", { type: "button", class: "copy", title: t`Copy`, "aria-label": label }, icon("copy", 14));
  copy.addEventListener("click", async () => {
    const copied = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    copy.replaceChildren(icon(copied ? "check" : "cross", 14));
    setTimeout(() => copy.replaceChildren(icon("copy", 14)), 1200);
  });
  return copy;
}

/** Returns the element with this id, which must exist in the page. */
export const at = (id) => document.getElementById(id);

const NOT_TEXT = ["button", "radio", "checkbox"];

/** Whether the focused element takes text input. */
export function isTyping() {
  const node = document.activeElement;
  return !!node && (node.tagName === "TEXTAREA" || node.tagName === "SELECT" || (node.tagName === "INPUT" && !NOT_TEXT.includes(node.type)));
}

const NOT_TYPED = ["Escape", "Tab", "Shift", "Control", "Alt", "Meta"];

let typedMs = -Infinity;
// Before the handlers of the page, which may move the focus.
addEventListener("keydown", ({ key }) => isTyping() && !NOT_TYPED.includes(key) && (typedMs = performance.now()), true);

/** Milliseconds since the last key press in an element that takes text input. */
export const sinceTyping = () => performance.now() - typedMs;

/** Formats a duration, for example `3s`, `2m 05s`, `1h 02m`. */
export function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  const two = (n) => String(n).padStart(2, "0");
  if (s < 60) return `${s}s`;
  return s < 3600 ? `${Math.floor(s / 60)}m ${two(s % 60)}s` : `${Math.floor(s / 3600)}h ${two(Math.floor(s / 60) % 60)}m`;
}

/**
 * Characters that are invisible or change how others are displayed: controls, direction marks,
 * unusual spaces.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]|(?! )\p{Zs}/gu;

/** The name of a character: `^[` for ESC, `<U+202E>` for characters without a caret notation. */
function codePoint(char) {
  const code = char.codePointAt(0);
  return code < 0x20 || code === 0x7f ? `^${String.fromCharCode(code ^ 0x40)}` : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/**
 * The exact text for a permission question: complete, with each invisible character replaced by its
 * name, and isolated from the surrounding text. Line breaks and tabs are kept.
 */
export function exact(text) {
  const parts = [];
  let from = 0;
  for (const { 0: char, index } of text.matchAll(UNSEEN)) {
    if (char === "\n" || char === "\t") continue;
    parts.push(text.slice(from, index), h("span", { class: "code-point" }, codePoint(char)));
    from = index + char.length;
  }
  return h("bdi", { dir: "ltr" }, parts, text.slice(from));
}

/** Formats the time that has elapsed since `ms`, for example `5m`. */
export function ago(ms) {
  const minutes = Math.floor((Date.now() - ms) / 60000);
  if (minutes < 1) return t`now`;
  if (minutes < 60) return `${minutes}m`;
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)}h`;
  if (minutes < 60 * 24 * 7) return `${Math.floor(minutes / 1440)}d`;
  return new Date(ms).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** Formats a number, for example `950`, `12.3k`, `1.2M`. */
export function short(n) {
  if (n < 1000) return String(n);
  return n < 1e6 ? `${(n / 1000).toFixed(n < 1e4 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
}

/** A number of dollars: two decimals, and two significant digits below a dollar. */
export function dollars(cost) {
  const decimals = cost === 0 || cost >= 0.1 ? 2 : 1 - Math.floor(Math.log10(cost));
  return `$${cost.toFixed(decimals)}`;
}

/** Scrolls a field to the end of its text, which tells a long path from others. */
export function showEnd(field) {
  field.title = field.value;
  requestAnimationFrame(() => (field.scrollLeft = field.scrollWidth));
}

/** Returns the end of a path that is long: its last two names. */
export const pathEnd = (path) => (path.length > 30 ? `…/${path.split("/").slice(-2).join("/")}` : path);

/** The last part of a path. */
export const base = (path) => (path || "").split("/").findLast(Boolean) || "/";

const announcer = () => at("announcer");

/** Announces text to screen readers. */
export function announce(text) {
  announcer().textContent = text.slice(0, 300);
}
