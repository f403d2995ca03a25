// Opens files that texts of a conversation name. A text never becomes an address: its path is that
// of an existing file, and a path outside of the folders of the window is shown first.

import { stat } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import * as vscode from "vscode";
import { defaultDirectory } from "./api";
import { pathInWorkspace, realPath } from "./files";
import { confirm, isShownWhole, openFile } from "./ui";

const PATH_CHARS_MAX = 4096;
const isFile = (path: string) => stat(path).then((found) => found.isFile(), () => false);

/** Returns the file in a directory, or in the nearest directory above it that has the file. */
async function find(path: string, cwd: string): Promise<string | null> {
  if (isAbsolute(path)) return (await isFile(path)) ? path : null;
  for (let directory = cwd; ; directory = dirname(directory)) {
    const file = join(directory, path);
    if (await isFile(file)) return file;
    if (dirname(directory) === directory) return null;
  }
}

/** Opens the file of a place: a path, a line counted from 1, and the directory of a relative path. */
export async function openPlace({ path, line, cwd }: { path?: unknown; line?: unknown; cwd?: unknown }): Promise<void> {
  if (typeof path !== "string" || path.length > PATH_CHARS_MAX || path.includes("\0")) return;
  // On Windows, this names a share of another machine, which would learn the user's name.
  const isShare = /^[\\/]{2}/.test(path);
  const file = isShare ? null : await find(path, typeof cwd === "string" && isAbsolute(cwd) ? cwd : (defaultDirectory() ?? "/"));
  if (!file) throw new Error(vscode.l10n.t("{0} is not a file here", path));
  if (!(await pathInWorkspace(file))) {
    const real = await realPath(file);
    if (!isShownWhole(real)) throw new Error(vscode.l10n.t("{0} cannot be shown as a whole, and is outside of the folders of this window", real));
    if (!(await confirm(vscode.l10n.t("Open {0}? It is outside of the folders of this window.", real), vscode.l10n.t("Open")))) return;
  }
  await openFile(vscode.Uri.file(file), typeof line === "number" && Number.isSafeInteger(line) && line > 0 ? line : undefined);
}
