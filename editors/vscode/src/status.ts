// The status bar item: mode, model, used context, cost, and whether a session waits for the user.

import * as vscode from "vscode";
import type { ActiveSession } from "./active";
import type { Agent } from "./agent";
import type { Sessions } from "./sessions";

/** The short name of a model: the last part of `PROVIDER/NAME`. */
const shortName = (model: string) => model.replace(/^[^/:]*[/:]/, "").split("/").pop() || model;

/** Formats dollars: two decimals, and two significant digits below ten cents. */
export function dollars(cost: number): string {
  return `$${cost.toFixed(cost === 0 || cost >= 0.1 ? 2 : 1 - Math.floor(Math.log10(cost)))}`;
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("nuncio.status", vscode.StatusBarAlignment.Right, 100);
  /** The model of new sessions. */
  defaultModel: string | null = null;

  constructor(
    private readonly agent: Agent,
    private readonly active: ActiveSession,
    private readonly sessions: Sessions,
  ) {
    this.item.name = "nuncio";
    agent.onDidChangeState(() => this.draw());
    active.onDidChange(() => this.draw());
    sessions.onDidChange(() => this.draw());
    this.draw();
  }

  dispose(): void {
    this.item.dispose();
  }

  draw(): void {
    const { item } = this;
    const { state, running } = { state: this.active.state, running: this.agent.state.running };
    item.command = "nuncio.open";
    item.backgroundColor = undefined;
    item.show();
    const { problem } = this.agent.state;
    if (problem) {
      item.text = "$(warning) nuncio";
      item.tooltip = problem === "untrusted" ? vscode.l10n.t("nuncio is not started in an untrusted workspace") : vscode.l10n.t("nuncio is not running");
      return;
    }
    if (!running) {
      item.text = "$(loading~spin) nuncio";
      item.tooltip = vscode.l10n.t("nuncio is starting");
      return;
    }
    const waiting = this.sessions.waiting.length;
    const model = state?.model ?? state?.usage?.model ?? this.defaultModel;
    const used = state?.usage?.contextWindow ? Math.round((100 * state.usage.contextTokens) / state.usage.contextWindow) : null;
    const cost = state?.spent.cost ?? null;
    const facts = [state?.mode, state?.agent ?? (model && shortName(model)), used !== null && `${used}%`, cost !== null && dollars(cost)].filter(Boolean);
    const glyph = waiting ? "$(bell-dot)" : state?.busy ? "$(loading~spin)" : "$(comment-discussion)";
    item.text = [glyph, waiting ? vscode.l10n.t("nuncio waits for you") : "nuncio", ...(facts.length ? [`· ${facts.join(" · ")}`] : [])].join(" ");
    if (waiting) {
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
      item.command = "nuncio.session.answer";
    }
    const lines = [
      waiting && vscode.l10n.t("{0} sessions wait for an answer", waiting),
      state?.mode && vscode.l10n.t("Mode: {0}", state.mode),
      model && vscode.l10n.t("Model: {0}", model),
      used !== null && vscode.l10n.t("Context: {0} of {1} tokens", state!.usage.contextTokens, state!.usage.contextWindow),
      cost !== null && vscode.l10n.t("Cost: {0}", dollars(cost)),
    ];
    item.tooltip = lines.filter(Boolean).join("\n") || "nuncio";
  }
}
