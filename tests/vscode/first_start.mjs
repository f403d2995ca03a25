// Cases of the first start: an untrusted workspace, no program, an unusable program, no key. The
// setting names a path at which each case puts another program.

import { chmodSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { equal, until } from "./harness.mjs";

const welcome = (window, text) => window.page.locator(".welcome-view-content", { hasText: text }).first();

/** Puts a shell script in place of the program, and lets the extension try again. */
async function replace(window, editor, script) {
  const path = editor.settings["nuncio.command"];
  rmSync(path, { force: true });
  if (script) {
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  } else {
    symlinkSync(editor.nuncio, path);
  }
  await window.page.locator(".welcome-view-content .monaco-button", { hasText: "Try Again" }).first().click();
}

export const CASES = {
  async "an untrusted workspace starts nothing, and the view says why"({ window, editor }) {
    await window.page.locator('.activitybar a[aria-label^="nuncio"]').click();
    await welcome(window, "This workspace is not trusted").waitFor();
    await window.page.locator(".statusbar-item", { hasText: "nuncio" }).first().waitFor();
    equal(editor.nuncios(), [], "processes");
    await window.screenshot("untrusted");
  },

  async "without the program, the view says what to do"({ window, editor }) {
    await window.command("Workspaces: Manage Workspace Trust");
    await window.page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first().click();
    await welcome(window, "The program nuncio was not found").waitFor();
    equal(editor.nuncios(), [], "processes");
    await window.page.locator(".gettingStartedContainer", { hasText: "Start with nuncio" }).first().waitFor();
    await window.screenshot("missing");
  },

  async "an old program and one that fails each have a view"({ window, editor }) {
    await replace(window, editor, "echo nuncio 0.0.1");
    await welcome(window, "is too old").waitFor();
    await replace(window, editor, '[ "$1" = --version ] && echo nuncio 9.9.9 && exit; exit 1');
    await welcome(window, "could not be started").waitFor();
  },

  async "without a key, the view says what to do"({ window, editor }) {
    await replace(window, editor, null);
    await welcome(window, "No model is set up yet").waitFor();
    await window.console();
    await window.screenshot("login");
  },

  async "with a model, the first prompt runs"({ window, editor }) {
    writeFileSync(join(editor.data, "config.toml"), `model = "scripted:${editor.script}"\n`);
    await window.page.locator(".welcome-view-content .monaco-button", { hasText: "Try Again" }).first().click();
    await welcome(window, "No model is set up yet").waitFor({ state: "detached" });
    await until(() => editor.nuncios().length === 1, "one process");
    const frame = await window.prompt("Hello");
    await frame.locator(".message.assistant", { hasText: "Hello." }).waitFor();
  },
};
