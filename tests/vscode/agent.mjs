// Another nuncio process with the data of an editor's installation, which speaks ACP.

import { spawn } from "node:child_process";
import { once } from "node:events";

export class Other {
  constructor(editor, steps) {
    const model = editor.write(`other-${Math.random().toString(36).slice(2)}.json`, steps);
    const args = ["acp", "--cwd", editor.project, "--model", `scripted:${model}`];
    this.child = spawn(editor.nuncio, args, { env: { ...process.env, NUNCIO_HOME: editor.data }, stdio: ["pipe", "pipe", "ignore"] });
    this.pending = new Map();
    this.last = 0;
    let rest = "";
    this.child.stdout.on("data", (bytes) => {
      const lines = (rest + bytes).split("\n");
      rest = lines.pop();
      for (const message of lines.map((line) => JSON.parse(line))) if (!message.method) this.pending.get(message.id)?.(message);
    });
  }

  async call(method, params) {
    const id = ++this.last;
    const answered = new Promise((resolve) => this.pending.set(id, resolve));
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const { result, error } = await answered;
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async session(cwd) {
    await this.call("initialize", { protocolVersion: 1 });
    return (await this.call("session/new", { cwd, mcpServers: [] })).sessionId;
  }

  prompt(sessionId, text) {
    return this.call("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  async end() {
    const ended = once(this.child, "exit");
    this.child.stdin.end();
    await ended;
  }
}
