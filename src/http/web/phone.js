// The dialog with a QR code of the console's address, for a phone.

import { fill, h } from "./dom.js";
import { encode } from "./qr.js";
import { t } from "./texts.js";

const SPACE = "http://www.w3.org/2000/svg";
/** Empty modules around a code, which scanners need. */
const MARGIN = 4;
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

/** Draws a QR code, dark on white in all colour schemes. */
function draw(rows) {
  const size = rows.length + 2 * MARGIN;
  const svg = document.createElementNS(SPACE, "svg"), path = document.createElementNS(SPACE, "path");
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${size} ${size}`, class: "qr", role: "img", "aria-label": t`QR code of the console's address`, "shape-rendering": "crispEdges" })) svg.setAttribute(name, value);
  path.setAttribute("d", rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + MARGIN} ${y + MARGIN}h1v1h-1z` : ""))).join(""));
  svg.append(path);
  return svg;
}

export class Phone {
  /** `address()` returns a promise of the address of the console, with a code for one sign-in. */
  constructor(address) {
    this.address = address;
    this.body = h("div");
    this.dialog = h("dialog", { class: "phone", "aria-labelledby": "phone-title" }, h("h2", { id: "phone-title" }, t`Open on a phone`), this.body, h("form", { method: "dialog" }, h("button", { class: "plain" }, t`Close`)));
    // The QR code signs in: it is removed when the dialog closes.
    this.dialog.addEventListener("close", () => fill(this.body));
    document.body.append(this.dialog);
  }

  async show() {
    const url = await this.address(), rows = encode(url), { origin, hostname } = new URL(url);
    const reach = LOOPBACK.test(hostname) ? t`${origin} is reachable only from this computer: serve on another address, or through a proxy or a tunnel.` : t`The phone must be able to reach ${origin}.`;
    fill(this.body, rows ? draw(rows) : h("p", {}, t`The address is too long for a code.`), h("p", {}, t`It signs in once, within five minutes: whoever scans it first has your access.`), h("p", {}, reach));
    this.dialog.showModal();
  }
}
