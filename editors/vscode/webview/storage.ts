// Replaces `sessionStorage` in the console's modules: drafts are part of the webview's state, which
// is restored after a reload of the window. esbuild injects this module.

import { keep, state } from "./bridge";

const saved: Record<string, string> = { ...state().storage };

const save = () => keep({ storage: { ...saved } });

const methods = {
  getItem: (key: string) => saved[key] ?? null,
  setItem(key: string, value: string) {
    saved[key] = value;
    save();
  },
  removeItem(key: string) {
    if (!(key in saved)) return;
    delete saved[key];
    save();
  },
};

/** The stored keys are the own properties, as in the browser's object. */
const storage = new Proxy(saved, {
  get: (_, name) => methods[name as keyof typeof methods],
});

export { storage as sessionStorage };
