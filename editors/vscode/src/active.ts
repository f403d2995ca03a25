// The session that the conversation shows, for the status item, the pickers and the changed files.

import * as vscode from "vscode";
import { SessionState } from "console/state.js";
import type { Api } from "./api";

const TYPES = "session.*,turn.*,tool.started,tool.completed,permission.*,usage.*,mode.*";

export class ActiveSession implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  id: string | null = null;
  state: SessionState | null = null;
  private stream: vscode.Disposable | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly api: Api) {}

  dispose(): void {
    this.stream?.dispose();
    clearTimeout(this.timer ?? undefined);
  }

  /** Follows another session; null for none. */
  show(id: string | null): void {
    if (id === this.id) return;
    this.stream?.dispose();
    this.stream = null;
    this.id = id;
    this.state = id ? new SessionState(id) : null;
    if (id && this.state) {
      const { state } = this;
      const sink = {
        event: (event: unknown) => {
          state.on(event);
          // Nothing is drawn from this state.
          state.changed.clear();
          this.fire();
        },
        synced: () => this.fire(),
        // The log does not have the cursor, for example after a crash: start from the beginning.
        refused: () => {
          if (this.id !== id) return;
          this.id = null;
          if (state.seq) this.show(id);
        },
      };
      this.stream = this.api.agent.follow({ sessionId: id, types: TYPES }, sink);
    }
    this.fire();
  }

  private fire(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.changed.fire();
    }, 50);
  }

  /** Returns the files that the last turn with changes has changed, each with its text before. */
  get changes(): { path: string; oldText: string | null; newText: string }[] {
    const tools = (this.state?.items ?? []).filter((item) => item.kind === "tool" && item.status === "completed" && item.content.some((one: any) => one.type === "diff"));
    const turn = tools.at(-1)?.turnId;
    const files = new Map<string, { path: string; oldText: string | null; newText: string }>();
    for (const item of tools) {
      if (item.turnId !== turn) continue;
      for (const { type, path, oldText, newText } of item.content) {
        if (type !== "diff") continue;
        const known = files.get(path);
        if (known) known.newText = newText;
        else files.set(path, { path, oldText: oldText ?? null, newText });
      }
    }
    return [...files.values()].filter((file) => file.oldText !== file.newText);
  }
}
