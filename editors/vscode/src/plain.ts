// Makes text of models, servers, agents, files and sessions safe for the UI of VS Code, which reads
// links and icons in text: `[text](command:…)` in notifications, `$(icon)` in lists.

const LINE_CHARS_MAX = 300;
const LINES_CHARS_MAX = 5000;

/** Characters that draw nothing, or change the direction of the text around them. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0]/gu;
/** More marks on one character would cover the lines above and below. */
const MARKS = /(\p{M}{4})\p{M}+/gu;

function shortened(text: string, max: number): string {
  const characters = [...text];
  return characters.length > max ? `${characters.slice(0, max).join("")}…` : text;
}

/** Returns a text in one line, without characters that VS Code interprets or does not draw. */
export function plain(text: unknown, max = LINE_CHARS_MAX): string {
  // The rest of a text that is too long is not read: it may have any length.
  const line = String(text ?? "").slice(0, 4 * max).replace(/[\s\p{Zl}\p{Zp}]+/gu, " ").replace(INVISIBLE, "").replace(MARKS, "$1");
  // After the removal, which can bring these characters together.
  const inert = line.replace(/\]\s*\(/g, "] (").replace(/\$\(/g, "$ (").replace(/\s+/g, " ").trim();
  return shortened(inert, max);
}

/** Returns a text with its lines, each as by `plain`. */
export function plainLines(text: unknown, max = LINES_CHARS_MAX): string {
  const lines = String(text ?? "").slice(0, 4 * max).split(/\r\n|[\n\r]/).map((line) => plain(line, max));
  return shortened(lines.join("\n"), max);
}

/** Returns a text as the name of a file in a directory. */
export function fileName(text: unknown): string {
  const name = plain(text, 100).replace(/[/\\:*?"<>|]/g, "_").replace(/^\.+/, "_");
  return name || "nuncio";
}
