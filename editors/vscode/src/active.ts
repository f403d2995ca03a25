// The session that the conversation shows, for the status item, the pickers and the changed files.

import * as vscode from "vscode";
import { SessionState } from "console/state.js";
import type { Api } from "./api";

const TYPES = "session.*,turn.*,tool.started,tool.completed,permission.*,usage.*,mode.*";

/** A file that a session has changed. */
export interface FileChanges {
  path: string;
  /** null: the file did not exist. */
  oldText: string | null;
  newText: string;
}

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

  /**
   * Returns the files that the session has changed, each with its text before. For a file whose text
   * the user has kept, that is the text before; `isKept` is true for the text of a file.
   */
  changes(isKept: (path: string, text: string) => boolean): FileChanges[] {
    const files = new Map<string, FileChanges>();
    for (const item of this.state?.items ?? []) {
      if (item.kind !== "tool" || item.status !== "completed") continue;
      for (const { type, path, oldText, newText } of item.content) {
        if (type !== "diff" || typeof newText !== "string") continue;
        const known = files.get(path) ?? { path, oldText: oldText ?? null, newText };
        known.newText = newText;
        if (isKept(path, newText)) known.oldText = newText;
        files.set(path, known);
      }
    }
    return [...files.values()].filter((file) => file.oldText !== file.newText);
  }
}
