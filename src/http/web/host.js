// What contains the page: here the window of a browser. The VS Code extension has its own module in
// place of this one (editors/vscode/webview/host.ts).

import { FileView } from "./file.js";

let files = null;

export const host = {
  /** Moves the focus to an element, if there is one. */
  focus(node, options) {
    node?.focus(options);
  },

  /** Saves a text as a file. */
  save(name, text, type) {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    URL.revokeObjectURL(link.href);
  },

  /**
   * Opens a file at a line: `{session, path, line, cwd}`; a relative path is one of `cwd`. `failed`
   * takes an error.
   */
  open(place, failed) {
    files ??= new FileView();
    return files.show(place).catch(failed);
  },

  // Only an editor has these: `openDiff(session, permission)` shows the changes of a request;
  // `signIn(provider)` asks for a key and stores it; `onContext(take)` gives
  // the open file, `{path, lines, text}`; `context(name)` returns what `@name` means there, a part;
  // `dropped` reads the files of a drop, `{types, paths(dataTransfer)}`.

  /** Takes the id of the session that the page shows; null for the page of a new session. */
  show() {},

  /** Takes what the host can do with the page: `{show, focus, compose, send, signedIn, open}` of app.js. */
  connect() {},
};
