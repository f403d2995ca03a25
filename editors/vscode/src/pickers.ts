// Quick picks: sessions, and the settings of the session that the conversation shows.

import * as vscode from "vscode";
import type { ActiveSession } from "./active";
import type { Api } from "./api";
import { ago, type Sessions } from "./sessions";
import { choose, notify, search } from "./ui";

interface Option {
  value: string;
  name?: string;
  description?: string;
}

/** Shows choices; the current one is marked. Returns the chosen value. */
function pick(title: string, options: Option[], current: string | undefined): Promise<string | undefined> {
  const isCurrent = (value: string) => (value === current ? vscode.l10n.t("current") : undefined);
  return choose(title, options.map(({ value, name, description }) => ({ value, label: name ?? value, description: isCurrent(value), detail: description })));
}

/** Picks a setting of the shown session: `mode`, `model` or `thinking`. */
export async function pickOption(api: Api, active: ActiveSession, id: "mode" | "model" | "thinking", title: string): Promise<void> {
  const { id: sessionId } = active;
  if (!sessionId) {
    void notify(vscode.l10n.t("Open a session first. The settings of a new session are below its prompt."));
    return;
  }
  const { configOptions = [] } = await api.call("session/resume", { sessionId, cwd: "" });
  // Options of a hosted agent have a prefix, except its mode.
  const option = configOptions.find((one: any) => one.id === `agent.${id}`) ?? configOptions.find((one: any) => one.id === id);
  if (!option?.options?.length) {
    void notify(vscode.l10n.t("This session offers no choices."));
    return;
  }
  const value = await pick(title, option.options, option.currentValue);
  if (value === undefined) return;
  if (option.id === "mode") await api.call("session/set_mode", { sessionId, modeId: value });
  else await api.call("session/set_config_option", { sessionId, configId: option.id, value });
}

/** Picks an agent for a new session. Returns its name. */
export async function pickAgent(api: Api): Promise<string | undefined> {
  const { agents } = await api.call("_nuncio/agent/list");
  const choices = agents.map(({ name, kind, problem }: any) => ({ value: name, description: problem ?? (kind === "native" ? vscode.l10n.t("nuncio's own agent") : kind) }));
  return pick(vscode.l10n.t("Agent of the new session"), choices, undefined);
}

/** Picks one of the sessions, the latest first, also by words of its messages. Returns its id. */
export async function pickSession(api: Api, sessions: Sessions): Promise<string | undefined> {
  await sessions.loadMore();
  const items = sessions.ordered.map((row) => ({
    label: row.title || vscode.l10n.t("Untitled"),
    icon: row.waiting ? "bell-dot" : row.status === "busy" ? "loading~spin" : "comment-discussion",
    description: ago(row.updatedMs),
    detail: row.cwd,
    value: row.id,
  }));
  return search(vscode.l10n.t("Open a session"), items, async (text) => {
    const { sessions: found } = await api.call("session/list", { _meta: { nuncio: { text } } });
    return found.map(({ sessionId, title, updatedAt, cwd, excerpt }: any) => ({
      label: title || vscode.l10n.t("Untitled"),
      icon: "search",
      description: ago(Date.parse(updatedAt)),
      detail: excerpt ?? cwd,
      value: sessionId,
    }));
  });
}
