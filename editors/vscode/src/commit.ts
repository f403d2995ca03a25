// The commit message: a session without tools writes it from the diff into the source-control box.

import * as vscode from "vscode";
import type { Api } from "./api";
import { changesOf, repositoryOf } from "./git";
import type { Sessions } from "./sessions";
import { setCommitMessage, withProgress } from "./ui";

const DIFF_CHARS_MAX = 100_000;
const PROMPT = `Write a commit message for this diff. First line: at most 72 characters, in the imperative. Then, only if the reason is not obvious, an empty line and why the change is made. Answer with the message alone: no quotes, no fences.`;

/** Waits for the end of a turn of the session. */
function turnEnd(sessions: Sessions, id: string, cancelled: vscode.CancellationToken): Promise<void> {
  return new Promise((resolve, reject) => {
    const listeners: vscode.Disposable[] = [];
    const end = (error?: Error) => {
      for (const one of listeners) one.dispose();
      if (error) reject(error);
      else resolve();
    };
    listeners.push(
      sessions.onEvent(({ sessionId, body }) => {
        if (sessionId !== id) return;
        if (body.type === "turn.completed") end();
        else if (/^turn\.(failed|cancelled|interrupted)$/.test(body.type)) end(new Error(body.message ?? "the turn was stopped"));
      }),
      cancelled.onCancellationRequested(() => end(new vscode.CancellationError())),
    );
  });
}

/** Removes fences and quotes around an answer. */
export const plainMessage = (answer: string) => answer.trim().replace(/^```\w*\n([\s\S]*?)\n?```$/, "$1").trim();

/** Writes a message for the staged changes, or for all changes if none are staged. */
export async function writeCommitMessage(api: Api, sessions: Sessions, control?: vscode.SourceControl): Promise<void> {
  const repository = await repositoryOf(control);
  if (!repository) throw new Error(vscode.l10n.t("this folder has no git repository"));
  const diff = await changesOf(repository);
  if (!diff.trim()) throw new Error(vscode.l10n.t("there are no changes to describe"));
  await withProgress(vscode.l10n.t("Writing a commit message"), async (cancelled) => {
    const { sessionId } = await api.call("session/new", { cwd: repository.rootUri.fsPath, _meta: { nuncio: { mode: "plan", title: "Commit message" } } });
    sessions.hidden.add(sessionId);
    try {
      await api.call("_nuncio/session/configure", { sessionId, tools: [] });
      const ended = turnEnd(sessions, sessionId, cancelled);
      const parts = [{ type: "text", text: `${PROMPT}\n\n${diff.slice(0, DIFF_CHARS_MAX)}` }];
      await Promise.all([ended, api.call("_nuncio/session/message", { sessionId, parts })]);
      const { answer } = await api.call("_nuncio/session/result", { sessionId });
      const message = plainMessage(answer);
      if (message) setCommitMessage(repository.inputBox, message);
    } finally {
      await api.call("session/delete", { sessionId }).catch(() => {});
      sessions.hidden.delete(sessionId);
    }
  });
}
