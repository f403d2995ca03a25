// A button that opens a list of choices.

import { fill, h, icon } from "./dom.js";
import { host } from "./host.js";
import { t } from "./texts.js";

export class Menu {
  /**
   * `choices()` returns `[{id, name, hint, danger}]` or a promise of it; `choose(id)` applies one.
   */
  constructor(label, { choices, choose, current = () => null, glyph, className = "" }) {
    Object.assign(this, { choices, choose, current });
    this.text = h("span");
    this.list = h("div", { class: "menu", role: "menu", popover: "auto", "aria-label": label });
    this.button = h("button", { type: "button", class: `picker ${className}`, "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": label, title: label }, glyph && icon(glyph), this.text);
    this.button.addEventListener("click", () => this.toggle());
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("toggle", (event) => {
      this.isOpen = event.newState === "open";
      this.button.setAttribute("aria-expanded", String(this.isOpen));
    });
    this.label = label;
    this.asked = 0;
    this.nodes = [this.button, this.list];
  }

  set name(text) {
    this.text.textContent = text;
    this.button.setAttribute("aria-label", text ? `${this.label}: ${text}` : this.label);
  }

  async toggle() {
    if (this.isOpen) return this.list.hidePopover();
    const asked = ++this.asked;
    const choices = await this.choices();
    if (asked !== this.asked) return;
    const role = this.current() === null ? "menuitem" : "menuitemradio";
    const items = choices.map(({ id, name, hint, danger }) => {
      const chosen = id === this.current();
      const text = h("span", { class: "choice" }, h("span", {}, name), hint && h("span", { class: "hint" }, hint));
      const item = h("button", { type: "button", role, class: danger ? "danger" : undefined, title: name }, role === "menuitemradio" && h("span", { class: "tick" }, chosen && icon("check", 14)), text);
      if (role === "menuitemradio") item.setAttribute("aria-checked", String(chosen));
      item.addEventListener("click", () => {
        this.list.hidePopover();
        host.focus(this.button);
        this.choose(id);
      });
      return item;
    });
    fill(this.list, items.length ? items : h("p", { class: "muted" }, t`No choices`));
    this.list.showPopover();
    this.place();
    host.focus(this.list.querySelector("[aria-checked=true]") || this.list.querySelector("button"));
  }

  /** Closes the menu and discards choices that are still being loaded. */
  close() {
    this.asked++;
    if (this.isOpen) this.list.hidePopover();
  }

  /** Places the menu above the button if there is room, otherwise below, within the window. */
  place() {
    const from = this.button.getBoundingClientRect(), { offsetWidth: width, offsetHeight: height } = this.list;
    const left = Math.max(8, Math.min(from.left, innerWidth - width - 8));
    const top = from.top - height - 6 > 8 ? from.top - height - 6 : Math.min(from.bottom + 6, innerHeight - height - 8);
    this.list.style.left = `${left}px`;
    this.list.style.top = `${Math.max(8, top)}px`;
  }

  key(event) {
    const items = [...this.list.querySelectorAll("button")];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, j: at + 1, k: at - 1, Home: 0, End: items.length - 1 }[event.key];
    event.stopPropagation();
    if (event.key === "Escape") host.focus(this.button);
    if (to === undefined) return;
    event.preventDefault();
    host.focus(items[(to + items.length) % items.length]);
  }
}
