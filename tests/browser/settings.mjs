// Cases about the page of the user's settings.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { becomes, equal, ok } from "./harness.mjs";
import { overhang, texts } from "./pages.mjs";

const section = (page, title) => page.locator("#settings-body section", { has: page.locator("h3", { hasText: title }) });
const rows = (page, title) => section(page, title).locator(".setting strong").allTextContents();

export const settings = (browser, server) => ({
  async "servers, rules and the default model are changed in the settings file"() {
    const page = await browser.open(server);
    const file = () => readFileSync(join(server.home, "config.toml"), "utf8");
    await page.keyboard.press("Escape");
    await page.keyboard.press(",");
    const servers = section(page, "MCP servers");
    await servers.getByLabel("Name").fill("docs");
    await servers.getByLabel("Command, or URL").fill('docs-server --root "a b"');
    await servers.getByRole("button", { name: "Add" }).click();
    await becomes(() => rows(page, "MCP servers"), ["docs"], "servers");
    ok(file().includes('["docs-server", "--root", "a b"]'), `the command: ${file()}`);
    const rules = section(page, "Permission rules");
    await rules.getByLabel("Policy").selectOption("deny");
    await rules.getByLabel("Tool, for example bash").fill("bash");
    await rules.getByLabel("Command or URL: git status *").fill("rm *");
    await rules.getByRole("button", { name: "Add" }).click();
    await becomes(() => rows(page, "Permission rules"), ["deny bash “rm *”"], "rules");
    const model = section(page, "Default model");
    await model.getByLabel("Model of new sessions: PROVIDER/NAME").fill("nobody/nothing");
    await model.getByRole("button", { name: "Set", exact: true }).click();
    await page.locator("#toast.bad", { hasText: "nobody" }).waitFor();
    await model.getByLabel("Model of new sessions: PROVIDER/NAME").fill(`scripted:${server.script}`);
    await model.getByRole("button", { name: "Set", exact: true }).click();
    await becomes(() => model.locator(".muted").first().textContent().then((text) => text.endsWith("--model")), true, "the flag of the server precedes the file");
    await page.getByRole("button", { name: "Remove docs" }).click();
    await becomes(() => rows(page, "MCP servers"), [], "servers after the removal");
    await page.getByRole("button", { name: "Remove: deny bash “rm *”" }).click();
    await becomes(() => rows(page, "Permission rules"), [], "rules after the removal");
    ok(!file().includes("docs"), file());
    await page.keyboard.press("Escape");
    await page.locator("#settings").waitFor({ state: "hidden" });
  },

  async "a token of an observer sees settings and changes none, on a narrow page"() {
    const page = await browser.open(server, null, { token: server.observer(), viewport: { width: 300, height: 600 } });
    await page.locator("#open-drawer").click();
    await page.locator("#show-settings").click();
    await section(page, "Keys").waitFor();
    equal(await page.locator("#settings form.setting-form").count(), 0, "forms");
    ok((await texts(page, "#settings-body > p")).join(" ").includes("owner's token"), "the reason");
    ok((await section(page, "Keys").textContent()).includes("nuncio login PROVIDER"), "the command for a key");
    equal(await overhang(page), 0, "sideways");
  },
});
