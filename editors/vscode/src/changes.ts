// The files that the session has changed: each with its diff, which the user keeps or reverts. In the
// diff, VS Code reverts single parts.

import { createHash } from "node:crypto";
import { relative } from "node:path";
import * as vscode from "vscode";
import type { ActiveSession, FileChanges } from "./active";
import { changeInWorkspace, writeText } from "./files";
import { confirm, nameOf, showDiff, treeItem } from "./ui";

const BEFORE = "nuncio-before";
const KEPT = "kept";
/** Number of files whose kept text is remembered. */
const KEPT_MAX = 1000;

/** The digest of the text of a file that the user has kept, in a session. */
type Kept = [session: string, path: string, digest: string];

const digest = (text: string) => createHash("sha256").update(text).digest("base64url");

export class ChangedFiles implements vscode.TreeDataProvider<FileChanges>, vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly tree = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.tree.event;
  private files: FileChanges[] = [];
  private readonly provider: vscode.Disposable;
  private readonly texts = new Map<string, string>();

  constructor(
    private readonly active: ActiveSession,
    private readonly memento: vscode.Memento,
  ) {
    this.provider = vscode.workspace.registerTextDocumentContentProvider(BEFORE, this);
    active.onDidChange(() => this.update());
  }

  private get kept(): Kept[] {
    return this.memento.get<Kept[]>(KEPT, []);
  }

  private update(): void {
    const kept = new Map(this.kept.filter(([session]) => session === this.active.id).map(([, path, text]) => [path, text]));
    const files = this.active.changes((path, text) => kept.has(path) && kept.get(path) === digest(text));
    // Texts of the same event are the same objects, so that long ones are compared at once.
    const isSame = (file: FileChanges, other: FileChanges | undefined) => file.path === other?.path && file.oldText === other.oldText && file.newText === other.newText;
    if (files.length === this.files.length && files.every((file, index) => isSame(file, this.files[index]))) return;
    this.files = files;
    void vscode.commands.executeCommand("setContext", "nuncio.changed", files.length > 0);
    this.tree.fire();
  }

  /** Keeps the changes of files, which are listed again once the session changes them again. */
  async keep(changes: FileChanges[] = this.files): Promise<void> {
    const session = this.active.id;
    if (!session) return;
    const added = changes.map(({ path, newText }): Kept => [session, path, digest(newText)]);
    const others = this.kept.filter(([of, path]) => of !== session || !added.some(([, one]) => one === path));
    await this.memento.update(KEPT, [...others, ...added].slice(-KEPT_MAX));
    this.update();
  }

  dispose(): void {
    this.provider.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  getChildren(node?: FileChanges): FileChanges[] {
    return node ? [] : this.files;
  }

  getTreeItem(change: FileChanges): vscode.TreeItem {
    const cwd = this.active.state?.cwd;
    const description = cwd ? relative(cwd, change.path) : change.path;
    const item = treeItem({ label: nameOf(change.path), description, tooltip: [change.path], file: vscode.Uri.file(change.path) });
    item.contextValue = "change";
    item.command = { command: "nuncio.change.open", title: vscode.l10n.t("Open the changes"), arguments: [change] };
    return item;
  }

  /** Shows the text before the changes next to the file. */
  async open({ path, oldText }: FileChanges): Promise<void> {
    const file = vscode.Uri.file(path);
    const before = file.with({ scheme: BEFORE, query: this.active.state?.turn?.id ?? String(this.active.state?.seq) });
    this.texts.set(before.toString(), oldText ?? "");
    await showDiff(before, file, vscode.l10n.t("{0} (changes of the session)", nameOf(path)), { preview: true });
  }

  /** Restores the text before the changes. Asks if the file has changed since. */
  async revert(change: FileChanges): Promise<void> {
    const { path, oldText, newText } = change;
    const uri = vscode.Uri.file(path);
    const now = await vscode.workspace.openTextDocument(uri).then(
      (document) => document.getText(),
      () => null,
    );
    if (now === null && oldText === null) return;
    const revert = vscode.l10n.t("Revert");
    const isChanged = now !== null && now.replaceAll("\r\n", "\n") !== newText.replaceAll("\r\n", "\n");
    const question = isChanged ? vscode.l10n.t("{0} was changed by others since. Revert it to the text before the session changed it?", nameOf(path)) : vscode.l10n.t("Revert {0} to the text before the session changed it?", nameOf(path));
    if (!(await confirm(question, revert))) return;
    if (oldText !== null) {
      await writeText(uri, oldText);
    } else {
      const edit = new vscode.WorkspaceEdit();
      edit.deleteFile(uri, { ignoreIfNotExists: true });
      await changeInWorkspace(uri, () => vscode.workspace.applyEdit(edit));
    }
    await this.keep([change]);
  }
}
