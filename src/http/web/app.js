// The console: reads the token, shows the session list and one session, and dispatches events and
// keys.

import { Actions } from "./actions.js";
import { call, newAddress, refusesToken, signIn, signOut, takeCredential } from "./api.js";
import { Ask } from "./ask.js";
import { Changes } from "./changes.js";
import { Comparisons } from "./comparisons.js";
import { Composer } from "./composer.js";
import { announce, at, dollars, fill, h, icon, isTyping, pathEnd, short, showEnd } from "./dom.js";
import { host } from "./host.js";
import { Find } from "./find.js";
import { Live } from "./live.js";
import { Notifier } from "./notify.js";
import { Phone } from "./phone.js";
import { listen } from "./places.js";
import { QueueList } from "./queue.js";
import { Sessions, STATUS } from "./sessions.js";
import { Settings } from "./settings.js";
import { t, translatePage } from "./texts.js";
import { backoff, decoded } from "./transport.js";
import { ConversationView } from "./view.js";
import { Workspaces } from "./workspaces.js";

at("refused").remove();
translatePage();

const LETTERS = "nuncio.letters";
const HIDDEN_MS = 20_000, LOST_MS = 800;

let live = null, sessions = null, status = {}, isObserver = false, sleeping = null, started = false, starting = null;
const lost = new Map();
/** What the host wants to do with the page as soon as it is ready. */
const delayed = [];

const view = new ConversationView({ observes: () => isObserver, retry });
const find = new Find({ items: () => live?.state.items ?? [], reveal: (item) => view.reveal(item) });
const queue = new QueueList({ observes: () => isObserver, failed, restore: (text) => composer.restore(text) });
const ask = new Ask({ observes: () => isObserver, failed, cwd: () => live?.state.cwd, session: () => live?.id });
const composer = new Composer({ create, failed, toast, isBusy: () => !!live?.state.busy, state: () => live?.state, cwd: directory });
const workspaces = new Workspaces({ observes: () => isObserver, failed, open: openIn, directory: () => at("directory").value.trim() });
const comparisons = new Comparisons({ observes: () => isObserver, failed, go, row: (id) => sessions.rows.get(id), directory: () => live?.state.cwd || directory(), modes: () => composer.modes });
const changes = new Changes({ failed });
const settings = new Settings({ failed, cwd: () => live?.state.cwd || directory(), changed: () => composer.reload().catch(failed) });
const phone = new Phone(newAddress);
const notifier = new Notifier(at("notify"), { go, toast, shown: () => live?.id ?? null });
const actions = new Actions({ live: () => live, observes: () => isObserver, failed, toast, go });

/** The directory of a new session. */
function directory() {
  return at("directory").value.trim() || status.cwd || "";
}

// Sessions -----------------------------------------------------------------------------------------------------------------------

async function create(cwd, settings, isNew = true) {
  const { sessionId } = await call("session/new", { cwd: cwd || undefined, _meta: { nuncio: settings } });
  // The user may have opened another session in the meantime; that session stays open.
  if (live || !started) return sessionId;
  history.pushState(null, "", `#/session/${sessionId}`);
  show(sessionId, isNew);
  return sessionId;
}

/** Sends a message of the host to the shown session, or to a new one. The draft is not part of it. */
async function send(parts) {
  try {
    const sessionId = live?.id ?? (await create(at("directory").value.trim(), composer.settings(), false));
    await call("_nuncio/session/message", { sessionId, parts, delivery: "queue" });
  } catch (error) {
    failed(error);
  }
}

/** Runs `does` once the page has started and has read the session in its address. */
function whenShown(does) {
  if (does) delayed.push(does);
  if (started && wanted() === (live?.id ?? null) && (!live || live.ready)) for (const one of delayed.splice(0)) one();
}

/** Prepares a new session in a directory. */
function openIn(path) {
  at("directory").value = path;
  showEnd(at("directory"));
  location.hash = "#/";
  host.focus(composer.input);
}

function show(id, isNew = false) {
  leave();
  document.body.classList.toggle("home", !id);
  document.body.classList.remove("drawer");
  sessions.select(id);
  host.show(id);
  if (!isNew) composer.show(id);
  if (id) {
    live = new Live(id, { changed, reset: () => view.show(live), gone, state: (word) => connection("session", word), observes: () => isObserver });
  } else {
    connection("session", "live");
  }
  view.show(live);
  changed();
  // Not on a phone, where the focus would open the on-screen keyboard.
  if ((!id || isNew) && matchMedia("(pointer: fine)").matches) host.focus(composer.input);
}

/** Closes the shown session with its permission question, its menu and its dialogs. */
function leave() {
  live?.close();
  live = null;
  ask.update(new Map());
  actions.close();
  changes.close();
  find.close();
}

const wanted = () => decoded(/^#\/session\/(.+)$/.exec(location.hash)?.[1] || "") || null;

function gone(error) {
  if (refusesToken(error)) return login(t`The token is no longer valid.`);
  failed(error.code === "not_found" ? new Error(t`The session does not exist`) : error);
  location.hash = "#/";
}

function changed() {
  comparisons.changed();
  if (started) notifier.changed(sessions.ordered);
  whenShown();
  if (!live) {
    document.title = title("nuncio");
    ask.update(new Map());
    at("plan").hidden = true;
    return;
  }
  const { state } = live;
  view.changed();
  if (!live.ready) return;
  ask.update(state.asks);
  if (!state.busy) ask.rest();
  composer.draw();
  const name = state.title || t`Untitled`;
  document.title = title(`${name} · nuncio`);
  at("title").textContent = name;
  const status = state.asks.size ? "waiting" : state.busy ? "busy" : sessions.isOpen(live.id) ? "idle" : "none";
  at("cwd").textContent = state.cwd ?? "";
  at("agent").textContent = state.agent ?? "";
  at("agent").hidden = !state.agent;
  at("cwd").className = status;
  at("cwd").title = status === "none" ? state.cwd || "" : `${state.cwd}: ${STATUS[status]}`;
  plan(state.plan, state.busy);
  usage(state);
  queue.update(live.id, state.queued, state.busy);
}

const title = (text) => (sessions?.waiting ? `(${sessions.waiting}) ${text}` : text);

/** Shows the plan of the running turn. */
function plan(entries, isBusy) {
  const key = JSON.stringify([entries, isBusy]);
  if (plan.key === key) return;
  plan.key = key;
  const done = entries.filter((entry) => entry.status === "completed").length;
  at("plan").hidden = !isBusy || !entries.length || done === entries.length;
  const now = entries.find((entry) => entry.status === "in_progress") || entries.find((entry) => entry.status === "pending");
  at("plan-count").textContent = t`${done} of ${entries.length}`;
  at("plan-now").textContent = now?.content || "";
  const marks = { completed: t`done`, in_progress: t`now`, pending: t`open` };
  fill(at("plan-entries"), entries.map(({ content, status }) => h("li", { class: status }, h("span", { class: "step" }, status === "completed" && icon("check", 12)), h("span", { class: "hidden" }, `${marks[status]}: `), content)));
}

function usage({ usage: last, spent }) {
  const node = at("usage");
  node.hidden = !last;
  if (!last) return;
  const part = last.contextWindow ? last.contextTokens / last.contextWindow : 0;
  node.querySelector("circle.used").style.strokeDashoffset = String(100 - Math.min(100, part * 100));
  node.querySelector("span").textContent = short(last.contextTokens) + (spent.cost === null ? "" : ` · ${dollars(spent.cost)}`);
  node.classList.toggle("full", part > 0.8);
  const facts = [t`${short(last.contextTokens)} of ${short(last.contextWindow)} tokens of context`, t`${short(spent.input)} in, ${short(spent.output)} out in all`];
  const text = [...facts, ...(spent.cost === null ? [] : [dollars(spent.cost)])].join(" · ");
  node.title = text;
  node.setAttribute("aria-label", text);
}

/** Runs the prompt of a turn again: as a retry, or for a hosted agent as a new message. */
async function retry(turnId) {
  const { id, state } = live;
  const parts = state.items.filter((item) => item.kind === "message" && item.role === "user" && item.turnId === turnId).flatMap((item) => item.parts);
  const again = state.agent ? call("_nuncio/session/message", { sessionId: id, parts }) : call("_nuncio/session/retry", { sessionId: id, turnId });
  await again.catch(failed);
}

/** Shows a session, or the page of a new one, as if the user had opened its link. */
function go(id) {
  location.hash = id ? `#/session/${id}` : "#/";
}

// Errors -------------------------------------------------------------------------------------------------------------------------

function failed(error) {
  if (refusesToken(error)) return login(t`The token is no longer valid.`);
  const reached = error instanceof TypeError ? t`The server cannot be reached` : error.message;
  toast(error.hint ? `${reached}: ${error.hint}` : reached, true);
}

function toast(text, isBad = false) {
  const node = at("toast");
  node.textContent = text.replace(/^./, (first) => first.toUpperCase());
  node.className = isBad ? "bad" : "";
  // The last element of the top layer is above the dialogs.
  if (node.matches(":popover-open")) node.hidePopover();
  node.showPopover();
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => node.hidePopover(), isBad ? 8000 : 2000);
}

function connection(which, word) {
  clearTimeout(lost.get(which));
  lost.delete(which);
  if (word === "lost") lost.set(which, setTimeout(() => offline(true), LOST_MS));
  if (!lost.size) offline(false);
}

function offline(is) {
  if (document.body.classList.contains("offline") === is) return;
  document.body.classList.toggle("offline", is);
  announce(is ? t`Connection lost` : t`Connected`);
}

// Authentication -----------------------------------------------------------------------------------------------------------------

/** Removes everything that was shown or typed with the previous token. */
function forget() {
  started = false;
  starting = null;
  leave();
  sessions?.forget();
  composer.forget();
  view.show(null);
  changed();
  for (const id of ["title", "cwd", "agent", "plan-now"]) at(id).textContent = "";
  at("cwd").title = at("cwd").className = "";
  plan([], false);
  queue.update(null, new Map(), false);
  at("usage").hidden = true;
  for (const id of ["directories", "queue", "announcer"]) fill(at(id));
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

function login(why) {
  forget();
  document.body.classList.remove("ready");
  at("login").hidden = false;
  at("login-error").textContent = why || "";
  host.focus(at("token"));
}

at("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const value = at("token").value.trim().replace(/^.*#token=/, "");
  if (!value) return;
  at("token").value = "";
  await start({ token: value, keep: at("keep").checked });
});

/**
 * Loads the session list, with retries, then shows the session named in the page URL. A later call
 * replaces this one.
 */
async function start(credential = null) {
  const mine = (starting = {});
  sessions?.forget();
  sessions ||= new Sessions({ changed, again: () => start(), failed, state: (word) => connection("all", word), refused: (error) => error && gone(error), deleted: (id) => id === live?.id && (location.hash = "#/") });
  let loaded = null;
  for (let failures = 0; !loaded; failures++) {
    try {
      const signsIn = credential;
      if (signsIn) await signIn(signsIn);
      if (starting !== mine) return;
      credential = null;
      loaded = await sessions.load();
    } catch (error) {
      if (starting !== mine) return;
      if (refusesToken(error)) return login(credential?.code ? t`This code was used, or is too old.` : credential ? t`This token is not valid for this server.` : "");
      if (error.code === "rate_limited") return login(t`Too many attempts: wait a moment.`);
      offline(true);
      await new Promise((resolve) => setTimeout(resolve, backoff(failures)));
    }
    if (starting !== mine) return;
  }
  starting = null;
  status = loaded;
  isObserver = status.role === "observer";
  document.body.classList.toggle("observer", isObserver);
  at("login").hidden = true;
  document.body.classList.add("ready");
  offline(false);
  composer.learn(status);
  fill(at("directories"), sessions.directories.map((path) => h("option", { value: path })));
  at("directory").placeholder = pathEnd(status.cwd || "") || t`A directory that this token can use`;
  notifier.begin(sessions.ordered);
  show(wanted());
  started = true;
  whenShown();
}

at("directory").addEventListener("blur", ({ target }) => showEnd(target));
// Reading the state of the workspaces takes time: they are suggested once the user chooses a directory.
at("directory").addEventListener("focus", async () => {
  const { workspaces } = await call("_nuncio/workspace/list").catch(() => ({ workspaces: [] }));
  const ready = workspaces.filter((workspace) => workspace.state === "ready" && !sessions.directories.includes(workspace.path));
  at("directories").append(...ready.map(({ path, name }) => h("option", { value: path, label: t`workspace ${name}` })));
}, { once: true });

// Keys, and the window -----------------------------------------------------------------------------------------------------------

addEventListener("hashchange", () => {
  const credential = takeCredential();
  if (credential) return forget(), start(credential);
  if (started && wanted() !== (live?.id ?? null)) show(wanted());
});

const KEYS = {
  "/": () => host.focus(composer.input),
  "?": () => at("keys").showModal(),
  d: () => live && changes.show(live.id),
  v: () => comparisons.show(),
  w: () => workspaces.show(),
  ",": () => settings.show(),
  c: () => ((location.hash = "#/"), host.focus(composer.input)),
  s: () => (at("open-drawer").checkVisibility() && drawer(true), host.focus(at("search"))),
  j: () => sessions.move(1),
  k: () => sessions.move(-1),
};

addEventListener("keydown", (event) => {
  if (!started || document.querySelector("dialog[open]")) return;
  // VS Code prevents the browser's search. Again in the field, the key is for the browser's search.
  if ((event.ctrlKey || event.metaKey) && event.key === "f" && live && document.activeElement !== find.input) return event.preventDefault(), find.open();
  if (event.defaultPrevented) return;
  if (event.key === "Escape") return escape(event);
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping() || !at("letters").checked) return;
  if (ask.take(event)) return event.preventDefault();
  const does = KEYS[event.key];
  if (!does) return;
  event.preventDefault();
  does();
});

function escape(event) {
  if (document.querySelector(".menu:popover-open")) return;
  event.preventDefault();
  if (document.body.classList.contains("drawer")) return drawer(false);
  if (ask.isOpen && isTyping()) return ask.focus();
  if (live?.state.busy) return composer.stop();
  document.activeElement?.blur();
}

function drawer(open) {
  document.body.classList.toggle("drawer", open);
  at("open-drawer").setAttribute("aria-expanded", String(open));
  if (open) host.focus(at("sidebar").querySelector("a[aria-current], a"));
  else host.focus(at("open-drawer"));
}

at("open-drawer").addEventListener("click", () => drawer(!document.body.classList.contains("drawer")));
at("scrim").addEventListener("click", () => drawer(false));
at("show-comparisons").addEventListener("click", () => comparisons.show());
at("show-workspaces").addEventListener("click", () => workspaces.show());
at("show-settings").addEventListener("click", () => settings.show());
at("show-changes").addEventListener("click", () => live && changes.show(live.id));
at("show-phone").addEventListener("click", () => (at("keys").close(), phone.show().catch(failed)));
at("show-keys").addEventListener("click", () => at("keys").showModal());
at("letters").checked = localStorage.getItem(LETTERS) !== "off";
at("letters").addEventListener("change", ({ target }) => (target.checked ? localStorage.removeItem(LETTERS) : localStorage.setItem(LETTERS, "off")));

// A hidden tab keeps only one event stream, since browsers limit the connections to a server.
addEventListener("visibilitychange", () => {
  clearTimeout(sleeping);
  if (document.hidden) sleeping = setTimeout(() => live?.sleep(), HIDDEN_MS);
  else live?.wake();
});

for (const node of document.querySelectorAll("[data-icon]")) node.prepend(icon(node.dataset.icon));
at("more").append(...actions.menu.nodes);
// Other pages with these modules, such as that of an editor, have no address and no sign-in.
for (const id of ["show-phone", "sign-out"]) at(id).hidden = !document.querySelector("link[rel=manifest]");
at("sign-out").addEventListener("click", async () => (await signOut(), login(t`You have signed out.`)));
listen((place) => host.open({ cwd: live?.state.cwd, session: live?.id, ...place }, failed));
host.connect({
  show: go,
  focus: () => whenShown(() => host.focus(composer.input)),
  compose: (draft) => whenShown(() => composer.compose(draft)),
  send: (parts) => whenShown(() => send(parts)),
  signedIn: () => whenShown(() => (composer.reload().catch(failed), at("settings").open && settings.load())),
  open: (page) => whenShown(() => ({ workspaces, comparisons, settings })[page].show()),
});
start(takeCredential());
