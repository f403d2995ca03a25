// Foreign text in VS Code's own UI: links, icons, characters that draw nothing, length.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileName, plain, plainLines } from "../../../editors/vscode/src/plain.ts";

const CASES = [
  ["an ordinary title (with brackets) [and more] $HOME 50% & <b>", "an ordinary title (with brackets) [and more] $HOME 50% & <b>"],
  ["naïve 日本語 עברית 👩🏽 e\u0301", "naïve 日本語 עברית 👩🏽 e\u0301"],
  // Links of notifications.
  ["echo ok # [Show](command:workbench.action.terminal.sendSequence?%7B%7D)", "echo ok # [Show] (command:workbench.action.terminal.sendSequence?%7B%7D)"],
  ["[x](https://evil \"title\")", "[x] (https://evil \"title\")"],
  ["[x](file:///etc/passwd)", "[x] (file:///etc/passwd)"],
  ["[x]\u200b(command:a)", "[x] (command:a)"],
  ["[x]\u202e(command:a)", "[x] (command:a)"],
  ["[x]\n(command:a)", "[x] (command:a)"],
  ["[x]\u0007\u2028(command:a)", "[x] (command:a)"],
  ["[x]\ue000(command:a)", "[x] (command:a)"],
  ["[x]\ud800(command:a)", "[x] (command:a)"],
  ["[[x]](command:a)", "[[x]] (command:a)"],
  ["[a](b)[c](command:d)", "[a] (b)[c] (command:d)"],
  // Icons.
  ["$(alert) urgent", "$ (alert) urgent"],
  ["$\u200b(alert)", "$ (alert)"],
  ["\\$(alert) $($(alert))", "\\$ (alert) $ ($ (alert))"],
  ["$(loading~spin)", "$ (loading~spin)"],
  // Characters that draw nothing, or move others.
  ["safe\u202etxt.exe", "safetxt.exe"],
  ["\u2066a\u2069\u200e\u200f\u061cb", "ab"],
  ["a\u200b\u200c\u200d\u2060\u00adb\ufeff", "ab"],
  ["a\u0000\u001b[31m\u0007\u007f\u0085b", "a[31mb"],
  ["\u3164\u115f\u2800", ""],
  ["a\u{e0041}\u{e007f}b", "ab"],
  ["one\r\ntwo\tthree\u2028four\u2029five\vsix", "one two three four five six"],
  ["   much     space   ", "much space"],
  [`z${"\u0301".repeat(50)}`, `z${"\u0301".repeat(4)}`],
  // Other values.
  [undefined, ""],
  [null, ""],
  [7, "7"],
];

for (const [text, expected] of CASES) test(JSON.stringify(text) ?? "undefined", () => assert.equal(plain(text), expected));

test("a long text is shortened, also one of invisible characters", () => {
  assert.equal(plain("x".repeat(1e6)), `${"x".repeat(300)}…`);
  assert.equal(plain("😀".repeat(400), 10), `${"😀".repeat(10)}…`);
  assert.equal(plain("\u200b".repeat(1e6)), "");
  assert.equal(plain("abc", 3), "abc");
});

test("no text becomes a link or an icon", () => {
  // As VS Code reads them: linkedText.ts, iconLabels.ts.
  const link = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/i;
  const icon = /\$\([A-Za-z0-9-]+(?:~[A-Za-z]+)?\)/;
  let seed = 3;
  const next = (limit) => (seed = (seed * 1103515245 + 12345) % 2147483648) % limit;
  const parts = ["[", "]", "(", ")", "$", "a", " ", "\n", "\u200b", "\u202e", "\ud800", "\udc00", "\u2028", "command:x", "https://y", "alert", "~spin", "\\", "\u0301", "\u3164"];
  for (let index = 0; index < 20_000; index++) {
    const text = Array.from({ length: next(14) }, () => parts[next(parts.length)]).join("");
    for (const shown of [plain(text), plainLines(text)]) assert.ok(!link.test(shown) && !icon.test(shown), JSON.stringify([text, shown]));
    assert.equal(plain(plain(text)), plain(text), JSON.stringify(text));
  }
});

test("lines", () => {
  assert.equal(plainLines("Fix\r\n\r\n  it\u202e\r[x](command:y)"), "Fix\n\nit\n[x] (command:y)");
  assert.equal(plainLines("ab\ncd", 3), "ab\n…");
});

test("names of files stay in their directory", () => {
  for (const [text, expected] of [
    ["conversation.json", "conversation.json"],
    ["../../.bashrc", "__.._.bashrc"],
    ["/etc/passwd", "_etc_passwd"],
    ["..", "_"],
    [".profile", "_profile"],
    ["a\\b:c*?\"<>|d", "a_b_c______d"],
    ["a\u202egpj.sh", "agpj.sh"],
    ["", "nuncio"],
  ])
    assert.equal(fileName(text), expected);
});
