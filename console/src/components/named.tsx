/** Finds schedules, topologies and tasks with a name, for the search box and the palette. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/client";
import { useReading } from "../api/reading";
import type { SchedulePage, ScheduleSummary, TaskPage, TopologyPage, TopologySummary } from "../api/types";
import { href } from "../router";
import { written } from "../search";
import { actsFor } from "../settings";
import { counted } from "../time";

const MOST_PAGES = 20;
const KEPT_MS = 10_000;
let schedules: { at: number; owner: string; names: Promise<string[]> } | null = null;

async function readNames(): Promise<string[]> {
  const names: string[] = [];
  let token: string | null | undefined = "";
  for (let pages = 0; pages < MOST_PAGES && token !== null && token !== undefined; pages += 1) {
    const page: SchedulePage = await get<SchedulePage>(`/v1/schedules?limit=100${token ? `&next_token=${encodeURIComponent(token)}` : ""}`);
    names.push(...page.schedules.map((each: ScheduleSummary) => each.name));
    token = page.next_token;
  }
  return names;
}

/** The names among the first 2,000 schedules that contain a text, with an exact match first. */
export async function schedulesNamed(text: string): Promise<string[]> {
  const owner = actsFor.peek();
  if (schedules?.owner !== owner || Date.now() - schedules.at > KEPT_MS) schedules = { at: Date.now(), owner, names: readNames() };
  try {
    const lower = text.toLowerCase();
    const found = (await schedules.names).filter((name) => name.toLowerCase().includes(lower));
    return found.sort((a, b) => Number(b === text) - Number(a === text));
  } catch {
    schedules = null;
    return [];
  }
}

export interface Hit {
  label: string;
  kind: string;
  to: string;
}

const SHOWN = 5;

/** Objects by name: schedules by a part of the name, topologies and tasks by the full name. */
export async function hitsOf(text: string, signal: AbortSignal): Promise<Hit[]> {
  const name = encodeURIComponent(text);
  const [found, topologies, tasks] = await Promise.all([
    schedulesNamed(text),
    get<TopologyPage>(`/v1/topologies?name=${name}&limit=${SHOWN}`, signal),
    get<TaskPage>(`/v1/tasks?name=${name}&limit=${SHOWN}`, signal),
  ]);
  const ids = new Set(topologies.topologies.map((each) => each.id));
  const hits = [
    ...found.slice(0, SHOWN).map((each) => ({ label: each, kind: "schedule", to: href(["schedules", each]) })),
    ...topologies.topologies.map((each) => ({ label: `${each.name ?? each.type}, ${each.state}`, kind: `topology ${each.id}`, to: href(["topologies", each.id]) })),
    ...tasks.tasks.filter((each) => !ids.has(each.id)).map((each) => ({ label: `${each.name ?? each.type}, ${each.state}`, kind: `task ${each.id}`, to: href(["tasks", each.id]) })),
  ];
  return hits;
}

/** Schedules and topologies with a name, above the tasks with the same name. */
export function AlsoNamed({ name }: { name: string }) {
  const topologies = useReading<TopologyPage, TopologySummary>(`/v1/topologies?name=${encodeURIComponent(name)}&limit=${SHOWN}`, { entries: (page) => page.topologies, enough: SHOWN });
  const schedule = useSignal<readonly string[]>([]);
  useEffect(() => {
    let isCurrent = true;
    void schedulesNamed(name).then((names) => isCurrent && (schedule.value = names.slice(0, SHOWN)));
    return () => void (isCurrent = false);
  }, [name]);
  const read = topologies.isOld ? null : topologies.found.value;
  const found = read?.entries.length ?? 0;
  if (schedule.value.length === 0 && found === 0) return null;
  return (
    <p class="also">
      <span class="muted">Also with this name:</span>
      {schedule.value.map((each) => (
        <a key={each} href={href(["schedules", each])}>
          schedule {each}
        </a>
      ))}
      {found > 0 && <a href={href(["topologies"], { q: `name:${written(name)}` })}>{read?.token ? `${found} or more topologies` : counted(found, "topology", "topologies")}</a>}
    </p>
  );
}
