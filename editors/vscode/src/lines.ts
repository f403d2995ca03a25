// Texts as VS Code shows them: without a byte order mark, and with one kind of line end.

const MARK = "\uFEFF";

/** Splits a text into lines, each with its line end: `\r\n`, `\n` or `\r`. */
function lines(text: string): string[] {
  return text.match(/[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$/g) ?? [];
}

const plain = (line: string): string => line.replace(/\r?\n$|\r$/, "");

/** The line end that most lines have. */
function usualEnd(all: string[]): string {
  const count = (end: RegExp) => all.filter((line) => end.test(line)).length;
  const [both, feed, carriage] = [count(/\r\n$/), count(/[^\r]\n$|^\n$/), count(/\r$/)];
  if (both >= feed && both >= carriage && both > 0) return "\r\n";
  return carriage > feed ? "\r" : "\n";
}

/**
 * Returns the text of a user who changed the `shown` text of `original`, or `null` if nothing was
 * changed. The byte order mark, and the line ends of the lines before and after the change, are
 * those of the original.
 */
export function userText(original: string, shown: string): string | null {
  const mark = original.startsWith(MARK) ? MARK : "";
  const before = lines(original.slice(mark.length));
  const after = lines(shown.startsWith(MARK) ? shown.slice(1) : shown);
  // An end without its line, such as that of a last line that was removed, is a change.
  const isSame = (one: string | undefined, other: string | undefined) =>
    one !== undefined && other !== undefined && plain(one) === plain(other) && (one === plain(one)) === (other === plain(other));
  let start = 0;
  while (isSame(before[start], after[start])) start += 1;
  if (start === before.length && start === after.length) return null;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && isSame(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const usual = usualEnd(before);
  const changed = after.slice(start, after.length - end).map((line) => (plain(line) === line ? line : plain(line) + usual));
  return mark + [...before.slice(0, start), ...changed, ...before.slice(before.length - end)].join("");
}
