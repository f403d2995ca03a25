// Proposed changes of files: each permission request with a diff opens a tab for each file, with
// Allow and Reject in its title. Allow answers once all that the request contains was shown: until
// then it shows the next file. The right side can be edited: its text is written instead.

import * as vscode from "vscode";
import type { Api } from "./api";
import type { NuncioEvent } from "./follow";
import { userText } from "./lines";
import type { Params } from "./answers";
import { nameOf, notify, showDiff } from "./ui";

export const PROPOSAL = "nuncio-proposal";
export const ORIGINAL = "nuncio-original";
const TABS_MAX = 5;

interface Option {
  optionId: string;
  kind: string;
}

interface FileChange {
  path: string;
  uri: vscode.Uri;
  original: vscode.Uri;
  oldText: string;
  newText: string;
  /** The text of the right side as it was last saved. */
  saved: string;
  isNew: boolean;
  mtime: number;
}

/** An open permission request about changes. */
interface Proposal {
  permissionId: string;
  sessionId: string;
  options: Option[];
  changes: FileChange[];
  /** The files that were in front of the user. */
  shown: Set<FileChange>;
  /** The request has content that only the conversation shows. */
  hasMore: boolean;
  /** The tabs are open: those that come to the front are shown by the user. */
  isOpen: boolean;
}

/** What the window does for the proposals. */
export interface ProposalHooks {
  failed(error: unknown): void;
  /** Opens the conversation, which shows the whole request. */
  showRequest(sessionId: string): Promise<void>;
}

/** Serves both sides of the diff tabs: the original read-only, the proposal from memory. */
class ProposalFiles implements vscode.FileSystemProvider, vscode.TextDocumentContentProvider {
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;
  readonly files = new Map<string, FileChange>();
  readonly originals = new Map<string, string>();

  private file(uri: vscode.Uri): FileChange {
    const file = this.files.get(uri.toString());
    if (!file) throw vscode.FileSystemError.FileNotFound(uri);
    return file;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.originals.get(uri.toString()) ?? "";
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => {});
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const { saved, mtime } = this.file(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime, size: Buffer.byteLength(saved) };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return new TextEncoder().encode(this.file(uri).saved);
  }

  writeFile(uri: vscode.Uri, content: Uint8Array): void {
    const file = this.file(uri);
    file.saved = new TextDecoder().decode(content);
    file.mtime = Date.now();
    this.changed.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }
  createDirectory(): void {}
  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
}

export class Proposals implements vscode.Disposable {
  private readonly files = new ProposalFiles();
  private readonly open = new Map<string, Proposal>();
  private readonly disposables: vscode.Disposable[] = [];

  /** `isMine` returns whether this window shows or runs the session. */
  constructor(
    private readonly api: Api,
    private readonly isMine: (sessionId: string) => boolean,
    private readonly hooks: ProposalHooks,
  ) {
    api.answer = (permissionId, params) => this.completed(permissionId, params);
    this.disposables.push(
      vscode.workspace.registerFileSystemProvider(PROPOSAL, this.files, { isCaseSensitive: true }),
      vscode.workspace.registerTextDocumentContentProvider(ORIGINAL, this.files),
      vscode.window.tabGroups.onDidChangeTabs(() => this.context()),
      vscode.window.tabGroups.onDidChangeTabGroups(() => this.context()),
    );
    // Tabs that a former window left have no request.
    void this.closeTabs(() => true);
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
  }

  /** Takes an event of the stream of all sessions. */
  take({ sessionId, body }: NuncioEvent): void {
    if (body.type === "permission.requested" && this.isMine(sessionId)) void this.show(sessionId, body);
    else if (body.type === "permission.resolved" && body.permissionId) void this.close(body.permissionId);
    else if (/^turn\.(completed|failed|cancelled|interrupted)$/.test(body.type) || body.type === "session.closed") {
      for (const proposal of this.open.values()) if (proposal.sessionId === sessionId) void this.close(proposal.permissionId);
    }
  }

  /** Opens the tabs of requests that are open already, in a session that the window shows from now on. */
  async showOpen(sessionId: string): Promise<void> {
    const { permissions = [] } = await this.api.call("_nuncio/permission/list", { sessionId });
    for (const { permissionId, options, toolCall } of permissions) await this.show(sessionId, { type: "", permissionId, options, content: toolCall.content ?? [] });
  }

  /** Opens the tabs of a request again, also those that the user has closed. */
  async reveal(sessionId: string, permissionId: string): Promise<void> {
    if (!this.open.has(permissionId)) await this.showOpen(sessionId);
    const proposal = this.open.get(permissionId);
    for (const change of proposal?.changes.slice(0, TABS_MAX) ?? []) await this.showChange(proposal!, change, false);
  }

  private async show(sessionId: string, body: NuncioEvent["body"]): Promise<void> {
    const content = body.content as any[];
    const diffs = content.filter((one) => one.type === "diff" && typeof one.newText === "string");
    if (!diffs.length || this.open.has(body.permissionId) || !vscode.workspace.getConfiguration("nuncio").get("diffTab", true)) return;
    const changes = diffs.map((one, index) => this.change(one, `${body.permissionId}-${index}`));
    const proposal: Proposal = { permissionId: body.permissionId, sessionId, options: body.options, changes, shown: new Set(), hasMore: content.length > diffs.length, isOpen: false };
    this.open.set(body.permissionId, proposal);
    for (const change of changes.slice(0, TABS_MAX)) {
      await this.showChange(proposal, change, true);
      if (!this.open.has(body.permissionId)) return void (await this.closeTabs((tab) => tab.toString() === change.uri.toString()));
    }
    proposal.isOpen = true;
    this.context();
  }

  private async showChange({ changes }: Proposal, change: FileChange, preserveFocus: boolean): Promise<void> {
    const name = nameOf(change.path);
    const of = changes.length > 1 ? vscode.l10n.t("{0} of {1}: ", changes.indexOf(change) + 1, changes.length) : "";
    const title = change.isNew ? vscode.l10n.t("{0} (new file, proposed by nuncio)", of + name) : vscode.l10n.t("{0} (proposed by nuncio)", of + name);
    await showDiff(change.original, change.uri, title, { preserveFocus, preview: false });
  }

  private change({ path, oldText, newText }: { path: string; oldText?: string; newText: string }, query: string): FileChange {
    const plain = vscode.Uri.file(path);
    const uri = plain.with({ scheme: PROPOSAL, query });
    const original = plain.with({ scheme: ORIGINAL, query });
    const change = { path, uri, original, oldText: oldText ?? "", newText, saved: newText, isNew: typeof oldText !== "string", mtime: Date.now() };
    this.files.files.set(uri.toString(), change);
    this.files.originals.set(original.toString(), change.oldText);
    return change;
  }

  /** Returns the text on the right side, with changes that are not saved. */
  private text({ uri, saved }: FileChange): string {
    const key = uri.toString();
    return vscode.workspace.textDocuments.find((one) => one.uri.toString() === key && !one.isClosed)?.getText() ?? saved;
  }

  /**
   * Adds the texts that the user changed in the tabs to an answer that allows the change. nuncio merges
   * them with choices about parts in the conversation, and refuses both about the same lines.
   */
  private completed(permissionId: string, params: Params): Params {
    const proposal = this.open.get(permissionId);
    if (!proposal) return params;
    const option = proposal.options.find((one) => one.optionId === params.optionId);
    const allows = option ? !option.kind.startsWith("reject") : String(params.outcome ?? "").startsWith("allow");
    if (!allows) return params;
    const edits = proposal.changes.flatMap((change) => {
      const text = userText(change.newText, this.text(change));
      return text === null ? [] : [{ path: change.path, text }];
    });
    return edits.length ? { ...params, edits: [...((params.edits as unknown[] | undefined) ?? []), ...edits] } : params;
  }

  /** Returns the request of the active tab, or of the tab with this address. */
  private active(uri?: vscode.Uri): Proposal | null {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const wanted = uri?.scheme === PROPOSAL ? uri : input instanceof vscode.TabInputTextDiff ? input.modified : null;
    if (wanted?.scheme !== PROPOSAL) return null;
    return this.open.get(wanted.query.replace(/-\d+$/, "")) ?? null;
  }

  /** Notes the files whose tabs are in front. */
  private noteShown(): void {
    const active = vscode.window.tabGroups.all.map(({ activeTab }) => activeTab?.input);
    const inFront = new Set(active.map((input) => (input instanceof vscode.TabInputTextDiff ? input.modified.toString() : "")));
    for (const { changes, shown, isOpen } of this.open.values()) {
      for (const change of changes) if (isOpen && inFront.has(change.uri.toString())) shown.add(change);
    }
  }

  /** Shows a part of the request that was not shown yet. Returns false if there is none. */
  private async showNext(proposal: Proposal): Promise<boolean> {
    this.noteShown();
    if (proposal.hasMore) {
      await this.hooks.showRequest(proposal.sessionId);
      void notify(vscode.l10n.t("This request is more than these files: answer it in the conversation."));
      return true;
    }
    const next = proposal.changes.find((change) => !proposal.shown.has(change));
    if (!next) return false;
    await this.showChange(proposal, next, false);
    this.noteShown();
    return true;
  }

  /**
   * Answers the request of a tab: with the first option that allows or rejects once. A request is
   * allowed only after all of it was shown.
   */
  async answer(allow: boolean, uri?: vscode.Uri): Promise<void> {
    const proposal = this.active(uri);
    if (!proposal || (allow && (await this.showNext(proposal)))) return;
    const kind = allow ? "allow_once" : "reject_once";
    const option = proposal.options.find((one) => one.kind === kind);
    try {
      await this.api.call("_nuncio/permission/answer", { permissionId: proposal.permissionId, ...(option ? { optionId: option.optionId } : { outcome: kind }) });
    } catch (error) {
      if (this.open.has(proposal.permissionId)) this.hooks.failed(error);
    }
  }

  private async close(permissionId: string): Promise<void> {
    const proposal = this.open.get(permissionId);
    if (!proposal) return;
    this.open.delete(permissionId);
    const keys = new Set(proposal.changes.map((change) => change.uri.toString()));
    await this.closeTabs((uri) => keys.has(uri.toString()));
    for (const { uri, original } of proposal.changes) {
      this.files.files.delete(uri.toString());
      this.files.originals.delete(original.toString());
    }
    this.context();
  }

  /** Closes the diff tabs whose right side matches. */
  private async closeTabs(matches: (uri: vscode.Uri) => boolean): Promise<void> {
    const isOurs = ({ input }: vscode.Tab) => input instanceof vscode.TabInputTextDiff && input.modified.scheme === PROPOSAL && matches(input.modified);
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(isOurs);
    // The user would be asked about a tab with unsaved changes.
    for (const document of vscode.workspace.textDocuments) {
      if (document.isDirty && document.uri.scheme === PROPOSAL && matches(document.uri)) await document.save();
    }
    if (tabs.length) await vscode.window.tabGroups.close(tabs, true);
  }

  private context(): void {
    this.noteShown();
    void vscode.commands.executeCommand("setContext", "nuncio.proposal", this.active() !== null);
  }
}
