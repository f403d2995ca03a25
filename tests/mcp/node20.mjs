// `node --import ./node20.mjs`: the conformance suite imports `globSync`, which Node 20 does not have and no scenario calls.
import { register } from "node:module";

const load = `export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.endsWith("/conformance/dist/index.js")) return loaded;
  return { ...loaded, source: String(loaded.source).replace(/globSync as (\\w+),/, "constants as $1,") };
}`;
register("data:text/javascript," + encodeURIComponent(load));
