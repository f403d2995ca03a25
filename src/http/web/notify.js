// Notifications of the browser when a session begins to wait for the user. Off until the user turns
// them on.

const KEY = "nuncio.notify";

export class Notifier {
  /**
   * `button` turns the notifications on and off. `hooks`: `go(id)` opens a session; `toast(text)`
   * shows a text; `shown()` returns the id of the session that is shown.
   */
  constructor(button, hooks) {
    Object.assign(this, { button, hooks, waiting: new Set() });
    button.hidden = typeof Notification === "undefined";
    button.addEventListener("click", () => this.toggle());
    this.draw();
  }

  /** Whether the user has turned the notifications on, and the browser allows them. */
  get isOn() {
    return typeof Notification !== "undefined" && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
  }

  async toggle() {
    const turnsOn = !this.isOn;
    const permission = turnsOn ? await Notification.requestPermission() : null;
    if (turnsOn && permission !== "granted") this.hooks.toast("The browser does not allow notifications for this page", true);
    if (turnsOn && permission === "granted") localStorage.setItem(KEY, "on");
    else localStorage.removeItem(KEY);
    this.draw();
  }

  draw() {
    const { isOn } = this;
    this.button.setAttribute("aria-pressed", String(isOn));
    this.button.title = isOn ? "Notifications are on: a session that waits is reported" : "Notify me when a session waits";
  }

  /** Takes the sessions as known, without a notification. */
  begin(rows) {
    this.waiting = new Set(rows.filter((row) => row.waiting).map((row) => row.id));
  }

  /** Reports the sessions that wait since the last call, except the one that the user looks at. */
  changed(rows) {
    const before = this.waiting;
    this.begin(rows);
    if (!this.isOn) return;
    const seen = document.hasFocus() && !document.hidden ? this.hooks.shown() : null;
    for (const row of rows) if (row.waiting && !before.has(row.id) && row.id !== seen) this.report(row);
  }

  report({ id, title, cwd }) {
    try {
      const notification = new Notification(`${title || "Untitled"} waits for you`, { body: cwd || "", tag: id, icon: "/console/icon.svg" });
      notification.addEventListener("click", () => {
        window.focus();
        notification.close();
        this.hooks.go(id);
      });
    } catch {
      // Browsers on phones show notifications only for pages with a service worker.
    }
  }
}
