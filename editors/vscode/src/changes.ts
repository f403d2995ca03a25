// The files that the last turn has changed: each with its diff, and a way back.

import { relative } from "node:path";
import * as vscode from "vscode";
import type { ActiveSession } from "./active";
import { changeInWorkspace, writeText } from "./files";
import { confirm, nameOf, showDiff, treeItem } from "./ui";

const BEFORE = "nuncio-before";

interface Change {
  path: string;
  oldText: string | null;
  newText: string;
}

export class ChangedFiles implements vscode.TreeDataProvider<Change>, vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly tree = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.tree.event;
  private files: Change[] = [];
  private readonly provider: vscode.Disposable;
  private readonly texts = new Map<string, string>();

  constructor(private readonly active: ActiveSession) {
    this.provider = vscode.workspace.registerTextDocumentContentProvider(BEFORE, this);
    active.onDidChange(() => {
      const files = this.active.changes;
      if (JSON.stringify(files) === JSON.stringify(this.files)) return;
      this.files = files;
      void vscode.commands.executeCommand("setContext", "nuncio.changed", files.length > 0);
      this.tree.fire();
    });
  }

  dispose(): void {
    this.provider.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  getChildren(node?: Change): Change[] {
    return node ? [] : this.files;
  }

  getTreeItem(change: Change): vscode.TreeItem {
    const cwd = this.active.state?.cwd;
    const description = cwd ? relative(cwd, change.path) : change.path;
    const item = treeItem({ label: nameOf(change.path), description, tooltip: [change.path], file: vscode.Uri.file(change.path) });
    item.contextValue = "change";
    item.command = { command: "nuncio.change.open", title: vscode.l10n.t("Open the changes"), arguments: [change] };
    return item;
  }

  /** Shows the text before the turn next to the file. */
  async open({ path, oldText }: Change): Promise<void> {
    const file = vscode.Uri.file(path);
    const before = file.with({ scheme: BEFORE, query: this.active.state?.turn?.id ?? String(this.active.state?.seq) });
    this.texts.set(before.toString(), oldText ?? "");
    await showDiff(before, file, vscode.l10n.t("{0} (changes of the turn)", nameOf(path)), { preview: true });
  }

  /** Restores the text before the turn. Asks if the file has changed since. */
  async revert({ path, oldText, newText }: Change): Promise<void> {
    const uri = vscode.Uri.file(path);
    const now = await vscode.workspace.openTextDocument(uri).then(
      (document) => document.getText(),
      () => null,
    );
    if (now === null && oldText === null) return;
    const revert = vscode.l10n.t("Revert");
    const isChanged = now !== null && now.replaceAll("\r\n", "\n") !== newText.replaceAll("\r\n", "\n");
    const question = isChanged ? vscode.l10n.t("{0} has changed since the turn. Revert it to the text before the turn?", nameOf(path)) : vscode.l10n.t("Revert {0} to the text before the turn?", nameOf(path));
    if (!(await confirm(question, revert))) return;
    if (oldText !== null) return writeText(uri, oldText);
    const edit = new vscode.WorkspaceEdit();
    edit.deleteFile(uri, { ignoreIfNotExists: true });
    await changeInWorkspace(uri, () => vscode.workspace.applyEdit(edit));
  }
}
