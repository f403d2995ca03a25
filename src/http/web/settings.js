// The user's settings: the default model, keys, MCP servers, permission rules and skills, each with
// where it is defined, and the changes of them that most people make.

import { call } from "./api.js";
import { at, fill, h } from "./dom.js";
import { host } from "./host.js";
import { opens } from "./places.js";
import { t, withNodes } from "./texts.js";

const POLICIES = { allow: (what) => t`allow ${what}`, ask: (what) => t`ask ${what}`, deny: (what) => t`deny ${what}` };

/** Describes a permission rule in words. */
export function ruleText({ policy, tool, kind, path, pattern, directory }) {
  const what = [tool || (kind ? t`${kind} access` : t`every call`), pattern && `“${pattern}”`, path && t`on ${path}`].filter(Boolean).join(" ");
  const rule = POLICIES[policy]?.(what) ?? `${policy} ${what}`;
  return directory ? t`${rule} in ${directory}` : rule;
}

/** Splits a command into words. Quotes keep blanks. */
export const words = (text) => [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, word]) => double ?? single ?? word);

const SCOPES = { user: t`your settings`, trusted_project: t`the project, as it was trusted`, project: t`the project` };

export class Settings {
  /**
   * `hooks`: `failed(error)` reports an error; `toast(text)` shows a text; `cwd()` returns the
   * directory whose settings are shown; `changed()` is called after a change.
   */
  constructor(hooks) {
    Object.assign(this, { hooks, dialog: at("settings"), body: at("settings-body") });
  }

  async show() {
    if (!this.dialog.open) {
      fill(this.body, h("p", { class: "muted" }, t`Reading…`));
      this.dialog.showModal();
    }
    await this.load();
  }

  async load() {
    const cwd = this.hooks.cwd() || undefined;
    try {
      const [settings, { models = [], default: usual }, { agents, skipped = [] }] = await Promise.all([
        call("_nuncio/settings/get", { cwd }),
        call("_nuncio/model/list"),
        call("_nuncio/agent/list", { cwd }),
      ]);
      this.draw(settings, models, usual, agents, skipped);
    } catch (error) {
      this.dialog.close();
      this.hooks.failed(error);
    }
  }

  /** Changes the settings, and shows them again. */
  async change(does) {
    try {
      await does();
      await this.load();
      this.hooks.changed();
    } catch (error) {
      this.hooks.failed(error);
    }
  }

  draw(settings, models, usual, agents, skipped) {
    this.changeable = settings.changeable;
    const place = settings.file && h("p", { class: "muted" }, withNodes`Your settings file: ${h("code", {}, settings.file)}`);
    const reason = !settings.changeable && h("p", { class: "muted" }, t`They are changed on the server's machine, or here with the owner's token.`);
    fill(this.body, place, reason, this.model(settings, models, usual), this.keys(settings.providers), this.servers(settings.mcpServers), this.rules(settings.rules), this.agents(agents, skipped), this.skills(settings.skills));
  }

  section(title, ...children) {
    return h("section", {}, h("h3", {}, title), children);
  }

  row(name, detail, ...buttons) {
    return h("li", { class: "setting" }, h("div", { class: "what" }, h("strong", {}, name), detail && h("div", { class: "muted" }, detail)), buttons);
  }

  button(text, does, label = text) {
    return h("button", { type: "button", class: "plain", "aria-label": label, onclick: does }, text);
  }

  /** A form whose button applies `does` to its fields. */
  form(does, text, ...fields) {
    const form = h("form", { class: "setting-form", autocomplete: "off" }, fields, h("button", { class: "plain" }, text));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      does(Object.fromEntries(new FormData(form)));
    });
    return form;
  }

  field(name, label, props = {}) {
    return h("input", { name, "aria-label": label, placeholder: label, spellcheck: false, autocapitalize: "off", ...props });
  }

  model({ model, modelFrom }, models, usual) {
    const detail = model ? modelFrom : usual ? t`The first provider with a key, because no settings name a model` : t`No model can be used yet`;
    const list = h("datalist", { id: "settings-models" }, models.map(({ id }) => h("option", { value: id })));
    const input = this.field("model", t`Model of new sessions: PROVIDER/NAME`, { required: true });
    input.setAttribute("list", "settings-models");
    const set = this.form(({ model: chosen }) => this.change(() => call("_nuncio/settings/set_model", { model: chosen.trim() })), t`Set`, input, list);
    const reset = model && this.changeable && this.button(t`Reset`, () => this.change(() => call("_nuncio/settings/set_model", {})), t`Reset the default model`);
    return this.section(t`Default model`, h("ul", {}, this.row(model || usual || t`None`, detail, reset)), this.changeable && set);
  }

  keys(providers) {
    const known = providers.filter(({ keySource }) => keySource);
    const row = ({ name, keySource }) => this.row(name, keySource, host.signIn && this.button(t`Replace…`, () => host.signIn(name), t`Replace the key of ${name}`));
    const choose = h("select", { name: "provider", "aria-label": t`Provider` }, providers.map(({ name }) => h("option", { value: name }, name)));
    const add = host.signIn
      ? this.form(({ provider }) => host.signIn(provider), t`Enter a key…`, choose)
      : h("p", { class: "muted" }, withNodes`To store a key, run ${h("code", {}, "nuncio login PROVIDER")} on the server's machine. Keys are not sent over HTTP.`);
    return this.section(t`Keys`, known.length ? h("ul", {}, known.map(row)) : h("p", { class: "muted" }, t`No provider has a key. Local servers need none.`), add);
  }

  servers(servers) {
    const row = ({ name, target, enabled, definedIn, removable }) => this.row(name, [target, !enabled && t`not enabled`, definedIn].filter(Boolean).join(" · "), removable && this.button(t`Remove`, () => this.change(() => call("_nuncio/settings/mcp/remove", { name })), t`Remove ${name}`));
    const add = this.form(({ name, target }) => this.change(() => call("_nuncio/settings/mcp/add", { name: name.trim(), server: /^https?:/.test(target.trim()) ? { url: target.trim() } : { command: words(target) } })), t`Add`, this.field("name", t`Name`, { required: true }), this.field("target", t`Command, or URL`, { required: true }));
    return this.section(t`MCP servers`, servers.length > 0 && h("ul", {}, servers.map(row)), this.changeable && add);
  }

  rules(rules) {
    const row = ({ scope, rule, removable }) => this.row(ruleText(rule), SCOPES[scope], removable && this.button(t`Remove`, () => this.change(() => call("_nuncio/settings/rules/remove", { rule })), t`Remove: ${ruleText(rule)}`));
    const policy = h("select", { name: "policy", "aria-label": t`Policy` }, Object.entries({ allow: t`allow`, ask: t`ask`, deny: t`deny` }).map(([value, name]) => h("option", { value }, name)));
    const add = this.form(({ policy: chosen, tool, pattern }) => this.change(() => call("_nuncio/settings/rules/add", { rule: { policy: chosen, tool: tool.trim(), ...(pattern.trim() && { pattern: pattern.trim() }) } })), t`Add`, policy, this.field("tool", t`Tool, for example bash`, { required: true }), this.field("pattern", t`Command or URL: git status *`));
    return this.section(t`Permission rules`, rules.length > 0 && h("ul", {}, rules.map(row)), this.changeable && add);
  }

  agents(agents, skipped) {
    const row = ({ name, kind, problem }) => this.row(name, problem ?? (kind === "native" ? t`nuncio's own agent` : kind));
    const unused = ({ name, path, reason }) => this.row(name, t`Not used: ${reason}`, this.file(path));
    return this.section(t`Agents`, h("ul", {}, agents.map(row), skipped.map(unused)));
  }

  skills(skills) {
    return skills.length > 0 && this.section(t`Skills`, h("ul", {}, skills.map(({ name, description, path }) => this.row(name, description, this.file(path)))));
  }

  /** A button that opens a file. Only an editor can open those outside of the session's directory. */
  file(path) {
    return host.signIn && h("button", { type: "button", class: "plain", ...opens({ path }), onclick: () => this.dialog.close() }, t`Open`);
  }
}
