// The webview: the console's application on a page without its session list, which the tree view
// shows.

import { extension, state } from "./bridge";

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

const restored = state().session;
if (restored) history.replaceState(null, "", `#/session/${encodeURIComponent(restored)}`);
extension.postMessage({ type: "starting" });
import("console/app.js").then(
  () => extension.postMessage({ type: "ready" }),
  (error) => console.error(error),
);
