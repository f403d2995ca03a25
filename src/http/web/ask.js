// The open permission question: the action and the offered answers. The question closes when any
// client has answered.

import { call } from "./api.js";
import { announce, at, duration, exact, fill, h, isTyping, sinceTyping } from "./dom.js";
import { host } from "./host.js";
import { code } from "./markdown.js";
import { Review } from "./review.js";
import { t } from "./texts.js";
import { contents } from "./tool.js";

const TITLES = { execute: t`Run this command?`, edit: t`Make this change?`, fetch: t`Open this address?`, read: t`Read this?` };
const KEYS = { allow_once: "y", allow_always: "Shift+Y", reject_once: "n", reject_always: "Shift+N" };
const BY_KEY = { y: "allow", a: "allow", n: "reject", d: "reject" };
const LAST_MS = 60_000;
/** The width at which the rarer answers are in a list that opens. */
const NARROW = "(max-width: 420px)";
/**
 * Time after a question appears in which input was meant for something else and is ignored, in ms.
 */
const TOO_SOON_MS = 350;
/** Time after a key press in an input field in which no key answers a question, in ms. */
const AFTER_TYPING_MS = 1000;

/**
 * Whether a question is about its tool call itself, and not about a request that came up during
 * the call, such as one of a subagent.
 */
const isOfCall = ({ tool, title }) => !title || title === tool?.title;

/** Whether a question is a review of changes that are made already. */
const isDone = ({ tool }) => tool?.name === "review";

export class Ask {
  /**
   * `hooks`: `observes()` returns true if the token has the observer role; `failed(error)` reports
   * an error; `cwd()` and `session()` return the directory and the id of the shown session.
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.root = at("ask");
    this.shown = null;
    // A key that is held down answers only one question.
    this.root.addEventListener("keydown", (event) => event.repeat && (event.key === "Enter" || event.key === " ") && event.preventDefault());
    setInterval(() => this.tick(), 1000);
  }

  get isOpen() {
    return !this.root.hidden;
  }

  /** Shows the first of the open questions. */
  update(asks) {
    const list = [...asks.values()];
    const first = list[0];
    const key = first ? `${first.permissionId}/${list.length}` : null;
    if (key === this.key) return;
    const isNew = first && first.permissionId !== this.shown?.permissionId;
    const hadFocus = this.root.contains(document.activeElement);
    this.key = key;
    this.shown = first || null;
    this.root.hidden = !first;
    this.root.dataset.id = first?.permissionId ?? "";
    if (!first) {
      fill(this.root);
      // Do not move the focus to the prompt: the next key press would be typed there.
      if (hadFocus) host.focus(at("scroller"), { preventScroll: true });
      this.hadFocus = hadFocus;
      return;
    }
    if (isNew) this.sinceMs = performance.now();
    this.draw(first, list.length);
    if (!isNew) return;
    announce(t`Waiting for you: ${exact(this.title(first)).textContent}`);
    // Never take the focus from an input field: Escape moves it to the question.
    if (!this.hooks.observes() && !isTyping()) this.focus();
  }

  /**
   * Moves the focus back to the prompt after the turn, if the question was answered by keyboard.
   */
  rest() {
    if (this.hadFocus && document.activeElement === at("scroller")) host.focus(at("prompt"));
    this.hadFocus = false;
  }

  title(ask) {
    if (isDone(ask)) return t`Keep these changes?`;
    const what = ask.title || ask.tool?.title;
    return (isOfCall(ask) && TITLES[ask.tool?.about]) || (what ? t`Allow ${what}?` : t`Allow this?`);
  }

  /** What the request is about: the path of its file, relative to the session's directory, or a title. */
  subject(ask) {
    const path = isOfCall(ask) ? ask.tool.locations?.[0]?.path : null, cwd = this.hooks.cwd?.();
    return path && cwd && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path || ask.tool.title;
  }

  draw(ask, count) {
    const { tool } = ask;
    const isCommand = isOfCall(ask) && tool?.about === "execute" && typeof tool.input?.command === "string";
    const review = ask.review && !this.hooks.observes() ? new Review(ask, () => this.drawAnswers(ask)) : null;
    this.review = review;
    const what = isCommand ? this.command(ask) : (review?.draw() ?? this.contents(ask));
    const subtitle = !isCommand && tool && !isDone(ask) && h("span", { class: "muted subtitle" }, exact(this.subject(ask)));
    this.left = h("span", { class: "muted left" });
    const changes = host.openDiff && !isDone(ask) && ask.content?.some((one) => one.type === "diff");
    const open = changes && h("button", { type: "button", class: "quiet", onclick: () => host.openDiff(this.hooks.session(), ask.permissionId) }, t`Open diff`);
    const head = h("div", { class: "head" }, h("h2", { id: "ask-title" }, exact(this.title(ask))), subtitle, count > 1 && h("span", { class: "muted count" }, t`1 of ${count}`), this.left, open);
    this.answers = h("div", {});
    this.drawAnswers(ask);
    fill(this.root, head, h("div", { class: "what", tabIndex: -1 }, what), this.answers);
    this.tick();
  }

  /**
   * Draws the answers. Once the user has chosen about a part of a review, the primary answer applies
   * the choices, and no key answers for all parts.
   */
  drawAnswers(ask) {
    if (this.hooks.observes()) return fill(this.answers, h("p", { class: "muted" }, t`Waiting for a client with the controller role.`));
    const hasChoice = !!this.review?.hasChoice;
    const button = (text, choice, name, key) => {
      const mark = key && [" ", h("kbd", { "aria-hidden": "true" }, key.replace("Shift+", "⇧"))];
      // A click by keyboard has no detail.
      const does = (event) => this.answer(ask, choice(), event.detail === 0);
      return h("button", { type: "button", class: name, onclick: does, "aria-keyshortcuts": key }, text, mark);
    };
    const isOnce = (option) => option.kind.endsWith("_once");
    const ofOption = (option) => {
      const name = !isOnce(option) ? "quiet" : option.kind === "allow_once" && !hasChoice ? "primary" : "plain";
      // A key chooses the first option of its kind.
      const isFirst = ask.options.find(({ kind }) => kind === option.kind) === option;
      return button(exact(option.name), () => ({ optionId: option.optionId }), name, hasChoice || !isFirst ? undefined : KEYS[option.kind]);
    };
    const apply = hasChoice && button(t`Apply the choices`, () => this.review.answer(), "primary", KEYS.allow_once);
    const once = ask.options.filter((option) => isOnce(option) && !(this.review && option.optionId.startsWith("each_")));
    const always = ask.options.filter((option) => !isOnce(option));
    fill(this.answers, h("div", { class: "answers" }, apply, once.map(ofOption)), always.length > 0 && h("details", { class: "more-answers", open: !matchMedia(NARROW).matches }, h("summary", {}, t`Always…`), h("div", { class: "answers always" }, always.map(ofOption))));
  }

  /**
   * A command as nodes. The text of the question also has its variables and its directory; it is
   * not taken for the command if it lacks the command.
   */
  command(ask) {
    const { command } = ask.tool.input;
    const list = ask.content ?? [];
    const text = list.map((one) => one.content?.text ?? "").join("\n");
    if (text.includes(command) && list.every((one) => one.content?.type === "text")) return code(text, "", true);
    return [code(command, "", true), list.length > 0 && this.contents(ask)];
  }

  /** The action as nodes. An action that cannot be drawn is shown as JSON. */
  contents(ask) {
    try {
      return contents(ask.content, { cut: false, isExact: true });
    } catch (error) {
      console.error(error);
      return code(JSON.stringify(ask.content ?? ask.tool?.input, null, 2), "", true);
    }
  }

  tick() {
    if (!this.shown || !this.left) return;
    const left = this.shown.deadlineMs - Date.now();
    // Without a deadline, the request waits.
    this.left.textContent = left < LAST_MS ? t`ends in ${duration(left)}` : "";
  }

  focus() {
    host.focus(this.root.querySelector("button.primary") || this.root, { preventScroll: true });
  }

  /** Handles a key press that is an answer. Returns whether it is an answer. */
  take(event) {
    // Caps Lock produces capitals, too, so only Shift selects "always".
    const does = BY_KEY[event.key.toLowerCase()];
    if (!this.isOpen || !does || this.hooks.observes()) return false;
    if (this.review?.hasChoice) {
      if (does === "allow" && !event.shiftKey && !event.repeat) this.answer(this.shown, this.review.answer(), true);
      return true;
    }
    const option = this.shown.options.find((one) => one.kind === `${does}_${event.shiftKey ? "always" : "once"}`);
    if (option && !event.repeat) this.answer(this.shown, { optionId: option.optionId }, true);
    return !!option;
  }

  get isTooSoon() {
    return performance.now() - this.sinceMs < TOO_SOON_MS;
  }

  /**
   * Answers this question, but only while it is the one that is shown. `byKey`: with a key, which
   * may have been meant for an input field.
   */
  async answer({ permissionId: id }, choice, byKey = false) {
    if (id !== this.shown?.permissionId || this.isTooSoon || this.answering === id) return;
    if (byKey && sinceTyping() < AFTER_TYPING_MS) return;
    this.answering = id;
    this.root.classList.add("answering");
    try {
      await call("_nuncio/permission/answer", { permissionId: id, ...choice });
    } catch (error) {
      // Another client was faster: the stream reports its answer.
      if (error.code !== "not_found") this.hooks.failed(error);
    }
    if (this.answering !== id) return;
    this.answering = null;
    this.root.classList.remove("answering");
  }
}
