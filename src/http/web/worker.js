// The service worker of the console: browsers on phones show notifications only through one. It
// caches nothing, and takes no requests.

addEventListener("install", () => self.skipWaiting());

/** A click on a notification shows its session in a page of the console. */
addEventListener("notificationclick", (event) => {
  event.notification.close();
  const [session] = event.notification.tag.split(" ");
  const show = async () => {
    const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    if (!page) return self.clients.openWindow(`/#/session/${encodeURIComponent(session)}`);
    page.postMessage({ type: "go", session });
    await page.focus();
  };
  event.waitUntil(show());
});
