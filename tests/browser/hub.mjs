// Cases of hosted agents and of workspaces.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Server, becomes, equal, ok } from "./harness.mjs";
import { answer, overhang, rests, text, texts } from "./pages.mjs";

const QUIET = ["ignore", "pipe", "pipe"];

function repository(server, name) {
  const directory = join(server.project, name);
  mkdirSync(directory);
  writeFileSync(join(directory, "a"), "one\n");
  const git = (...words) => execFileSync("git", ["-c", "user.name=n", "-c", "user.email=n@example.org", ...words], { cwd: directory, stdio: QUIET });
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-qm", "first");
  git("config", "user.name", "n");
  git("config", "user.email", "n@example.org");
  return directory;
}

export const hub = (browser, server, program) => ({
  async "a workspace is created, used, and deleted in two steps"() {
    const directory = repository(server, "repository");
    const page = await browser.open(server);
    await page.fill("#directory", directory);
    await page.locator("#welcome").click();
    await page.click("#show-workspaces");
    await page.locator("#workspace-list", { hasText: "A workspace is a git worktree" }).waitFor();
    await page.click("#new-workspace");
    await page.waitForFunction(() => !document.querySelector("#workspaces").open);
    const path = await page.inputValue("#directory");
    equal([existsSync(join(path, "a")), path === directory], [true, false], "the directory of the session");
    await page.fill("#prompt", "Work there");
    await page.click("#send");
    await page.locator(".message.assistant").waitFor();
    await rests(page);
    equal(await text(page, "#cwd"), path, "the directory of the session");
    writeFileSync(join(path, "made"), "new\n");
    writeFileSync(join(path, "a"), "two\n");
    await page.click("#show-workspaces");
    const row = page.locator(".workspace");
    await row.filter({ hasText: "1 changed file · 1 new file · 1 session" }).waitFor();
    await row.getByRole("button", { name: "Delete…" }).click();
    await row.locator(".losses", { hasText: "This is lost:" }).waitFor();
    equal(await texts(page, ".losses li"), ["changed: a", "new: made"], "what is lost");
    await row.getByRole("button", { name: "Keep" }).click();
    await row.getByRole("button", { name: "Delete…" }).click();
    await row.locator(".losses").waitFor();
    // The state changes before the confirmation: nothing is deleted, and the question comes again.
    writeFileSync(join(path, "other"), "more\n");
    await row.getByRole("button", { name: "Delete" }).click();
    await row.locator(".losses", { hasText: "It has changed." }).waitFor();
    equal(await texts(page, ".losses li"), ["changed: a", "new: made, other"], "what is lost now");
    equal(existsSync(path), true, "the workspace");
    await row.getByRole("button", { name: "Delete" }).click();
    await page.locator("#workspace-list", { hasText: "A workspace is a git worktree" }).waitFor();
    equal(existsSync(path), false, "the workspace");
  },

  async "the work of a workspace is applied to the repository, or its conflicts are named"() {
    const directory = repository(server, "applied");
    const { workspace } = await server.call("POST", "/v1/workspaces", { cwd: directory, name: "winner" });
    writeFileSync(join(workspace.path, "a"), "two\n");
    writeFileSync(join(directory, "a"), "three\n");
    const page = await browser.open(server);
    await page.locator("#welcome").click();
    await page.click("#show-workspaces");
    const row = page.locator(".workspace", { hasText: "winner" });
    await row.getByRole("button", { name: "Apply" }).click();
    await row.locator(".applied.error", { hasText: "conflicts in a" }).waitFor();
    equal(readFileSync(join(directory, "a"), "utf8"), "three\n", "the change of the user");
    writeFileSync(join(directory, "a"), "one\n");
    await row.getByRole("button", { name: "Apply" }).click();
    await row.locator(".applied:not(.error)", { hasText: "as commit" }).waitFor();
    equal(readFileSync(join(directory, "a"), "utf8"), "two\n", "the file of the user");
    const { confirm } = await server.call("DELETE", `/v1/workspaces/${workspace.workspaceId}`);
    await server.call("DELETE", `/v1/workspaces/${workspace.workspaceId}?confirm=${confirm}`);
  },

  async "a hosted agent is chosen for a new session"() {
    const inner = server.write("inner.json", [{ text: "I am hosted." }]);
    const settings = `[agents]\nallowed = ["inner"]\n[agents.inner]\nkind = "fake"\ncommand = [${JSON.stringify(program)}]\nconfig = ${JSON.stringify(inner)}\n`;
    const host = await Server.start(program, [{ text: "I am nuncio." }], settings);
    try {
      execFileSync(program, ["trust", host.project], { env: { ...process.env, NUNCIO_HOME: host.home }, stdio: QUIET });
      const page = await browser.open(host);
      await page.locator(".picker.agent", { hasText: "nuncio" }).click();
      await page.locator(".menu:popover-open").getByRole("menuitemradio", { name: "inner" }).click();
      await becomes(() => page.locator(".picker.model").isVisible(), false, "the models of nuncio");
      await page.fill("#prompt", "Who are you?");
      await page.click("#send");
      await page.locator(".message.assistant").waitFor();
    await rests(page);
      equal(await answer(page).innerText(), "I am hosted.", "the answer");
      equal([await text(page, "#cwd"), await text(page, "#agent")], [host.project, "inner"], "the directory and the agent");
      await page.setViewportSize({ width: 300, height: 640 });
      equal([await text(page, "#agent"), await overhang(page)], ["inner", 0], "the agent at 300 px");
      await page.setViewportSize({ width: 1200, height: 800 });
      await page.keyboard.press("Escape");
      await page.keyboard.press("c");
      await page.locator(".picker.agent", { hasText: "inner" }).waitFor();
    } finally {
      await host.down("SIGTERM");
    }
  },

  async "what a hosted agent says about its calls while they run is shown"() {
    const page = await browser.open(server);
    const drawn = await page.evaluate(async () => {
      const { SessionState } = await import("/console/state.js");
      const { ToolView } = await import("/console/tool.js");
      const state = new SessionState("s");
      let seq = 0;
      const on = (body) => state.on({ seq: ++seq, atMs: seq, turnId: "t", body });
      on({ type: "turn.started" });
      for (const id of ["a", "b", "c"]) on({ type: "tool.started", toolCallId: id, name: "Bash", title: id === "c" ? "Edit" : "Bash", kind: id === "c" ? "edit" : "execute", input: {} });
      on({ type: "tool.updated", toolCallId: "a", title: "touch made.txt", input: { command: "touch made.txt" }, status: "in_progress" });
      on({ type: "tool.completed", toolCallId: "a", status: "completed", output: [{ type: "text", text: "(Bash completed with no output)" }] });
      on({ type: "tool.completed", toolCallId: "b", title: "ls -la", status: "completed", output: [] });
      on({ type: "tool.updated", toolCallId: "c", locations: [{ path: "/p/a.rs", line: 3 }], title: "Edit a.rs" });
      return state.items.filter(({ kind }) => kind === "tool").map((item) => {
        const view = new ToolView(item);
        view.update();
        return [view.title.textContent, view.root.classList.contains("command"), view.open.dataset.path ?? null];
      });
    });
    equal(drawn, [["touch made.txt", true, null], ["ls -la", false, null], ["Edit a.rs", false, "/p/a.rs"]], "the rows");
  },

  async "agents are compared side by side, and one result is taken"() {
    const hostile = `<img src=x onerror="window.hacked=1">`;
    const write = { name: "write", input: { file_path: "answer.txt", content: `${hostile}\n` } };
    const ask = { name: "bash", input: { command: "pwd >a" } };
    const host = await Server.start(program, [{ tool_calls: [write, ask] }, { text: `I *wrote* ${hostile}.` }]);
    try {
      const directory = repository(host, "compared");
      const page = await browser.open(host);
      await page.fill("#directory", directory);
      await page.locator("#welcome").click();
      await page.keyboard.press("v");
      const form = page.locator("form.new");
      await form.getByLabel("Task").fill("Write the answer");
      equal(await form.getByLabel("Directory in the repository").inputValue(), directory, "the directory");
      await form.getByLabel("nuncio").fill("2");
      await form.getByLabel("Mode").selectOption("accept-edits");
      await form.getByRole("button", { name: "Start" }).click();
      const columns = page.locator(".compared");
      await page.locator(".compared.waiting", { hasText: "Waiting for you" }).nth(1).waitFor();
      equal(await columns.locator("h3").allTextContents(), ["nuncio 1", "nuncio 2"], "agents");
      ok(await columns.first().getByRole("button", { name: "Take this result" }).isDisabled(), "a result is offered during the turn");
      const { permissions } = await host.call("GET", "/v1/permissions");
      for (const { permissionId } of permissions) await host.call("POST", `/v1/permissions/${permissionId}`, { outcome: "allow_once" });
      await page.locator(".compared", { hasText: "Done" }).nth(1).waitFor();
      await columns.nth(1).locator(".file", { hasText: "answer.txt" }).waitFor();
      equal(await columns.nth(1).locator(".file > summary").allTextContents(), ["a+1 −1", "answer.txtnew+1"], "the files");
      equal(await columns.nth(1).locator(".answer em").textContent(), "wrote", "the answer");
      equal([await page.locator(".comparisons img").count(), await page.evaluate(() => window.hacked ?? null)], [0, null], "what the text did");
      const taken = async (at) => {
        await columns.nth(at).getByRole("button", { name: "Take this result" }).click();
        await columns.nth(at).locator(".outcome:not(:empty)").waitFor();
        return columns.nth(at).locator(".outcome").innerText();
      };
      ok((await taken(0)).startsWith(`Applied to ${directory} as commit`), "the first result is not applied");
      equal(readFileSync(join(directory, "answer.txt"), "utf8"), `${hostile}\n`, "the file of the user");
      ok((await taken(1)).includes("conflicts in a"), "the conflict with the first result is not named");
      await page.setViewportSize({ width: 300, height: 600 });
      equal(await page.evaluate(() => [...document.querySelectorAll("dialog[open] *")].filter((node) => node.getBoundingClientRect().right > 301).length), 0, "elements beyond the right edge");
      await page.getByRole("button", { name: "Back" }).click();
      await page.locator(".earlier .task", { hasText: "Write the answer" }).click();
      await page.locator(".compared", { hasText: "Done" }).nth(1).waitFor();
      await columns.first().getByRole("button", { name: "Open session" }).click();
      await page.locator(".message.user", { hasText: "Write the answer" }).waitFor();
    } finally {
      await host.down("SIGTERM");
    }
  },
});
