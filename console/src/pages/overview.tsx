/** The overview: task counts, overdue tasks, cost, recent failures, and upcoming runs. */
import type { ComponentChildren } from "preact";
import { countOf, useReading, type Found, type Reading } from "../api/reading";
import { useResource } from "../api/resource";
import type { DispatchStatus, Forecast, ListedTask, Summary, SwitchPage, TaskPage, TaskState } from "../api/types";
import { Empty, ProblemBox, StateChip, Time, Took } from "../components/basics";
import { ComingLoad } from "../components/coming_load";
import { useDispatch, type Dispatch } from "../components/dispatch";
import { LookedAt, NoneYet, ReadingLine } from "../components/reading";
import { TaskTable } from "../components/task_table";
import { dollars } from "../money";
import { href } from "../router";
import { STATES, written } from "../search";
import { counted, dayOf, duration, now } from "../time";

export function Overview() {
  const summary = useResource<Summary>("/v1/summary");
  const failed = useTasks(summary, ["failed"], SHOWN_FAILED);
  const next = useTasks(summary, ["scheduled", "waiting"], SAMPLE, "asc");
  const forecast = useResource<Forecast>("/v1/forecast");
  const ended = useTasks(summary, ["succeeded", "failed"], SAMPLE);
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
      <div class="grid">
        <div class="stack">
          <OnTime next={next.found.value} ended={ended} />
          <Spending ended={ended.found.value} />
        </div>
        <div class="stack">
          <Health next={next} switches={switches.data.value} dispatch={dispatch} failed={failed} counted={read?.states.failed ?? 0} />
          {read && <Types summary={read} />}
        </div>
        <ComingLoad forecast={forecast.data.value} waiting={next.found.value} />
        <section class="card wide">
          <h2>
            <a href={href(["tasks"], { q: "state:failed" })}>Failed lately</a>
          </h2>
          {failed.found.value && failed.found.value.entries.length > 0 && <TaskTable tasks={failed.found.value.entries.slice(0, SHOWN_FAILED)} label="Failed tasks" />}
          <NoneYet reading={failed} text="No task has failed for good." />
        </section>
        <section class="card wide">
          <h2>
            <a href={href(["tasks"], { q: "state:scheduled state:waiting", order: "asc" })}>Next</a>
          </h2>
          {next.found.value && next.found.value.entries.length > 0 && <TaskTable tasks={next.found.value.entries.slice(0, SHOWN_NEXT)} label="Next tasks" />}
          <NoneYet reading={next} text="No task is scheduled." />
        </section>
      </div>
      {read?.total === 0 && read.is_complete && (
        <Empty title="Nothing has run yet">
          <p>
            Create a task on the page <a href={href(["tasks"])}>Tasks</a>, or a recurring one under <a href={href(["schedules"])}>Schedules</a>.
          </p>
        </Empty>
      )}
    </>
  );
}

type Tasks = Reading<TaskPage, ListedTask>;
const SAMPLE = 100;
const SHOWN_FAILED = 5;

/** The first tasks in some states: as many as requested, or as the summary counts. */
function useTasks(summary: { data: { value: Summary | null }; problem: { value: unknown } }, states: readonly TaskState[], wanted: number, order = "desc"): Tasks {
  const asked = new URLSearchParams([...states.map((state) => ["state", state]), ["order", order], ["limit", String(wanted)]]);
  const isCounted = summary.data.value !== null || summary.problem.value !== null;
  const enough = Math.min(wanted, countOf(summary.data.value, states) ?? wanted);
  return useReading<TaskPage, ListedTask>(isCounted ? `/v1/tasks?${asked}` : null, { entries: (page) => page.tasks, enough });
}

function Counts({ states, total }: { states: Record<string, number>; total: number }) {
  const shown = STATES.filter((state) => states[state]);
  return (
    <section class="counts" aria-label="Tasks by state">
      <a href={href(["tasks"])}>
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

/** Problems that keep tasks from running, each with a link to the page where it can be fixed. */
function Health({ next, switches, dispatch, failed, counted: count }: { next: Tasks; switches: SwitchPage | null; dispatch: Dispatch; failed: Tasks; counted: number }) {
  // Its space is reserved while loading, to avoid a layout shift.
  if (!next.found.value || !switches || dispatch === "reading") return <section class="card health"><h2>Health</h2><p class="muted">Reading…</p></section>;
  const stops = switches.switches.filter((each) => each.stopped).length;
  const limits = switches.switches.length - stops;
  return (
    <section class="card health">
      <h2>Health</h2>
      <ul>
        {dispatch && <DispatchChecks status={dispatch} />}
        <Backlog found={next.found.value} />
        <Check good={stops === 0} to={href(["switches"])}>
          {stops ? `${counted(stops, "switch is", "switches are")} stopping tasks` : "No switch stops tasks"}
          {limits > 0 && <span class="muted">, {counted(limits, "limit")}</span>}
        </Check>
        <Check good={switches.circuits.length === 0} to={href(["switches"])}>
          {switches.circuits.length ? `${counted(switches.circuits.length, "host")} not called: it keeps failing` : "No host keeps failing"}
        </Check>
        <Failures found={failed.found.value} count={count} />
      </ul>
      <ReadingLine reading={next} />
    </section>
  );
}

/** Whether due tasks start, judged by the open tasks read so far; a partial list may be incomplete. */
function Backlog({ found }: { found: Found<TaskPage, ListedTask> }) {
  const late = overdue(found);
  const backlog = found.entries.filter((task) => task.state === "scheduled" && Date.parse(task.due_at) < now.value - LATE_MS).length;
  return (
    <Check good={late >= LATE_MS ? false : found.isKnown || null} to={href(["tasks"], { q: "state:scheduled due:<now", order: "asc" })}>
      {late >= LATE_MS ? (
        `${counted(backlog, "due task")}${found.token ? " or more" : ""} not started, the oldest for ${duration(late)}${found.isKnown ? "" : " or longer"}`
      ) : found.isKnown ? (
        "Due tasks start, no backlog"
      ) : (
        <>
          No backlog found so far, among the first <LookedAt found={found} what="tasks" />
        </>
      )}
    </Check>
  );
}

function Failures({ found, count }: { found: Found<TaskPage, ListedTask> | null; count: number }) {
  const listed = found?.entries.length ?? 0;
  const failed = Math.max(count, listed);
  return (
    <Check good={failed ? false : found?.isKnown || null} to={href(["dead-letters"])}>
      {failed ? `${counted(failed, "task")} failed for good` : found?.isKnown ? "No task has failed for good" : "No task found so far that has failed for good"}
    </Check>
  );
}

/** How long ago the most overdue task found was due. */
function overdue(found: Found<TaskPage, ListedTask>): number {
  const due = found.entries.filter((task) => task.state === "scheduled").map((task) => Date.parse(task.due_at));
  return due.length ? now.value - Math.min(...due) : 0;
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
        {waiting ? `${counted(waiting, "task")} of all owners on queues, due` : "Queues are empty of due tasks"}
        {inFlight > 0 && <span class="muted">, {inFlight.toLocaleString("en")} in work</span>}
      </Check>
    </>
  );
}

/** Good, bad, or neutral information. */
function Check({ good, to, children }: { good: boolean | null; to: string; children: ComponentChildren }) {
  const [kind, sign] = good === null ? ["muted", "·"] : good ? ["good", "✓"] : ["bad", "✕"];
  return (
    <li>
      <span class={kind} aria-hidden="true">
        {sign}
      </span>{" "}
      <a href={to}>{children}</a>
    </li>
  );
}

/** Figures of the last ended tasks and of waiting ones. */
function OnTime({ next, ended }: { next: Found<TaskPage, ListedTask> | null; ended: Tasks }) {
  const read = ended.found.value;
  const late = (read?.entries ?? []).flatMap((task) => (task.lateness_ms === null ? [] : [task.lateness_ms])).sort((a, b) => a - b);
  const oldest = next ? overdue(next) : 0;
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
          <dd>{oldest > 0 ? duration(oldest) : next?.isKnown ? "none" : <span class="muted">not known yet</span>}</dd>
        </div>
      </dl>
      <Lateness values={late} />
      {read && read.entries.length > 0 && <p class="muted">Of {read.isKnown ? "the last" : "the first"} {counted(late.length, "task")} {read.isKnown ? "that have ended" : "found that have ended"}.</p>}
      <NoneYet reading={ended} text="No task has succeeded or failed yet." />
      <ReadingLine reading={ended} />
    </section>
  );
}

const STEPS = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, Infinity];

/** A histogram of lateness. */
function Lateness({ values }: { values: readonly number[] }) {
  const counts = STEPS.map((step, index) => values.filter((value) => value < step && value >= (STEPS[index - 1] ?? -Infinity)).length);
  const most = Math.max(1, ...counts);
  return (
    <ol class="histogram" aria-label="How many tasks were how late">
      {STEPS.map((step, index) => (
        <li key={step} title={`${counts[index]} tasks ${step === Infinity ? "10 s or later" : `less than ${duration(step)} late`}`}>
          <i style={{ height: `${((counts[index] ?? 0) / most) * 100}%` }} />
          <small>{step === Infinity ? "more" : `<${duration(step)}`}</small>
        </li>
      ))}
    </ol>
  );
}

function Types({ summary }: { summary: Summary }) {
  return (
    <section class="card">
      <h2>Types</h2>
      <table aria-label="Tasks by type">
        <thead>
          <tr>
            <th scope="col">Type</th>
            <th scope="col" class="number">Tasks</th>
            <th scope="col" class="number">Failed</th>
          </tr>
        </thead>
        <tbody>
          {summary.types.slice(0, 10).map((each) => (
            <tr key={each.type}>
              <td><a href={href(["tasks"], { q: `type:${written(each.type)}` })}>{each.type}</a></td>
              <td class="number">{each.total.toLocaleString("en")}</td>
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

/** Estimated cost of the last ended tasks: of today, or of a day at their rate if today has more; with the estimate's
 * exclusions. */
function Spending({ ended }: { ended: Found<TaskPage, ListedTask> | null }) {
  const tasks = ended?.entries.filter((task) => task.finished_at) ?? [];
  const times = tasks.map((task) => Date.parse(task.finished_at ?? "")).sort((a, b) => a - b);
  const total = tasks.reduce((sum, task) => sum + task.cost_dollars, 0);
  const [first] = times;
  const today = tasks.filter((task) => dayOf(Date.parse(task.finished_at ?? "")) === dayOf(now.value));
  // The page has all of today's tasks if it includes an earlier one, or if it has all tasks.
  const isWhole = ended !== null && ended.isKnown && (today.length < tasks.length || !ended.token);
  // Tasks beyond the page ended earlier, so the page covers its whole span; otherwise the span is at least an hour.
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
      <p class="muted">
        Estimated from the last {counted(tasks.length, "task")} that ended, at their pace and by assumed public prices: their writes and their time in a worker. Requests, messages, logs and an idle deployment are not in it.
      </p>
    </section>
  );
}
