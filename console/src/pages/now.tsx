/** Tasks that need attention now: tasks that are overdue, running, just ended, or next. */
import { useComputed, useSignal } from "@preact/signals";
import { useLive, type WatchedTask } from "../api/live";
import { useReading } from "../api/reading";
import type { ListedTask, TaskPage } from "../api/types";
import { ProblemBox } from "../components/basics";
import { CreateTask } from "../components/create_task";
import { NoneYet, ReadingLine, Rows } from "../components/reading";
import { SavedViews } from "../components/saved_views";
import { SearchBox } from "../components/search_box";
import { TaskTable, useNewest } from "../components/task_table";
import { href, navigate } from "../router";
import { withOffsets } from "../search";
import { columns } from "../settings";
import { now } from "../time";

const STEP_MS = 10_000;
const REREAD_MS = 2_000;

interface Part {
  title: string;
  none: string;
  filter: Record<string, string | string[]>;
  limit: number;
  /** A time parameter with the current time. */
  bound?: string;
  /** The search for the complete list. */
  all: Record<string, string>;
}

const PARTS: readonly Part[] = [
  { title: "Overdue", none: "No task is past its due time.", filter: { state: ["scheduled", "waiting"], order: "asc" }, limit: 20, bound: "due_before", all: { q: "state:scheduled state:waiting due:<now", order: "asc" } },
  { title: "Running", none: "No task is running.", filter: { state: ["preparing", "running", "rolling_back"] }, limit: 50, all: { q: "state:preparing state:running state:rolling_back" } },
  { title: "Just ended", none: "No task has ended.", filter: { order_by: "finished_at" }, limit: 10, all: { by: "finished_at" } },
  { title: "Next", none: "No task is scheduled.", filter: { state: ["scheduled"], order: "asc" }, limit: 10, bound: "due_after", all: { q: "state:scheduled due:>now", order: "asc" } },
];

export function Now() {
  return (
    <>
      <div class="page-head">
        <h1>Tasks</h1>
        <CreateTask />
      </div>
      <SearchBox text="" seen={[]} search={(q) => navigate(href(["tasks"], { q: withOffsets(q) }))} />
      <div class="list-tools">
        <SavedViews isNow />
      </div>
      {PARTS.map((part) => (
        <List key={part.title} part={part} />
      ))}
    </>
  );
}

function List({ part: { title, none, filter, limit, bound, all } }: { part: Part }) {
  const asked = new URLSearchParams(Object.entries(filter).flatMap(([name, value]) => [value].flat().map((each) => [name, each])));
  asked.set("limit", String(limit));
  const whole = `/v1/tasks?${asked}`;
  const bounded = () => `${whole}&${bound}=${new Date(Math.floor(now.peek() / STEP_MS) * STEP_MS).toISOString()}`;
  const reading = useReading<TaskPage, ListedTask>(bound ? bounded : whole, { entries: (page) => page.tasks, enough: limit }, title);
  const pushed = useSignal(new Map<string, WatchedTask | null>());
  const waiting = useSignal(0);
  useLive("mine", ({ id, item }) => {
    if (reading.found.peek()?.entries.some((task) => task.id === id)) pushed.value = new Map(pushed.peek()).set(id, item);
    // Tasks move between the lists, and many changes cause a single reading.
    waiting.value ||= window.setTimeout(() => {
      waiting.value = 0;
      reading.refresh();
    }, REREAD_MS);
  });
  const read = useComputed(() => reading.found.value?.entries ?? null);
  const shown = useNewest(read, pushed);
  return (
    <section class="part">
      <h2>
        <a href={href(["tasks"], all)}>{title}</a> {shown.value.length > 0 && <span class="muted">{shown.value.length}{reading.found.value?.token ? " or more" : ""}</span>}
      </h2>
      {reading.problem.value && <ProblemBox problem={reading.problem.value} retry={() => void reading.reload()} />}
      <Rows reading={reading}>{shown.value.length > 0 && <TaskTable tasks={shown.value} label={title} shown={title === "Just ended" ? ["finished", ...columns.value.filter((each) => each !== "due")] : columns.value} />}</Rows>
      <NoneYet reading={reading} text={none} />
      {reading.found.value && <ReadingLine reading={reading} />}
    </section>
  );
}
