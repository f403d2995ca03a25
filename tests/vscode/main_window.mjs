// Cases of one window in a trusted folder: conversations, files, permission requests, sessions.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { Other } from "./agent.mjs";
import { equal, ok, repeated, succeeds, until, violations, WAIT_MS } from "./harness.mjs";

/** An answer that takes minutes: its turns are stopped. */
const SLOW = Array.from({ length: 4000 }, (_, index) => `word${index}`).join(" ");
const slow = { text: SLOW, chunk_chars: 4, delay_ms: 40 };
const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>&lt;b&gt;`;
const edit = (path, old_string, new_string) => ({ tool_calls: [{ name: "edit", input: { file_path: path, old_string, new_string } }] });
const read = (path) => ({ tool_calls: [{ name: "read", input: { file_path: path } }] });

/** Waits for the permission request and returns its id. */
async function asks(frame) {
  await frame.locator("#ask:not([hidden])").waitFor();
  return frame.locator("#ask").getAttribute("data-id");
}

/** Answers the request with a button. Input that comes too soon is ignored: it is repeated. */
async function answer(frame, name) {
  const id = await asks(frame);
  const press = ([id, name]) => {
    const ask = document.getElementById("ask");
    if (ask.dataset.id !== id) return true;
    [...ask.querySelectorAll(".answers button")].find((button) => button.textContent.startsWith(name))?.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 }));
    return false;
  };
  await until(() => frame.evaluate(press, [id, name]), `the answer ${name}`);
}

/** Stops the turn. A click that comes too soon is ignored: it is repeated. */
async function stop(window, frame) {
  await repeated(async (timeout) => {
    if (await frame.locator("#stop").isVisible()) await succeeds(frame.locator("#stop").click({ timeout }));
    return succeeds(frame.locator(".note", { hasText: "Stopped" }).first().waitFor({ timeout }));
  }, "the note");
  await window.rests(frame);
}

const diffTab = (window, name) => window.page.locator(".tab", { hasText: `${name} (proposed by nuncio)` });
const titleAction = (window, name) => window.page.locator(`.editor-group-container.active .editor-actions a[aria-label^="${name}"]`).first();

/** Returns the text of the active editor as it is drawn. */
const shownText = (window) =>
  window.page.evaluate(() => {
    const lines = [...document.querySelectorAll(".editor-group-container.active .editor-instance .view-line")];
    return lines.sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top)).map((line) => line.textContent.replaceAll("\u00a0", " ")).join("\n");
  });

/** Returns the least contrast (WCAG) of the texts of elements with what is behind them. */
function leastContrast(selector) {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((one, index) => one * a + under[index] * (1 - a));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratios = [...document.querySelectorAll(selector)].map((node) => {
    const chain = [];
    for (let at = node; at; at = at.parentElement) chain.push(read(getComputedStyle(at).backgroundColor));
    const under = chain.reverse().reduce((below, colour) => over(colour, below), [255, 255, 255]);
    const [light, dark] = [luminance(over(read(getComputedStyle(node).color), under)), luminance(under)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  });
  return Math.min(...ratios);
}

/** Places the caret in the active editor. */
const focusEditor = (window) => window.page.locator(".editor-group-container.active .editor-instance .view-lines").first().click();

/** A terminal writes its environment into a file of the project. JSON is formatted when it is saved. */
export const SETTINGS = {
  "terminal.integrated.profiles.linux": { environment: { path: "/bin/sh", args: ["-c", "env >terminal.new && mv terminal.new terminal.txt && exec sleep 600"] } },
  "terminal.integrated.defaultProfile.linux": "environment",
  "[json]": { "editor.formatOnSave": true },
};

/** The cases. Each starts with the page of a new session. */
export const CASES = {
  async "a prompt starts a session, and its answer streams in"({ window, editor }) {
    editor.model([{ text: "The **first** answer, piece by piece. ".repeat(12), chunk_chars: 2, delay_ms: 15 }]);
    const frame = await window.nuncio();
    await frame.locator("#prompt").fill("Say something");
    await frame.locator("#send").click();
    await frame.locator(".message.assistant.growing").waitFor();
    await window.rests(frame);
    equal((await window.text(frame, ".message.assistant .markdown")).length > 300, true, "the answer is complete");
    equal(await window.text(frame, ".message.assistant strong"), "first", "its emphasis");
    await window.page.locator(".statusbar-item", { hasText: /nuncio · ask/ }).waitFor();
    await window.screenshot("answer-light");
  },

  async "what is edited is the unsaved buffer, and undo restores it"({ window, editor }) {
    writeFileSync(editor.file("notes.txt"), "one\ntwo\n");
    await window.openFile("notes.txt");
    await focusEditor(window);
    await window.page.keyboard.press("Control+End");
    await window.page.keyboard.type("three unsaved\n");
    await window.page.locator('.tab.active.dirty[data-resource-name="notes.txt"]').waitFor();
    editor.model([read("notes.txt"), edit("notes.txt", "three unsaved", "THREE"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    await window.rests(frame);
    equal(editor.read("notes.txt"), "one\ntwo\nTHREE\n", "the file");
    await window.page.locator('.tab[data-resource-name="notes.txt"]').click();
    equal(await shownText(window), "one\ntwo\nTHREE\n", "the buffer");
    await focusEditor(window);
    await window.page.keyboard.press("Control+z");
    await until(async () => (await shownText(window)) === "one\ntwo\nthree unsaved\n", "undo");
    await window.page.keyboard.press("Control+s");
    await until(() => editor.read("notes.txt") === "one\ntwo\nthree unsaved\n", "saved");
  },

  async "a change is allowed in the diff tab, which does not take the focus"({ window, editor }) {
    writeFileSync(editor.file("poem.txt"), "roses\r\nare red\r\n");
    editor.model([read("poem.txt"), edit("poem.txt", "red", "blue"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await diffTab(window, "poem.txt").waitFor();
    await asks(frame);
    await window.screenshot("proposal");
    await frame.locator("#prompt").focus();
    await window.page.keyboard.type("still here");
    equal(await frame.locator("#prompt").inputValue(), "still here", "what was typed");
    await frame.locator("#prompt").fill("");
    equal(editor.read("poem.txt"), "roses\r\nare red\r\n", "before the answer");
    await diffTab(window, "poem.txt").click();
    await titleAction(window, "Allow This Change").click();
    await diffTab(window, "poem.txt").waitFor({ state: "detached" });
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("poem.txt"), "roses\r\nare blue\r\n", "after it");
  },

  async "Allow in a diff tab answers after all files of the request were shown"({ window, editor }) {
    const names = ["all-a.txt", "all-b.txt", "all-c.txt"];
    for (const name of names) writeFileSync(editor.file(name), "old\n");
    const patch = ["*** Begin Patch", ...names.flatMap((name) => [`*** Update File: ${name}`, "@@", "-old", "+new"]), "*** End Patch"].join("\n");
    editor.model([...names.map(read), { tool_calls: [{ name: "apply_patch", input: { patch } }] }, { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change them");
    const active = (number) => window.page.locator(".tab.active", { hasText: `${number} of 3: ${names[number - 1]} (proposed by nuncio)` });
    // The last tab that was opened is in front.
    await active(3).waitFor();
    for (const next of [1, 2]) {
      await titleAction(window, "Allow This Change").click();
      await active(next).waitFor();
      equal(names.map((name) => editor.read(name)), ["old\n", "old\n", "old\n"], `before file ${next} was shown`);
    }
    await titleAction(window, "Allow This Change").click();
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(names.map((name) => editor.read(name)), ["new\n", "new\n", "new\n"], "after it");
  },

  async "the user's own text on the right side of the diff is written"({ window, editor }) {
    writeFileSync(editor.file("own.txt"), "roses\nare red\n");
    editor.model([read("own.txt"), edit("own.txt", "red", "blue"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await diffTab(window, "own.txt").click();
    const right = window.page.locator(".editor-group-container.active .editor.modified .view-line", { hasText: "are" });
    await right.click();
    await window.page.keyboard.press("End");
    await window.page.keyboard.type("ish");
    await window.page.locator(".editor-group-container.active .editor.modified .view-line", { hasText: "blueish" }).waitFor();
    await titleAction(window, "Allow This Change").click();
    await diffTab(window, "own.txt").waitFor({ state: "detached" });
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("own.txt"), "roses\nare blueish\n", "the file");
  },

  async "own text in the diff tab is kept with a hunk that is rejected in the conversation"({ window, editor }) {
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`);
    const text = (changes) => lines.map((line, index) => changes[index] ?? line).join("\r\n") + "\r\n";
    writeFileSync(editor.file("both.txt"), text({}));
    editor.model([read("both.txt"), { tool_calls: [{ name: "write", input: { file_path: "both.txt", content: text({ 2: "second", 25: "later" }) } }] }, { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await diffTab(window, "both.txt").click();
    const right = (hasText) => window.page.locator(".editor-group-container.active .editor.modified .view-line", { hasText });
    await right("second").click();
    await window.page.keyboard.press("End");
    await window.page.keyboard.type(" and MINE");
    await right("second and MINE").waitFor();
    await asks(frame);
    const reject = (part) => frame.locator("#ask .part").nth(part).locator("input[value=reject]").check();
    await reject(0);
    const refusal = frame.locator("#toast", { hasText: "change the same lines" });
    await repeated(async (timeout) => {
      await succeeds(frame.locator("#ask button", { hasText: "Apply the choices" }).click({ timeout }));
      return succeeds(refusal.waitFor({ timeout }));
    }, "the refusal");
    equal(editor.read("both.txt"), text({}), "after the refusal");
    await frame.locator("#ask .part").nth(0).locator("input[value=accept]").check();
    await reject(1);
    await answer(frame, "Apply the choices");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("both.txt"), text({ 2: "second and MINE" }), "the file");
  },

  async "what a formatter makes of an open file as it is saved is kept, and undo restores the text"({ window, editor }) {
    writeFileSync(editor.file("format.json"), '{"a": 1}\n');
    await window.openFile("format.json");
    editor.model([read("format.json"), edit("format.json", "1", '1,"b":2'), { expect: "the editor changed this as it saved it", ...edit("format.json", "2", "3") }, { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await answer(frame, "Allow");
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    await window.rests(frame);
    equal(editor.read("format.json"), '{\n    "a": 1,\n    "b": 3\n}', "the file");
    equal(await frame.getByText("The client's files are not used").count(), 0, "notices");
    await window.page.locator('.tab[data-resource-name="format.json"]').click();
    await window.page.locator('.tab.active:not(.dirty)[data-resource-name="format.json"]').waitFor();
    await focusEditor(window);
    await window.page.keyboard.press("Control+z");
    await until(async () => (await shownText(window)).includes('"b": 2'), "undo");
    await window.page.keyboard.press("Control+s");
    await until(() => editor.read("format.json").includes('"b": 2'), "saved");
  },

  async "a terminal has the variables of the shown session"({ window, editor }) {
    editor.model([{ text: "Short." }]);
    const frame = await window.fresh();
    /** Opens terminals until their variables are as `wanted`: the window shows a session earlier. */
    const opened = (wanted, what) => until(async () => {
      await window.command("Terminal: Create New Terminal");
      await until(() => existsSync(editor.file("terminal.txt")), "the terminal");
      const lines = editor.read("terminal.txt").split("\n").filter((line) => /^NUNCIO_(SESSION|WORKSPACE|HTTP)=/.test(line));
      unlinkSync(editor.file("terminal.txt"));
      const variables = Object.fromEntries(lines.map((line) => line.split(/=(.*)/)));
      return wanted(variables) && variables;
    }, what);
    await opened((variables) => !Object.keys(variables).length, "a terminal without a session");
    await window.prompt("Hello");
    await window.rests(frame);
    const { NUNCIO_SESSION: session, NUNCIO_WORKSPACE: workspace, NUNCIO_HTTP: url } = await opened((variables) => variables.NUNCIO_SESSION, "a terminal with a session");
    ok(session.startsWith("sess_"), `the session: ${session}`);
    equal(workspace, editor.project, "the directory");
    ok(await fetch(`${url}/health`).then((response) => response.ok), `the server ${url}`);
    await window.command("Terminal: Kill All Terminals");
  },

  async "a byte order mark and mixed line ends survive the diff tab"({ window, editor }) {
    const before = "\uFEFFroses\r\nare red\nviolets\r\nare blue";
    writeFileSync(editor.file("mark.txt"), before);
    editor.model([read("mark.txt"), edit("mark.txt", "red", "pink"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await diffTab(window, "mark.txt").click();
    await titleAction(window, "Allow This Change").click();
    await diffTab(window, "mark.txt").waitFor({ state: "detached" });
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("mark.txt"), before.replace("red", "pink"), "the file");
  },

  async "one hunk is rejected and one accepted in the conversation"({ window, editor }) {
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`);
    writeFileSync(editor.file("hunks.txt"), `${lines.join("\n")}\n`);
    const changed = lines.map((line, index) => (index === 2 || index === 25 ? `${line} changed` : line));
    editor.model([read("hunks.txt"), { tool_calls: [{ name: "write", input: { file_path: "hunks.txt", content: `${changed.join("\n")}\n` } }] }, { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await asks(frame);
    await window.screenshot("hunks");
    await frame.locator("#ask .part").nth(1).locator("input[value=reject]").check();
    await answer(frame, "Apply the choices");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("hunks.txt"), `${lines.map((line, index) => (index === 2 ? `${line} changed` : line)).join("\n")}\n`, "the file");
  },

  async "a changed file is listed with its diff, and reverted"({ window, editor }) {
    writeFileSync(editor.file("back.txt"), "before\n");
    editor.model([read("back.txt"), edit("back.txt", "before", "after"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    const row = await window.row("Changed Files", "back.txt");
    await row.click();
    await window.page.locator(".tab.active", { hasText: "back.txt (changes of the session)" }).waitFor();
    const revert = window.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Revert" });
    await window.rowAction(row, "Revert File", (timeout) => revert.waitFor({ timeout }));
    await revert.click();
    await until(() => editor.read("back.txt") === "before\n", "reverted");
    const tab = window.page.locator(".tab.active:not(.dirty)", { hasText: "back.txt (changes of the session)" });
    await tab.locator(".tab-actions a").first().click();
    await tab.waitFor({ state: "detached" });
  },

  async "the mode of a session is picked"({ window, editor }) {
    editor.model([{ text: "Short." }]);
    const frame = await window.fresh();
    await window.prompt("Hello");
    await window.rests(frame);
    await window.pick("nuncio: Choose Mode…", "Only reads");
    await window.page.locator(".statusbar-item", { hasText: /nuncio · plan/ }).waitFor();
    await frame.locator("#pickers .picker.mode", { hasText: "Plan" }).waitFor();
  },

  async "a change is rejected in the conversation, and its tab closes"({ window, editor }) {
    writeFileSync(editor.file("kept.txt"), "kept\n");
    editor.model([read("kept.txt"), edit("kept.txt", "kept", "lost"), { text: "Understood." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    await diffTab(window, "kept.txt").waitFor();
    await answer(frame, "Reject");
    await diffTab(window, "kept.txt").waitFor({ state: "detached" });
    await window.rests(frame);
    equal(editor.read("kept.txt"), "kept\n", "the file");
    equal(await frame.locator(".tool .no", { hasText: "rejected" }).count(), 1, "the row says so");
  },

  async "a closed tab is no answer"({ window, editor }) {
    writeFileSync(editor.file("closed.txt"), "old\n");
    editor.model([read("closed.txt"), edit("closed.txt", "old", "new"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    const tab = diffTab(window, "closed.txt");
    await tab.click();
    await tab.locator(".tab-actions a").first().click();
    await tab.waitFor({ state: "detached" });
    ok(await frame.locator("#ask:not([hidden])").count(), "the request is gone");
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("closed.txt"), "new\n", "the file");
  },

  async "a new file is created through the editor"({ window, editor }) {
    editor.model([{ tool_calls: [{ name: "write", input: { file_path: "made/new.txt", content: "first\nsecond\n" } }] }, { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Write it");
    await window.page.locator(".tab", { hasText: "new.txt (new file, proposed by nuncio)" }).waitFor();
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("made/new.txt"), "first\nsecond\n", "the file");
  },

  async "a turn is stopped"({ window, editor }) {
    editor.model([slow]);
    const frame = await window.fresh();
    await window.prompt("Count");
    await frame.locator(".message.assistant", { hasText: "word3 " }).waitFor();
    await stop(window, frame);
  },

  async "a message is queued, edited and runs after the turn"({ window, editor }) {
    // The turn runs until the command has read from the pipe.
    execFileSync("mkfifo", [editor.file("gate")]);
    editor.model([{ text: "Wait.", tool_calls: [{ name: "bash", input: { command: "cat gate" } }] }, { text: "The first answer." }, { text: "The second answer." }]);
    const frame = await window.fresh();
    await window.prompt("Count");
    await answer(frame, "Allow");
    await frame.locator("#prompt").fill("And then?");
    await frame.locator("#prompt").press("Enter");
    await frame.locator("#queue li", { hasText: "And then?" }).waitFor();
    await frame.locator("#queue button[aria-label='Edit this message']").click();
    await frame.locator("#queue textarea").fill("And after that?");
    await frame.locator("#queue textarea").press("Enter");
    await frame.locator("#queue li", { hasText: "And after that?" }).waitFor();
    await writeFile(editor.file("gate"), "go on\n");
    await frame.locator(".message.user", { hasText: "And after that?" }).waitFor();
    await frame.locator(".message.assistant", { hasText: "The second answer." }).waitFor();
  },

  async "nuncio is killed, restarted, and the conversation goes on"({ window, editor }) {
    editor.model([slow]);
    const frame = await window.fresh();
    await window.prompt("Count");
    await frame.locator(".message.assistant", { hasText: "word30 " }).waitFor();
    const [pid, ...others] = editor.nuncios();
    equal(others, [], "other processes");
    process.kill(pid, "SIGKILL");
    await frame.locator(".note", { hasText: "Interrupted" }).waitFor();
    // The last deltas may not have been written to the log.
    ok((await window.text(frame, ".message.assistant .markdown")).includes("word5 "), "the half answer is not shown");
    editor.model([slow, { text: "Here again." }]);
    await window.prompt("Are you there?");
    await until(async () => (await frame.locator(".message.assistant").count()) > 1, "another answer");
    const [next] = editor.nuncios();
    ok(next && next !== pid, "another process");
    await stop(window, frame);
  },

  async "a reload of the window keeps the session and the draft"({ window, editor }) {
    editor.model([{ text: "To be kept." }]);
    const frame = await window.fresh();
    await window.prompt("Remember this");
    await frame.locator(".message.assistant", { hasText: "To be kept." }).waitFor();
    await window.rests(frame);
    await frame.locator("#prompt").fill("a draft");
    await window.stores("a draft");
    await window.reload();
    const again = await window.nuncio();
    await again.locator(".message.assistant", { hasText: "To be kept." }).waitFor();
    equal(await again.locator("#prompt").inputValue(), "a draft", "the draft");
    await again.locator("#prompt").fill("");
    await until(() => editor.nuncios().length === 1, "the former process has ended");
  },

  async "a turn and its request survive a reload of the window"({ window, editor }) {
    writeFileSync(editor.file("survives.txt"), "old\n");
    editor.model([read("survives.txt"), edit("survives.txt", "old", "new"), { text: "Survived." }]);
    const frame = await window.fresh();
    await window.prompt("Change it slowly");
    await asks(frame);
    const [pid] = editor.nuncios();
    await window.reload();
    const again = await window.nuncio();
    await asks(again);
    await diffTab(window, "survives.txt").waitFor();
    ok(editor.nuncios().includes(pid), "the former process has ended");
    await answer(again, "Allow");
    await again.locator(".message.assistant", { hasText: "Survived." }).waitFor();
    equal(editor.read("survives.txt"), "new\n", "the file");
    equal(await again.locator(".note", { hasText: "Stopped" }).count(), 0, "notes");
    await until(() => editor.nuncios().length === 1 && !editor.nuncios().includes(pid), "the former process ends with its turn");
  },

  async "a diff tab that was closed is opened again, and answered with a key"({ window, editor }) {
    writeFileSync(editor.file("again.txt"), "old\n");
    editor.model([read("again.txt"), edit("again.txt", "old", "new"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Change it");
    const tab = diffTab(window, "again.txt");
    await tab.waitFor();
    await tab.locator(".tab-actions a").first().click({ force: true });
    await tab.waitFor({ state: "detached" });
    await frame.locator("#ask").getByRole("button", { name: "Open diff" }).click();
    await tab.waitFor();
    await window.page.locator(".tab.active", { hasText: "again.txt (proposed by nuncio)" }).click();
    await focusEditor(window);
    await window.page.keyboard.press("Alt+Enter");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    equal(editor.read("again.txt"), "new\n", "the file");
  },

  async "changes of several turns are listed, and leave the list when they are kept"({ window, editor }) {
    for (const name of ["kept1.txt", "kept2.txt"]) writeFileSync(editor.file(name), "old\n");
    editor.model([read("kept1.txt"), edit("kept1.txt", "old", "new"), { text: "One." }, read("kept2.txt"), edit("kept2.txt", "old", "new"), { text: "Two." }, edit("kept1.txt", "new", "newest"), { text: "Three." }]);
    const frame = await window.fresh();
    for (const [prompt, end] of [["First", "One."], ["Second", "Two."]]) {
      await window.prompt(prompt);
      await answer(frame, "Allow");
      await frame.locator(".message.assistant", { hasText: end }).waitFor();
    }
    const first = await window.row("Changed Files", "kept1.txt");
    await window.row("Changed Files", "kept2.txt");
    await window.rowAction(first, "Keep Changes of File", (timeout) => first.waitFor({ state: "detached", timeout }));
    await window.prompt("Third");
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Three." }).waitFor();
    await window.row("Changed Files", "kept1.txt");
    // Expanded, it would take the place of the sessions.
    const header = window.page.locator('.pane-header[aria-label^="Changed Files"]');
    await header.click();
    await window.command("nuncio: Keep All Changes");
    await header.waitFor({ state: "detached" });
  },

  async "the open file and its selection go with a message, unless the chip is off"({ window, editor }) {
    writeFileSync(editor.file("chip.txt"), "first\nsecond\nthird\n");
    editor.model([{ expect: "chip.txt", text: "Seen." }, { expect: "chip.txt#L2", text: "Selected." }, { text: "Nothing." }]);
    await window.openFile("chip.txt");
    const frame = await window.fresh();
    const chip = frame.locator("#attachments .context");
    await chip.getByText("chip.txt", { exact: true }).waitFor();
    await window.prompt("Look");
    await frame.locator(".message.assistant", { hasText: "Seen." }).waitFor();
    await window.page.locator('.tab[data-resource-name="chip.txt"]').click();
    await focusEditor(window);
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.press("ArrowDown");
    await window.page.keyboard.press("Shift+End");
    await chip.getByText("chip.txt:2", { exact: true }).waitFor();
    await window.prompt("Look again");
    await frame.locator(".message.assistant", { hasText: "Selected." }).waitFor();
    await chip.click();
    await frame.locator("#attachments .chip.off").waitFor();
    await window.prompt("Look once more");
    await frame.locator(".message.assistant", { hasText: "Nothing." }).waitFor();
    equal(await frame.locator(".message.user").last().locator(".chip").count(), 0, "attachments");
    await chip.click();
    await frame.locator("#attachments .chip:not(.off)").waitFor();
  },

  async "settings are changed in the page, and a key is checked before it is stored"({ window, editor }) {
    const provider = createServer(({ headers }, response) => {
      const isRight = headers.authorization === "Bearer right";
      response.writeHead(isRight ? 200 : 401, { "content-type": "application/json" });
      response.end(JSON.stringify(isRight ? { data: [{ id: "model" }] } : { error: { message: "Incorrect API key provided" } }));
    });
    await new Promise((resolve) => provider.listen(0, "127.0.0.1", resolve));
    writeFileSync(join(editor.data, "config.toml"), `[providers.mock]\nbase_url = "http://127.0.0.1:${provider.address().port}/v1"\n`);
    const [pid] = editor.nuncios();
    await window.command("nuncio: Restart nuncio");
    await until(() => editor.nuncios().length === 1 && editor.nuncios()[0] !== pid, "another process");
    const frame = await window.console();
    await window.command("nuncio: Settings of nuncio…");
    const servers = frame.locator("#settings-body section", { hasText: "MCP servers" });
    await servers.getByLabel("Name").fill("docs");
    await servers.getByLabel("Command, or URL").fill("docs-server");
    await servers.getByRole("button", { name: "Add" }).click();
    await frame.getByRole("button", { name: "Remove docs" }).click();
    await frame.getByRole("button", { name: "Remove docs" }).waitFor({ state: "detached" });
    const keys = frame.locator("#settings-body section", { hasText: "Keys" });
    await keys.getByLabel("Provider").selectOption("mock");
    for (const [key, said] of [["wrong", "401"], ["right", "accepted"]]) {
      await keys.getByRole("button", { name: "Enter a key…" }).click();
      await window.input().fill(key);
      await window.page.keyboard.press("Enter");
      await window.page.locator(".notification-list-item", { hasText: said }).first().waitFor();
      // At most three notifications are shown.
      await window.page.locator(".notification-list-item", { hasText: "Checking the key" }).waitFor({ state: "detached" });
    }
    await keys.locator(".setting", { hasText: "mock" }).waitFor();
    await frame.locator("#settings form[method=dialog] button").click();
    provider.close();
  },

  async "a session of another process is followed and answered"({ window, editor }) {
    const other = new Other(editor, [{ tool_calls: [{ name: "bash", input: { command: "echo from elsewhere > elsewhere.txt" } }] }, { text: "Done elsewhere." }]);
    const id = await other.session(editor.project);
    const prompted = other.prompt(id, "Work elsewhere");
    const row = await window.tree("Work elsewhere");
    await row.locator(".label-description", { hasText: "waiting for you" }).waitFor();
    await window.page.locator(".statusbar-item", { hasText: "nuncio waits for you" }).waitFor();
    await row.click();
    const frame = await window.console();
    await frame.locator("#ask", { hasText: "echo from elsewhere" }).waitFor();
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done elsewhere." }).waitFor();
    await prompted;
    equal(readFileSync(editor.file("elsewhere.txt"), "utf8"), "from elsewhere\n", "what it did");
    await other.end();
    await window.page.locator(".statusbar-item", { hasText: "nuncio waits for you" }).waitFor({ state: "detached" });
  },

  async "a session is renamed and deleted in the tree"({ window, editor }) {
    editor.model([{ text: "Short." }]);
    const frame = await window.fresh();
    await window.prompt("To be renamed");
    await window.rests(frame);
    const row = await window.tree("To be renamed");
    await window.menu(row, "Rename…");
    // Not a part of the former title, which the tree may still show.
    await window.input().fill("Another title");
    await window.input().press("Enter");
    const renamed = await window.tree("Another title");
    await frame.locator("#title", { hasText: "Another title" }).waitFor();
    await window.menu(renamed, "Delete…");
    await window.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Delete" }).click();
    await renamed.waitFor({ state: "detached" });
    await frame.locator("body.home").waitFor();
  },

  async "a session is opened by words of its messages"({ window, editor }) {
    editor.model([{ text: "The capybara swims across the river." }]);
    const frame = await window.fresh();
    await window.prompt("Name an animal");
    await window.rests(frame);
    await window.fresh();
    await window.command("nuncio: Open Session", (timeout) => window.found("CAPYBARA across", "The capybara swims across the river.", timeout));
    await frame.locator(".message.assistant", { hasText: "The capybara swims" }).waitFor();
  },

  async "a selection is added with its place, and a problem can be fixed"({ window, editor }) {
    writeFileSync(editor.file("code.json"), '{\n  "a": 1,\n  "b": }\n');
    await window.openFile("code.json");
    await focusEditor(window);
    await window.page.keyboard.press("Control+Home");
    await window.page.keyboard.press("Shift+ArrowDown");
    editor.model([{ text: "Seen." }]);
    const frame = await window.fresh();
    await window.page.locator('.tab[data-resource-name="code.json"]').click();
    // The chip of the open file gives way to that of the same selection.
    await frame.locator("#attachments .context", { hasText: "code.json:1" }).waitFor();
    await window.command("nuncio: Add Selection to Conversation");
    await frame.locator("#attachments .chip button[title=Remove]").waitFor();
    const chip = frame.locator("#attachments .chip", { hasText: "code.json:1" });
    await chip.waitFor();
    equal(await chip.locator("button[title=Remove]").count(), 1, "the selection that was added");
    await window.prompt("What is this?");
    await frame.locator(".message.user .chip", { hasText: "code.json:1" }).waitFor();
    await window.rests(frame);
    await frame.locator("#prompt").fill("half a draft");
    await window.page.locator('.tab[data-resource-name="code.json"]').click();
    await window.page.locator(".editor-group-container.active .squiggly-error").first().waitFor({ state: "attached" });
    await focusEditor(window);
    const action = window.page.locator(".action-widget .monaco-list-row", { hasText: "Fix this problem with nuncio" });
    await repeated(async (timeout) => {
      await window.page.keyboard.press("Escape");
      await window.command("Go to Next Problem in Files");
      await window.page.keyboard.press("Escape");
      await window.page.keyboard.press("Control+.");
      return succeeds(action.click({ timeout }));
    }, "the code action");
    const fix = frame.locator(".message.user .said", { hasText: "Fix this problem:" });
    await fix.waitFor();
    ok((await fix.textContent()).startsWith("Fix this problem:"), `the message has the draft: ${await fix.textContent()}`);
    equal(await frame.locator("#prompt").inputValue(), "half a draft", "the draft");
    await frame.locator("#prompt").fill("");
    await window.rests(frame);
  },

  async "an explanation starts a session and leaves the draft of a new session"({ window, editor }) {
    writeFileSync(editor.file("explained.txt"), "one\ntwo\n");
    await window.openFile("explained.txt");
    await focusEditor(window);
    await window.page.keyboard.press("Control+a");
    editor.model([{ text: "Explained." }]);
    const frame = await window.fresh();
    await frame.locator("#prompt").fill("draft of a new session");
    await window.page.locator('.tab[data-resource-name="explained.txt"]').click();
    await window.command("nuncio: Explain Selection");
    await frame.locator(".message.user .said", { hasText: /^Explain explained\.txt/ }).waitFor();
    await frame.locator(".message.assistant", { hasText: "Explained." }).waitFor();
    equal(await frame.locator("#prompt").inputValue(), "", "the draft of the session");
    await window.fresh();
    equal(await frame.locator("#prompt").inputValue(), "draft of a new session", "the draft");
    await frame.locator("#prompt").fill("");
  },

  async "files that a conversation names open in the editor"({ window, editor }) {
    const lines = Array.from({ length: 80 }, (_, index) => `line ${index + 1}\n`).join("");
    for (const name of ["named.txt", "read here.txt"]) writeFileSync(editor.file(name), lines);
    writeFileSync(`${editor.dir}/outside.txt`, lines);
    const text = `See \`./named.txt:42\`, [another](read%20here.txt#L7), \`${editor.dir}/outside.txt:3\` and \`no/file.txt\`, [no](command:workbench.action.files.newUntitledFile).`;
    editor.model([{ text, ...read("named.txt") }, { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Which files?");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    const place = (line) => window.page.locator(".statusbar-item", { hasText: `Ln ${line}, Col 1` }).waitFor();
    const tab = (name) => window.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    const link = (text) => frame.locator(".markdown a.place", { hasText: text });
    await link("named.txt:42").click();
    await tab("named.txt");
    await place(42);
    await link("another").click();
    await tab("read here.txt");
    await place(7);
    await frame.locator(".tool .open-file").first().dispatchEvent("click");
    await tab("named.txt");
    await link("outside.txt").click();
    const dialog = window.page.locator(".monaco-dialog-box", { hasText: `${editor.dir}/outside.txt` });
    await dialog.waitFor();
    await dialog.locator(".monaco-button", { hasText: "Open" }).click();
    await tab("outside.txt");
    await place(3);
    await link("no/file.txt").click();
    await window.page.locator(".notification-toast", { hasText: "no/file.txt is not a file here" }).waitFor();
    equal(await frame.locator(".markdown a", { hasText: "no]" }).count() + (await frame.locator("a[href^=command]").count()), 0, "links to commands");
    await window.command("Notifications: Clear All Notifications");
    await window.command("View: Close All Editors");
  },

  async "a command and a path are completed, and a session is exported"({ window, editor }) {
    writeFileSync(editor.file("completed.txt"), "x\n");
    editor.model([{ text: "Short." }]);
    const frame = await window.fresh();
    await window.prompt("To be exported");
    await window.rests(frame);
    await frame.locator("#scroller").focus();
    await window.page.keyboard.press("Control+f");
    await window.page.keyboard.type("SHORT");
    await until(async () => (await frame.locator("#find .count").textContent()) === "1 of 1", "the text is found");
    await window.page.keyboard.press("Escape");
    const prompt = frame.locator("#prompt");
    await prompt.pressSequentially("/com");
    await frame.locator(".completion li", { hasText: "/compact" }).waitFor();
    await prompt.fill("");
    await prompt.pressSequentially("See @complet");
    // The list of a shorter word also has it, further down.
    await frame.locator(".completion li[aria-selected='true']", { hasText: "@completed.txt" }).waitFor();
    await window.screenshot("completion");
    await prompt.press("Enter");
    equal(await prompt.inputValue(), "See @completed.txt ", "the prompt");
    await prompt.fill("");
    await frame.locator("#more button").first().click();
    await frame.locator("#more .menu button", { hasText: "Export as Markdown" }).click();
    const input = window.input();
    await until(async () => (await input.inputValue().catch(() => "")).endsWith(".md"), "the dialog");
    await input.press("Enter");
    await until(() => readdirSync(editor.project).some((name) => name.endsWith(".md") && editor.read(name).includes("Short.")), "the exported file");
  },

  async "the commit message is written into the source-control box"({ window, editor }) {
    const git = (...args) => execFileSync("git", args, { cwd: editor.project, stdio: "ignore", env: { ...process.env, HOME: editor.home } });
    git("init", "-q");
    // All files of the other cases: the view draws only the rows that fit.
    git("add", "--all");
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "First");
    writeFileSync(editor.file("poem.txt"), "violets\n");
    editor.model([{ text: "Replace the poem" }]);
    await window.page.locator('.activitybar a[aria-label^="Source Control"]').click();
    await window.page.locator(".scm-view .monaco-list-row", { hasText: "poem.txt" }).waitFor();
    await window.command("nuncio: Write Commit Message with nuncio");
    await window.page.locator(".scm-editor .view-line", { hasText: "Replace the poem" }).waitFor();
    await window.nuncio();
  },

  async "text of a model, a tool and a file name is text and nothing else"({ window, editor, browser }) {
    const name = `${HOSTILE.replaceAll("/", "")}.txt`;
    const calls = [
      { name: "bash", input: { command: `echo '${HOSTILE}'` } },
      { name: "write", input: { file_path: name, content: `${HOSTILE}\n` } },
    ];
    editor.model([{ thinking: HOSTILE, text: `# ${HOSTILE}\n\n[go](javascript:window.hacked=1) ![i](https://elsewhere.test/i.png)\n\n\`\`\`${HOSTILE}\n${HOSTILE}\n\`\`\`\n`, tool_calls: calls }, { text: "Done." }]);
    const frame = await window.fresh();
    await frame.evaluate(() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
    });
    await frame.locator("#prompt").fill(HOSTILE);
    await frame.locator("#send").click();
    await answer(frame, "Allow");
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    await window.rests(frame);
    ok((await frame.locator(".message.assistant .h1").first().textContent()).includes("<img src=x onerror="), "the text is not shown as it is");
    equal(await frame.evaluate(() => document.querySelectorAll("#app img, #app script, #app iframe").length), 0, "elements made from text");
    equal(await frame.evaluate(() => [window.hacked ?? null, window.violations]), [null, []], "what it did");
    equal(await frame.evaluate(() => {
      try {
        document.body.innerHTML = "x";
        return "made";
      } catch {
        return "refused";
      }
    }), "refused", "markup");
    equal(await window.page.evaluate(() => window.hacked ?? null), null, "in the workbench");
    ok(existsSync(editor.file(name)), "the file is there");
    browser.complaints.length = 0;
  },

  async "text of a model and a title is no link and no icon in the UI of VS Code"({ window, editor }) {
    const command = "echo ok # [Show the change](command:workbench.action.files.newUntitledFile) $(alert) \u202eesrever";
    const shown = "[Show the change] (command:workbench.action.files.newUntitledFile) $ (alert) esrever";
    // The texts are compared without case, and a new session is "Untitled".
    const title = "Labelled [x](command:y) $(alert) \u202eesrever";
    const shownTitle = "Labelled [x] (command:y) $ (alert) esrever";
    editor.model([{ tool_calls: [{ name: "bash", input: { command } }] }, { text: "Done." }]);
    const frame = await window.fresh();
    // A notification is shown while the window has no focus.
    const focus = (has) => window.page.evaluate((has) => {
      document.hasFocus = () => has;
      document.dispatchEvent(new Event("visibilitychange"));
    }, has);
    await focus(false);
    await frame.locator("#prompt").fill(title);
    await frame.locator("#send").dispatchEvent("click");
    const toast = window.page.locator(".notification-toast", { hasText: "nuncio waits for an answer" });
    await toast.waitFor();
    await focus(true);
    ok((await toast.innerText()).includes(shown), await toast.innerText());
    equal(await toast.locator(".notification-list-item-message a").count(), 0, "links in the notification");
    const row = await window.tree("Labelled");
    ok((await row.innerText()).includes(shownTitle), await row.innerText());
    equal(await row.locator(".codicon-alert").count(), 0, "icons in the tree");
    await window.command("nuncio: Open Session…", async (timeout) => {
      const entry = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Labelled" }).first();
      if (!(await succeeds(entry.waitFor({ timeout })))) return false;
      ok((await entry.innerText()).includes(shownTitle), await entry.innerText());
      equal(await entry.locator(".codicon-alert").count(), 0, "icons in the quick pick");
      await window.page.keyboard.press("Escape");
      return true;
    });
    await focus(false);
    await answer(frame, "Allow");
    await frame.locator(".message.assistant", { hasText: "Done." }).waitFor();
    const done = window.page.locator(".notification-toast", { hasText: `nuncio is done: ${shownTitle}` });
    await done.waitFor();
    await focus(true);
    await window.command("Notifications: Clear All Notifications");
    await window.command("nuncio: Open Conversation in an Editor Tab");
    const tab = window.page.locator(".tab.active", { hasText: "Labelled" });
    await tab.waitFor();
    ok((await tab.innerText()).includes(shownTitle), await tab.innerText());
    await tab.locator(".tab-actions a").first().click();
    await tab.waitFor({ state: "detached" });
  },

  async "the view has the colours of each theme and fits 300 px"({ window, editor }) {
    writeFileSync(editor.file("theme.rs"), "fn main() {\n    let first = 1;\n}\n");
    const text = "# Heading\n\nSome `code` and a [link](https://example.org).\n\n```rust\nfn a_rather_long_function_name(parameter: &str) -> Result<String, Error> {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
    editor.model([{ text, tool_calls: [{ name: "bash", input: { command: "echo a" } }] }, edit("theme.rs", "let first = 1", "let second = 2"), { text: "Done." }]);
    const frame = await window.fresh();
    await window.prompt("Show everything");
    await answer(frame, "Allow");
    await frame.locator("#ask .diff").waitFor();
    for (const [theme, name] of [["Dark Modern", "dark"], ["Dark High Contrast", "high-contrast"], ["Light High Contrast", "high-contrast-light"], ["Light Modern", "light"]]) {
      await window.theme(theme);
      await until(() => frame.evaluate((name) => document.body.classList.contains(`vscode-${name}`), name), theme);
      const [view, side] = await until(async () => {
        const view = await frame.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const side = await frame.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--vscode-sideBar-background"));
        const parsed = await frame.evaluate((colour) => Object.assign(document.createElement("i").style, { color: colour }).color, side);
        return view === parsed ? [view, parsed] : null;
      }, `the background in ${name}`);
      equal(view, side, name);
      const least = await frame.evaluate(leastContrast, "#ask .diff .text");
      ok(least >= 4.5, `the contrast of the changed lines is ${least.toFixed(2)} in ${name}`);
      equal(await violations(frame), [], `what axe finds in a question in ${name}`);
      equal(await frame.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `sideways in ${name}`);
      ok((await frame.evaluate(() => innerWidth)) <= 310, "the view is wider than 310 px");
      equal(await frame.evaluate(() => document.getElementById("composer").getBoundingClientRect().bottom <= innerHeight), true, `the prompt is visible in ${name}`);
      await window.screenshot(`theme-${name}`);
    }
    await answer(frame, "Reject");
    await window.rests(frame);
    for (const [theme, name] of [["Dark High Contrast", "high-contrast"], ["Light Modern", "light"]]) {
      await window.theme(theme);
      await until(() => frame.evaluate((name) => document.body.classList.contains(`vscode-${name}`), name), theme);
      equal(await violations(frame), [], `what axe finds in a conversation in ${name}`);
    }
    await window.command("nuncio: Open Conversation in an Editor Tab");
    await window.page.locator(".tab", { hasText: "Show everything" }).waitFor();
    const isShown = () => document.body?.classList.contains("in-editor") && !!document.querySelector(".message.assistant") && document.getElementById("conversation").matches("[aria-busy=false]") && document.getElementById("conversation").textContent.includes("Done.");
    const tab = await until(async () => {
      for (const frame of window.page.frames()) if (await frame.evaluate(isShown).catch(() => false)) return frame;
      return null;
    }, "the conversation in the tab");
    const size = window.page.viewportSize();
    for (const width of [640, 1280]) {
      // The side bar and the borders have the rest of the window.
      const rest = window.page.viewportSize().width - (await tab.evaluate(() => innerWidth));
      await window.page.setViewportSize({ ...size, width: width + rest });
      await until(async () => Math.abs((await tab.evaluate(() => innerWidth)) - width) < 10, `the tab has ${width} px`);
      equal(await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `sideways in ${width} px`);
      equal(await violations(tab), [], `what axe finds in ${width} px`);
      await window.screenshot(`tab-${width}`);
    }
    await window.page.setViewportSize(size);
    await window.page.locator(".tab", { hasText: "Show everything" }).locator(".tab-actions a").first().click();
  },
};

export { WAIT_MS };
