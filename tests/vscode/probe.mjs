import { Browser, Editor, until } from "./harness.mjs";
const t0=Date.now(); const lap=(x)=>console.log(x, Date.now()-t0);
const editor = await Editor.start(process.argv[2], process.argv[3], { steps: [{ text: "The **first** answer, piece by piece.", chunk_chars: 2, delay_ms: 15 }] });
lap("up");
const browser = await Browser.start();
const w = await browser.open(editor);
lap("workbench");
try {
  const f = await w.nuncio();
  lap("console");
  await w.screenshot("home");
  await w.prompt("Say something");
  lap("prompted");
  await f.locator(".message.assistant", { hasText: "piece by piece." }).waitFor();
  await w.rests(f);
  lap("answered");
  console.log(await w.text(f, ".message.assistant"));
} catch (e) { console.log(e); console.log(w.page.frames().map(f=>f.url())); }
await w.screenshot("end");
console.log(browser.complaints, editor.nuncios());
await browser.close(); await editor.down();
