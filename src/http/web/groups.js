// The order of the session list: by project, then by day. Independent of the page.

import { base } from "./dom.js";
import { t } from "./texts.js";

const WORKSPACE = /\/worktrees\/(.+)-[0-9a-f]{8}\/([^/]+)\/?$/;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns the name of the workspace that a directory is; null for other directories. */
export const workspaceOf = (cwd) => WORKSPACE.exec(cwd || "")?.[2] ?? null;

/**
 * Returns the project of each directory: the directory itself. A workspace belongs to the directory
 * that has the name of its repository, if there is exactly one.
 */
function projectsOf(rows) {
  const directories = new Set(rows.map((row) => row.cwd || "").filter((cwd) => !WORKSPACE.test(cwd)));
  const named = Map.groupBy(directories, base);
  return (cwd) => {
    const name = WORKSPACE.exec(cwd || "")?.[1];
    if (!name) return cwd || "";
    const same = named.get(name);
    return same?.length === 1 ? same[0] : name;
  };
}

/** Formats a day: "Yesterday" or its date; "" for today, whose rows show the time. */
function day(ms, now) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (ms >= midnight) return "";
  if (ms >= midnight - DAY_MS) return t`Yesterday`;
  const year = new Date(ms).getFullYear() === new Date(now).getFullYear() ? undefined : "numeric";
  return new Date(ms).toLocaleDateString(undefined, { weekday: year ? undefined : "short", day: "numeric", month: "short", year });
}

/** Whether each word of the query is part of the title, the directory or the agent of a row. */
export function matches(row, query) {
  const text = `${row.title || t`Untitled`}\n${row.cwd}\n${row.agent || ""}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/**
 * Returns the entries of the list, in order: `{kind: "project" | "day" | "row", key, …}`. `rows`
 * are sorted, the latest first. `isFolded(project)` hides the rows of a project.
 */
export function grouped(rows, isFolded, now) {
  const projectOf = projectsOf(rows);
  const entries = [];
  for (const [project, own] of Map.groupBy(rows, (row) => projectOf(row.cwd))) {
    const folded = isFolded(project);
    entries.push({ kind: "project", key: `project ${project}`, project, name: project ? base(project) : "…", count: own.length, folded, waits: own.some((row) => row.waiting) });
    if (folded) continue;
    let last = "";
    for (const row of own) {
      const label = day(row.updatedMs, now);
      if (label !== last) entries.push({ kind: "day", key: `day ${project} ${label}`, label });
      last = label;
      entries.push({ kind: "row", key: row.id, row });
    }
  }
  return entries;
}
