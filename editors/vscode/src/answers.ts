// Results and errors of methods, in the form in which the console's modules read them.

export type Params = Record<string, unknown>;

/** The facts of an error. `code` is a word, for example `not_found`. */
export interface ErrorFacts {
  code?: string;
  message: string;
  hint?: string;
  details?: unknown;
}

const isObject = (value: unknown): value is Params => typeof value === "object" && value !== null && !Array.isArray(value);

/** Moves the fields of `_meta.nuncio` to the top level, in a result and in the objects of its lists. */
export function lifted(result: unknown): any {
  if (!isObject(result)) return result;
  const { _meta, ...fields } = result;
  const { nuncio, ...others } = (_meta ?? {}) as { nuncio?: Params };
  const all: Params = { ...fields, ...(Object.keys(others).length && { _meta: others }), ...nuncio };
  for (const [name, value] of Object.entries(all)) if (Array.isArray(value)) all[name] = value.map(lifted);
  return all;
}

/** Returns the facts of an error of a JSON-RPC call, or of the connection. */
export function errorFacts(error: unknown): ErrorFacts {
  const { message, data } = (isObject(error) ? error : { message: String(error) }) as { message?: string; data?: unknown };
  const { code, details, hint, info } = (isObject(data) ? data : {}) as { code?: string; details?: string; hint?: string; info?: unknown };
  const text = details || message || "unknown error";
  // For clients that show one text, it ends with the hint.
  const end = ` (${hint})`;
  return { code, message: hint && text.endsWith(end) ? text.slice(0, -end.length) : text, hint, details: info };
}
