// Cases about the changes of a session: the files, the diff, and how much of it is drawn.

import { execFileSync } from "node:child_process";
import { mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { becomes, equal, ok } from "./harness.mjs";
import { faint, overhang, text, texts } from "./pages.mjs";

export function repository(server, name, files) {
  const directory = join(server.project, name);
  mkdirSync(directory, { recursive: true });
  const git = (...words) => execFileSync("git", words, { cwd: directory, stdio: ["ignore", "pipe", "pipe"] });
  for (const [path, content] of Object.entries(files)) writeFileSync(join(directory, path), content);
  git("init", "-q", "-b", "main");
  git("config", "user.name", "n");
  git("config", "user.email", "n@example.org");
  git("add", ".");
  git("commit", "-qm", "first");
  return directory;
}

const LINES = Array.from({ length: 60 }, (_, index) => `line ${index}\n`);

export const changes = (browser, server) => ({
  async "the changes of a session are shown by file"() {
    const directory = repository(server, "changed", { "main.txt": LINES.join(""), "gone.txt": "gone\n-- not a header\n", "same.txt": "same\n" });
    const id = await server.session([], { cwd: directory });
    const page = await browser.open(server, id, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.locator("#scroller").focus();
    await page.keyboard.press("d");
    await page.locator(".changes", { hasText: "No changes are uncommitted in" }).waitFor();
    writeFileSync(join(directory, "main.txt"), LINES.join("").replace("line 5\n", "line five\n").replace("line 50\n", ""));
    unlinkSync(join(directory, "gone.txt"));
    writeFileSync(join(directory, "nü \"quoted\".txt"), "++ new\n");
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.locator(".changes .total", { hasText: "3 files +2 −4" }).waitFor();
    equal(await texts(page, ".file > summary"), ["gone.txtdeleted−2", "main.txt+1 −2", "nü \"quoted\".txtnew+1"], "the files");
    equal(await texts(page, ".file .removed .text"), ["removed: gone", "removed: -- not a header", "removed: line 5", "removed: line 50"], "removed lines");
    equal(await texts(page, ".file mark"), ["5", "five"], "what differs in the lines");
    equal(await page.locator(".file .removed .number.old").allTextContents(), ["1", "2", "6", "51"], "line numbers");
    equal(await faint(page), [], "faint texts");
    await page.locator(".file > summary", { hasText: "main.txt" }).press("Enter");
    equal(await page.locator(".file[open]").count(), 2, "open files");
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    ok((await page.evaluate(() => navigator.clipboard.readText())).startsWith("diff --git a/gone.txt"), "the copied diff");
    await page.setViewportSize({ width: 300, height: 600 });
    equal(await page.evaluate(() => [...document.querySelectorAll("dialog[open], dialog[open] *")].filter((node) => node.getBoundingClientRect().right > 301).length), 0, "elements beyond the right edge");
    await page.keyboard.press("Escape");
    await becomes(() => page.locator(".file").count(), 0, "files after the dialog was closed");
  },

  async "a diff of 5 MB is drawn in pieces"() {
    const page = await browser.open(server, await server.session([]));
    const hostile = `<img src=x onerror="window.hacked=1">`;
    const part = (path, count) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1,0 +1,${count} @@\n${Array.from({ length: count }, (_, index) => `+${hostile} line ${index} of a long file\n`).join("")}`;
    const diff = part("big.txt", 70_000) + Array.from({ length: 900 }, (_, index) => part(`small-${index}.txt`, 3)).join("") + part("wide.txt", 1).replace("long file", "x".repeat(1_000_000));
    ok(diff.length > 5_000_000, "the diff is small");
    await page.route("**/result?diff=true", (route) => route.fulfill({ json: { cwd: "/somewhere", changes: "many", diff } }));
    await page.click("#show-changes");
    await page.locator(".files .file").first().waitFor();
    equal([await page.locator(".files .file").count(), await page.locator(".files .file tr").count() < 1200], [200, true], "files and lines at first");
    ok((await text(page, ".changes .cut")).includes("256 KiB"), "it is not said that the diff is truncated");
    await page.locator(".files .file > summary", { hasText: "big.txt" }).click();
    await becomes(() => page.locator(".files .file[open] .diff", { hasText: "line 399 of" }).count(), 1, "the first lines");
    await page.getByRole("button", { name: "Show more lines" }).first().click();
    const rows = await page.locator(".files .file").first().locator("tr").count();
    equal(rows, 2400, "lines of the file");
    for (let count = 0; count < 4; count++) await page.getByRole("button", { name: "Show more files" }).click();
    equal(await page.locator(".files .file").count(), 902, "files");
    await page.locator(".files .file > summary", { hasText: "wide.txt" }).click();
    const wide = page.locator(".files .file").last().locator(".text").first();
    ok((await wide.textContent()).length < 3000, "a long line is drawn");
    equal([await page.locator(".files .files img").count(), await page.evaluate(() => window.hacked ?? null), await overhang(page)], [0, null, 0], "what the text did");
  },
});
