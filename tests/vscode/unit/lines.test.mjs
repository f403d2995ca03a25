// The text of a user who edits the right side of a diff: marks and line ends stay.

import { equal } from "node:assert/strict";
import { test } from "node:test";
import { userText } from "../../../editors/vscode/src/lines.ts";

const CASES = [
  // original, shown, expected
  ["one\ntwo\n", "one\ntwo\n", null],
  ["\uFEFFone\ntwo", "one\ntwo", null],
  ["one\r\ntwo\nthree", "one\ntwo\nthree", null],
  ["one\r\ntwo\nthree", "one\r\ntwo\r\nthree", null],
  ["one\rtwo", "one\r\ntwo", null],
  ["", "", null],
  ["\n\n", "\r\n\r\n", null],
  ["\uFEFFone\ntwo", "one\ntwo and mine", "\uFEFFone\ntwo and mine"],
  ["one\r\ntwo\nthree\r\nfour", "one\nTWO\nthree\nfour", "one\r\nTWO\r\nthree\r\nfour"],
  ["a\nb\r\nc\n", "a\nb\nnew\nc\n", "a\nb\r\nnew\nc\n"],
  ["a\nb\r\nc\n", "a\nc\n", "a\nc\n"],
  ["a\r\nb", "a\nb\n", "a\r\nb\r\n"],
  ["a\r\nb\r\n", "a\nb", "a\r\nb"],
  ["", "new\n", "new\n"],
  ["old\r\n", "", ""],
  ["a\na\na\n", "a\na\n", "a\na\n"],
  ["x\ry\rz\r", "x\nY\nz\n", "x\rY\rz\r"],
];

for (const [original, shown, expected] of CASES) {
  test(JSON.stringify([original, shown]), () => equal(userText(original, shown), expected));
}
