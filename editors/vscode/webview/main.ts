// The webview: the console's application on a page without its session list, which the tree view
// shows. Takes commands of the extension host.

import { host, keep, state } from "./bridge";

const at = (id: string) => document.getElementById(id)!;

/** Shows a session; null for a new one. */
const go = (id: string | null) => (location.hash = id ? `#/session/${encodeURIComponent(id)}` : "#/");

// Never take the focus from another part of the window: remember the element instead.
let wanted: HTMLElement | null = null;
const focus = HTMLElement.prototype.focus;
HTMLElement.prototype.focus = function (options) {
  if (document.hasFocus()) focus.call(this, options);
  else wanted = this;
};
addEventListener("focus", () => {
  const target = wanted?.isConnected ? wanted : at("prompt");
  wanted = null;
  if (document.activeElement === document.body) focus.call(target, { preventScroll: true });
});

// Remember the shown session for a reload, and tell the host.
let shown: string | null | undefined;
function report(): void {
  const id = /^#\/session\/(.+)$/.exec(location.hash)?.[1];
  const session = id ? decodeURIComponent(id) : null;
  if (session === shown) return;
  shown = session;
  keep({ session });
  host.postMessage({ type: "shown", session });
}
for (const name of ["pushState", "replaceState"] as const) {
  const original = history[name];
  history[name] = function (...args) {
    original.apply(this, args);
    report();
  };
}
addEventListener("hashchange", report);

// VS Code scrolls to the anchor of a link with a fragment; here it names a session. It opens other
// links itself.
addEventListener(
  "click",
  (event) => {
    const link = (event.target as Element).closest?.("a[href^='#']");
    if (!link) return;
    event.preventDefault();
    event.stopPropagation();
    location.hash = link.getAttribute("href")!;
  },
  true,
);

// A webview cannot download: the host saves files.
const blobs = new Map<string, Blob>();
URL.createObjectURL = (blob) => {
  const url = `blob:${crypto.randomUUID()}`;
  blobs.set(url, blob as Blob);
  return url;
};
URL.revokeObjectURL = () => {};
const click = HTMLElement.prototype.click;
HTMLElement.prototype.click = function () {
  const url = this instanceof HTMLAnchorElement && this.download ? this.href : "";
  const blob = blobs.get(url);
  if (!blob) return click.call(this);
  blobs.delete(url);
  const { download: name } = this as HTMLAnchorElement;
  void blob.text().then((text) => host.postMessage({ type: "save", name, text }));
};

interface Compose {
  text?: string;
  files?: { name: string; uri: string; text: string }[];
  submit?: boolean;
}

/** Adds text and files to the prompt editor, as if the user had typed and attached them. */
function compose({ text, files = [], submit }: Compose): void {
  const prompt = at("prompt") as HTMLTextAreaElement;
  if (files.length) {
    const picker = at("file") as HTMLInputElement;
    const transfer = new DataTransfer();
    for (const { name, text } of files) transfer.items.add(new File([text], name, { type: "text/plain" }));
    picker.files = transfer.files;
    picker.dispatchEvent(new Event("change"));
  }
  if (text !== undefined) {
    const gap = prompt.value && !/\s$/.test(prompt.value) ? (submit ? "\n" : " ") : "";
    prompt.value += gap + text;
    prompt.dispatchEvent(new Event("input"));
    prompt.setSelectionRange(prompt.value.length, prompt.value.length);
  }
  prompt.focus();
  if (submit) (at("composer") as HTMLFormElement).requestSubmit();
}

/** Runs `does` when the console has started and shows a session or the page of a new one. */
function whenReady(does: () => void): void {
  const isReady = () => document.body.classList.contains("ready") && (document.body.classList.contains("home") || at("conversation").getAttribute("aria-busy") === "false");
  if (isReady()) return does();
  const observer = new MutationObserver(() => {
    if (!isReady()) return;
    observer.disconnect();
    does();
  });
  observer.observe(document.body, { attributes: true, subtree: true, attributeFilter: ["class", "aria-busy"] });
}

addEventListener("message", ({ data }) => {
  if (data?.type === "show") go(data.session);
  else if (data?.type === "compose") whenReady(() => compose(data));
  else if (data?.type === "press") whenReady(() => at(data.button).click());
  else if (data?.type === "focus") whenReady(() => (document.hasFocus() ? at("prompt").focus() : (wanted = at("prompt"))));
});

const restored = state().session;
if (restored) history.replaceState(null, "", `#/session/${encodeURIComponent(restored)}`);
host.postMessage({ type: "starting" });
import("console/app.js").then(
  () => {
    report();
    host.postMessage({ type: "ready" });
  },
  (error) => console.error(error),
);
