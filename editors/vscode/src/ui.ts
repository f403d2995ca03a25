// All that the extension shows by VS Code's own UI. No other file calls it (tests/it/tidy), so that
// each text passes `plain`: titles, paths and messages come from models, servers and files.

import { basename } from "node:path";
import * as vscode from "vscode";
import { fileName, plain, plainLines } from "./plain";

/** Time since the last key after which a search begins, in milliseconds. */
const SEARCH_PAUSE_MS = 200;

/** An entry of a quick pick. */
export interface Choice<T> {
  value: T;
  label: string;
  /** Id of an icon of VS Code. */
  icon?: string;
  description?: string;
  detail?: string;
}

/** What a row of a tree shows. */
export interface Row {
  label: string;
  description?: string;
  /** Lines. */
  tooltip?: string[];
  /** A file, whose icon is shown. */
  file?: vscode.Uri;
  icon?: vscode.ThemeIcon;
  isCollapsed?: boolean;
}

const lines = (texts: string[]) => texts.map((text) => plain(text)).join("\n");

/** Shows an error. */
export function showError(text: string): void {
  void vscode.window.showErrorMessage(plain(text));
}

/** Shows a text with buttons. Returns the pressed one. */
export function notify(text: string, ...buttons: string[]): Thenable<string | undefined> {
  return vscode.window.showInformationMessage(plain(text), ...buttons);
}

/** Asks a question in a dialog. Returns whether the user pressed the button. */
export async function confirm(question: string, button: string): Promise<boolean> {
  return (await vscode.window.showWarningMessage(plain(question), { modal: true }, button)) === button;
}

/** Asks for a text. */
export function ask(title: string, value: string): Thenable<string | undefined> {
  return vscode.window.showInputBox({ title: plain(title), value: plain(value) });
}

/** Asks for a text that is not shown. */
export function askSecret(title: string, prompt: string): Thenable<string | undefined> {
  return vscode.window.showInputBox({ title: plain(title), prompt: plain(prompt), password: true, ignoreFocusOut: true });
}

const pickItem = <T>({ value, label, icon, description, detail }: Choice<T>) => ({
  label: `${icon ? `$(${icon}) ` : ""}${plain(label)}`,
  description: description && plain(description),
  detail: detail && plain(detail),
  value,
});

/** Shows choices. Returns the value of the chosen one. */
export async function choose<T>(title: string, choices: Choice<T>[]): Promise<T | undefined> {
  return (await vscode.window.showQuickPick(choices.map(pickItem), { title: plain(title), matchOnDescription: true, matchOnDetail: true }))?.value;
}

/**
 * Shows choices, and those that `find` returns for the text that the user types. Returns the value
 * of the chosen one.
 */
export function search<T>(title: string, choices: Choice<T>[], find: (text: string) => Promise<Choice<T>[]>): Promise<T | undefined> {
  return new Promise((resolve) => {
    const list = vscode.window.createQuickPick<vscode.QuickPickItem & { value: T }>();
    Object.assign(list, { title: plain(title), matchOnDescription: true, matchOnDetail: true, items: choices.map(pickItem) });
    let timer: NodeJS.Timeout | undefined;
    const show = async (text: string) => {
      list.busy = true;
      const found = text.trim() ? await find(text).catch(() => []) : [];
      if (list.value !== text) return;
      const others = choices.filter(({ value }) => !found.some((one) => one.value === value));
      list.items = [...others.map(pickItem), ...found.map((one) => ({ ...pickItem(one), alwaysShow: true }))];
      list.busy = false;
    };
    list.onDidChangeValue((text) => {
      clearTimeout(timer);
      timer = setTimeout(() => void show(text), SEARCH_PAUSE_MS);
    });
    list.onDidAccept(() => {
      resolve(list.activeItems[0]?.value);
      list.hide();
    });
    list.onDidHide(() => {
      clearTimeout(timer);
      list.dispose();
      resolve(undefined);
    });
    list.show();
  });
}

/** Returns a row of a tree. */
export function treeItem({ label, description, tooltip, file, icon, isCollapsed }: Row): vscode.TreeItem {
  const item = new vscode.TreeItem(plain(label), isCollapsed ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None);
  if (description !== undefined) item.description = plain(description);
  if (file) [item.resourceUri, item.iconPath] = [file, vscode.ThemeIcon.File];
  if (icon) item.iconPath = icon;
  item.tooltip = lines(tooltip ?? [label]);
  item.accessibilityInformation = { label: [item.label, item.description].filter(Boolean).join(", ") };
  return item;
}

/** Shows the rows of a provider in a view. */
export const showTree = <T>(view: string, rows: vscode.TreeDataProvider<T>): vscode.TreeView<T> => vscode.window.createTreeView(view, { treeDataProvider: rows });

/** The item in the status bar. */
export class StatusBar implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;

  constructor(id: string, name: string) {
    this.item = vscode.window.createStatusBarItem(id, vscode.StatusBarAlignment.Right, 100);
    this.item.name = name;
  }

  dispose(): void {
    this.item.dispose();
  }

  /** Shows a text after an icon of VS Code, and lines as its tooltip. */
  show({ icon, text, tooltip, command, isWarning }: { icon: string; text: string; tooltip: string[]; command: string; isWarning: boolean }): void {
    this.item.text = `$(${icon}) ${plain(text)}`;
    this.item.tooltip = lines(tooltip);
    this.item.command = command;
    this.item.backgroundColor = isWarning ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.show();
  }
}

/** Opens a tab with two texts side by side. */
export async function showDiff(left: vscode.Uri, right: vscode.Uri, title: string, options: vscode.TextDocumentShowOptions): Promise<void> {
  await vscode.commands.executeCommand("vscode.diff", left, right, plain(title), options);
}

/** Opens a tab with a webview. */
export function createPanel(type: string, title: string): vscode.WebviewPanel {
  return vscode.window.createWebviewPanel(type, plain(title), vscode.ViewColumn.Active, { enableScripts: true, retainContextWhenHidden: true });
}

/** Sets the title of a tab. */
export function rename(panel: vscode.WebviewPanel, title: string): void {
  panel.title = plain(title);
}

/** Sets the number at a view; 0 removes it. */
export function setBadge(view: vscode.WebviewView, value: number, tooltip: string): void {
  view.badge = value ? { value, tooltip: plain(tooltip) } : undefined;
}

/** Shows that a task of source control runs, which the user can cancel. */
export function withProgress(title: string, task: (cancelled: vscode.CancellationToken) => Promise<void>): Thenable<void> {
  const options = { location: vscode.ProgressLocation.SourceControl, title: plain(title), cancellable: true };
  return vscode.window.withProgress(options, (_, cancelled) => task(cancelled));
}

/** Shows that a task runs, in a notification. */
export function withNotification<T>(title: string, task: () => Promise<T>): Thenable<T> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: plain(title) }, task);
}

/** Writes a text into the input box of source control. */
export function setCommitMessage(box: { value: string }, text: string): void {
  box.value = plainLines(text);
}

/** Asks where to save a file of this name. */
export function askWhereToSave(name: string): Thenable<vscode.Uri | undefined> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  return vscode.window.showSaveDialog({ defaultUri: folder && vscode.Uri.joinPath(folder, fileName(name)) });
}

/** Opens a file at a line, counted from 1. VS Code chooses the editor, for example that of images. */
export async function openFile(uri: vscode.Uri, line?: number): Promise<void> {
  const at = line ? new vscode.Range(line - 1, 0, line - 1, 0) : undefined;
  await vscode.commands.executeCommand("vscode.open", uri, { selection: at, preview: true } satisfies vscode.TextDocumentShowOptions);
}

/** Whether a dialog shows a text unchanged and as a whole. */
export const isShownWhole = (text: string) => plain(text) === text;

/** Creates the log of the extension. */
export const createLog = (name: string): vscode.LogOutputChannel => vscode.window.createOutputChannel(name, { log: true });

/** Returns the name of a file for a title. */
export const nameOf = (path: string) => plain(basename(path), 100);
