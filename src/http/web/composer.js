// The prompt editor: text, attached files, and the settings of the session.

import { call, refusesToken } from "./api.js";
import { Completion } from "./completion.js";
import { at, base, fill, h, icon } from "./dom.js";
import { host } from "./host.js";
import { mentioned, mentionOf } from "./mentions.js";
import { Menu } from "./menu.js";
import { EditorContext } from "./context.js";
import { t } from "./texts.js";

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const FILE_BYTES_MAX = 10 * 1024 * 1024;
/** The name of nuncio's own agent. */
const NATIVE = "nuncio";
const DRAFT = "nuncio.draft.";
/**
 * Time in which a new "stop" button ignores clicks, in ms: it replaces "send", which may get a
 * double click.
 */
const TOO_SOON_MS = 350;

export class Composer {
  /**
   * `hooks`: `create(cwd, settings)` creates a session and returns its id; `failed(error)` reports
   * an error; `isBusy()` returns whether a turn runs; `state()` returns the state of the shown
   * session; `cwd()` returns the directory of a new session; `toast(text)` shows a text.
   */
  constructor(hooks) {
    Object.assign(this, { hooks, id: null, files: [], sending: false, visit: {}, stopSinceMs: 0, modes: [], agents: [], wanted: {}, drafts: sessionStorage });
    this.form = at("composer");
    this.input = at("prompt");
    this.send = at("send");
    this.chips = at("attachments");
    this.picker = at("file");
    this.directory = at("directory");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit("queue");
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("input", () => this.typed());
    // Cells of a spreadsheet are text and a picture: the text is meant.
    this.input.addEventListener("paste", (event) => event.clipboardData.getData("text/plain") || this.take(event, event.clipboardData.files));
    at("attach").addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => {
      // Pass a copy, because resetting the value clears the picker's own list.
      this.attach([...this.picker.files]);
      this.picker.value = "";
    });
    at("stop").addEventListener("click", () => performance.now() - this.stopSinceMs > TOO_SOON_MS && this.stop());
    this.completion = new Completion(this.input, { place: (kind) => this.completes(kind), typed: () => this.typed() });
    this.context = new EditorContext(() => this.draw());
    this.drops();
    this.pickers();
  }

  // Settings ---------------------------------------------------------------------------------------------------------------------

  pickers() {
    const picker = (id, label, glyph) =>
      new Menu(label, {
        glyph,
        className: id,
        choices: () => this.choices(id).catch((error) => (this.hooks.failed(error), [])),
        choose: (value) => this.set(id, value),
        current: () => this.current(id) ?? "",
      });
    this.menus = { agent: picker("agent", t`Agent`, "other"), mode: picker("mode", t`Mode`, "shield"), model: picker("model", t`Model`), thinking: picker("thinking", t`Thinking`) };
    fill(at("pickers"), Object.values(this.menus).map((menu) => menu.nodes));
  }

  current(id) {
    const state = this.hooks.state();
    if (!this.id) return this.wanted[id] ?? { agent: NATIVE, mode: this.defaultMode, model: this.defaultModel }[id] ?? null;
    if (state?.agent && id !== "mode") return this.known?.[this.option(id)];
    if (id === "model") return state?.model ?? this.known?.model ?? state?.usage?.model ?? this.defaultModel;
    return state?.[id] ?? this.known?.[id];
  }

  /** The id of a setting among the options of the session. Hosted agents have options of their own. */
  option(id) {
    return this.hooks.state()?.agent && id !== "mode" ? `agent.${id}` : id;
  }

  /** Requests the choices of a setting from the server. */
  async choices(id) {
    if (!this.id) {
      if (id === "mode") return this.modes;
      if (id === "agent") return this.agents.map(({ name, problem }) => ({ id: name, name, hint: problem }));
      const { models = [] } = id === "model" ? await call("_nuncio/model/list") : {};
      return models;
    }
    const session = this.id;
    const { configOptions = [] } = await call("session/resume", { sessionId: session, cwd: "" });
    if (this.id === session) this.known = Object.fromEntries(configOptions.map((option) => [option.id, option.currentValue]));
    const options = configOptions.find((option) => option.id === this.option(id))?.options || [];
    return options.map(({ value, name, description }) => ({ id: value, name, hint: description }));
  }

  /** The settings of a new session. A model is one of nuncio's own agent. */
  settings() {
    const { model, ...others } = this.wanted;
    return (others.agent ?? NATIVE) === NATIVE ? this.wanted : others;
  }

  async set(id, value) {
    if (!this.id) this.wanted[id] = value;
    else if (id === "mode") await call("session/set_mode", { sessionId: this.id, modeId: value }).catch(this.hooks.failed);
    else await call("session/set_config_option", { sessionId: this.id, configId: this.option(id), value }).catch(this.hooks.failed);
    this.draw();
  }

  /** Sets the choices for a new session, from the server's status. */
  async learn({ modes }) {
    this.modes = modes.availableModes.map(({ id: mode, name, description }) => ({ id: mode, name, hint: description }));
    this.defaultMode = modes.currentModeId;
    await this.reload();
  }

  /** Reads the models and the agents again. */
  async reload() {
    const models = await call("_nuncio/model/list").catch(() => null);
    this.defaultModel = models?.default;
    this.hasModels = !!models;
    this.agents = (await call("_nuncio/agent/list").catch(() => ({ agents: [] }))).agents;
    this.draw();
  }

  /**
   * The session, or the directory of a new one, whose commands or files are suggested. Another agent
   * has commands of its own, which are known once it runs.
   */
  completes(kind) {
    if (this.id) return { sessionId: this.id };
    const cwd = this.hooks.cwd();
    return cwd && (kind === "path" || this.current("agent") === NATIVE) ? { cwd } : null;
  }

  // Drafts -----------------------------------------------------------------------------------------------------------------------

  /** Switches to a session; null for a new one. */
  show(id) {
    this.keep();
    this.leave(id);
    this.input.value = this.drafts.getItem(DRAFT + (id || "")) || "";
    this.draw();
    this.grow();
  }

  leave(id) {
    for (const menu of Object.values(this.menus)) menu.close();
    this.completion.close();
    this.id = id;
    this.known = null;
    this.files = [];
    this.visit = {};
  }

  /** Removes all drafts. */
  forget() {
    this.leave(null);
    Object.assign(this, { wanted: {}, modes: [], agents: [], defaultMode: null, defaultModel: null });
    for (const key of Object.keys(this.drafts)) if (key.startsWith(DRAFT)) this.drafts.removeItem(key);
    this.input.value = this.directory.value = "";
    this.draw();
    this.grow();
  }

  keep() {
    this.draft(this.id, this.input.value);
  }

  /** Stores a draft. If the storage is full, the draft is dropped. */
  draft(id, text) {
    const key = DRAFT + (id || "");
    try {
      if (text) this.drafts.setItem(key, text);
      else this.drafts.removeItem(key);
    } catch {
      this.drafts.removeItem(key);
    }
  }

  /** Adds a text that could not be sent. */
  restore(text) {
    this.input.value = [text, this.input.value].filter(Boolean).join("\n");
    this.typed();
  }

  /** Adds a text and files of the host to the draft, as if the user had typed and attached them. */
  compose({ text = "", files = [] }) {
    const added = files.map(({ name, uri, text: content }) => ({ name, part: { type: "resource", uri, mimeType: "text/plain", text: content } }));
    const { value } = this.input;
    this.files.push(...added);
    this.input.value = value + (text && value && !/\s$/.test(value) ? " " : "") + text;
    this.input.setSelectionRange(this.input.value.length, this.input.value.length);
    this.typed();
    host.focus(this.input);
  }

  typed() {
    this.keep();
    this.grow();
    this.draw();
  }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, innerHeight * 0.4)}px`;
  }

  get isEmpty() {
    return !this.input.value.trim() && !this.files.length;
  }

  draw() {
    const busy = this.hooks.isBusy(), home = !this.id;
    const stop = at("stop");
    if (stop.hidden) this.stopSinceMs = performance.now();
    stop.hidden = !busy || !this.isEmpty;
    this.send.hidden = busy && this.isEmpty;
    this.send.disabled = this.isEmpty || this.sending;
    const does = busy ? t`Queue (Ctrl+Enter steers the running turn)` : t`Send`;
    this.send.setAttribute("aria-label", does);
    this.send.title = does;
    const isAsked = !!this.hooks.state()?.asks.size;
    this.input.placeholder = isAsked ? t`Queue a message (Esc: go to the request)` : busy ? t`Queue a message` : home ? t`Describe a task` : t`Reply`;
    at("where").hidden = !home;
    const { agent, mode, model, thinking } = this.menus;
    const value = (id) => this.current(id);
    mode.button.hidden = home && !this.modes.length;
    const isHosted = home && value("agent") !== NATIVE;
    agent.button.hidden = !home || this.agents.length < 2;
    model.button.hidden = home && (isHosted || !this.hasModels);
    thinking.button.hidden = home;
    agent.name = value("agent");
    mode.name = this.modes.find((one) => one.id === value("mode"))?.name || value("mode")?.replace(/^./, (first) => first.toUpperCase()) || t`Mode`;
    model.name = modelName(value("model"));
    thinking.name = value("thinking") && value("thinking") !== "off" ? t`Thinking ${value("thinking")}` : t`Thinking`;
    mode.button.dataset.mode = value("mode") || "";
    const open = this.context.chip(this.files.map(({ part }) => part));
    fill(this.chips, open, this.files.map((file) => this.chip(file)));
    this.chips.hidden = !this.files.length && !open;
  }

  key(event) {
    if (this.completion.key(event)) return;
    if (event.key !== "Enter" || event.shiftKey || event.altKey || event.isComposing) return;
    event.preventDefault();
    this.submit(event.ctrlKey || event.metaKey ? "steer" : "queue");
  }

  async submit(delivery) {
    if (this.isEmpty || this.sending) return;
    const text = this.input.value, files = this.files, busy = this.hooks.isBusy();
    this.sending = true;
    this.completion.close();
    this.input.value = "";
    this.files = [];
    this.typed();
    const { visit } = this;
    let { id } = this;
    try {
      if (!id) {
        id = await this.hooks.create(this.directory.value.trim(), this.settings());
        if (this.hooks.state()?.id === id) this.id = id;
      }
      const { parts: named, remarks } = await mentioned(text, id, this.hooks.state()?.cwd ?? this.hooks.cwd());
      const parts = [...(text.trim() ? [{ type: "text", text }] : []), ...files.map(({ part }) => part), ...named];
      parts.push(...(await this.context.parts(id, parts)));
      if (remarks.length) this.hooks.toast(remarks.join("; "), true);
      // If another client has started a turn in the meantime, the message waits for its end.
      await call("_nuncio/session/message", { sessionId: id, parts, delivery: busy ? delivery : "queue" });
    } catch (error) {
      if (this.visit === visit) {
        if (!this.input.value) this.input.value = text;
        this.files = [...files, ...this.files];
      } else if (!refusesToken(error)) {
        this.draft(id, text);
      }
      this.hooks.failed(error);
    }
    this.sending = false;
    this.typed();
  }

  async stop() {
    if (this.id) await call("session/cancel", { sessionId: this.id }).catch(this.hooks.failed);
  }

  // Files ------------------------------------------------------------------------------------------------------------------------

  drops() {
    const has = (event, type) => [...(event.dataTransfer?.types || [])].includes(type);
    const over = (event) => has(event, "Files") || host.dropped?.types.some((type) => has(event, type));
    for (const name of ["dragenter", "dragover"]) {
      addEventListener(name, (event) => {
        if (!over(event)) return;
        event.preventDefault();
        this.form.classList.add("over");
      });
    }
    addEventListener("dragleave", (event) => event.relatedTarget || this.form.classList.remove("over"));
    addEventListener("drop", (event) => {
      this.form.classList.remove("over");
      if (!over(event)) return;
      const paths = host.dropped?.paths(event.dataTransfer) ?? [];
      if (!paths.length) return this.take(event, event.dataTransfer.files);
      event.preventDefault();
      const cwd = this.hooks.state()?.cwd ?? this.hooks.cwd();
      const shown = (path) => (path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path);
      this.compose({ text: `${paths.map((path) => mentionOf(shown(path))).join(" ")} ` });
    });
  }

  take(event, files) {
    if (!files?.length) return;
    event.preventDefault();
    this.attach([...files]);
  }

  async attach(files) {
    const { visit } = this;
    for (const file of files) {
      try {
        const taken = await read(file);
        if (this.visit !== visit) return;
        this.files.push(taken);
      } catch (error) {
        this.hooks.failed(error);
      }
    }
    this.draw();
    host.focus(this.input);
  }

  chip(file) {
    const remove = h("button", { type: "button", title: t`Remove`, "aria-label": t`Remove ${file.name}` }, icon("cross", 12));
    remove.addEventListener("click", () => {
      this.files = this.files.filter((one) => one !== file);
      this.draw();
    });
    const { part } = file;
    const face = part.type === "image" ? h("img", { src: `data:${part.mimeType};base64,${part.data}`, alt: "" }) : icon("read", 14);
    return h("li", { class: "chip" }, face, h("span", {}, file.name), remove);
  }
}

/** Reads a file as a part of a prompt: an image or text. */
async function read(file) {
  const { name, type, size } = file;
  if (size > FILE_BYTES_MAX) throw new Error(t`${name} is larger than 10 MiB`);
  if (IMAGES.includes(type)) {
    const url = await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
    return { name: name || t`image`, part: { type: "image", mimeType: type, data: url.slice(url.indexOf(",") + 1) } };
  }
  const text = await file.text();
  if (text.includes("\0") || text.includes("\ufffd")) throw new Error(t`${name} is neither an image nor text`);
  return { name, part: { type: "resource", uri: `file:///${encodeURIComponent(name)}`, mimeType: type || "text/plain", text } };
}

/** The short name of a model: the last part of `PROVIDER/NAME`. */
function modelName(id) {
  return id ? base(id.replace(/^[^/]*[/:]/, "")) : t`Model`;
}
