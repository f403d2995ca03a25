// Finds the program nuncio and checks its version.

import { execFile } from "node:child_process";
import { constants, promises as fs } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { promisify } from "node:util";

/** The oldest version that serves everything that the extension uses. */
export const OLDEST_VERSION = "0.1.0";
const VERSION_MS = 15_000;
const SHELL_MS = 10_000;

const run = promisify(execFile);

export interface Program {
  path: string;
  version: string;
}

/** Why nuncio cannot be started; each has a view that says what to do. */
export type ProgramProblem = { problem: "missing" | "failed"; detail: string } | { problem: "old"; detail: string; path: string };

export interface ProgramSettings {
  /** The path or the name from the settings; empty: nuncio is searched. */
  command: string;
  env: Record<string, string>;
  /** The directory of the extension, whose `bin` may contain nuncio. */
  extensionDirectory: string;
}

const executableName = process.platform === "win32" ? "nuncio.exe" : "nuncio";

async function isExecutable(path: string): Promise<boolean> {
  try {
    await fs.access(path, process.platform === "win32" ? constants.F_OK : constants.X_OK);
    return (await fs.stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Returns the first executable of this name in the directories of a PATH. */
async function inPath(name: string, path: string | undefined): Promise<string | null> {
  for (const directory of (path ?? "").split(delimiter).filter(isAbsolute)) {
    if (await isExecutable(join(directory, name))) return join(directory, name);
  }
  return null;
}

/** Asks the user's login shell: an editor that was started from a desktop may lack its PATH. */
async function fromShell(env: NodeJS.ProcessEnv): Promise<string | null> {
  if (process.platform === "win32" || !env.SHELL || !isAbsolute(env.SHELL)) return null;
  try {
    const asked = run(env.SHELL, ["-lic", "command -v nuncio"], { env, timeout: SHELL_MS });
    asked.child.stdin?.end();
    // The shell's start files may print other lines.
    const paths = (await asked).stdout.split("\n").map((line) => line.trim()).filter(isAbsolute);
    for (const path of paths.reverse()) if (await isExecutable(path)) return path;
  } catch {
    // No such command, or a shell that does not know these options.
  }
  return null;
}

/** Compares versions `MAJOR.MINOR.PATCH`. A pre-release counts as its release. */
export function isOlder(version: string, than: string): boolean {
  const numbers = (text: string) => text.split("-", 1)[0]!.split(".").map(Number);
  const [a, b] = [numbers(version), numbers(than)];
  for (let index = 0; index < 3; index++) {
    const difference = (a[index] || 0) - (b[index] || 0);
    if (difference) return difference < 0;
  }
  return false;
}

/** Returns the path of nuncio: from the settings, the extension, PATH, or the login shell. */
async function find({ command, env, extensionDirectory }: ProgramSettings): Promise<string | null> {
  const all = { ...process.env, ...env };
  if (command) {
    if (command.includes("/") || command.includes("\\")) return (await isExecutable(command)) ? command : null;
    return inPath(command, all.PATH);
  }
  const bundled = join(extensionDirectory, "bin", executableName);
  if (await isExecutable(bundled)) return bundled;
  return (await inPath(executableName, all.PATH)) ?? fromShell(all);
}

/** Finds nuncio and asks for its version. */
export async function findProgram(settings: ProgramSettings): Promise<Program | ProgramProblem> {
  const path = await find(settings);
  if (!path) return { problem: "missing", detail: settings.command };
  try {
    const { stdout } = await run(path, ["--version"], { env: { ...process.env, ...settings.env }, timeout: VERSION_MS });
    const version = /^nuncio (\d+\.\d+\.\d+\S*)/m.exec(stdout)?.[1];
    if (!version) return { problem: "failed", detail: `${path} --version printed "${stdout.trim().slice(0, 200)}"` };
    return isOlder(version, OLDEST_VERSION) ? { problem: "old", detail: version, path } : { path, version };
  } catch (error) {
    return { problem: "failed", detail: `${path} --version: ${(error as Error).message}` };
  }
}

/** Returns the path of the user's settings file. */
export async function configPath(program: string, env: Record<string, string>): Promise<string> {
  const { stdout } = await run(program, ["config", "path"], { env: { ...process.env, ...env }, timeout: VERSION_MS });
  return stdout.trim();
}
