// QR codes (ISO/IEC 18004): a text as bytes, error correction level M, versions 1 to 10.

const EC_WORDS = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5];
const MASKS = [
  (x, y) => (x + y) % 2, (_, y) => y % 2, (x) => x % 3, (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2, (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/** Multiplies in the field with 256 elements that the error correction uses. */
function multiply(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) product = ((product << 1) ^ ((product >>> 7) * 0x11d) ^ (((b >>> bit) & 1) * a)) & 0xff;
  return product;
}

/** The words for the correction of errors in a block (Reed-Solomon). */
function corrections(data, count) {
  const divisor = [...Array(count - 1).fill(0), 1];
  for (let round = 0, root = 1; round < count; round++, root = multiply(root, 2)) {
    for (let at = 0; at < count; at++) divisor[at] = multiply(divisor[at], root) ^ (divisor[at + 1] ?? 0);
  }
  const rest = Array(count).fill(0);
  for (const word of data) {
    const factor = word ^ rest.shift();
    rest.push(0);
    divisor.forEach((one, at) => (rest[at] ^= multiply(one, factor)));
  }
  return rest;
}

const alignments = (version) => {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2, step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  return Array.from({ length: count }, (_, at) => (at ? version * 4 + 10 - (count - 1 - at) * step : 6));
};

/** Number of words of a version, with those for error correction. */
function capacity(version) {
  const aligned = alignments(version).length;
  const bits = (16 * version + 128) * version + 64 - (aligned ? (25 * aligned - 10) * aligned - 55 : 0) - (version >= 7 ? 36 : 0);
  return Math.floor(bits / 8);
}

/** The words of a text: data and error correction, interleaved by block. */
function wordsOf(bytes, version) {
  const blocks = BLOCKS[version - 1], ec = EC_WORDS[version - 1], total = capacity(version), size = total - blocks * ec;
  const lengthBits = version < 10 ? 8 : 16;
  const bits = `0100${bytes.length.toString(2).padStart(lengthBits, "0")}${[...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("")}`;
  if (bits.length > size * 8) return null;
  const words = bits.padEnd(Math.min(size * 8, bits.length + 4), "0").match(/.{1,8}/g).map((word) => parseInt(word.padEnd(8, "0"), 2));
  for (let pad = 0xec; words.length < size; pad ^= 0xec ^ 0x11) words.push(pad);
  const short = Math.floor(size / blocks), longer = size % blocks;
  const data = Array.from({ length: blocks }, (_, at) => words.splice(0, short + (at < blocks - longer ? 0 : 1)));
  const checks = data.map((block) => corrections(block, ec));
  const column = (rows, at) => rows.map((row) => row[at]).filter((word) => word !== undefined);
  return [...Array.from({ length: short + 1 }, (_, at) => column(data, at)), ...Array.from({ length: ec }, (_, at) => column(checks, at))].flat();
}

/** Adds check bits to a number (BCH code). */
function checked(value, shift, generator) {
  let rest = value << shift;
  for (let bit = 31 - Math.clz32(rest); bit >= shift; bit--) if ((rest >>> bit) & 1) rest ^= generator << (bit - shift);
  return (value << shift) | rest;
}

/** Draws the fixed patterns; `set(x, y, isDark)` marks a module as fixed. */
function patterns(size, version, set) {
  const square = (cx, cy, radius, rings) => {
    for (let y = -radius; y <= radius; y++) for (let x = -radius; x <= radius; x++) set(cx + x, cy + y, rings.includes(Math.max(Math.abs(x), Math.abs(y))));
  };
  for (let at = 0; at < size; at++) (set(6, at, at % 2 === 0), set(at, 6, at % 2 === 0));
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) square(x, y, 4, [0, 1, 3]);
  const places = alignments(version), last = places.at(-1);
  for (const x of places) for (const y of places) if (!((x === 6 && (y === 6 || y === last)) || (x === last && y === 6))) square(x, y, 2, [0, 2]);
  if (version < 7) return;
  const bits = checked(version, 12, 0x1f25);
  for (let at = 0; at < 18; at++) {
    const a = size - 11 + (at % 3), b = Math.floor(at / 3), isDark = (bits >>> at) & 1;
    set(a, b, isDark), set(b, a, isDark);
  }
}

/** Draws the level (M) and the mask. */
function format(size, mask, set) {
  const bits = checked(mask, 10, 0x537) ^ 0x5412;
  const bit = (at) => (bits >>> at) & 1;
  for (let at = 0; at < 15; at++) {
    set(8, at < 6 ? at : at < 8 ? at + 1 : size - 15 + at, bit(at));
    set(at < 8 ? size - 1 - at : at === 8 ? 7 : 14 - at, 8, bit(at));
  }
  set(8, size - 8, true);
}

/** How hard a code is to read: long runs, squares of one colour, unbalanced colours. */
function penalty(rows) {
  const size = rows.length, lines = [...rows, ...rows.map((_, x) => rows.map((row) => row[x]))];
  let sum = 0, dark = 0;
  for (const line of lines) for (const [run] of line.map(Number).join("").matchAll(/0{5,}|1{5,}/g)) sum += run.length - 2;
  for (let y = 1; y < size; y++) for (let x = 1; x < size; x++) if (new Set([rows[y][x], rows[y - 1][x], rows[y][x - 1], rows[y - 1][x - 1]].map(Boolean)).size === 1) sum += 3;
  for (const row of rows) dark += row.filter(Boolean).length;
  return sum + 10 * Math.floor(Math.abs(dark / (size * size) - 0.5) * 20);
}

/** Encodes a text: rows of modules, true for a dark one; null for a text that is too long. */
export function encode(text) {
  const bytes = new TextEncoder().encode(text);
  const version = BLOCKS.findIndex((_, at) => wordsOf(bytes, at + 1)) + 1;
  if (!version) return null;
  const words = wordsOf(bytes, version), size = version * 4 + 17;
  const candidates = MASKS.map((isFlipped, mask) => {
    const rows = Array.from({ length: size }, () => Array(size).fill(null));
    const set = (x, y, isDark) => rows[y]?.[x] !== undefined && (rows[y][x] = !!isDark);
    patterns(size, version, set);
    format(size, mask, set);
    let at = 0;
    for (let right = size - 1; right > 0; right -= right === 8 ? 3 : 2) {
      for (let step = 0; step < size * 2; step++) {
        const x = right - (step % 2), up = ((right + (right < 6 ? 1 : 0)) & 2) === 0;
        const y = up ? size - 1 - Math.floor(step / 2) : Math.floor(step / 2);
        if (rows[y][x] !== null) continue;
        rows[y][x] = !!(((words[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1) !== (isFlipped(x, y) === 0);
        at++;
      }
    }
    return rows;
  });
  return candidates.map((rows) => [penalty(rows), rows]).sort((a, b) => a[0] - b[0])[0][1];
}
