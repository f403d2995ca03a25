declare module "console/app.js";
declare module "console/state.js" {
  /** The state of a session, computed from its events. */
  export class SessionState {
    constructor(id: string);
    readonly busy: boolean;
    readonly asks: Map<string, any>;
    readonly tools: Map<string, any>;
    readonly items: any[];
    readonly changed: Set<any>;
    turn: any;
    usage: any;
    spent: { input: number; output: number; cost: number | null };
    title: string | null;
    cwd: string | null;
    mode: string | null;
    model: string | null;
    thinking: string | null;
    agent?: string;
    seq: number;
    on(event: unknown): void;
  }
}
declare module "console/transport.js" {
  export class ApiError extends Error {
    constructor(facts: import("../src/answers").ErrorFacts);
  }
  /** A message: `{event, cursor}`, or `{name: value}` with the name of a callback. */
  export type StreamMessage = Record<string, any>;
  export class Delivery {
    closed: boolean;
    constructor(after: number, callbacks: object);
    take(messages: StreamMessage[]): void;
    tell(name: string, value: unknown): void;
  }
}
declare module "virtual:page" {
  const page: string;
  export default page;
}
