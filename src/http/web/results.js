// Results of the tools of hosted agents (Claude Code, Codex, OpenCode), recognized by the shape of
// their input and text: task lists, subagents, plans, several edits, web searches, tagged texts.

import { h, icon } from "./dom.js";
import * as fields from "./fields.js";
import { code, Growing } from "./markdown.js";
import { t } from "./texts.js";

const MARKDOWN_CHARS_MAX = 100_000;
const ITEMS_MAX = 200;

const isText = (value) => typeof value === "string" && value.trim() !== "";

/** Draws a text as Markdown; a very long one as it is. */
function markdown(text) {
  if (text.length > MARKDOWN_CHARS_MAX) return output(text);
  const growing = new Growing();
  growing.update(text, true);
  return growing.root;
}

const output = (text) => h("pre", { class: "output", tabIndex: 0 }, text);

/** The edits in the input of MultiEdit of Claude Code, as diffs. */
function edits({ edits: list, file_path: path }) {
  if (!Array.isArray(list) || !isText(path)) return [];
  const isEdit = (one) => typeof one?.old_string === "string" && typeof one.new_string === "string";
  return list.filter(isEdit).slice(0, ITEMS_MAX).map((one) => ({ type: "diff", path, oldText: one.old_string, newText: one.new_string }));
}

/** The diffs of a call: those that were reported, or those in its input. */
export function diffs({ content, input }) {
  const reported = content.filter((one) => one.type === "diff");
  return reported.length || !input ? reported : edits(input);
}

/** The task list of TodoWrite and todowrite. */
function todos(list) {
  const words = { completed: t`done`, in_progress: t`now` };
  return h("ol", { class: "todos" }, list.slice(0, ITEMS_MAX).map(({ content, status }) =>
    h("li", { class: ["completed", "in_progress"].includes(status) ? status : "pending" }, h("span", { class: "step" }, status === "completed" && icon("check", 12)), h("span", { class: "hidden" }, `${words[status] ?? t`open`}: `), content)));
}

/** The prompt of a subagent, folded, and its answer. */
function subagent(prompt, text) {
  return [h("details", { class: "prompt" }, h("summary", {}, h("span", { class: "fold" }, icon("chevron", 14)), t`Prompt`), markdown(prompt)), isText(text) && markdown(withoutTags(text))];
}

/**
 * Splits a result of Claude Code's WebSearch, which has `Links: [JSON]` in its text. Returns
 * undefined for other texts.
 */
function search(text) {
  const found = /^Links: (\[.*\])$/m.exec(text.slice(0, MARKDOWN_CHARS_MAX));
  const links = found && fields.parsed(found[1]);
  if (!Array.isArray(links)) return undefined;
  const rest = (text.slice(0, found.index) + text.slice(found.index + found[0].length)).trim();
  const list = links.slice(0, ITEMS_MAX).filter((link) => isText(link?.url) && /^https?:/.test(link.url)).map(({ title, url }) => `- [${String(title || url).replace(/[\[\]\\]/g, "\\$&")}](<${url.replace(/[\s<>]/g, encodeURIComponent)}>)`);
  return markdown(`${list.join("\n")}\n\n${rest}`);
}

const TAG = /\s*<(tool_use_error|error|status|exit_code|stdout|stderr|output|timestamp|retrieval_status|task_id|task_type|task_result|file|path|type|content|entries)>([\s\S]*?)<\/\1>/y;
const REMINDER = ["<system-reminder>", "</system-reminder>"];

/** The parts of a text that consists of tags: `[[name, text], …]`; null for other texts. */
function tagged(text) {
  const parts = [];
  TAG.lastIndex = 0;
  for (let end = 0; ; end = TAG.lastIndex) {
    const found = parts.length < ITEMS_MAX && TAG.exec(text);
    if (!found) return parts.length && !text.slice(end).trim() ? parts : null;
    parts.push([found[1], found[2].replace(/^\n|\n\s*$/g, "")]);
  }
}

/** A text without the tags around the whole of it. */
function withoutTags(text) {
  const parts = tagged(text);
  return parts ? parts.map(([, inner]) => inner).join("\n\n") : text;
}

/** A text without the reminders that Claude Code adds for its model. */
function withoutReminders(text) {
  const [first, ...others] = text.split(REMINDER[0]);
  return first + others.map((part) => part.slice(part.includes(REMINDER[1]) ? part.indexOf(REMINDER[1]) + REMINDER[1].length : 0)).join("");
}

/** Draws a text that consists of tags, or undefined. */
function tags(text) {
  const parts = tagged(withoutReminders(text));
  if (!parts) return undefined;
  if (parts.length === 1) return output(parts[0][1]);
  return h("dl", { class: "fields" }, parts.filter(([, inner]) => inner).map(([name, inner]) => h("div", {}, h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, fields.draw(inner)))));
}

/** Whether the text of a file is enclosed in tags by the agent, not by the file itself. */
const isTaggedFile = (text) => /^\s*<file>\n\s*\d+[|:]|^\s*<path>[^\n]*<\/path>\n<type>/.test(text);

/**
 * Draws the input and the result of a call if its shape is known; returns undefined otherwise. The
 * output of a command and the content of a file are shown as they are.
 */
export function draw({ about, title, input, status }, text) {
  const given = input ?? {};
  const list = given.todos;
  if (Array.isArray(list) && list.length && list.every((one) => isText(one?.content))) return todos(list);
  if (isText(given.prompt) && about === "other") return subagent(given.prompt, text);
  if (isText(given.plan) && about === "other") return markdown(given.plan);
  if (isText(given.patchText) && about === "edit") return [code(given.patchText, "diff"), status === "failed" && output(text)];
  if (about === "fetch" && /^Web(Search|Fetch) /.test(title)) return search(text) ?? (isText(text) ? markdown(text) : undefined);
  if (about === "execute" || !text.includes("<")) return undefined;
  return about === "read" && status !== "failed" && !isTaggedFile(text) ? undefined : tags(text);
}
