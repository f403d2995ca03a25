// The conversation: webviews in the side bar and in editor tabs, which run the console's modules.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import page from "virtual:page";
import { errorFacts, type Params } from "./answers";
import type { Api } from "./api";
import type { FollowOptions } from "./follow";
import { openPlace } from "./places";
import * as ui from "./ui";

/** Events are posted to a webview at most once in this time; those of a history less often. */
const BATCH_MS = 12;
const HISTORY_BATCH_MS = 200;

/** A text that a message gets as a resource. */
export interface Attachment {
  name: string;
  uri: string;
  text: string;
}

/** Text and files for the prompt editor. */
export interface Compose {
  text?: string;
  files?: Attachment[];
}

/** The file of the active editor, and the lines of its selection with their text. */
export interface OpenFile {
  path: string;
  lines?: { first: number; last: number };
  text?: string;
}

/** What a webview keeps over a reload: the session that it shows, and drafts. */
export interface ViewState {
  session?: string | null;
  storage?: Record<string, string>;
}

export interface ViewHooks {
  /** A webview takes messages from now on. */
  ready(view: Conversation): void;
  /** A webview shows another session; null for the page of a new session. */
  shown(view: Conversation, session: string | null): void;
  prompted(): void;
  /** Shows the changes of a permission request as diffs. */
  openDiff(session: string, permission: string): Promise<void>;
  /** Asks for the key of a provider. */
  signIn(provider: string): Promise<void>;
  /** Returns what `@name` means in the window. */
  context(name: string): Promise<Attachment | null>;
  failed(error: unknown): void;
}

const STATE = "conversation";
const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

/** Asks for a place and saves a text there. */
async function save(name: string, text: string): Promise<void> {
  const uri = await ui.askWhereToSave(name);
  if (uri) await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
}

/** Serves one webview. */
export class Conversation implements vscode.Disposable {
  /** The shown session; null for the page of a new session. */
  session: string | null = null;
  private readonly streams = new Map<number, vscode.Disposable>();
  private batch = new Map<number, unknown[]>();
  private flushing: { atMs: number; timer: NodeJS.Timeout } | null = null;
  private isReady = false;
  private queue: unknown[] = [];
  private readonly listener: vscode.Disposable;

  constructor(
    readonly webview: vscode.Webview,
    private readonly api: Api,
    private readonly hooks: ViewHooks,
    private readonly extension: vscode.Uri,
    private readonly place: "sidebar" | "editor",
    private readonly state: ViewState,
    private readonly keep: (state: ViewState) => void,
  ) {
    this.session = state.session ?? null;
    const dist = vscode.Uri.joinPath(extension, "dist");
    webview.options = { enableScripts: true, localResourceRoots: [dist] };
    this.listener = webview.onDidReceiveMessage((message) => void this.receive(message));
    webview.html = this.html();
  }

  dispose(): void {
    this.listener.dispose();
    clearTimeout(this.flushing?.timer);
    this.unfollowAll();
  }

  private unfollowAll(): void {
    for (const stream of this.streams.values()) stream.dispose();
    this.streams.clear();
    this.batch.clear();
  }

  private html(): string {
    const uri = (name: string) => this.webview.asWebviewUri(vscode.Uri.joinPath(this.extension, "dist", name)).toString();
    const nonce = randomBytes(24).toString("base64url");
    const policy = [`default-src 'none'`, `script-src 'nonce-${nonce}'`, `style-src ${this.webview.cspSource}`, `img-src data:`, `font-src ${this.webview.cspSource}`, `require-trusted-types-for 'script'`, `form-action 'none'`, `base-uri 'none'`].join("; ");
    // VS Code has no bundle for English, and for languages without a translation.
    const { bundle } = vscode.l10n;
    return `<!doctype html>
<html lang="${bundle ? escaped(vscode.env.language) : "en"}">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="stylesheet" href="${uri("webview.css")}">
</head>
<body class="home in-${this.place}${(vscode.workspace.workspaceFolders?.length ?? 0) > 1 ? "" : " single-folder"}" data-state="${escaped(JSON.stringify(this.state))}"${bundle ? ` data-texts="${escaped(JSON.stringify(bundle))}"` : ""}>
${page}
<script nonce="${nonce}" src="${uri("webview.js")}"></script>
</body>
</html>`;
  }

  // Messages of the webview -----------------------------------------------------------------------

  private async receive(message: any): Promise<void> {
    switch (message?.type) {
      case "call":
        return this.call(message);
      case "follow":
        return this.follow(message);
      case "unfollow":
        this.streams.get(message.id)?.dispose();
        this.streams.delete(message.id);
        this.batch.delete(message.id);
        return;
      case "shown":
        this.session = typeof message.session === "string" ? message.session : null;
        return this.hooks.shown(this, this.session);
      case "save":
        return save(String(message.name), String(message.text));
      case "openDiff":
        return this.hooks.openDiff(String(message.session), String(message.permission)).catch((error) => this.hooks.failed(error));
      case "signIn":
        return this.hooks.signIn(String(message.provider)).catch((error) => this.hooks.failed(error));
      case "openFile":
        return openPlace(message).catch((error) => this.hooks.failed(error));
      case "state":
        return this.keep(message.state);
      case "starting":
        // The page was loaded again: its streams are gone.
        this.isReady = false;
        return this.unfollowAll();
      case "ready":
        this.isReady = true;
        for (const waiting of this.queue.splice(0)) void this.webview.postMessage(waiting);
        this.hooks.ready(this);
    }
  }

  private async call({ id, method, params }: { id: number; method: string; params?: Params }): Promise<void> {
    const isPrompt = method === "_nuncio/session/message";
    try {
      const value = method === "editor/context" ? await this.context(String(params?.name)) : await this.api.call(method, params);
      void this.webview.postMessage({ type: "result", id, value });
      if (isPrompt) this.hooks.prompted();
    } catch (error) {
      void this.webview.postMessage({ type: "result", id, error: errorFacts(error) });
    }
  }

  private async context(name: string): Promise<Params> {
    const found = await this.hooks.context(name);
    return found ? { part: { type: "resource", uri: found.uri, mimeType: "text/plain", text: found.text } } : {};
  }

  private follow({ id, params }: { id: number; params: FollowOptions }): void {
    let isHistory = true;
    const send = (message: unknown) => this.send(id, message, isHistory ? HISTORY_BATCH_MS : BATCH_MS);
    const stream = this.api.agent.follow(params, {
      event: (event, cursor) => send({ event, cursor }),
      synced: (synced) => {
        isHistory = false;
        send({ synced });
      },
      status: (status) => send({ status }),
      state: (state) => this.send(id, { state }, BATCH_MS),
      refused: (error) => this.send(id, { refused: errorFacts(error) }, BATCH_MS),
    });
    this.streams.set(id, stream);
  }

  /** Posts a message of a stream, with others that come within `delayMs`. */
  private send(id: number, message: unknown, delayMs: number): void {
    const messages = this.batch.get(id);
    if (messages) messages.push(message);
    else this.batch.set(id, [message]);
    const atMs = Date.now() + delayMs;
    if (this.flushing && this.flushing.atMs <= atMs) return;
    clearTimeout(this.flushing?.timer);
    const flush = () => {
      this.flushing = null;
      const streams = [...this.batch].map(([id, messages]) => ({ id, messages }));
      this.batch = new Map();
      void this.webview.postMessage({ type: "stream", streams });
    };
    this.flushing = { atMs, timer: setTimeout(flush, delayMs) };
  }

  // Commands to the webview -----------------------------------------------------------------------

  private post(message: unknown): void {
    if (this.isReady) void this.webview.postMessage(message);
    else this.queue.push(message);
  }

  /** Shows a session; null for the page of a new session. */
  show(session: string | null): void {
    this.post({ type: "show", session });
  }

  /** Opens a page of the console over the conversation. */
  open(page: "workspaces" | "comparisons" | "settings"): void {
    this.post({ type: "open", page });
  }

  focus(): void {
    this.post({ type: "focus" });
  }

  /** The key of a provider was stored: the models and the settings may have changed. */
  signedIn(): void {
    this.post({ type: "signedIn" });
  }

  /** Shows the file of the active editor at the prompt; null for none. */
  setContext(open: OpenFile | null): void {
    if (this.isReady) void this.webview.postMessage({ type: "context", open });
  }

  /** Adds text and files to the draft. */
  compose(compose: Compose): void {
    this.post({ type: "compose", ...compose });
  }

  /** Sends a message to the shown session, or to a new one. The draft is unchanged. */
  prompt(text: string): void {
    this.post({ type: "send", parts: [{ type: "text", text }] });
  }
}

/** The webviews of the window; the view of the side bar is created when it is first shown. */
export class Conversations implements vscode.WebviewViewProvider, vscode.WebviewPanelSerializer, vscode.Disposable {
  static readonly view = "nuncio.conversation";
  static readonly panel = "nuncio.panel";
  private sidebar: { view: vscode.WebviewView; conversation: Conversation } | null = null;
  private readonly panels = new Map<vscode.WebviewPanel, Conversation>();
  private pending: ((conversation: Conversation) => void)[] = [];

  constructor(
    private readonly api: Api,
    private readonly hooks: ViewHooks,
    private readonly extension: vscode.Uri,
    private readonly memento: vscode.Memento,
  ) {}

  dispose(): void {
    this.sidebar?.conversation.dispose();
    for (const conversation of this.panels.values()) conversation.dispose();
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.sidebar?.conversation.dispose();
    // VS Code stores the state of a webview only when it closes the window in good order.
    const keep = (state: ViewState) => void this.memento.update(STATE, state);
    const conversation = new Conversation(view.webview, this.api, this.hooks, this.extension, "sidebar", this.memento.get<ViewState>(STATE, {}), keep);
    const sidebar = { view, conversation };
    this.sidebar = sidebar;
    view.onDidDispose(() => {
      conversation.dispose();
      if (this.sidebar === sidebar) this.sidebar = null;
    });
    for (const does of this.pending.splice(0)) does(conversation);
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: ViewState | undefined): Promise<void> {
    this.adopt(panel, state ?? {});
  }

  private adopt(panel: vscode.WebviewPanel, state: ViewState): void {
    const conversation = new Conversation(panel.webview, this.api, this.hooks, this.extension, "editor", state, () => {});
    panel.iconPath = vscode.Uri.joinPath(this.extension, "media", "extension.png");
    this.panels.set(panel, conversation);
    panel.onDidDispose(() => {
      conversation.dispose();
      this.panels.delete(panel);
    });
    panel.onDidChangeViewState(() => panel.active && this.hooks.shown(conversation, conversation.session));
  }

  /** Opens a conversation in an editor tab. */
  openPanel(session: string | null, title: string): void {
    for (const [panel, conversation] of this.panels) if (session && conversation.session === session) return panel.reveal();
    this.adopt(ui.createPanel(Conversations.panel, title), { session });
  }

  /** Returns the conversation in the active tab, or the one of the side bar. */
  get current(): Conversation | null {
    for (const [panel, conversation] of this.panels) if (panel.active) return conversation;
    return this.sidebar?.conversation ?? null;
  }

  /** Shows the file of the active editor in all conversations. */
  setContext(open: OpenFile | null): void {
    this.sidebar?.conversation.setContext(open);
    for (const conversation of this.panels.values()) conversation.setContext(open);
  }

  /** Sets the title of the tabs that show a session. */
  rename(session: string, title: string): void {
    for (const [panel, conversation] of this.panels) if (conversation.session === session) ui.rename(panel, title);
  }

  /** Sets the number of waiting sessions on the icon of the activity bar. */
  badge(count: number, tooltip: string): void {
    if (this.sidebar) ui.setBadge(this.sidebar.view, count, tooltip);
  }

  /** Runs `does` with the conversation of the active tab, or of the side bar, which is opened. */
  async reveal(does: (conversation: Conversation) => void, focus = true): Promise<void> {
    for (const [panel, conversation] of this.panels) if (panel.active) return does(conversation);
    if (this.sidebar) {
      this.sidebar.view.show(!focus);
      if (focus) await vscode.commands.executeCommand(`${Conversations.view}.focus`);
      return does(this.sidebar.conversation);
    }
    this.pending.push(does);
    await vscode.commands.executeCommand(`${Conversations.view}.focus`, { preserveFocus: !focus });
  }
}
