// Replaces the console's host.js in the webview: the editor saves files and opens them, and takes
// the focus back.

import { call, extension, keep } from "./bridge";

/** What the extension host can do with the page (`host.connect` in app.js). */
interface Page {
  show(session: string | null): void;
  focus(): void;
  compose(draft: { text?: string; files?: { name: string; uri: string; text: string }[] }): void;
  send(parts: object[]): void;
  /** Models and settings may have changed. */
  signedIn(): void;
  open(page: "workspaces" | "comparisons" | "settings"): void;
}

/** The file of the active editor, and the lines of its selection with their text. */
export interface OpenFile {
  path: string;
  lines?: { first: number; last: number };
  text?: string;
}

/** What VS Code gives for files that are dragged from its explorer, while Shift is held. */
const DRAGGED = ["application/vnd.code.uri-list", "text/uri-list"];

/** Returns the path of a file on the machine of the extension host; null for another address. */
function pathOf(address: string): string | null {
  try {
    const { protocol, pathname } = new URL(address);
    return ["file:", "vscode-remote:"].includes(protocol) ? decodeURIComponent(pathname) : null;
  } catch {
    return null;
  }
}

let shown: string | null | undefined;
/** The element that receives the focus once the user turns to the view. */
let wanted: HTMLElement | null = null;

export const host = {
  /** Moves the focus within the view, and never from another part of the window. */
  focus(node: HTMLElement | null | undefined, options?: FocusOptions): void {
    if (document.hasFocus()) node?.focus(options);
    else wanted = node ?? null;
  },

  save(name: string, text: string): void {
    extension.postMessage({ type: "save", name, text });
  },

  /** Opens a file in the editor. */
  open({ path, line, cwd }: { path: string; line?: number; cwd?: string }): void {
    extension.postMessage({ type: "openFile", path, line, cwd });
  },

  /** Shows the changes of a permission request as diffs in editor tabs. */
  openDiff(session: string, permission: string): void {
    extension.postMessage({ type: "openDiff", session, permission });
  },

  /** Asks for the key of a provider, which nuncio checks and stores. */
  signIn(provider: string): void {
    extension.postMessage({ type: "signIn", provider });
  },

  /** Calls `take` with the open file, again when it changes; null for none. */
  onContext(take: (open: OpenFile | null) => void): void {
    addEventListener("message", ({ data, origin }) => origin === window.origin && data?.type === "context" && take(data.open));
  },

  /** Returns what `@name` means in the editor, as a part of a message: problems, terminal, diff. */
  async context(name: string): Promise<object | null> {
    return ["problems", "terminal", "diff"].includes(name) ? (await call("editor/context", { name })).part ?? null : null;
  },

  dropped: {
    types: DRAGGED,
    paths(data: DataTransfer): string[] {
      const list = DRAGGED.map((type) => data.getData(type)).find(Boolean) ?? "";
      const lines = list.split(/\r?\n/).filter((line) => line && !line.startsWith("#"));
      return lines.map(pathOf).filter((path): path is string => path !== null);
    },
  },

  /** Remembers the shown session for a reload, and tells the extension host. */
  show(session: string | null): void {
    if (session === shown) return;
    shown = session;
    keep({ session });
    extension.postMessage({ type: "shown", session });
  },

  connect(page: Page): void {
    addEventListener("message", ({ data, origin }) => {
      // As in bridge.ts.
      if (origin !== window.origin) return;
      if (data?.type === "show") page.show(data.session);
      else if (data?.type === "compose") page.compose(data);
      else if (data?.type === "send") page.send(data.parts);
      else if (data?.type === "open") page.open(data.page);
      else if (data?.type === "signedIn") page.signedIn();
      else if (data?.type === "focus") page.focus();
    });
  },
};

addEventListener("focus", () => {
  const target = wanted?.isConnected ? wanted : document.getElementById("prompt");
  wanted = null;
  if (document.activeElement === document.body) target?.focus({ preventScroll: true });
});
