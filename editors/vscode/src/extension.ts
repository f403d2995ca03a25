// Registers the extension: starts nuncio, and connects its views, commands and events.

import * as vscode from "vscode";
import { ActiveSession } from "./active";
import { Agent } from "./agent";
import { errorFacts } from "./answers";
import { Api, defaultDirectory } from "./api";
import { ChangedFiles } from "./changes";
import { writeCommitMessage } from "./commit";
import { attachment, explanation, fix, FixActions, mention, openFile, problems, selection } from "./context";
import { EditorFiles } from "./files";
import { pickAgent, pickOption, pickSession } from "./pickers";
import { Proposals } from "./proposals";
import { Sessions } from "./sessions";
import { StatusItem } from "./status";
import { TerminalOutput, TerminalVariables } from "./terminals";
import * as ui from "./ui";
import { type Compose, type Conversation, Conversations } from "./view";

/** How long the open file of the window may rest before the conversations show it. */
const CONTEXT_MS = 100;

const setContext = (key: string, value: unknown) => vscode.commands.executeCommand("setContext", key, value);

export function activate(context: vscode.ExtensionContext): void {
  const log = ui.createLog("nuncio");
  const extension = new Extension(context, log);
  context.subscriptions.push(log, ...extension.parts);
  extension.register();
  void extension.agent.start();
}

export function deactivate(): void {}

class Extension {
  readonly agent: Agent;
  private readonly api: Api;
  private readonly sessions: Sessions;
  private readonly active: ActiveSession;
  private readonly conversations: Conversations;
  private readonly proposals: Proposals;
  private readonly status: StatusItem;
  private readonly changes: ChangedFiles;
  private readonly terminals: TerminalVariables;
  private readonly output = new TerminalOutput();
  private needsLogin = false;
  private contextTimer: NodeJS.Timeout | null = null;
  readonly parts: vscode.Disposable[];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {
    const files = new EditorFiles();
    this.agent = new Agent(context.extensionPath, {
      readFile: (params) => files.read(params),
      writeFile: (params) => files.write(params),
      // The user answers in the conversation or in the diff tab. nuncio cancels this request then.
      requestPermission: (_, cancelled) => new Promise((__, reject) => {
        const abort = () => reject(new DOMException("answered elsewhere", "AbortError"));
        if (cancelled.aborted) abort();
        else cancelled.addEventListener("abort", abort, { once: true });
      }),
      isBusy: () => this.busy.length > 0,
    }, log);
    this.api = new Api(this.agent);
    this.sessions = new Sessions(this.api);
    this.active = new ActiveSession(this.api);
    this.conversations = new Conversations(this.api, {
      ready: (view) => view.setContext(openFile()),
      shown: (view, session) => this.shown(view, session),
      prompted: () => void setContext("nuncio.prompted", true),
      openDiff: (session, permission) => this.proposals.reveal(session, permission),
      signIn: (provider) => this.signIn(provider),
      context: (name) => attachment(name, this.directory, this.output),
      failed: (error) => this.failed(error),
    }, context.extensionUri, context.workspaceState);
    this.proposals = new Proposals(this.api, (id) => !this.sessions.hidden.has(id) && (this.api.isOpened(id) || this.active.id === id), { failed: (error) => this.failed(error), showRequest: (id) => this.open(id) });
    this.status = new StatusItem(this.agent, this.active, this.sessions);
    this.changes = new ChangedFiles(this.active, this.context.workspaceState);
    this.terminals = new TerminalVariables(context.environmentVariableCollection, this.active);
    this.parts = [this.agent, this.sessions, this.active, this.conversations, this.proposals, this.status, this.changes, this.output];
  }

  /** The sessions of this window in which a turn runs. */
  private get busy() {
    return [...this.sessions.rows.values()].filter(({ id, status }) => status === "busy" && this.api.isOpened(id));
  }

  /** The directory of the shown session, or of a new one. */
  private get directory(): string {
    return this.active.state?.cwd ?? defaultDirectory();
  }

  register(): void {
    const { subscriptions } = this.context;
    const sessionsTree = ui.showTree("nuncio.sessions", this.sessions);
    this.sessions.showIn(sessionsTree);
    const webviewOptions = { webviewOptions: { retainContextWhenHidden: true } };
    subscriptions.push(
      vscode.window.registerWebviewViewProvider(Conversations.view, this.conversations, webviewOptions),
      vscode.window.registerWebviewPanelSerializer(Conversations.panel, this.conversations),
      sessionsTree,
      ui.showTree("nuncio.changes", this.changes),
      ui.showTree("nuncio.setup", { getChildren: () => [], getTreeItem: (item: vscode.TreeItem) => item }),
      vscode.languages.registerCodeActionsProvider({ scheme: "file" }, new FixActions(), { providedCodeActionKinds: FixActions.kinds }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => void this.agent.restartNow()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (["command", "args", "env"].some((name) => event.affectsConfiguration(`nuncio.${name}`))) void this.restart();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.contextChanged()),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => textEditor === vscode.window.activeTextEditor && this.contextChanged()),
      this.agent.onDidChangeState(() => void this.agentChanged()),
      this.sessions.onDidChange(() => this.sessionsChanged()),
      this.sessions.onEvent((event) => {
        this.proposals.take(event);
        if (event.body.type === "permission.requested") this.notify(event.sessionId, vscode.l10n.t("nuncio waits for an answer: {0}", event.body.title || this.titleOf(event.sessionId)), "notifyWhenWaiting");
        if (event.body.type === "turn.completed") this.notify(event.sessionId, vscode.l10n.t("nuncio is done: {0}", this.titleOf(event.sessionId)), "notifyWhenDone");
        if (event.body.title && event.body.type.startsWith("session.")) this.conversations.rename(event.sessionId, event.body.title);
      }),
      this.active.onDidChange(() => void setContext("nuncio.busy", !!this.active.state?.busy)),
    );
    this.commands();
  }

  // State -----------------------------------------------------------------------------------------

  private async agentChanged(): Promise<void> {
    const { running, problem } = this.agent.state;
    if (running) {
      await this.checkLogin();
      this.sessions.load().catch((error) => this.log.error(`the sessions could not be loaded: ${error}`));
    }
    await this.showProblem();
    void setContext("nuncio.running", running);
    if (problem === "missing" || this.needsLogin) await this.firstStart();
  }

  private async showProblem(): Promise<void> {
    await setContext("nuncio.problem", this.agent.state.problem ?? (this.needsLogin ? "login" : undefined));
  }

  /** Checks whether the default model has credentials. */
  private async checkLogin(): Promise<void> {
    const { state } = await this.agent.request<{ state: string }>("auth/status", {}).catch(() => ({ state: "unknown" }));
    this.needsLogin = state === "unauthenticated";
    void setContext("nuncio.hasModel", !this.needsLogin);
    const { model = null, url = null } = await this.api.call("_nuncio/status").catch(() => ({}));
    this.status.defaultModel = model;
    this.status.draw();
    this.terminals.url = url;
    this.terminals.update();
  }

  /** Opens the walkthrough when nuncio cannot be used, once. */
  private async firstStart(): Promise<void> {
    if (this.context.globalState.get("walkthrough")) return;
    await this.context.globalState.update("walkthrough", true);
    await vscode.commands.executeCommand("nuncio.walkthrough");
  }

  private shown(view: Conversation, session: string | null): void {
    if (this.conversations.current !== view) return;
    this.active.show(session);
    this.sessions.shown = session;
    this.sessions.redraw();
    if (session) this.proposals.showOpen(session).catch((error) => this.log.debug(`open requests: ${error}`));
  }

  /** Shows the open file at the prompts, once for many changes. */
  private contextChanged(): void {
    this.contextTimer ??= setTimeout(() => {
      this.contextTimer = null;
      this.conversations.setContext(openFile());
    }, CONTEXT_MS);
  }

  /** Starts nuncio again. Asks while a turn runs. */
  private async restart(): Promise<void> {
    const [busy] = this.busy;
    if (busy) {
      const restart = vscode.l10n.t("Restart nuncio");
      const question = vscode.l10n.t("nuncio works on “{0}”. A restart uses the new settings; the turn goes on without it, and files with unsaved text are left alone.", busy.title || vscode.l10n.t("Untitled"));
      if ((await ui.notify(question, restart)) !== restart) return;
    }
    await this.agent.restartNow();
  }

  /** Asks for a provider and its key, which nuncio checks and stores. */
  private async signIn(provider?: string): Promise<void> {
    const { providers } = await this.api.call("_nuncio/settings/get", { cwd: this.directory });
    const choices = providers.map(({ name, keySource }: any) => ({ value: name, label: name, description: keySource }));
    const name: string | undefined = provider ?? (await ui.choose(vscode.l10n.t("Provider"), choices));
    if (!name) return;
    const key = (await ui.askSecret(vscode.l10n.t("API key of {0}", name), vscode.l10n.t("nuncio checks the key and stores it in the keyring, or in a private file.")))?.trim();
    if (!key) return;
    const said = await ui.withNotification(vscode.l10n.t("Checking the key of {0}", name), () => this.agent.login(name, key));
    void ui.notify(said);
    await this.checkLogin();
    await this.showProblem();
    await this.conversations.reveal((conversation) => conversation.signedIn(), false);
  }

  private sessionsChanged(): void {
    const { waiting } = this.sessions;
    this.conversations.badge(waiting.length, vscode.l10n.t("{0} sessions wait for an answer", waiting.length));
  }

  private titleOf(id: string): string {
    return this.sessions.rows.get(id)?.title || vscode.l10n.t("Untitled");
  }

  /** Tells a user who looks at another window about a session, unless a setting forbids it. */
  private notify(id: string, text: string, setting: "notifyWhenWaiting" | "notifyWhenDone"): void {
    if (vscode.window.state.focused || !vscode.workspace.getConfiguration("nuncio").get(setting, true)) return;
    if (this.sessions.hidden.has(id) || (!this.api.isOpened(id) && this.active.id !== id)) return;
    const show = vscode.l10n.t("Show");
    void ui.notify(text, show).then(async (chosen) => {
      if (chosen === show) await this.open(id);
    });
  }

  private failed(error: unknown): void {
    const { message, hint } = errorFacts(error);
    const text = hint ? `${message}: ${hint}` : message;
    this.log.error(text);
    ui.showError(`nuncio: ${text}`);
  }

  // Commands --------------------------------------------------------------------------------------

  private open(id: string | null): Promise<void> {
    return this.conversations.reveal((conversation) => {
      conversation.show(id);
      conversation.focus();
    });
  }

  private compose(compose: Compose | null, nothing: string): Promise<void> | undefined {
    if (compose) return this.conversations.reveal((conversation) => conversation.compose(compose));
    void ui.notify(nothing);
    return undefined;
  }

  private send(text: string): Promise<void> {
    return this.conversations.reveal((conversation) => conversation.prompt(text));
  }

  private commands(): void {
    const { api, sessions, active } = this;
    const t = vscode.l10n.t;
    /** Returns the id of the session of a tree item, or of the shown session. */
    const idOf = (node?: { row?: { id: string } }) => node?.row?.id ?? active.id;
    const editor = () => vscode.window.activeTextEditor;
    type TreeNode = { row?: { id: string } } | undefined;
    const commands: Record<string, (...args: any[]) => unknown> = {
      newSession: () => this.open(null),
      open: () => this.conversations.reveal((conversation) => conversation.focus()),
      openInEditor: () => this.conversations.openPanel(active.id, active.state?.title || t("nuncio")),
      pickSession: async () => {
        const id = await pickSession(this.api, sessions);
        if (id) await this.open(id);
      },
      stop: () => active.id && api.call("session/cancel", { sessionId: active.id }),
      addSelection: () => {
        const one = editor();
        return this.compose(one ? selection(one) : null, t("Open a file first."));
      },
      addFile: (uri?: vscode.Uri, all?: vscode.Uri[]) => {
        const file = uri ?? editor()?.document.uri;
        return this.compose(file ? mention(all?.length ? all : [file], this.directory) : null, t("Open a file first."));
      },
      addProblems: () => this.compose(problems(editor()?.document.uri) ?? problems(), t("There are no problems.")),
      explain: () => {
        const one = editor();
        if (one && !one.selection.isEmpty) return this.send(explanation(one));
        return void ui.notify(t("Select code first."));
      },
      fix: async (uri: vscode.Uri, diagnostics: vscode.Diagnostic[]) => this.send(fix(await vscode.workspace.openTextDocument(uri), diagnostics)),
      commitMessage: (control?: vscode.SourceControl) => writeCommitMessage(api, sessions, control),
      pickModel: () => pickOption(api, active, "model", t("Model of the session")),
      pickMode: () => pickOption(api, active, "mode", t("Mode of the session")),
      pickThinking: () => pickOption(api, active, "thinking", t("Thinking of the session")),
      pickAgent: async () => {
        const agent = await pickAgent(api);
        if (!agent) return;
        const { sessionId } = await api.call("session/new", { cwd: defaultDirectory(), _meta: { nuncio: agent === "nuncio" ? {} : { agent } } });
        await this.open(sessionId);
      },
      allow: (uri?: vscode.Uri) => this.proposals.answer(true, uri),
      reject: (uri?: vscode.Uri) => this.proposals.answer(false, uri),
      showLog: () => this.log.show(),
      restart: () => this.restart(),
      signIn: () => this.signIn(),
      settings: () => this.conversations.reveal((conversation) => conversation.open("settings")),
      openSettings: () => vscode.commands.executeCommand("workbench.action.openSettings", "@ext:nuncio.nuncio"),
      openConfig: () => this.openConfig(),
      walkthrough: () => vscode.commands.executeCommand("workbench.action.openWalkthrough", `${this.context.extension.id}#start`, false),
      workspaces: () => this.conversations.reveal((conversation) => conversation.open("workspaces")),
      comparisons: () => this.conversations.reveal((conversation) => conversation.open("comparisons")),
      refreshSessions: () => sessions.load(),
      moreSessions: () => sessions.page(),
      "session.open": (node: TreeNode) => this.open(idOf(node)),
      "session.answer": (node: TreeNode) => this.open(node?.row?.id ?? sessions.waiting[0]?.id ?? active.id),
      "session.rename": async (node: TreeNode) => {
        const id = idOf(node);
        const row = id && sessions.rows.get(id);
        if (!row) return;
        const title = await ui.ask(t("Rename the session"), row.title);
        if (title?.trim()) await api.call("session/set_title", { sessionId: id, title: title.trim() });
      },
      "session.fork": async (node: TreeNode) => {
        const id = idOf(node);
        if (!id) return;
        const { sessionId } = await api.call("session/fork", { sessionId: id, cwd: sessions.rows.get(id)?.cwd ?? "" });
        await this.open(sessionId);
      },
      "session.stop": (node: TreeNode) => idOf(node) && api.call("session/cancel", { sessionId: idOf(node) }),
      "session.close": (node: TreeNode) => idOf(node) && api.call("session/close", { sessionId: idOf(node) }),
      "session.delete": async (node: TreeNode) => {
        const id = idOf(node);
        if (!id) return;
        const remove = t("Delete");
        const question = t("Delete “{0}”? Its conversation is deleted permanently. Changes in the project are kept.", sessions.rows.get(id)?.title || t("Untitled"));
        if (!(await ui.confirm(question, remove))) return;
        await api.call("session/delete", { sessionId: id });
        if (active.id === id) this.conversations.current?.show(null);
      },
      "change.open": (change) => this.changes.open(change),
      "change.revert": (change) => this.changes.revert(change),
      "change.keep": (change) => this.changes.keep([change]),
      keepAll: () => this.changes.keep(),
    };
    for (const [name, does] of Object.entries(commands)) {
      const guarded = async (...args: unknown[]) => {
        try {
          await does(...args);
        } catch (error) {
          if (!(error instanceof vscode.CancellationError)) this.failed(error);
        }
      };
      this.context.subscriptions.push(vscode.commands.registerCommand(`nuncio.${name}`, guarded));
    }
  }

  /** Opens nuncio's settings file, which is created if it is missing. */
  private async openConfig(): Promise<void> {
    const uri = vscode.Uri.file(await this.agent.configPath());
    const exists = await vscode.workspace.fs.stat(uri).then(() => true, () => false);
    if (!exists) await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode("# Settings of nuncio: docs/PROVIDERS.md\n# model = \"anthropic/claude-sonnet-5\"\n"));
    await ui.openFile(uri);
  }
}
