/** The overview, with task counts, overdue tasks, cost, recent failures, and upcoming runs. */
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { useReading, type Reading } from "../api/reading";
import { useResource, type Resource } from "../api/resource";
import type { DispatchStatus, Forecast, ListedTask, Summary, SwitchPage, TaskPage, TaskState } from "../api/types";
import { Empty, ProblemBox, StateChip, Time, Took } from "../components/basics";
import { ComingLoad } from "../components/coming_load";
import { useDispatch, type Dispatch } from "../components/dispatch";
import { NoneYet, ReadingLine } from "../components/reading";
import { TaskTable } from "../components/task_table";
import { dollars } from "../money";
import { href } from "../router";
import { ENDED, STATES, written } from "../search";
import { counted, dayOf, duration, now } from "../time";

export function Overview() {
  const summary = useResource<Summary>("/v1/summary");
  const failed = useTasks({ state: ["failed"] }, SHOWN_FAILED);
  // The lists are read by state, because tasks that wait for a lock or an approval would hide tasks that were not
  // started.
  const overdue = useTasks({ state: ["scheduled"], order: "asc" }, SAMPLE, "due_before", -LATE_MS);
  const held = useTasks({ state: ["waiting"], order: "asc" }, SAMPLE, "due_before", -LATE_MS);
  const next = useTasks({ state: ["scheduled"], order: "asc" }, SAMPLE, "due_after");
  const ended = useTasks({ state: ["succeeded", "failed"], order_by: "finished_at" }, SAMPLE);
  const hours = useSignal(24);
  const forecast = useResource<Forecast>(`/v1/forecast?hours=${hours.value}`);
  const switches = useResource<SwitchPage>("/v1/switches");
  const dispatch = useDispatch();
  const read = summary.data.value;
  return (
    <>
      <div class="page-head">
        <h1>Overview</h1>
        {read?.as_of && (
          <p class="muted">
            Counted until <Time at={read.as_of} />{!read.is_complete && <strong>, but not all tasks yet</strong>}
          </p>
        )}
      </div>
      {summary.problem.value && <ProblemBox problem={summary.problem.value} retry={() => void summary.reload()} />}
      {read && <Counts states={read.states} total={read.total} />}
      <div class="grid overview">
        <Health overdue={overdue} held={held} switches={switches} dispatch={dispatch} failed={failed} counted={read?.states.failed ?? 0} />
        {read && <Types summary={read} />}
        <OnTime overdue={overdue} held={held} ended={ended} />
        <Spending ended={ended} />
        <ComingLoad forecast={forecast} next={next} hours={hours.value} choose={(each) => (hours.value = each)} />
        <section class="card wide">
          <h2>
            <a href={href(["tasks"], { q: "state:failed" })}>Failed lately</a>
          </h2>
          {failed.found.value && failed.found.value.entries.length > 0 && <TaskTable tasks={failed.found.value.entries.slice(0, SHOWN_FAILED)} label="Failed tasks" />}
          <NoneYet reading={failed} text="No task has failed for good." />
        </section>
        <section class="card wide">
          <h2>
            <a href={href(["tasks"], { q: "state:scheduled due:>now", order: "asc" })}>Next</a>
          </h2>
          {next.found.value && next.found.value.entries.length > 0 && <TaskTable tasks={next.found.value.entries.slice(0, SHOWN_NEXT)} label="Next tasks" />}
          <NoneYet reading={next} text="No task is scheduled." />
        </section>
      </div>
      {read?.total === 0 && read.is_complete && (
        <Empty title="Nothing has run yet">
          <p>
            Create a task on the page <a href={href(["tasks"])}>Tasks</a>, or a recurring task under <a href={href(["schedules"])}>Schedules</a>.
          </p>
        </Empty>
      )}
    </>
  );
}

type Tasks = Reading<TaskPage, ListedTask>;
const SAMPLE = 100;
const SHOWN_FAILED = 5;
const STEP_MS = 10_000;

/** The first tasks of a filter; `bound` is a time parameter with the current time, shifted by some milliseconds. */
function useTasks(filter: Record<string, string | string[]>, wanted: number, bound?: string, shift = 0): Tasks {
  const asked = new URLSearchParams(Object.entries(filter).flatMap(([name, value]) => [value].flat().map((each) => [name, each])));
  asked.set("limit", String(wanted));
  const key = `/v1/tasks?${asked}`;
  const path = () => (bound ? `${key}&${bound}=${new Date(Math.floor((now.peek() + shift) / STEP_MS) * STEP_MS).toISOString()}` : key);
  return useReading<TaskPage, ListedTask>(bound ? path : key, { entries: (page) => page.tasks, enough: wanted }, `${key}&${bound}`);
}

function Counts({ states, total }: { states: Record<string, number>; total: number }) {
  const shown = STATES.filter((state) => states[state]);
  return (
    <section class="counts" aria-label="Tasks by state">
      <a href={href(["tasks"], { q: "nodes:yes" })}>
        <strong>{total.toLocaleString("en")}</strong> <span class="muted">tasks</span>
      </a>
      {shown.map((state) => (
        <a key={state} href={href(["tasks"], { q: `state:${state}` })}>
          <strong>{(states[state] ?? 0).toLocaleString("en")}</strong> <StateChip state={state} />
        </a>
      ))}
    </section>
  );
}

const percentile = (sorted: readonly number[], part: number): number | null =>
  sorted.length ? (sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? null) : null;

const LATE_MS = 10_000;
/** The trigger runs every minute and reads three minutes ahead; tasks start late if it stops for longer. */
const TICK_LATE_MS = 180_000;
const SHOWN_NEXT = 8;

interface HealthProps {
  overdue: Tasks;
  held: Tasks;
  switches: Resource<SwitchPage>;
  dispatch: Dispatch;
  failed: Tasks;
  counted: number;
}

/** Problems that keep tasks from running, each with a link to the page where it can be fixed. Unknown facts are
 * reported as unknown, never as good. */
function Health({ overdue, held, switches, dispatch, failed, counted: count }: HealthProps) {
  return (
    <section class="card health">
      <h2>Health</h2>
      <ul>
        {dispatch === "reading" ? <Check good="loading" to={href(["workers"])}>Trigger and queues</Check> : dispatch && <DispatchChecks status={dispatch} />}
        <Backlog reading={overdue} />
        <Held reading={held} />
        <SwitchChecks switches={switches} />
        <Failures reading={failed} count={count} />
      </ul>
      <ReadingLine reading={overdue} />
    </section>
  );
}

function SwitchChecks({ switches: { data, problem } }: { switches: Resource<SwitchPage> }) {
  const read = data.value;
  const to = href(["switches"]);
  if (!read) return problem.value ? <Check good="unknown" to={to}>Switches and failing hosts: not known. {problem.value.title}</Check> : <Check good="loading" to={to}>Switches and failing hosts</Check>;
  const stops = read.switches.filter((each) => each.stopped).length;
  const limits = read.switches.length - stops;
  return (
    <>
      <Check good={stops === 0} to={to}>
        {stops ? `${counted(stops, "switch is", "switches are")} stopping tasks` : "No switch stops tasks"}
        {limits > 0 && <span class="muted">, {counted(limits, "limit")}</span>}
      </Check>
      <Check good={read.circuits.length === 0} to={to}>
        {read.circuits.length ? `${counted(read.circuits.length, "host")} not called, because calls keep failing` : "No host keeps failing"}
      </Check>
    </>
  );
}

/** The reason why it is unknown whether a list has matching tasks; empty if it is known. */
function unknownOf({ found, problem, isOld }: Tasks): string {
  const read = found.value;
  if (problem.value) return problem.value.title;
  if (!read || isOld) return "loading";
  return read.isKnown ? "" : `${counted(read.examined, "task")} examined so far, without a result`;
}

/** Whether due tasks start, judged by the oldest tasks that are due and still scheduled. */
function Backlog({ reading }: { reading: Tasks }) {
  const found = reading.found.value;
  const [oldest] = found?.entries ?? [];
  const to = href(["tasks"], { q: "state:scheduled due:<now", order: "asc" });
  if (found && oldest && !reading.problem.value) {
    return (
      <Check good={false} to={to}>
        {counted(found.entries.length, "due task")}
        {found.token ? " or more" : ""} not started, the oldest for {duration(now.value - Date.parse(oldest.due_at))}
      </Check>
    );
  }
  const reason = unknownOf(reading);
  if (reason) return <Check good={reason === "loading" ? "loading" : "unknown"} to={to}>Oldest due task{reason === "loading" ? "" : `: not known. ${reason}`}</Check>;
  return <Check good to={to}>Due tasks start, no backlog</Check>;
}

/** Tasks past their due time that wait for a condition, which is information and not a fault. */
function Held({ reading }: { reading: Tasks }) {
  const found = reading.found.value;
  const [oldest] = found?.entries ?? [];
  const to = href(["tasks"], { q: "state:waiting due:<now", order: "asc" });
  if (reading.problem.value) return <Check good="unknown" to={to}>Tasks that wait past their due time: not known. {reading.problem.value.title}</Check>;
  if (!found || !oldest) return null;
  return (
    <Check good={null} to={to}>
      {counted(found.entries.length, "task")}
      {found.token ? " or more" : ""} past the due time {found.entries.length === 1 ? "waits" : "wait"}, for example for a lock, a retry or an approval
      <span class="muted">, the oldest for {duration(now.value - Date.parse(oldest.due_at))}</span>
    </Check>
  );
}

function Failures({ reading, count }: { reading: Tasks; count: number }) {
  const listed = reading.found.value?.entries.length ?? 0;
  const to = href(["dead-letters"]);
  const reason = unknownOf(reading);
  // The list of failed tasks is up to date at once, while the counts still include tasks that were retried since.
  const failed = reason || listed ? Math.max(count, listed) : 0;
  if (failed) return <Check good={false} to={to}>{counted(failed, "task")} failed for good</Check>;
  if (reason) return <Check good={reason === "loading" ? "loading" : "unknown"} to={to}>Failed tasks{reason === "loading" ? "" : `: not known. ${reason}`}</Check>;
  return <Check good to={to}>No task has failed for good</Check>;
}

/** The trigger and the queues of all owners; visible only to operators. */
function DispatchChecks({ status }: { status: DispatchStatus }) {
  const since = status.last_tick_at ? now.value - Date.parse(status.last_tick_at) : Infinity;
  const sum = (of: (queue: DispatchStatus["queues"][number]) => number) => status.queues.reduce((total, queue) => total + of(queue), 0);
  const [waiting, inFlight] = [sum((queue) => queue.waiting), sum((queue) => queue.in_flight)];
  return (
    <>
      <Check good={since < TICK_LATE_MS} to={href(["workers"])}>
        {since === Infinity ? "The trigger has not run yet" : since < TICK_LATE_MS ? "The trigger runs" : `The trigger last ran ${duration(since)} ago`}
        {since < TICK_LATE_MS && <span class="muted">, last {duration(since)} ago</span>}
      </Check>
      <Check good={waiting === 0 || null} to={href(["workers"])}>
        {waiting ? `${counted(waiting, "task")} of all owners on queues, due` : "No due tasks in the queues"}
        {inFlight > 0 && <span class="muted">, {inFlight.toLocaleString("en")} in work</span>}
      </Check>
    </>
  );
}

/** The result of a check: good, bad, neutral information (null), not known, or still loading. */
type Verdict = boolean | null | "unknown" | "loading";

function markOf(good: Verdict): [kind: string, sign: string] {
  if (good === "unknown") return ["unknown", "?"];
  if (good === "loading") return ["muted", "…"];
  return good === null ? ["muted", "·"] : good ? ["good", "✓"] : ["bad", "✕"];
}

function Check({ good, to, children }: { good: Verdict; to: string; children: ComponentChildren }) {
  const [kind, sign] = markOf(good);
  return (
    <li>
      <span class={kind} aria-hidden="true">
        {sign}
      </span>{" "}
      <a href={to}>{children}</a>
    </li>
  );
}

/** The oldest due time of tasks that have not started; null if that is not known. */
function oldestDue(readings: readonly Tasks[]): number | null {
  const due = readings.map((each) => {
    const first = each.found.value?.entries[0];
    if (each.problem.value || (!first && unknownOf(each))) return null;
    return first ? Date.parse(first.due_at) : Infinity;
  });
  // A task that one list does not show may be older than the tasks that another list shows.
  return due.some((at) => at === null) ? null : Math.min(...due.map(Number));
}

/** Figures about the latest tasks to end and about waiting tasks. */
function OnTime({ overdue, held, ended }: { overdue: Tasks; held: Tasks; ended: Tasks }) {
  const read = ended.found.value;
  const late = (read?.entries ?? []).flatMap((task) => (task.lateness_ms === null ? [] : [task.lateness_ms])).sort((a, b) => a - b);
  const oldest = oldestDue([overdue, held]);
  return (
    <section class="card">
      <h2>On time</h2>
      <dl class="figures">
        <div>
          <dt>Late, p50</dt>
          <dd><Took ms={percentile(late, 0.5)} /></dd>
        </div>
        <div>
          <dt>Late, p99</dt>
          <dd><Took ms={percentile(late, 0.99)} /></dd>
        </div>
        <div>
          <dt>Oldest due</dt>
          <dd>{oldest === null ? <span class="muted">not known</span> : oldest === Infinity ? "none" : duration(now.value - oldest)}</dd>
        </div>
      </dl>
      <Lateness values={late} />
      {read && read.entries.length > 0 && <p class="muted">Of the last {counted(late.length, "task")} that started and have ended.</p>}
      <NoneYet reading={ended} text="No task has succeeded or failed yet." />
      {ended.going.value && <ReadingLine reading={ended} />}
    </section>
  );
}

const STEPS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, Infinity];

/** A histogram of lateness. */
function Lateness({ values }: { values: readonly number[] }) {
  const counts = STEPS.map((step, index) => values.filter((value) => value < step && value >= (STEPS[index - 1] ?? -Infinity)).length);
  const most = Math.max(1, ...counts);
  return (
    <ol class="histogram" aria-label="Number of tasks by lateness">
      {STEPS.map((step, index) => (
        <li key={step} title={`${counts[index]} tasks ${step === Infinity ? "10 s or later" : `less than ${duration(step)} late`}`}>
          <i style={{ height: `${((counts[index] ?? 0) / most) * 100}%` }} />
          <small>{step === Infinity ? "more" : `<${duration(step)}`}</small>
        </li>
      ))}
    </ol>
  );
}

const SHOWN_TYPES = 8;
const OPEN: readonly TaskState[] = STATES.filter((state) => !ENDED.includes(state));

function Types({ summary }: { summary: Summary }) {
  return (
    <section class="card">
      <h2>
        Types {summary.types.length > SHOWN_TYPES && <span class="muted">the {SHOWN_TYPES} with most tasks</span>}
      </h2>
      <table aria-label="Tasks by type">
        <thead>
          <tr>
            <th scope="col">Type</th>
            <th scope="col" class="number">Tasks</th>
            <th scope="col" class="number">Open</th>
            <th scope="col" class="number">Running</th>
            <th scope="col" class="number">Failed</th>
          </tr>
        </thead>
        <tbody>
          {summary.types.slice(0, SHOWN_TYPES).map((each) => (
            <tr key={each.type}>
              <td><a href={href(["tasks"], { q: `type:${written(each.type)} nodes:yes` })}>{each.type}</a></td>
              <td class="number">{each.total.toLocaleString("en")}</td>
              <td class="number">{OPEN.reduce((sum, state) => sum + (each.states[state] ?? 0), 0).toLocaleString("en")}</td>
              <td class="number">{(each.states.running ?? 0).toLocaleString("en")}</td>
              <td class="number">{failures(each.states, each.type)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function failures(states: Partial<Record<TaskState, number>>, type: string) {
  const count = states.failed ?? 0;
  return count ? <a class="bad" href={href(["tasks"], { q: `state:failed type:${written(type)}` })}>{count.toLocaleString("en")}</a> : <span class="muted">0</span>;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const SHORTEST_SPAN_MS = 60_000;

/** The estimated cost of the tasks that ended last: for today, or, if the page does not include all of today's tasks,
 * for a day at the current pace. A note lists what the estimate excludes. */
function Spending({ ended: reading }: { ended: Tasks }) {
  const ended = reading.found.value;
  const tasks = ended?.entries.filter((task) => task.finished_at) ?? [];
  const times = tasks.map((task) => Date.parse(task.finished_at ?? "")).sort((a, b) => a - b);
  const total = tasks.reduce((sum, task) => sum + task.cost_dollars, 0);
  const [first] = times;
  const today = tasks.filter((task) => dayOf(Date.parse(task.finished_at ?? "")) === dayOf(now.value));
  // The page is in the order of ends, so it has all of today's tasks if it includes an earlier task or has all tasks.
  const isWhole = ended !== null && ended.isKnown && (today.length < tasks.length || !ended.token);
  // If tasks beyond the page ended earlier, the page covers its complete span; otherwise, the span is at least an hour.
  const span = first === undefined ? 0 : Math.max(now.value - first, ended?.token ? SHORTEST_SPAN_MS : HOUR_MS);
  return (
    <section class="card">
      <h2>Throughput and cost</h2>
      <dl class="figures">
        <div>
          <dt>Ended per hour</dt>
          <dd>{span ? Math.round((tasks.length * HOUR_MS) / span).toLocaleString("en") : "–"}</dd>
        </div>
        <div>
          <dt>Per million tasks</dt>
          <dd>{tasks.length ? dollars((total / tasks.length) * 1e6) : "–"}</dd>
        </div>
        {isWhole ? (
          <div>
            <dt>Today</dt>
            <dd>{dollars(today.reduce((sum, task) => sum + task.cost_dollars, 0))}</dd>
          </div>
        ) : (
          <div>
            <dt>A day, at this pace</dt>
            <dd>{span ? dollars((total * DAY_MS) / span) : "–"}</dd>
          </div>
        )}
      </dl>
      {tasks.length > 0 ? <p class="muted">
        Estimated from the last {counted(tasks.length, "task")} that ended, at their pace and by assumed public prices: their writes and their time in a worker. Requests, messages, logs and an idle deployment are not included.
      </p> : <NoneYet reading={reading} text="No task has succeeded or failed yet." />}
    </section>
  );
}
