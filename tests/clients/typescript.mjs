// Drives nuncio with the official TypeScript SDK, over standard input and output:
// initialize, new, a prompt with an allowed call, one with a rejected call, a cancel while it streams, a cancel while it asks,
// then load and prompt in a second process, and in a third an edit of a file that the client has open and not saved. `node typescript.mjs NUNCIO`; exits with 1 and the reason when something does not hold.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import * as acp from "@agentclientprotocol/sdk";

const nuncio = process.argv[2];
const home = mkdtempSync(join(tmpdir(), "nuncio-home-"));
const cwd = realpathSync(mkdtempSync(join(tmpdir(), "nuncio-work-")));
const { agent: call } = acp.methods;

setTimeout(() => {
  console.error("no end after 60 s");
  process.exit(1);
}, 60_000).unref();

// One process of nuncio with a client; `work` gets the agent, the updates so far, and says how questions are answered.
// `buffers`: files that the client has open, by path.
async function connected(script, work, buffers) {
  const model = "scripted:" + fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(nuncio, ["acp", "--model", model], { env: { ...process.env, NUNCIO_HOME: home }, stdio: ["pipe", "pipe", "inherit"] });
  const client = { updates: [], questions: [], onUpdate: () => {}, answer: () => assert.fail("a question that was not expected") };
  const file = ({ path }) => buffers.get(path) ?? readFileSync(path, "utf8");
  await acp
    .client({ name: "nuncio's test" })
    .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => ({ content: file(params) }))
    .onRequest(acp.methods.client.fs.writeTextFile, ({ params }) => {
      buffers.set(params.path, params.content);
      return {};
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      client.updates.push(params.update);
      client.onUpdate(params.update);
    })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      client.questions.push(params);
      return { outcome: await client.answer(params.options) };
    })
    .connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (agent) => {
      const initialized = await agent.request(call.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: buffers ? { fs: { readTextFile: true, writeTextFile: true } } : {},
        clientInfo: { name: "nuncio-test", version: "1" },
      });
      assert.equal(initialized.protocolVersion, 1);
      assert.equal(initialized.agentInfo.name, "nuncio");
      assert.equal(initialized.agentCapabilities.loadSession, true);
      await work(agent, client);
    });
  child.stdin.end();
  const [code] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  assert.equal(code, 0, "nuncio ends with 0 at the end of its input");
}

// The SDK hands out an update some ticks after it came: an answer that came later may be out before it.
const handedOut = () => setImmediate();

const choose = (kind) => (options) => {
  const option = options.find((option) => option.kind === kind);
  assert.ok(option, `an option ${kind} in ${JSON.stringify(options)}`);
  return { outcome: "selected", optionId: option.optionId };
};
const text = (updates, kind) => updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");
const calls = (updates) => {
  const all = new Map();
  for (const { sessionUpdate, ...fields } of updates) {
    if (sessionUpdate === "tool_call" || sessionUpdate === "tool_call_update") all.set(fields.toolCallId, { ...all.get(fields.toolCallId), ...fields });
  }
  return [...all.values()];
};

let sessionId;

await connected("script.json", async (agent, client) => {
  ({ sessionId } = await agent.request(call.session.new, { cwd, mcpServers: [] }));
  const prompt = async (words, answer, onUpdate = () => {}) => {
    Object.assign(client, { updates: [], questions: [], answer, onUpdate });
    const { stopReason } = await agent.request(call.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
    await handedOut();
    return { stopReason, updates: [...client.updates] };
  };
  const cancel = () => agent.notify(call.session.cancel, { sessionId });

  const allowed = await prompt("Please write the file.", choose("allow_once"));
  assert.equal(allowed.stopReason, "end_turn");
  assert.equal(text(allowed.updates, "agent_thought_chunk"), "A file is wanted.");
  assert.equal(text(allowed.updates, "agent_message_chunk"), "I will write it.It is written.");
  assert.equal(readFileSync(join(cwd, "made.txt"), "utf8"), "made by a client\n");
  assert.equal(client.questions.length, 1);
  assert.equal(client.questions[0].sessionId, sessionId);
  const [made] = calls(allowed.updates);
  assert.equal(client.questions[0].toolCall.toolCallId, made.toolCallId);
  assert.deepEqual([made.kind, made.status], ["execute", "completed"]);
  const statuses = allowed.updates.filter((update) => update.toolCallId).flatMap((update) => update.status ?? []);
  assert.deepEqual(statuses, ["pending", "in_progress", "completed"], "editors read the first status too: what is not pending, they show as running");
  assert.match(JSON.stringify(made.content), /made by a client/);

  const rejected = await prompt("Now remove it.", choose("reject_once"));
  assert.equal(rejected.stopReason, "end_turn");
  assert.equal(calls(rejected.updates)[0].status, "failed");
  assert.ok(existsSync(join(cwd, "made.txt")), "a rejected call does nothing");

  let stopped = false;
  const cancelled = await prompt("Talk.", undefined, (update) => {
    if (update.sessionUpdate === "agent_message_chunk" && !stopped) stopped = (cancel(), true);
  });
  assert.equal(cancelled.stopReason, "cancelled");
  const said = text(cancelled.updates, "agent_message_chunk");
  assert.ok(said.length > 0 && said.length < 100, `cut short: ${said}`);

  const unanswered = await prompt("Wait.", async () => (await cancel(), { outcome: "cancelled" }));
  assert.equal(unanswered.stopReason, "cancelled");
  assert.equal(calls(unanswered.updates)[0].status, "failed");
  assert.ok(!existsSync(join(cwd, "asked.txt")), "a call whose question was cancelled does nothing");
});

await connected("resume.json", async (agent, client) => {
  const { sessions } = await agent.request(call.session.list, { cwd });
  assert.deepEqual(sessions.map((session) => session.sessionId), [sessionId]);
  await agent.request(call.session.load, { sessionId, cwd, mcpServers: [] });
  await handedOut();
  const replayed = [...client.updates];
  assert.equal(text(replayed, "user_message_chunk"), "Please write the file.Now remove it.Talk.Wait.");
  assert.match(text(replayed, "agent_message_chunk"), /^I will write it\.It is written\.I will remove it\.It stays\.A/);
  assert.equal(text(replayed, "agent_thought_chunk"), "A file is wanted.");
  assert.deepEqual(calls(replayed).map((call) => call.status), ["completed", "failed", "failed"]);
  assert.match(JSON.stringify(calls(replayed)[0].content), /made by a client/);

  client.updates.length = 0;
  const { stopReason } = await agent.request(call.session.prompt, { sessionId, prompt: [{ type: "text", text: "Do you remember?" }] });
  await handedOut();
  assert.equal(stopReason, "end_turn");
  assert.equal(text(client.updates, "agent_message_chunk"), "I remember.");
});

const open = join(cwd, "open.txt");
writeFileSync(open, "saved\n");
const buffers = new Map([[open, "typed\nsaved\n"]]);
await connected(
  "unsaved_buffer.json",
  async (agent, client) => {
    client.answer = choose("allow_once");
    const { sessionId } = await agent.request(call.session.new, { cwd, mcpServers: [] });
    const { stopReason } = await agent.request(call.session.prompt, { sessionId, prompt: [{ type: "text", text: "Edit it." }] });
    await handedOut();
    assert.equal(stopReason, "end_turn");
    assert.equal(text(client.updates, "agent_message_chunk"), "It is edited.");
    assert.deepEqual(calls(client.updates).map((call) => call.status), ["completed", "completed"]);
    assert.deepEqual(calls(client.updates)[1].content, [{ type: "diff", path: open, oldText: "typed\nsaved\n", newText: "edited\nsaved\n" }]);
  },
  buffers,
);
assert.equal(buffers.get(open), "edited\nsaved\n");
assert.equal(readFileSync(open, "utf8"), "saved\n", "saving is the user's");
