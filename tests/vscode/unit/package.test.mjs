// What package.json contributes: entries of menus, settings and their texts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../editors/vscode/${name}`, import.meta.url), "utf8"));
const { activationEvents, contributes } = read("package.json");
const texts = read("package.nls.json");

test("no window starts the extension before it is used", () => {
  assert.deepEqual(activationEvents.filter((event) => event === "*" || event === "onStartupFinished"), []);
});

test("each entry of a menu says when it is shown", () => {
  const entries = Object.entries(contributes.menus).flatMap(([menu, list]) => list.map((entry) => [menu, entry]));
  assert.deepEqual(entries.filter(([, { when }]) => !when), []);
  assert.deepEqual(entries.filter(([, entry]) => Object.keys(entry).some((key) => !["command", "submenu", "when", "group"].includes(key))), []);
});

test("each command of a menu exists, and each text", () => {
  const commands = new Set(contributes.commands.map(({ command }) => command));
  const used = Object.values(contributes.menus).flat().map(({ command }) => command).filter(Boolean);
  assert.deepEqual(Object.keys(contributes.menus).filter((menu) => menu.startsWith("nuncio.")), contributes.submenus.map(({ id }) => id));
  assert.deepEqual(used.filter((command) => !commands.has(command)), []);
  const names = [...JSON.stringify(contributes).matchAll(/"%([^%"]+)%"/g)].map(([, name]) => name);
  assert.deepEqual(names.filter((name) => !texts[name]), []);
});
