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
