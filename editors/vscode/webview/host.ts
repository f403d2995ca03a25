// Replaces the console's host.js in the webview: the editor saves files and opens them, and takes
// the focus back.

import { extension, keep } from "./bridge";

/** What the extension host can do with the page (`host.connect` in app.js). */
interface Page {
  show(session: string | null): void;
  focus(): void;
  compose(draft: { text?: string; files?: { name: string; uri: string; text: string }[] }): void;
  send(parts: object[]): void;
  open(page: "workspaces" | "comparisons"): void;
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
      else if (data?.type === "focus") page.focus();
    });
  },
};

addEventListener("focus", () => {
  const target = wanted?.isConnected ? wanted : document.getElementById("prompt");
  wanted = null;
  if (document.activeElement === document.body) target?.focus({ preventScroll: true });
});
