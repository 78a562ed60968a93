/** The search of the task list, such as `state:failed type:report tag:team:docs due:>now-1h`, as parameters of the API.
 * */
import { isoWithOffset, serverNow, typedTime } from "./time";
import type { WatchedTask } from "./api/live";
import type { TaskState } from "./api/types";

export const STATES: readonly TaskState[] = [
  "scheduled",
  "blocked",
  "waiting",
  "preparing",
  "running",
  "paused",
  "succeeded",
  "failed",
  "rolling_back",
  "rolled_back",
  "cancelled",
];

export const ENDED: readonly TaskState[] = ["succeeded", "failed", "cancelled", "rolled_back"];

/** The qualifiers with descriptions. */
export const QUALIFIERS: Record<string, string> = {
  state: "a state; several are allowed",
  type: "the type of the task",
  name: "its full name; words without a qualifier are a name",
  contains: "a part of its name; examines tasks one by one",
  tag: "a tag, as key:value; several are allowed",
  schedule: "runs of a schedule",
  parent: "nodes of a topology",
  error: "the type of its last error",
  message: "a part of its last error; examines tasks one by one",
  due: "due before or after a time: due:<now+1h",
  created: "created before or after a time",
  finished: "finished before or after a time: finished:>02:00",
  nodes: "nodes:yes also lists nodes of topologies, as searches for a state do",
};

const { schedule: _schedule, parent: _parent, error: _error, nodes: _nodes, ...ofTopologies } = QUALIFIERS;
/** The qualifiers of the topology list. */
export const TOPOLOGY_QUALIFIERS: Record<string, string> = { ...ofTopologies, definition: "runs of a definition" };

/** The qualifiers of the schedule list. */
export const SCHEDULE_QUALIFIERS: Record<string, string> = {
  state: "active, paused or ended",
  type: "the type of its tasks",
  tag: "a tag of its tasks, as key:value; several are allowed",
  name: "a part of its name; words without a qualifier are a part of a name",
};
const SCHEDULE_STATES = ["active", "paused", "ended"];

export interface Search {
  terms: { qualifier: string; value: string; text: string }[];
  faults: string[];
}

const WORDS = /(?:[^\s"]|"[^"]*"?)+/g;
const REPEATED = new Set(["state", "tag", "due", "created", "finished"]);

/** Split a search into terms; values with spaces are in double quotes. Words without a qualifier are the name.
 * `qualifiers` are the list's qualifiers. */
export function parseSearch(text: string, qualifiers: Record<string, string> = QUALIFIERS): Search {
  const search: Search = { terms: [], faults: [] };
  const bare: string[] = [];
  for (const [word] of text.matchAll(WORDS)) {
    const colon = word.indexOf(":");
    const qualifier = word.slice(0, Math.max(0, colon)).toLowerCase();
    const value = word.slice(colon + 1).replaceAll('"', "");
    if (colon < 0) bare.push(value);
    else if (!(qualifier in qualifiers)) search.faults.push(`“${qualifier}:” is not a qualifier. Use name:${written(word.replaceAll('"', ""))} to search for a name, or one of: ${Object.keys(qualifiers).map((name) => `${name}:`).join(" ")}`);
    else if (value) {
      const fault = faultOf(qualifier, value, qualifiers === SCHEDULE_QUALIFIERS ? SCHEDULE_STATES : STATES) ?? (!REPEATED.has(qualifier) && search.terms.some((term) => term.qualifier === qualifier) ? `only one ${qualifier}: can be given` : null);
      if (fault) search.faults.push(fault);
      else search.terms.push({ qualifier, value, text: word });
    }
  }
  const name = bare.join(" ").trim();
  if (name && search.terms.some((term) => term.qualifier === "name")) search.faults.push("only one name can be given");
  else if (name) search.terms.push({ qualifier: "name", value: name, text: `name:${written(name)}` });
  return search;
}

function faultOf(qualifier: string, value: string, states: readonly string[]): string | null {
  if (qualifier === "state" && !states.includes(value)) return `“${value}” is not a state`;
  if (qualifier === "tag" && !value.includes(":")) return "a tag is written key:value";
  if (qualifier === "nodes" && value !== "yes") return "nodes is written nodes:yes";
  if (TIMES.has(qualifier) && parseTime(value) === null) return `“${qualifier}:${value}” is not a time: ${qualifier}:<now+1h, ${qualifier}:>09:00, ${qualifier}:>2026-12-01T09:00`;
  return null;
}

const TIMES = new Set(["due", "created", "finished"]);
const UNITS: Record<string, number> = { s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

const WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i;

/** `<now+1h`, `>09:00` or `>2026-12-01T09:00Z`, as a direction and a time; without an offset, in the displayed zone. */
export function parseTime(text: string): { before: boolean; at: string } | null {
  const [, direction, rest] = /^([<>])=?(.+)$/.exec(text) ?? [];
  if (!direction || !rest) return null;
  const relative = /^now(?:([+-])(\d+)(s|m|min|h|d))?$/.exec(rest);
  // Other forms that the browser understands would be in the browser's zone.
  let at = typedTime(rest) ?? (WITH_OFFSET.test(rest) ? Date.parse(rest) : NaN);
  if (relative) {
    const [, sign, count, unit] = relative;
    const distance = count && unit ? Number(count) * (UNITS[unit] ?? 0) : 0;
    // Rounded to the minute, so that re-reading the list sends the same request and can return 304.
    at = Math.floor(serverNow() / 60_000) * 60_000 + (sign === "-" ? -distance : distance);
  }
  return Number.isNaN(at) ? null : { before: direction === "<", at: new Date(at).toISOString() };
}

/** Whether the request of a search depends on the current time. */
export const isTimed = (search: Search): boolean =>
  search.terms.some(({ qualifier, value }) => TIMES.has(qualifier) && (value.includes("now") || typedTime(value.replace(/^[<>]=?/, "")) !== null));

/** A search with the offset of the displayed zone in each typed time, so that its link means the same everywhere. */
export function withOffsets(text: string): string {
  return text.replace(WORDS, (word) => {
    const [, start, time] = /^((?:due|created|finished):[<>]=?)(.+)$/i.exec(word) ?? [];
    const at = time ? typedTime(time.replaceAll('"', "")) : null;
    return at === null ? word : `${start}${isoWithOffset(at)}`;
  });
}

const PARAMETERS: Record<string, string> = { error: "error_type", contains: "name_contains", message: "error_contains" };

/** A search as parameters of `GET /v1/tasks`. */
export function parameters(search: Search): URLSearchParams {
  const made = new URLSearchParams();
  for (const { qualifier, value } of search.terms) {
    const time = TIMES.has(qualifier) ? parseTime(value) : null;
    if (time) made.set(`${qualifier}_${time.before ? "before" : "after"}`, time.at);
    else if (qualifier === "state" || qualifier === "tag") made.append(qualifier, value);
    else if (qualifier === "nodes") made.set("include_nodes", "true");
    else made.set(PARAMETERS[qualifier] ?? qualifier, value);
  }
  return made;
}

/** A search as the filter of a bulk operation. */
export function bulkFilter(search: Search): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  const tags: Record<string, string> = {};
  const states: string[] = [];
  for (const [name, value] of parameters(search)) {
    if (name === "state") states.push(value);
    else if (name === "tag") tags[value.slice(0, value.indexOf(":"))] = value.slice(value.indexOf(":") + 1);
    // Bulk operations always include nodes.
    else if (name !== "include_nodes") made[name] = value;
  }
  if (states.length) made["state"] = states;
  if (Object.keys(tags).length) made["tags"] = tags;
  return made;
}

/** Toggle a term. */
export function toggled(text: string, term: string, qualifiers: Record<string, string> = QUALIFIERS): string {
  const words = parseSearch(text, qualifiers).terms.map((each) => each.text);
  const rest = words.filter((word) => word !== term);
  return (rest.length < words.length ? rest : [...words, term]).join(" ");
}

/** A value as it is written in a search. */
export const written = (value: string): string => (/\s/.test(value) ? `"${value}"` : value);

/** The search for a tag. */
export const tagSearch = (key: string, value: string): string => `tag:${written(`${key}:${value}`)}`;

/** Whether the list of a search has nodes of topologies. */
export const hasNodes = (search: Search): boolean => search.terms.some(({ qualifier }) => ["nodes", "parent", "state"].includes(qualifier));

/** Whether a pushed task matches a search. */
export function matches(search: Search, task: WatchedTask): boolean {
  const states = search.terms.filter((term) => term.qualifier === "state");
  if (states.length && !states.some((term) => term.value === task.state)) return false;
  if (task.node !== null && !hasNodes(search)) return false;
  return search.terms.every(({ qualifier, value }) => TESTS[qualifier]?.(task, value) ?? true);
}

const within = (at: string | null, value: string): boolean => {
  const time = parseTime(value);
  if (!time || at === null) return false;
  return time.before ? Date.parse(at) < Date.parse(time.at) : Date.parse(at) >= Date.parse(time.at);
};

const has = (text: string | null, part: string): boolean => (text ?? "").toLowerCase().includes(part.toLowerCase());

const TESTS: Record<string, (task: WatchedTask, value: string) => boolean> = {
  type: (task, value) => task.type === value,
  name: (task, value) => task.name === value,
  contains: (task, value) => has(task.name, value),
  tag: (task, value) => task.tags[value.slice(0, value.indexOf(":"))] === value.slice(value.indexOf(":") + 1),
  schedule: (task, value) => task.schedule === value,
  parent: (task, value) => task.topology === value,
  error: (task, value) => task.error?.type === value,
  message: (task, value) => task.error !== null && has(`${task.error.type}: ${task.error.message}`, value),
  // A pushed task does not name its definition; such runs are found when the list is read again.
  definition: () => false,
  due: (task, value) => within(task.due_at, value),
  created: (task, value) => within(task.created_at, value),
  finished: (task, value) => within(task.finished_at, value),
};
