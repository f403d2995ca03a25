// The texts of the user interface: their translations, and the keys that the build collects.

import assert from "node:assert/strict";
import { test } from "node:test";
import { templates, texts } from "../../../editors/vscode/scripts/texts.mjs";

/** Imports a module of the console on a page with a table of translations, or with none. */
async function load(name, table) {
  const dataset = table ? { texts: JSON.stringify(table) } : {};
  Object.assign(globalThis, { document: { body: { dataset } }, addEventListener() {} });
  try {
    return await import(`../../../src/http/web/${name}`);
  } finally {
    delete globalThis.document;
    delete globalThis.addEventListener;
  }
}

test("values are inserted at their places, as they are", async () => {
  const { t, withNodes } = await load("texts.js?values", { "Open diff": "Diff öffnen", "1 of {0}": "{0}: $& $1, {0}, {7}", "{0} in {1}": "in {1}: {0}" });
  const count = 3, node = { nodeType: 1 };
  assert.equal(t`Open diff`, "Diff öffnen");
  assert.equal(t`1 of ${count}`, "3: $& $1, 3, {7}");
  assert.equal(t`${"$& {1} $1"} in ${"{0}"}`, "in {0}: $& {1} $1");
  assert.deepEqual(withNodes`${node} in ${"a"}`, ["in ", "a", ": ", node, ""]);
});

test("texts without a translation are English", async () => {
  for (const { t, translated } of [await load("texts.js?other", { "Open diff": "Diff öffnen" }), await load("texts.js?none")]) {
    assert.equal(t`1 of ${"{0} $&"}`, "1 of {0} $&");
    assert.equal(t`constructor`, "constructor");
    assert.equal(t`${null} and ${undefined}`, "null and undefined");
    assert.equal(translated("__proto__"), "__proto__");
  }
});

test("a note of the console is translated, and exported in English", async () => {
  const { SessionState, shownTexts } = await load("state.js", { Stopped: "Angehalten" });
  const { markdown } = await load("export.js");
  const state = new SessionState("s");
  const on = (seq, body) => state.on({ seq, turnId: "t", atMs: seq, body });
  on(1, { type: "turn.started" });
  on(2, { type: "turn.cancelled" });
  on(3, { type: "notice", severity: "info", title: "Stopped" });
  assert.deepEqual(state.items.map((item) => shownTexts(item)[0]), ["Angehalten", "Stopped"]);
  assert.ok(markdown(state).endsWith("> Stopped\n\n> Stopped\n"));
});

test("keys are those of the templates of modules, and of the page", () => {
  const source = "h(t`1 of ${list.map((one) => `${one} {`).join(\"}\")}`, t`a ${t`b`} c ${{ d }}`, not`e`, h.t`f`, withNodes`g ${h()}.`, english`h`) // `t`, `t` and";
  assert.deepEqual(templates(source), ["1 of {0}", "a {0} c {1}", "b", "g {0}.", "h"]);
  const found = texts();
  // From the console's modules, the extension, a note, an attribute and a text of the page.
  for (const key of ["Open diff", "Open the changes", "Interrupted", "New session (c)", "What should nuncio do?"]) assert.ok(found.includes(key), key);
  assert.ok(!found.some((key) => key.includes("<") || /^\W*$/.test(key)));
});
