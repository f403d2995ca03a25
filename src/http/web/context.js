// The file that is open in the editor around the page, with its selection: a chip that the user can
// switch off. A page in a browser has none.

import { call } from "./api.js";
import { base, h, icon } from "./dom.js";
import { host } from "./host.js";
import { t } from "./texts.js";
import { decoded } from "./transport.js";

const OFF = "nuncio.context";

/** Formats lines, for example `12` or `12-14`. */
const range = ({ first, last }, dash) => (first === last ? String(first) : `${first}${dash}${last}`);

export class EditorContext {
  /** `changed()` is called when the chip changes. */
  constructor(changed) {
    Object.assign(this, { open: null, changed });
    host.onContext?.((open) => {
      this.open = open;
      changed();
    });
  }

  get isOff() {
    return sessionStorage.getItem(OFF) === "off";
  }

  /** Returns true if the open file, with its selection, is among the parts of a message. */
  isAmong(parts) {
    return parts.some((part) => part.uri && decoded(part.uri) === decoded(this.uri));
  }

  get uri() {
    const { path, lines } = this.open;
    return `file://${path.split("/").map(encodeURIComponent).join("/")}${lines ? `#L${range(lines, "-L")}` : ""}`;
  }

  /** The chip as a node; null if no file is open, or if it is among the attached parts. */
  chip(attached) {
    if (!this.open || this.isAmong(attached)) return null;
    const { path, lines } = this.open;
    const name = base(path) + (lines ? `:${range(lines, "-")}` : "");
    const toggle = h("button", { type: "button", class: "context", "aria-pressed": String(!this.isOff), title: this.isOff ? t`${path} is not sent: click to send it with your messages` : t`${path} is sent with your messages: click to switch this off` }, icon("read", 14), h("span", {}, name));
    toggle.addEventListener("click", () => {
      if (this.isOff) sessionStorage.removeItem(OFF);
      else sessionStorage.setItem(OFF, "off");
      this.changed();
    });
    return h("li", { class: `chip${this.isOff ? " off" : ""}` }, toggle);
  }

  /**
   * The parts that a message gets: a link to the file, or the selected lines. Nothing that a rule
   * denies, and nothing that is among the `others` of the message.
   */
  async parts(sessionId, others) {
    if (!this.open || this.isOff) return [];
    const { uri } = this;
    const { path, lines } = this.open;
    if (this.isAmong(others)) return [];
    const file = await call("_nuncio/file/read", { sessionId, path }).catch(() => null);
    if (file?.text === undefined) return [];
    if (!lines) return [{ type: "resource_link", uri, name: path }];
    const text = (this.open.text ?? (file.text.match(/[^\n]*\n|[^\n]+$/g) ?? []).slice(lines.first - 1, lines.last).join(""));
    return [{ type: "resource", uri, mimeType: "text/plain", text }];
  }
}
