// The status bar item: mode, model, used context, cost, and whether a session waits for the user.

import * as vscode from "vscode";
import type { ActiveSession } from "./active";
import type { Agent } from "./agent";
import type { Sessions } from "./sessions";
import { StatusBar } from "./ui";

/** The short name of a model: the last part of `PROVIDER/NAME`. */
const shortName = (model: string) => model.replace(/^[^/:]*[/:]/, "").split("/").pop() || model;

/** Formats dollars: two decimals, and two significant digits below ten cents. */
export function dollars(cost: number): string {
  return `$${cost.toFixed(cost === 0 || cost >= 0.1 ? 2 : 1 - Math.floor(Math.log10(cost)))}`;
}

export class StatusItem implements vscode.Disposable {
  private readonly item = new StatusBar("nuncio.status", "nuncio");
  /** The model of new sessions. */
  defaultModel: string | null = null;

  constructor(
    private readonly agent: Agent,
    private readonly active: ActiveSession,
    private readonly sessions: Sessions,
  ) {
    agent.onDidChangeState(() => this.draw());
    active.onDidChange(() => this.draw());
    sessions.onDidChange(() => this.draw());
    this.draw();
  }

  dispose(): void {
    this.item.dispose();
  }

  draw(): void {
    const { state, running } = { state: this.active.state, running: this.agent.state.running };
    const { problem } = this.agent.state;
    const idle = { text: "nuncio", command: "nuncio.open", isWarning: false };
    if (problem) {
      const tooltip = problem === "untrusted" ? vscode.l10n.t("nuncio is not started in an untrusted workspace") : vscode.l10n.t("nuncio is not running");
      return this.item.show({ ...idle, icon: "warning", tooltip: [tooltip] });
    }
    if (!running) return this.item.show({ ...idle, icon: "loading~spin", tooltip: [vscode.l10n.t("nuncio is starting")] });
    const waiting = this.sessions.waiting.length;
    const model = state?.model ?? state?.usage?.model ?? this.defaultModel;
    const used = state?.usage?.contextWindow ? Math.round((100 * state.usage.contextTokens) / state.usage.contextWindow) : null;
    const cost = state?.spent.cost ?? null;
    const facts = [state?.mode, state?.agent ?? (model && shortName(model)), used !== null && `${used}%`, cost !== null && dollars(cost)].filter(Boolean);
    const icon = waiting ? "bell-dot" : state?.busy ? "loading~spin" : "comment-discussion";
    const text = [waiting ? vscode.l10n.t("nuncio waits for you") : "nuncio", ...facts].join(" · ");
    const lines = [
      waiting && vscode.l10n.t("{0} sessions wait for an answer", waiting),
      state?.mode && vscode.l10n.t("Mode: {0}", state.mode),
      model && vscode.l10n.t("Model: {0}", model),
      used !== null && vscode.l10n.t("Context: {0} of {1} tokens", state!.usage.contextTokens, state!.usage.contextWindow),
      cost !== null && vscode.l10n.t("Cost: {0}", dollars(cost)),
    ];
    const tooltip = lines.filter((line) => typeof line === "string" && line !== "");
    this.item.show({ icon, text, tooltip: tooltip.length ? tooltip : ["nuncio"], command: waiting ? "nuncio.session.answer" : "nuncio.open", isWarning: waiting > 0 });
  }
}
