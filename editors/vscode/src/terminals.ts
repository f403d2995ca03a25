// The variables with which terminals of the window find the session that the view shows. They have
// the names and the meaning of the variables of nuncio's commands.

import * as vscode from "vscode";
import type { ActiveSession } from "./active";

export class TerminalVariables {
  /** The URL of nuncio's HTTP server, if `nuncio.args` starts one. */
  url: string | null = null;
  private current = "{}";

  constructor(
    private readonly collection: vscode.EnvironmentVariableCollection,
    private readonly active: ActiveSession,
  ) {
    collection.persistent = false;
    collection.description = vscode.l10n.t("Session that the view of nuncio shows");
    active.onDidChange(() => this.update());
  }

  /** Updates the variables if they change: each update marks the open terminals as outdated. */
  update(): void {
    const { id, state } = this.active;
    // The directory is known after the first event.
    if (id && !state?.cwd) return;
    const variables: Record<string, string> = id && state ? { NUNCIO_SESSION: id, NUNCIO_WORKSPACE: state.cwd as string, ...(this.url && { NUNCIO_HTTP: this.url }) } : {};
    const next = JSON.stringify(variables);
    if (next === this.current) return;
    this.current = next;
    this.collection.clear();
    for (const [name, value] of Object.entries(variables)) this.collection.replace(name, value);
  }
}

/** The last command of each terminal with shell integration, and its output. */
export class TerminalOutput implements vscode.Disposable {
  private readonly outputs = new Map<vscode.Terminal, string>();
  private readonly disposables: vscode.Disposable[];

  constructor() {
    this.disposables = [
      vscode.window.onDidStartTerminalShellExecution((event) => void this.record(event)),
      vscode.window.onDidCloseTerminal((terminal) => this.outputs.delete(terminal)),
    ];
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
  }

  private async record({ terminal, execution }: vscode.TerminalShellExecutionStartEvent): Promise<void> {
    let text = `$ ${execution.commandLine.value}\n`;
    this.outputs.set(terminal, text);
    for await (const data of execution.read()) {
      text = shortened(text + data);
      this.outputs.set(terminal, text);
    }
  }

  /** Returns the last command of the active terminal, with its output; null if it is not known. */
  async last(): Promise<string | null> {
    const terminal = vscode.window.activeTerminal ?? [...this.outputs.keys()].at(-1);
    const text = terminal && this.outputs.get(terminal);
    return text ? text.replace(SEQUENCES, "").replace(/\r\n/g, "\n") : null;
  }
}

const OUTPUT_MAX = 64 << 10;
/** Control sequences of terminals: CSI, OSC, and those of two characters. */
// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]/g;

/** Keeps the end of a long output. */
const shortened = (text: string) => (text.length > OUTPUT_MAX ? text.slice(text.length - OUTPUT_MAX) : text);
