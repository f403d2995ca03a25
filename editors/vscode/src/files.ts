// Files of the editor for nuncio: reads come from open documents, and writes are edits of documents,
// so that undo, carets, encoding, line endings and format-on-save are kept.

import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import * as acp from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import { smallestEdit, withLineEnding } from "./edit";

/** How long a document may take to show a change on disk. */
const RELOAD_MS = 1000;

/** Returns the open document of a path. */
function openDocument(path: string): vscode.TextDocument | undefined {
  const { fsPath } = vscode.Uri.file(path);
  return vscode.workspace.textDocuments.find((one) => one.uri.scheme === "file" && one.uri.fsPath === fsPath && !one.isClosed);
}

/** Returns the lines from `line` (counted from 1), at most `limit` of them. */
function lines(text: string, line: number | null | undefined, limit: number | null | undefined): string {
  if (!line && !limit) return text;
  const all = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const start = Math.max(0, (line ?? 1) - 1);
  return all.slice(start, limit ? start + limit : undefined).join("");
}

/** Returns the path without symlinks. The file need not exist; a symlink that leads nowhere fails. */
export async function realPath(path: string): Promise<string> {
  const exists = await lstat(path).then(
    () => true,
    () => false,
  );
  if (exists || dirname(path) === path) return realpath(path);
  return join(await realPath(dirname(path)), basename(path));
}

/** Returns the path without symlinks, if it is in a folder of the workspace. */
export async function pathInWorkspace(path: string): Promise<string | undefined> {
  const real = await realPath(path).catch(() => undefined);
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    if (folder.uri.scheme !== "file" || real === undefined) continue;
    const inside = relative(await realPath(folder.uri.fsPath).catch(() => folder.uri.fsPath), real);
    if (inside && inside.split(sep)[0] !== ".." && !isAbsolute(inside)) return real;
  }
  return undefined;
}

/** Changes a file of the workspace. Fails if a symlink leads out of it, also if it appeared during the change. */
export async function changeInWorkspace(uri: vscode.Uri, change: () => PromiseLike<unknown>): Promise<void> {
  const before = await pathInWorkspace(uri.fsPath);
  if (before === undefined) throw new Error(`${uri.fsPath} is not in a folder of the workspace`);
  await change();
  const after = await pathInWorkspace(uri.fsPath);
  if (after !== before) throw new Error(`a symlink led ${uri.fsPath} elsewhere while it was changed: check ${after ?? "where it leads"}`);
}

export class EditorFiles {
  /** The writes of each file, one after the other. */
  private readonly writes = new Map<string, Promise<unknown>>();

  /**
   * Returns the text of an open document, which nuncio then changes through the editor. For other
   * files the answer is "not found", and nuncio uses the disk, also if a document without changes
   * lags behind its file.
   */
  async read({ path, line, limit }: acp.ReadTextFileRequest): Promise<acp.ReadTextFileResponse> {
    await this.writes.get(path);
    const document = openDocument(path);
    if (!document || !(await pathInWorkspace(path)) || !(document.isDirty || (await isCurrent(document)))) throw acp.RequestError.resourceNotFound(path);
    return { content: lines(document.getText(), line, limit) };
  }

  async write({ path, content }: acp.WriteTextFileRequest): Promise<acp.WriteTextFileResponse> {
    const earlier = this.writes.get(path) ?? Promise.resolve();
    const write = earlier.catch(() => {}).then(() => writeText(vscode.Uri.file(path), content));
    this.writes.set(path, write);
    try {
      await write;
    } finally {
      if (this.writes.get(path) === write) this.writes.delete(path);
    }
    return {};
  }
}

async function diskText(uri: vscode.Uri): Promise<string | null> {
  try {
    return new TextDecoder("utf-8", { ignoreBOM: false }).decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    return null;
  }
}

/** Waits until the document has the text of its file, apart from line ends. Returns whether it has. */
async function isCurrent(document: vscode.TextDocument): Promise<boolean> {
  const disk = await diskText(document.uri);
  if (disk === null) return false;
  const text = withLineEnding(disk, "\n");
  const isSame = () => withLineEnding(document.getText(), "\n") === text;
  if (isSame()) return true;
  return new Promise((resolve) => {
    const end = (value: boolean) => {
      clearTimeout(timer);
      listener.dispose();
      resolve(value);
    };
    const timer = setTimeout(() => end(false), RELOAD_MS);
    const listener = vscode.workspace.onDidChangeTextDocument((event) => event.document === document && isSame() && end(true));
  });
}

/** Replaces the text of a file of the workspace by the smallest edit of its document, and saves it. */
export async function writeText(uri: vscode.Uri, content: string): Promise<void> {
  await changeInWorkspace(uri, () => writeDocument(uri, content));
}

async function writeDocument(uri: vscode.Uri, content: string): Promise<void> {
  const exists = await vscode.workspace.fs.stat(uri).then(
    () => true,
    () => false,
  );
  const open = openDocument(uri.fsPath);
  if (!exists && !open) {
    const edit = new vscode.WorkspaceEdit();
    edit.createFile(uri, { contents: new TextEncoder().encode(content), ignoreIfExists: false });
    if (!(await vscode.workspace.applyEdit(edit))) throw new Error(`${uri.fsPath} could not be created`);
    return;
  }
  const document = open ?? (await vscode.workspace.openTextDocument(uri));
  if (!document.isDirty && !(await isCurrent(document))) {
    // An edit of outdated text could not be saved. The editor reloads a document without changes.
    return vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(content));
  }
  const eol = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
  const change = smallestEdit(document.getText(), withLineEnding(content, eol));
  if (change) {
    const edit = new vscode.WorkspaceEdit();
    const range = new vscode.Range(document.positionAt(change.start), document.positionAt(change.end));
    edit.replace(uri, range, change.text);
    if (!(await vscode.workspace.applyEdit(edit))) throw new Error(`${uri.fsPath} could not be edited`);
  }
  if (document.isDirty && !(await document.save())) throw new Error(`${uri.fsPath} could not be saved`);
}
