// The smallest edit between two texts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { smallestEdit, withLineEnding } from "../../../editors/vscode/src/edit.ts";

const applied = (before, change) => (change ? before.slice(0, change.start) + change.text + before.slice(change.end) : before);

const CASES = [
  ["same", "same", null],
  ["", "new", { start: 0, end: 0, text: "new" }],
  ["old", "", { start: 0, end: 3, text: "" }],
  ["a\nb\nc\n", "a\nB\nc\n", { start: 2, end: 3, text: "B" }],
  ["aaa", "aa", { start: 2, end: 3, text: "" }],
  ["aa", "aaa", { start: 2, end: 2, text: "a" }],
  ["one\r\ntwo", "one\ntwo", { start: 3, end: 5, text: "\n" }],
  ["x😀y", "x😁y", { start: 1, end: 3, text: "😁" }],
  ["a\r\n", "a\r\n\r\n", { start: 3, end: 3, text: "\r\n" }],
];

for (const [before, after, expected] of CASES) {
  test(`${JSON.stringify(before)} to ${JSON.stringify(after)}`, () => {
    const change = smallestEdit(before, after);
    assert.deepEqual(change, expected);
    assert.equal(applied(before, change), after);
  });
}

test("random texts", () => {
  let seed = 7;
  const next = (limit) => (seed = (seed * 1103515245 + 12345) % 2147483648) % limit;
  const text = () => Array.from({ length: next(12) }, () => ["a", "b", "\n", "\r\n", "😀", "😁", "é"][next(7)]).join("");
  for (let index = 0; index < 3000; index++) {
    const [before, after] = [text(), text()];
    const change = smallestEdit(before, after);
    assert.equal(applied(before, change), after);
    if (!change) continue;
    for (const part of [before.slice(0, change.start), before.slice(change.end), change.text]) assert.ok(part.isWellFormed(), JSON.stringify([before, after]));
  }
});

test("line endings", () => assert.equal(withLineEnding("a\r\nb\nc\rd", "\r\n"), "a\r\nb\r\nc\r\nd"));
