// Builds dist/: the extension host's program and the webview, which is the console with another
// api.js and host.js. `node scripts/build.mjs [--dev] [--watch]`; --dev keeps names and adds source
// maps, --watch builds again after each change of a file.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { texts } from "./texts.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const web = join(root, "../../src/http/web");
const dev = process.argv.includes("--dev");
const watches = process.argv.includes("--watch");

/** Returns the body of the console's page, without its comments. */
function page() {
  const html = readFileSync(join(web, "index.html"), "utf8");
  return /<body[^>]*>([\s\S]*)<\/body>/.exec(html)[1].replace(/<!--[\s\S]*?-->/g, "").trim();
}

/** Provides `virtual:page`, the page of the console. */
const generated = {
  name: "generated",
  setup(build) {
    build.onResolve({ filter: /^virtual:/ }, ({ path }) => ({ path, namespace: "generated" }));
    build.onLoad({ filter: /page$/, namespace: "generated" }, () => ({ loader: "text", contents: page() }));
  },
};

/**
 * Replaces the console's api.js and host.js by the bridge to the extension host, and removes unused
 * parts.
 */
const bridge = {
  name: "bridge",
  setup(build) {
    build.onResolve({ filter: /^\.\/(phone|notify)\.js$/ }, ({ importer }) => (dirname(importer) === web ? { path: join(root, "webview/unused.ts") } : null));
    build.onResolve({ filter: /^\.\/api\.js$/ }, ({ importer }) => (dirname(importer) === web ? { path: join(root, "webview/bridge.ts") } : null));
    build.onResolve({ filter: /^\.\/host\.js$/ }, ({ importer }) => (dirname(importer) === web ? { path: join(root, "webview/host.ts") } : null));
    build.onResolve({ filter: /^console\// }, ({ path }) => ({ path: join(web, path.slice("console/".length)) }));
  },
};

const common = { bundle: true, minify: !dev, sourcemap: dev ? "inline" : false, legalComments: "none", logLevel: "warning", logLimit: 5, absWorkingDir: root };

rmSync(join(root, "dist"), { recursive: true, force: true });
mkdirSync(join(root, "dist"));
/** Builds once, or after each change. */
const build = async (options) => (watches ? (await esbuild.context({ ...options, logLevel: "info" })).watch() : esbuild.build(options));

await Promise.all([
  build({ ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", platform: "node", format: "cjs", target: "node20", external: ["vscode"], plugins: [generated, bridge] }),
  build({ ...common, entryPoints: ["webview/main.ts"], outfile: "dist/webview.js", platform: "browser", format: "iife", target: "chrome128", plugins: [bridge], inject: ["webview/storage.ts"] }),
  build({ ...common, entryPoints: ["webview/webview.css"], outfile: "dist/webview.css", loader: { ".css": "css" }, target: "chrome128", plugins: [bridge] }),
]);
mkdirSync(join(root, "l10n"), { recursive: true });
writeFileSync(join(root, "l10n/bundle.l10n.json"), `${JSON.stringify(Object.fromEntries(texts().map((text) => [text, text])), null, 2)}\n`);
const LICENSES = {
  "@agentclientprotocol/sdk (Apache-2.0)": join(root, "node_modules/@agentclientprotocol/sdk/LICENSE"),
  "zod (MIT)": join(root, "node_modules/zod/LICENSE"),
  "markdown-it (MIT)": join(web, "vendor/markdown-it.LICENSE"),
};
const licenses = Object.entries(LICENSES).map(([name, file]) => `${name}\n\n${readFileSync(file, "utf8").trim()}\n`);
writeFileSync(join(root, "dist/LICENSES.txt"), `The extension contains these packages, with their licences:\n\n${licenses.join("\n\n")}`);
