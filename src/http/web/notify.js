// Notifications of the browser when a session begins to wait for the user, and when its turn ends.
// Off until the user turns them on.

import { t } from "./texts.js";

const KEY = "nuncio.notify";
const WORKER = "/console/worker.js";

/** Registers the service worker. The policy of the page allows this address alone. */
async function register() {
  const address = window.trustedTypes?.createPolicy("nuncio-worker", { createScriptURL: () => WORKER }).createScriptURL("") ?? WORKER;
  const registration = await navigator.serviceWorker.register(address);
  // Only an active worker shows notifications.
  const worker = registration.installing ?? registration.waiting;
  if (worker && !registration.active) await new Promise((resolve) => worker.addEventListener("statechange", () => worker.state === "activated" && resolve()));
  return registration;
}

export class Notifier {
  /**
   * `button` turns the notifications on and off. `hooks`: `go(id)` opens a session; `toast(text)`
   * shows a text; `shown()` returns the id of the session that is shown.
   */
  constructor(button, hooks) {
    Object.assign(this, { button, hooks, waiting: new Set(), busy: new Set(), shown: new Map(), worker: null });
    navigator.serviceWorker?.addEventListener("message", ({ data }) => data?.type === "go" && hooks.go(data.session));
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
    if (turnsOn && !isSecureContext) return this.hooks.toast(t`Browsers notify only on pages with HTTPS, and on those of this computer`, true);
    const permission = turnsOn ? await Notification.requestPermission() : null;
    if (turnsOn && permission !== "granted") this.hooks.toast(t`The browser does not allow notifications for this page`, true);
    if (turnsOn && permission === "granted") localStorage.setItem(KEY, "on");
    else localStorage.removeItem(KEY);
    this.draw();
  }

  draw() {
    const { isOn } = this;
    this.button.setAttribute("aria-pressed", String(isOn));
    this.button.title = isOn ? t`Notifications are on: a session that waits or is done is reported` : t`Notify me when a session waits or is done`;
  }

  /** Takes the sessions as known, without a notification. */
  begin(rows) {
    this.waiting = new Set(rows.filter((row) => row.waiting).map((row) => row.id));
    this.busy = new Set(rows.filter((row) => row.waiting || row.status === "busy").map((row) => row.id));
  }

  /**
   * Reports the sessions that wait, or whose turn has ended, since the last call, except the one that
   * the user looks at. A report about a request closes once the request is answered.
   */
  changed(rows) {
    const { waiting: before, busy } = this;
    this.begin(rows);
    for (const id of before) if (!this.waiting.has(id)) this.withdraw(id);
    for (const id of this.busy) if (!busy.has(id)) this.withdraw(`${id} done`);
    if (!this.isOn) return;
    const seen = document.hasFocus() && !document.hidden ? this.hooks.shown() : null;
    for (const row of rows) {
      if (row.id === seen) continue;
      if (row.waiting && !before.has(row.id)) this.report(row, row.id, t`${row.title || t`Untitled`} waits for you`);
      else if (busy.has(row.id) && !this.busy.has(row.id) && row.status === "idle") this.report(row, `${row.id} done`, t`${row.title || t`Untitled`} is done`);
    }
  }

  /**
   * Shows a report. `tag` begins with the id of the session; each kind of report has its own, because
   * a browser may close one while it shows the next.
   */
  report({ id, cwd }, tag, text) {
    const options = { body: cwd || "", tag, icon: "/console/icon.svg" };
    try {
      const notification = new Notification(text, options);
      this.shown.set(tag, notification);
      notification.addEventListener("click", () => {
        window.focus();
        notification.close();
        this.hooks.go(id);
      });
    } catch {
      // Browsers on phones show notifications only through a service worker.
      this.worker ??= navigator.serviceWorker ? register().catch(() => null) : Promise.resolve(null);
      this.queue((worker) => worker.showNotification(text, options));
    }
  }

  withdraw(tag) {
    this.shown.get(tag)?.close();
    this.queue(async (worker) => (await worker.getNotifications({ tag })).forEach((one) => one.close()));
  }

  /** Runs an action with the service worker, if there is one, after the earlier actions. */
  queue(action) {
    this.worker = this.worker?.then(async (worker) => {
      // A browser may refuse to show or to close a notification.
      if (worker) await Promise.resolve(worker).then(action).catch(() => {});
      return worker;
    });
  }
}
