// A session as text: Markdown from its loaded state, or JSON lines from the server.

import { call } from "./api.js";
import { compare } from "./diff.js";
import { plain } from "./tool.js";

const OUTPUT_CHARS_MAX = 50_000;
const PAGE = 200;
const CONTEXT = 3;

/** Encloses a text in a fence that the text does not contain. */
function fenced(text, language = "") {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}

const shortened = (text) => (text.length > OUTPUT_CHARS_MAX ? `${text.slice(0, OUTPUT_CHARS_MAX)}\n… ${text.length - OUTPUT_CHARS_MAX} more characters` : text);

/** The changed lines of a file with some lines around them. */
function changedLines({ oldText, newText }) {
  const lines = compare(oldText ?? "", newText ?? "");
  const near = new Set();
  lines.forEach(([sign], index) => {
    if (sign !== " ") for (let at = index - CONTEXT; at <= index + CONTEXT; at++) near.add(at);
  });
  return lines.filter((_, index) => near.has(index)).map(([sign, text]) => sign + text).join("\n");
}

function result(one) {
  if (one.type === "diff") return `\`${one.path}\`:\n\n${fenced(shortened(changedLines(one)), "diff")}`;
  const text = one.type === "terminal" ? one.output : one.content?.text;
  if (typeof text === "string") return text.trim() && fenced(shortened(plain(text)));
  return `(${one.content?.name ?? one.content?.mimeType ?? "data"})`;
}

/** A part of a message that is not text. */
function attachment({ type, text, name, uri, mimeType }) {
  const what = name ?? uri?.split("/").pop() ?? mimeType ?? type;
  return type === "resource" ? `Attached: ${what}\n\n${fenced(shortened(text ?? ""))}` : `Attached: ${what}`;
}

const SPEAKERS = { user: "You", assistant: "Assistant", system: "Note" };

const ITEMS = {
  message({ role, text, parts }) {
    if (!SPEAKERS[role]) return "";
    const others = parts.filter((part) => part.type !== "text").map(attachment);
    const body = [text.trim(), ...others].filter(Boolean).join("\n\n");
    return body && `## ${SPEAKERS[role]}\n\n${body}`;
  },
  tool({ title, status, input, about, content }) {
    const command = about === "execute" && typeof input?.command === "string" ? fenced(input.command, "sh") : "";
    const head = `**${(title || "Tool call").replace(/\s+/g, " ")}** (${status.replace("_", " ")})`;
    return [head, command, ...content.map(result)].filter(Boolean).join("\n\n");
  },
  notice: ({ text, hint }) => `> ${[text, hint].filter(Boolean).join(": ").replace(/\n/g, "\n> ")}`,
  end: ({ text, hint }) => `> ${[text, hint].filter(Boolean).join(": ").replace(/\n/g, "\n> ")}`,
};

/** Writes the conversation of a session as Markdown, without the model's thoughts. */
export function markdown(state) {
  const facts = [state.cwd && `Directory: \`${state.cwd}\``, state.agent && `Agent: ${state.agent}`, state.model && `Model: ${state.model}`, `Session: ${state.id}`];
  const items = state.items.map((item) => ITEMS[item.kind]?.(item)).filter(Boolean);
  return `${[`# ${state.title || "Untitled"}`, facts.filter(Boolean).join("  \n"), ...items].join("\n\n")}\n`;
}

/** Reads a session as JSON lines: first its state, then its messages and tool calls. */
export async function jsonLines(id) {
  const lines = [JSON.stringify(await call("_nuncio/session/get", { sessionId: id }))];
  let cursor;
  do {
    const { messages, nextCursor } = await call("_nuncio/session/messages", { sessionId: id, limit: PAGE, cursor });
    lines.push(...messages.map((message) => JSON.stringify(message)));
    cursor = nextCursor;
  } while (cursor !== undefined);
  return `${lines.join("\n")}\n`;
}

/** The name of a file for a session: letters and digits of its title. */
export function fileName(title, ending) {
  const name = (title || "session").normalize("NFKC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  return `${name || "session"}.${ending}`;
}
