// The table of REST routes and the JSON-RPC methods that they call, from schema/openapi.json and
// schema/methods.json.

const VERBS = ["get", "post", "put", "patch", "delete"];

/** Returns the schema that a `$ref` within `document` names. */
function resolved(document, schema) {
  if (!schema?.$ref) return schema ?? {};
  return schema.$ref.slice(2).split("/").reduce((node, key) => node[key], document);
}

/** Returns the types that a schema allows. */
function types(document, schema) {
  const own = resolved(document, schema);
  const list = [own.type ?? [], ...(own.anyOf ?? own.oneOf ?? []).map((one) => types(document, one))];
  return list.flat();
}

/** Returns the names of the fields that a schema of an object has. */
function fields(document, schema) {
  const own = resolved(document, schema);
  const parts = [...(own.allOf ?? []), ...(own.anyOf ?? []), ...(own.oneOf ?? [])];
  return [...Object.keys(own.properties ?? {}), ...parts.flatMap((part) => fields(document, part))];
}

/** Returns the names of a request body's fields. */
function bodyFields(document, operation) {
  const body = resolved(document, operation.requestBody)?.content?.["application/json"]?.schema;
  return body ? fields(document, body) : [];
}

/**
 * Returns rows `{verb, path, method, notification, query, meta}`. `query`: the parameters that are
 * not texts, with their type. `meta`: the fields that JSON-RPC takes in `_meta.nuncio`.
 */
export function routes(openapi, schemas) {
  const methods = Object.entries(schemas).map(([name, schema]) => ({ name, ...schema }));
  const byName = new Map(methods.map((method) => [method.name, method]));
  // The id of an operation is the name of its method, in other characters.
  const byOperation = new Map(methods.map((method) => [method.name.replace(/^_nuncio\//, "").replaceAll("/", "_"), method]));
  const rows = [];
  for (const [path, item] of Object.entries(openapi.paths)) {
    for (const verb of VERBS.filter((verb) => item[verb])) {
      const operation = item[verb];
      const method = byName.get(operation["x-method"]) ?? byOperation.get(operation.operationId);
      if (!method) continue;
      const parameters = (operation.parameters ?? []).map((one) => resolved(openapi, one));
      const query = {};
      for (const { name, schema } of parameters.filter((one) => one.in === "query")) {
        const type = ["boolean", "integer", "number"].find((type) => types(openapi, schema).includes(type));
        if (type) query[name] = type;
      }
      const known = new Set(fields(method.params, method.params));
      const named = [...parameters.filter((one) => one.in === "query").map((one) => one.name), ...bodyFields(openapi, operation)];
      const meta = known.has("_meta") ? named.filter((name) => !known.has(name)) : [];
      rows.push({ verb: verb.toUpperCase(), path, method: method.name, ...(method.notification && { notification: true }), ...(Object.keys(query).length && { query }), ...(meta.length && { meta }) });
    }
  }
  return rows;
}
