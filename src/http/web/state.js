// The state of a session, computed from its events as on the server. Independent of the page.

import { english, translated } from "./texts.js";

/** The event types that describe an ended turn completely. */
export const FACTS =
  "session.*,turn.*,message.completed,message.queued,message.edited,message.removed,tool.started,tool.completed,permission.*,plan.*,usage.*,context.*,compaction.*,verify.*,mode.*,hook.*,notice,child.*,agent.*";

/**
 * Whether an event is a delta. Deltas have their own seq, since they may arrive again after other
 * events.
 */
const isDelta = (body) => ["message.delta", "tool.input", "tool.updated"].includes(body.type);

/** The parts of a message, where notes of nuncio to the model are text in square brackets. */
const shown = (parts) => parts.map((part) => (part.type === "note" ? { type: "text", text: `[${part.text}]` } : part));

/** A note of the console itself. Its texts are English until `shownTexts` translates them. */
const ownNote = (severity, text, hint) => ({ severity, text, hint, isOwn: true });

/** Returns the text and the hint of a note as they are shown. */
export const shownTexts = ({ text, hint, isOwn }) => (isOwn ? [text, hint].map(translated) : [text, hint]);

const textOf = (parts) => parts.filter((part) => part.type === "text").map((part) => part.text).join("\n");

export class SessionState {
  constructor(id) {
    this.id = id;
    /** The conversation, in order: `{kind: message | tool | notice | end, …}`. */
    this.items = [];
    /** Items that changed since they were last drawn. */
    this.changed = new Set();
    this.messages = new Map();
    this.tools = new Map();
    /** Open permission questions by id. */
    this.asks = new Map();
    /** Queued messages. */
    this.queued = new Map();
    /** The call whose input the model is writing: `{name, bytes, path}`. */
    this.writing = null;
    this.plan = [];
    this.usage = null;
    this.spent = { input: 0, output: 0, cost: null };
    this.turn = null;
    /** The end of the last turn, unless it completed or another turn runs. */
    this.lastEnd = null;
    this.seq = 0;
    this.deltaSeq = 0;
    this.title = this.cwd = this.mode = this.model = this.thinking = null;
    this.deleted = false;
  }

  get busy() {
    return this.turn !== null;
  }

  /** Applies an event. An event that was applied before changes nothing. */
  on(event) {
    const { body, seq } = event;
    if (isDelta(body)) {
      if (seq <= this.deltaSeq) return;
      this.deltaSeq = seq;
    } else {
      if (seq <= this.seq) return;
      this.seq = seq;
    }
    HANDLERS[body.type]?.(this, body, event);
  }

  add(item, event) {
    Object.assign(item, { key: `${item.kind}-${event.seq}`, atMs: event.atMs, turnId: event.turnId });
    this.items.push(item);
    return this.touch(item);
  }

  touch(item) {
    this.changed.add(item);
    return item;
  }

  message(body, event) {
    let item = this.messages.get(body.messageId);
    if (!item) {
      item = this.add({ kind: "message", id: body.messageId, role: body.role, text: "", parts: [], done: false }, event);
      this.messages.set(item.id, item);
    }
    return item;
  }

  /** The items of a turn that has started and not ended. */
  itemsOf(turnId) {
    const recent = this.turn?.id === turnId ? this.items.slice(this.turn.from) : this.items;
    return recent.filter((item) => item.turnId === turnId);
  }

  endTurn(event, end) {
    this.writing = null;
    const took = this.turn ? event.atMs - this.turn.startedMs : 0;
    const items = this.itemsOf(event.turnId);
    this.turn = null;
    for (const item of items) {
      if (item.done) continue;
      if (item.kind === "message" || item.kind === "tool") this.touch(Object.assign(item, { done: true }));
    }
    if (end) this.lastEnd = this.add({ kind: "end", took, isLast: true, ...end }, event);
  }
}

const change = (state, body) => {
  for (const key of ["title", "cwd", "mode", "model", "thinking", "agent"]) {
    if (body[key] !== undefined && body[key] !== null) state[key] = body[key];
  }
};

/** Applies what an event says about a call: agents report its title and input while it runs. */
function describe(item, { title, kind, input, locations }) {
  if (title) item.title = title;
  if (kind) item.about = kind;
  if (input !== undefined && input !== null) item.input = input;
  if (locations?.length) item.locations = locations;
}

const STOPPED = {
  max_tokens: english`The model reached its token limit`,
  max_turn_requests: english`The turn reached a limit`,
  refusal: english`The model refused to continue`,
  cancelled: english`Stopped`,
};

/**
 * Whether the output of a tool call says that it was cancelled (older logs have the second
 * wording).
 */
const isCancelled = (item) => item.content.some(({ content }) => /(^cancelled|cancelled; (all its processes were|what it had started was) ended)$/.test(content?.text ?? ""));

const HANDLERS = {
  "session.created": change,
  "session.updated": change,
  "session.granted": (state, body) => change(Object.assign(state, { model: undefined, agent: undefined }), body),
  "session.deleted": (state) => (state.deleted = true),
  "mode.changed": (state, body) => (state.mode = body.mode),

  "turn.started"(state, body, event) {
    state.turn = { id: event.turnId, by: body.by, startedMs: event.atMs, seq: event.seq, from: state.items.length };
    if (state.lastEnd) state.touch(state.lastEnd).isLast = false;
    state.lastEnd = null;
  },
  "turn.completed"(state, body, event) {
    const said = STOPPED[body.stopReason];
    state.endTurn(event, said && ownNote("info", said));
  },
  "turn.failed": (state, body, event) => state.endTurn(event, { severity: "error", text: body.message, hint: body.hint }),
  "turn.cancelled"(state, _, event) {
    // A tool call that ended because the turn was stopped is not shown as failed.
    for (const item of state.itemsOf(event.turnId)) {
      if (item.kind === "tool" && item.status === "failed" && isCancelled(item)) state.touch(item).stopped = true;
    }
    state.endTurn(event, ownNote("info", STOPPED.cancelled));
  },
  "turn.interrupted"(state, _, event) {
    const hint = english`The process that ran the turn has ended. Your next message continues from here.`;
    state.endTurn(event, ownNote("warning", english`Interrupted`, hint));
  },

  "message.delta"(state, body, event) {
    const item = state.message(body, event);
    if (item.done) return;
    item.text += body.text;
    state.touch(item);
  },
  "message.completed"(state, body, event) {
    state.queued.delete(body.messageId);
    const [item, parts] = [state.message(body, event), shown(body.parts)];
    Object.assign(item, { parts, text: textOf(parts), done: true, discarded: !!body.discarded });
    state.touch(item);
  },
  "message.queued"(state, { messageId, parts, delivery }) {
    state.queued.set(messageId, { parts: shown(parts), text: textOf(shown(parts)), delivery });
  },
  "message.edited"(state, body) {
    const entry = state.queued.get(body.messageId);
    if (!entry) return;
    const { delivery = entry.delivery } = body;
    const parts = body.parts ? shown(body.parts) : entry.parts;
    state.queued.set(body.messageId, { parts, text: textOf(parts), delivery });
  },
  "message.removed": (state, body) => state.queued.delete(body.messageId),

  "tool.input": (state, body) => (state.writing = state.turn && body),
  "step.completed": (state) => (state.writing = null),

  "tool.started"(state, body, event) {
    state.writing = null;
    const { toolCallId: id, name, title, kind: about, input, locations = [] } = body;
    const item = { kind: "tool", id, name, title, about, input, locations, status: "pending", content: [], done: false };
    state.tools.set(id, state.add(item, event));
  },
  "tool.updated"(state, body, event) {
    const item = state.tools.get(body.toolCallId);
    if (!item || item.done) return;
    if (body.status) item.status = body.status;
    if (body.status === "in_progress") item.ranMs = event.atMs;
    if (body.content) item.content = body.content;
    describe(item, body);
    state.touch(item);
  },
  "hook.completed"(state, body) {
    const item = body.changed && state.tools.get(body.toolCallId);
    if (item) state.touch(Object.assign(item, { title: body.changed.title, input: body.changed.input }));
  },
  "tool.completed"(state, body, event) {
    const item = state.tools.get(body.toolCallId);
    if (!item) return;
    const given = body.content?.length ? body.content : (body.output || []).map((part) => ({ type: "content", content: part }));
    const content = given.map((one) => (one.type === "content" ? { ...one, content: shown([one.content])[0] } : one));
    describe(item, body);
    Object.assign(item, { status: body.status, content, details: body.details, effect: body.effect, done: true, endedMs: event.atMs });
    state.touch(item);
  },

  "permission.requested"(state, body) {
    const tool = state.tools.get(body.toolCallId);
    state.asks.set(body.permissionId, { ...body, tool });
    if (tool) state.touch(Object.assign(tool, { asked: body.permissionId, shown: body.content }));
  },
  "permission.updated"(state, body) {
    const ask = state.asks.get(body.permissionId);
    if (ask) ask.deadlineMs = body.deadlineMs;
  },
  "permission.resolved"(state, body) {
    state.asks.delete(body.permissionId);
    const tool = state.tools.get(body.toolCallId);
    if (tool) state.touch(Object.assign(tool, { asked: null, decision: body }));
  },

  "permission.forgotten"() {},

  "plan.updated": (state, body) => (state.plan = body.entries),
  "usage.updated"(state, body) {
    if (!body.aside) state.usage = body;
    state.spent.input += body.inputTokens;
    state.spent.output += body.outputTokens;
    if (body.cost !== undefined) state.spent.cost = (state.spent.cost ?? 0) + body.cost;
  },
  "notice"(state, body, event) {
    // Context for the model only.
    if (body.code === "repository") return;
    state.add({ kind: "notice", severity: body.severity, text: body.title, hint: body.description }, event);
  },
  "compaction.completed": (state, _, event) => state.add({ kind: "notice", ...ownNote("info", english`The conversation was compacted`) }, event),
};
