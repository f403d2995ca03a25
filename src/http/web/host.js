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

  /** Takes the id of the session that the page shows; null for the page of a new session. */
  show() {},

  /** Takes what the host can do with the page: `{show, focus, compose, send, open}` of app.js. */
  connect() {},
};
