// The smallest edit that turns one text into another.

/** Replaces the characters from `start` to `end` by `text`. */
export interface TextChange {
  start: number;
  end: number;
  text: string;
}

const isHighSurrogate = (code: number) => code >= 0xd800 && code <= 0xdbff;
const isLowSurrogate = (code: number) => code >= 0xdc00 && code <= 0xdfff;

/** Returns whether `index` is inside a surrogate pair or a CRLF. */
function splits(text: string, index: number): boolean {
  if (index <= 0 || index >= text.length) return false;
  const [before, after] = [text.charCodeAt(index - 1), text.charCodeAt(index)];
  return (isHighSurrogate(before) && isLowSurrogate(after)) || (before === 13 && after === 10);
}

/**
 * Returns the edit that remains without the common beginning and the common end of the texts, and
 * null if the texts are equal. The edit begins and ends at whole characters.
 */
export function smallestEdit(before: string, after: string): TextChange | null {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before.charCodeAt(start) === after.charCodeAt(start)) start++;
  while (splits(before, start) || splits(after, start)) start--;
  let tail = 0;
  while (tail < shorter - start && before.charCodeAt(before.length - 1 - tail) === after.charCodeAt(after.length - 1 - tail)) tail++;
  while (tail > 0 && (splits(before, before.length - tail) || splits(after, after.length - tail))) tail--;
  return { start, end: before.length - tail, text: after.slice(start, after.length - tail) };
}

/** Replaces every line ending of `text` by `eol`. */
export const withLineEnding = (text: string, eol: string) => text.replace(/\r\n|\r|\n/g, eol);
