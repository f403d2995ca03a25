// A stand-in for VS Code's API, and modules of the extension that run with it.

import { readFile, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const extension = join(dirname(fileURLToPath(import.meta.url)), "../../../editors/vscode");
const require = createRequire(join(extension, "package.json"));

/** Loads a module of the extension with this API. */
export function load(name, vscode) {
  const options = { entryPoints: [join(extension, "src", name)], bundle: true, platform: "node", format: "cjs", write: false, external: ["vscode", "virtual:page"], logLevel: "error" };
  const [{ text }] = require("esbuild").buildSync(options).outputFiles;
  const module = { exports: {} };
  const provided = { vscode, "virtual:page": { default: "<main></main>" } };
  new Function("require", "module", "exports", text)((one) => provided[one] ?? require(one), module, module.exports);
  return module.exports;
}

class Document {
  version = 1;
  isDirty = false;
  isClosed = false;
  constructor(api, path, text) {
    Object.assign(this, { api, uri: api.Uri.file(path), text, eol: text.includes("\r\n") ? 2 : 1 });
  }
  getText = () => this.text;
  positionAt = (offset) => offset;
  change(start, end, text) {
    this.text = this.text.slice(0, start) + text + this.text.slice(end);
    this.isDirty = true;
  }
  async save() {
    await writeFile(this.uri.fsPath, this.text);
    this.isDirty = false;
    return true;
  }
}

/** Creates the API of a window with folders. `calls` lists what the extension did. */
export function createApi(folders) {
  const calls = [];
  const uri = (path) => ({ scheme: "file", fsPath: path, path, toString: () => `file://${path}` });
  const api = {
    calls,
    answer: undefined,
    Uri: { file: uri, joinPath: (base, ...parts) => uri(join(base.fsPath, ...parts)) },
    EndOfLine: { LF: 1, CRLF: 2 },
    Range: class {
      constructor(...places) {
        this.places = places;
      }
    },
    WorkspaceEdit: class {
      edits = [];
      replace = (file, range, text) => this.edits.push({ file, range, text });
      createFile = (file, { contents }) => this.edits.push({ file, contents });
    },
    EventEmitter: class {
      event = () => ({ dispose() {} });
      fire() {}
    },
    Disposable: class {},
    env: { language: "en" },
    l10n: { bundle: undefined, t: (text, ...values) => text.replace(/\{(\d)\}/g, (_, index) => values[index]) },
    window: { showWarningMessage: async (text) => (calls.push(["asked", text]), api.answer), showErrorMessage: async (text) => void calls.push(["error", text]) },
    commands: { executeCommand: async (...words) => void calls.push(words) },
    workspace: {
      workspaceFolders: folders.map((path) => ({ uri: uri(path) })),
      textDocuments: [],
      onDidChangeTextDocument: () => ({ dispose() {} }),
      openTextDocument: async ({ fsPath }) => api.open(fsPath, await readFile(fsPath, "utf8")),
      fs: { stat: ({ fsPath }) => stat(fsPath), readFile: ({ fsPath }) => readFile(fsPath), writeFile: ({ fsPath }, bytes) => (calls.push(["disk", fsPath]), writeFile(fsPath, bytes)) },
      async applyEdit({ edits }) {
        for (const { file, range, text, contents } of edits) {
          if (contents) await writeFile(file.fsPath, contents, { flag: "wx" });
          else api.workspace.textDocuments.find((one) => one.uri.fsPath === file.fsPath).change(...range.places, text);
          calls.push(["edit", text ?? "new"]);
        }
        return true;
      },
    },
    open(path, text) {
      const document = new Document(api, path, text);
      api.workspace.textDocuments.push(document);
      return document;
    },
  };
  return api;
}
