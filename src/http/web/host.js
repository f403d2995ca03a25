// What contains the page: here the window of a browser. The VS Code extension has its own module in
// place of this one (editors/vscode/webview/host.ts).

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

  /** Takes the id of the session that the page shows; null for the page of a new session. */
  show() {},

  /** Takes what the host can do with the page: `{show, focus, compose, send, open}` of app.js. */
  connect() {},
};
