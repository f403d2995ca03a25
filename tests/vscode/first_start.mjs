// Cases of the first start: an untrusted workspace, no program, no key.

import { equal, until } from "./harness.mjs";

const welcome = (window, text) => window.page.locator(".welcome-view-content", { hasText: text }).first();

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
    await window.page.locator(".gettingStartedContainer", { hasText: "Start with nuncio" }).waitFor();
    await window.screenshot("missing");
  },

  async "without a key, the view says what to do"({ window, editor }) {
    editor.configure({ "nuncio.command": editor.nuncio, "nuncio.args": [] });
    await window.reload();
    await welcome(window, "No model is set up yet").waitFor();
    await window.console();
    await window.screenshot("login");
  },

  async "with a model, the first prompt runs"({ window, editor }) {
    editor.configure({ "nuncio.args": ["--model", `scripted:${editor.script}`] });
    await window.reload();
    await window.nuncio();
    await welcome(window, "No model is set up yet").waitFor({ state: "detached" });
    await until(() => editor.nuncios().length === 1, "one process");
    const frame = await window.prompt("Hello");
    await frame.locator(".message.assistant", { hasText: "Hello." }).waitFor();
  },
};
