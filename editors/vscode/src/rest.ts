// Maps the REST calls of the console's modules to JSON-RPC methods, and results and errors back.

/** A REST route and its method; the build generates the table (scripts/routes.mjs). */
export interface Route {
  verb: string;
  path: string;
  method: string;
  notification?: boolean;
  /** Query parameters that are not texts, with their type. */
  query?: Record<string, string>;
  /** Fields that JSON-RPC takes in `_meta.nuncio`. */
  meta?: string[];
}

export type Params = Record<string, unknown>;

export interface MethodCall {
  method: string;
  params: Params;
  notification: boolean;
}

/** An error as REST reports it. */
export interface RestError {
  status: number;
  code?: string;
  message: string;
  hint?: string;
  details?: unknown;
}

const isObject = (value: unknown): value is Params => typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the values of the placeholders if `path` has the form of `template`. */
function placeholders(template: string, path: string): Params | null {
  const [wanted, given] = [template.split("/"), path.split("/")];
  if (wanted.length !== given.length) return null;
  const values: Params = {};
  for (const [index, part] of wanted.entries()) {
    const name = /^\{(.+)\}$/.exec(part)?.[1];
    if (name) values[name] = decodeURIComponent(given[index]!);
    else if (part !== given[index]) return null;
  }
  return values;
}

/** Converts the text of a query parameter to its type. */
function typed(text: string, type: string | undefined): unknown {
  if (type === "boolean") return text === "true";
  return type === "integer" || type === "number" ? Number(text) : text;
}

/** Converts a REST call to a call of a method. Returns null if no method has this route. */
export function toMethod(routes: Route[], verb: string, path: string, body?: unknown): MethodCall | null {
  const [pathname, search] = path.split("?", 2) as [string, string | undefined];
  for (const route of routes) {
    const values = route.verb === verb ? placeholders(route.path, pathname) : null;
    if (!values) continue;
    const params: Params = { ...(isObject(body) ? body : {}) };
    for (const [name, text] of new URLSearchParams(search)) params[name] = typed(text, route.query?.[name]);
    Object.assign(params, values);
    const ours: Params = {};
    for (const name of route.meta ?? []) {
      if (params[name] === undefined) continue;
      ours[name] = params[name];
      delete params[name];
    }
    if (Object.keys(ours).length) params._meta = { ...(isObject(params._meta) ? params._meta : {}), nuncio: ours };
    return { method: route.method, params, notification: !!route.notification };
  }
  return null;
}

/**
 * Moves the fields of `_meta.nuncio` to the top level, in a result and in the objects of its lists,
 * as REST does.
 */
export function toRest(result: unknown): unknown {
  if (!isObject(result)) return result ?? {};
  const { _meta: meta, ...fields } = result;
  const lifted: Params = { ...fields };
  if (isObject(meta)) {
    const { nuncio, ...others } = meta;
    if (!isObject(nuncio)) lifted._meta = meta;
    else if (Object.keys(others).length) lifted._meta = others;
    if (isObject(nuncio)) Object.assign(lifted, nuncio);
  }
  for (const [name, value] of Object.entries(lifted)) {
    if (Array.isArray(value)) lifted[name] = value.map((one) => (isObject(one) ? toRest(one) : one));
  }
  return lifted;
}

/** HTTP status by JSON-RPC error code; the same table as in src/error.rs. */
const STATUS: Record<number, number> = {
  [-32700]: 400,
  [-32600]: 400,
  [-32602]: 400,
  [-32601]: 501,
  [-32002]: 404,
  // 401 would ask the user for a token, which this connection does not have.
  [-32000]: 403,
  [-32011]: 403,
  [-32013]: 429,
  [-32012]: 413,
  [-32010]: 409,
  [-32001]: 503,
  [-32800]: 499,
  [-32014]: 408,
  [-32020]: 502,
  [-32021]: 502,
};

/** Converts an error of a JSON-RPC call, or of the connection, to an error of REST. */
export function toRestError(error: unknown): RestError {
  const { code, message, data } = (isObject(error) || error instanceof Error ? error : { message: String(error) }) as { code?: unknown; message?: unknown; data?: unknown };
  const facts = isObject(data) ? data : {};
  const text = (value: unknown) => (typeof value === "string" && value ? value : undefined);
  return {
    status: (typeof code === "number" && STATUS[code]) || 500,
    code: text(facts.code),
    message: text(facts.details) ?? text(message) ?? "unknown error",
    hint: text(facts.hint),
    details: facts.info,
  };
}
