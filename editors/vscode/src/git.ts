// Changes in git, through VS Code's git extension.

import { readFile, stat } from "node:fs/promises";
import { relative } from "node:path";
import * as vscode from "vscode";

/** The status of a file that git does not know (Status.UNTRACKED of the git extension). */
const UNTRACKED = 7;
const NEW_FILES_MAX = 50;
const NEW_FILE_BYTES_MAX = 40_000;

interface Change {
  uri: vscode.Uri;
  status: number;
}

/** The part of the API of VS Code's git extension that is used. */
export interface Repository {
  rootUri: vscode.Uri;
  inputBox: { value: string };
  diff(cached?: boolean): Promise<string>;
  state: { indexChanges: unknown[]; workingTreeChanges: Change[]; untrackedChanges?: Change[] };
}

/** Returns the repository of a source control, of the active editor, or the first one. */
export async function repositoryOf(control?: vscode.SourceControl, path?: string): Promise<Repository | null> {
  const extension = vscode.extensions.getExtension<{ getAPI(version: 1): { repositories: Repository[] } }>("vscode.git");
  const git = (await extension?.activate())?.getAPI(1);
  const repositories = git?.repositories ?? [];
  const file = path ? `${path}/` : (vscode.window.activeTextEditor?.document.uri.fsPath ?? "");
  const root = control?.rootUri?.toString();
  return repositories.find((one) => one.rootUri.toString() === root) ?? repositories.find((one) => file.startsWith(`${one.rootUri.fsPath}/`)) ?? repositories[0] ?? null;
}

/** Returns a new file as git would show it once it was added. */
async function newFile(repository: Repository, uri: vscode.Uri): Promise<string> {
  const path = relative(repository.rootUri.fsPath, uri.fsPath);
  const head = `diff --git a/${path} b/${path}\nnew file\n--- /dev/null\n+++ b/${path}\n`;
  const found = await stat(uri.fsPath).catch(() => null);
  if (!found?.isFile() || found.size > NEW_FILE_BYTES_MAX) return `${head}[${found?.isFile() ? `${found.size} bytes` : "not a file"}]\n`;
  const text = await readFile(uri.fsPath, "utf8").catch(() => "");
  if (text.includes("\0")) return `${head}[binary]\n`;
  return head + text.split("\n").map((line, index, all) => (index === all.length - 1 && line === "" ? "" : `+${line}\n`)).join("");
}

/** Returns the staged changes, or all changes with new files if none are staged. */
export async function changesOf(repository: Repository): Promise<string> {
  const { indexChanges, workingTreeChanges, untrackedChanges = [] } = repository.state;
  if (indexChanges.length) return repository.diff(true);
  const created = [...workingTreeChanges.filter(({ status }) => status === UNTRACKED), ...untrackedChanges].slice(0, NEW_FILES_MAX);
  const texts = await Promise.all(created.map(({ uri }) => newFile(repository, uri)));
  return [await repository.diff(false), ...texts].filter(Boolean).join("\n");
}

/** Returns the changes in the repository of a directory; null without a repository. */
export async function gitDiff(cwd: string): Promise<string | null> {
  const repository = await repositoryOf(undefined, cwd);
  return repository && changesOf(repository);
}
