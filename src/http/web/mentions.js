// Files and directories that a message names with `@`. Their content is sent with the message, by the
// same rules as in nuncio's chat.

import { call } from "./api.js";
import { host } from "./host.js";
import { t } from "./texts.js";

const MENTIONS_MAX = 20;
/** Maximum size of the text of a file that is sent, in UTF-16 units. */
const TEXT_MAX = 64 << 10;
const PATHS_MAX = 200;
/** Characters that end a sentence and may follow a path. */
const PUNCTUATION = /[.,;:!?)\]}"']+$/;
/** `@path`, `@path#L3`, `@path#L3-9` and `@"path with blanks"`, at the start of a word. */
const MENTION = /(^|[\s(])@(?:"([^"\n]+)"(#L\d+(?:-L?\d+)?)?|([^\s"]\S*))/g;
const LINES = /#L(\d+)(?:-L?(\d+))?$/;

/** Returns a path as a mention. */
export const mentionOf = (path) => (/\s/.test(path) && !path.includes('"') ? `@"${path}"` : `@${path}`);

/** Returns the mentions of a text: `{path, first, last}`, without lines if it names none. */
export function mentions(text) {
  return [...text.matchAll(MENTION)].map(([, , quoted, range, word]) => {
    const bare = quoted ? range ?? "" : word;
    const found = LINES.exec(bare.replace(PUNCTUATION, ""));
    const lines = found && Number(found[1]) > 0 && Number(found[2] ?? found[1]) >= Number(found[1]) ? { first: Number(found[1]), last: Number(found[2] ?? found[1]) } : {};
    const path = quoted ?? (lines.first ? bare.replace(PUNCTUATION, "").replace(LINES, "") : word);
    return { path, ...lines };
  });
}

/** Returns a part with the lines of a file, and what is left out of it. */
function part({ name, mimeType, data, text }, { path, first, last }) {
  if (text === undefined) return { part: { type: "image", mimeType, data } };
  let uri = `file://${name.split("/").map(encodeURIComponent).join("/")}`;
  let chosen = text;
  if (first) {
    const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
    if (first > lines.length) throw new Error(t`it has ${lines.length} lines`);
    chosen = lines.slice(first - 1, last).join("");
    uri += `#L${first}-${last}`;
  }
  const kind = mimeType.startsWith("text/") ? mimeType : "text/plain";
  if (chosen.length <= TEXT_MAX) return { part: { type: "resource", uri, mimeType: kind, text: chosen } };
  const end = chosen.lastIndexOf("\n", TEXT_MAX - 1) + 1 || TEXT_MAX;
  const note = `[cut: the first ${chosen.slice(0, end).split("\n").length - 1} lines of ${chosen.split("\n").length}]`;
  const remark = t`@${path}: the first ${Math.ceil(end / 1024)} of ${Math.ceil(chosen.length / 1024)} KiB are sent`;
  return { part: { type: "resource", uri, mimeType: kind, text: chosen.slice(0, end) + note }, remark };
}

/** Lists a directory, whose path ends with `/`; null if no path is below it. */
async function list(sessionId, cwd, directory) {
  const { paths } = await call("_nuncio/file/search", { sessionId, query: directory, limit: PATHS_MAX });
  const below = paths.filter((path) => path.startsWith(directory) && path !== directory).map((path) => path.slice(directory.length)).sort();
  if (!below.length) return null;
  const uri = `file://${`${cwd}/${directory}`.split("/").map(encodeURIComponent).join("/")}`;
  return { part: { type: "resource", uri, mimeType: "text/plain", text: below.join("\n") + (paths.length === PATHS_MAX ? "\n[there may be more]" : "") } };
}

/** Reads what a mention names; null if it names no file. */
async function read(sessionId, cwd, mention) {
  const own = mention.first ? null : await host.context?.(mention.path);
  if (own) return { part: own };
  const trimmed = mention.path.replace(PUNCTUATION, "");
  for (const path of new Set([mention.path, trimmed].filter(Boolean))) {
    const listed = path.endsWith("/") && (await list(sessionId, cwd, path.replace(/^\.\//, "")));
    if (listed) return listed;
    try {
      return part(await call("_nuncio/file/read", { sessionId, path }), { ...mention, path });
    } catch (error) {
      if (error.code === "not_found") continue;
      const directory = await list(sessionId, cwd, `${path}/`);
      if (directory) return directory;
      throw error;
    }
  }
  return null;
}

/** Returns the parts of what a text names, and remarks about what is not sent. */
export async function mentioned(text, sessionId, cwd) {
  const found = mentions(text), parts = [], remarks = [];
  for (const mention of found.slice(0, MENTIONS_MAX)) {
    try {
      const one = await read(sessionId, cwd, mention);
      if (one?.remark) remarks.push(one.remark);
      if (one && !parts.some((part) => JSON.stringify(part) === JSON.stringify(one.part))) parts.push(one.part);
    } catch (error) {
      remarks.push(t`@${mention.path.replace(PUNCTUATION, "")} is not sent: ${error.message}`);
    }
  }
  if (found.length > MENTIONS_MAX) remarks.push(t`Only the first ${MENTIONS_MAX} files are sent`);
  return { parts, remarks };
}
