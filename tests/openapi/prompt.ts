// A client that @hey-api/openapi-ts generated from schema/openapi.json: tsc checks these types
// under `strict` (see ./run).

import { permissionAnswer, sessionMessages, sessionNew, sessionPrompt } from "./generated-ts/index.js";
import type { Body, ContentBlock, Event, StopReason } from "./generated-ts/index.js";

export async function prompt(text: string): Promise<string[]> {
  const made = await sessionNew({ body: { title: "Typed", mode: "ask" }, throwOnError: true });
  const sessionId: string = made.data.sessionId;
  const block: ContentBlock = { type: "text", text };
  await sessionPrompt({ path: { sessionId }, body: { prompt: [block, { type: "resource_link", name: "a", uri: "file:///a" }] } });
  // @ts-expect-error A text block has a text.
  await sessionPrompt({ path: { sessionId }, body: { prompt: [{ type: "text" }] } });
  // @ts-expect-error There is no such field.
  await sessionNew({ body: { workspace_path: "/" } });
  const { data } = await sessionMessages({ path: { sessionId }, throwOnError: true });
  return data.messages.flatMap((message) => message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])));
}

/** The variants of an event are told apart by their type. */
export async function seen(event: Event): Promise<StopReason | undefined> {
  const body: Body = event.body;
  if (body.type === "permission.requested") {
    await permissionAnswer({ path: { permissionId: body.permissionId }, body: { outcome: "allow_once" } });
  }
  return body.type === "turn.completed" ? body.stopReason : undefined;
}
