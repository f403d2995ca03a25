// What a user adds to a prompt from the editor: selections, files and problems; and the code action
// that fixes a problem.

import { relative } from "node:path";
import * as vscode from "vscode";
import { gitDiff } from "./git";
import type { TerminalOutput } from "./terminals";
import type { Attachment, Compose, OpenFile } from "./view";

const PROBLEMS_MAX = 100;
const FILE_BYTES_MAX = 1_000_000;

/** Returns the path of a file as the user writes it: relative to its workspace folder. */
const shownPath = (uri: vscode.Uri) => vscode.workspace.asRelativePath(uri, (vscode.workspace.workspaceFolders?.length ?? 0) > 1);

/** Formats the lines of a range, counted from 1, for example `12` or `12-14`. */
function linesOf(range: vscode.Range): string {
  const [first, last] = [range.start.line + 1, range.end.line + (range.end.character === 0 && range.end.line > range.start.line ? 0 : 1)];
  return first === last ? `${first}` : `${first}-${last}`;
}

/** Returns the selection as an attached text, or the whole file if nothing is selected. */
export function selection(editor: vscode.TextEditor): Compose | null {
  const { document, selection } = editor;
  const text = document.getText(selection.isEmpty ? undefined : selection);
  if (!text || text.length > FILE_BYTES_MAX) return null;
  const lines = selection.isEmpty ? "" : `:${linesOf(selection)}`;
  const anchor = selection.isEmpty ? "" : `#L${linesOf(selection).replace("-", "-L")}`;
  return { files: [{ name: `${shownPath(document.uri)}${lines}`, uri: `${document.uri.toString()}${anchor}`, text }] };
}

/** Returns the open file of the window, with the selected lines; null for none. */
export function openFile(): OpenFile | null {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.uri.scheme !== "file") return null;
  const { document, selection } = editor;
  const path = document.uri.fsPath;
  if (selection.isEmpty) return { path };
  const last = selection.end.character === 0 && selection.end.line > selection.start.line ? selection.end.line - 1 : selection.end.line;
  const range = document.validateRange(new vscode.Range(selection.start.line, 0, last + 1, 0));
  const text = document.getText(range);
  return text.length > FILE_BYTES_MAX ? { path } : { path, lines: { first: selection.start.line + 1, last: last + 1 }, text };
}

/** Names files in the prompt, as `@PATH`: relative to the directory of the session. */
export function mention(uris: vscode.Uri[], cwd: string): Compose {
  const path = ({ fsPath }: vscode.Uri) => (fsPath.startsWith(`${cwd}/`) ? relative(cwd, fsPath) : fsPath);
  const quoted = (path: string) => (/\s/.test(path) ? `@"${path}"` : `@${path}`);
  return { text: `${uris.map((uri) => quoted(path(uri))).join(" ")} ` };
}

/** Returns what `@name` means in the window: the problems, the last output of a terminal, the changes. */
export async function attachment(name: string, cwd: string, terminals: TerminalOutput): Promise<Attachment | null> {
  if (name === "problems") return problems()?.files?.[0] ?? null;
  const text = name === "terminal" ? await terminals.last() : name === "diff" ? await gitDiff(cwd) : null;
  return text ? { name, uri: `nuncio:${name}`, text: text.slice(0, FILE_BYTES_MAX) } : null;
}

const SEVERITIES = ["error", "warning", "info", "hint"];

const line = (uri: vscode.Uri, { range, severity, message, source }: vscode.Diagnostic) => `${shownPath(uri)}:${range.start.line + 1}:${range.start.character + 1}: ${SEVERITIES[severity]}: ${message}${source ? ` (${source})` : ""}`;

/** Returns the problems of a file, or of all files, as an attached text. */
export function problems(uri?: vscode.Uri): Compose | null {
  const all: [vscode.Uri, vscode.Diagnostic[]][] = uri ? [[uri, vscode.languages.getDiagnostics(uri)]] : vscode.languages.getDiagnostics();
  const found = all.flatMap(([file, list]) => list.filter((one) => one.severity <= vscode.DiagnosticSeverity.Warning).map((one) => line(file, one)));
  if (!found.length) return null;
  const more = found.length > PROBLEMS_MAX ? [`and ${found.length - PROBLEMS_MAX} more`] : [];
  const name = uri ? `problems of ${shownPath(uri)}` : "problems";
  return { files: [{ name, uri: `nuncio:${encodeURIComponent(name)}`, text: [...found.slice(0, PROBLEMS_MAX), ...more].join("\n") }] };
}

/** Returns a fence that is longer than each run of backticks in `text`. */
const fence = (text: string) => "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));

function quoted(document: vscode.TextDocument, range: vscode.Range): string {
  const code = document.getText(range);
  const mark = fence(code);
  return `\n\n${mark}${document.languageId}\n${code}\n${mark}`;
}

/** Asks for an explanation of the selection. */
export function explanation({ document, selection }: vscode.TextEditor): string {
  return `Explain ${shownPath(document.uri)}, lines ${linesOf(selection)}:${quoted(document, selection)}`;
}

/** Asks for a fix of problems. */
export function fix(document: vscode.TextDocument, diagnostics: readonly vscode.Diagnostic[]): string {
  const list = diagnostics.map((one) => `- ${line(document.uri, one)}`).join("\n");
  return `Fix ${diagnostics.length === 1 ? "this problem" : "these problems"}:\n${list}`;
}

/** Offers to fix the problems at the caret. */
export class FixActions implements vscode.CodeActionProvider {
  static readonly kinds = [vscode.CodeActionKind.QuickFix];

  provideCodeActions(document: vscode.TextDocument, _: vscode.Range, { diagnostics }: vscode.CodeActionContext): vscode.CodeAction[] {
    if (!diagnostics.length) return [];
    const title = diagnostics.length === 1 ? vscode.l10n.t("Fix this problem with nuncio") : vscode.l10n.t("Fix these problems with nuncio");
    const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
    action.diagnostics = [...diagnostics];
    action.command = { command: "nuncio.fix", title, arguments: [document.uri, diagnostics] };
    return [action];
  }
}
