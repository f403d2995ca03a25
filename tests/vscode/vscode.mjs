// The packed extension in a real browser: node vscode.mjs NUNCIO VSIX [WORD]. WORD selects the cases
// whose name contains it.

import * as firstStart from "./first_start.mjs";
import { Browser, Editor } from "./harness.mjs";
import * as mainWindow from "./main_window.mjs";

/** Number of failures after which the other cases are not run. */
const FAILURES_MAX = 3;

const [nuncio, vsix, word = ""] = process.argv.slice(2);
const browser = await Browser.start();
let passed = 0, failed = 0;

async function runCases(cases, options, before) {
  const wanted = Object.entries(cases).filter(([name]) => name.includes(word));
  if (!wanted.length) return;
  const startedMs = Date.now();
  const editor = await Editor.start(nuncio, vsix, options);
  const window = await browser.open(editor);
  console.log(`      a window after ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
  for (const [name, run] of wanted) {
    const startedMs = Date.now();
    browser.complaints.length = 0;
    try {
      await before?.(window);
      await run({ window, editor, browser });
      if (browser.complaints.length) throw new Error(`the page reports ${browser.complaints.join("; ")}`);
      passed++;
      console.log(`ok    ${name} (${((Date.now() - startedMs) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed++;
      console.log(`FAIL  ${name}: ${error.stack}`);
      await window.screenshot(`failed-${failed}`).catch(() => {});
      if (failed >= FAILURES_MAX) break;
      // An open dialog or quick input would disturb the other cases.
      await window.dismiss().catch(() => {});
    }
  }
  await window.close();
  await editor.down();
}

await runCases(mainWindow.CASES, { settings: mainWindow.SETTINGS }, (window) => window.nuncio());
const trust = { "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never", "security.workspace.trust.enabled": true };
await runCases(firstStart.CASES, { trust: true, command: "program", settings: { ...trust, "nuncio.args": [] } });
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
