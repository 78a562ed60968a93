/** The workers that currently hold leases, with their tasks. */
import { useReading } from "../api/reading";
import { useResource } from "../api/resource";
import type { DeploymentSettings, ListedTask, TaskPage, TaskState, TaskSummary } from "../api/types";
import { Command, Empty, Pager, ProblemBox, Relative, StateChip, Time } from "../components/basics";
import { DispatchCard } from "../components/dispatch";
import { NoneFound, ReadingLine, Rows } from "../components/reading";
import { href, usePlace } from "../router";
import { counted } from "../time";

const LIMIT = 100;
const LEASED: readonly TaskState[] = ["running", "preparing", "rolling_back"];

export function Workers() {
  const token = usePlace("workers").query.get("page") ?? "";
  const asked = new URLSearchParams([...LEASED.map((state) => ["state", state]), ["limit", String(LIMIT)], ...(token ? [["next_token", token]] : [])]);
  const page = useReading<TaskPage, ListedTask>(`/v1/tasks?${asked}`, { entries: (each) => each.tasks, enough: LIMIT });
  const settings = useResource<DeploymentSettings>("/v1/settings");
  const read = page.found.value;
  const leased = (read?.entries ?? []).filter((task) => task.lease);
  const workers = byWorker(leased);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Workers</h1>
          <p class="muted">The workers that run your tasks now. A worker is listed while it holds a lease; an idle worker is unknown to the API.</p>
        </div>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title={token ? "No more tasks are running" : "No task is running"}>
        <p>Tasks with a Python handler run in the worker function; types that the deployment declares as pulled are run by your own workers:</p>
        <Command text="duetime worker run jobs:worker" />
      </NoneFound>
      {read?.isKnown && read.entries.length > 0 && workers.length === 0 && <Empty title="No task holds a lease"><p>Running tasks wait for a notification of their outcome.</p></Empty>}
      <Rows reading={page}>
        {workers.map(([worker, tasks]) => (
          <Worker key={worker} worker={worker} tasks={tasks} />
        ))}
      </Rows>
      <ReadingLine reading={page} />
      <Pager token={read?.isKnown ? read.token : null} />
      {settings.data.value && <Pulled settings={settings.data.value} />}
      <DispatchCard />
    </>
  );
}

/** Tasks by worker, busiest first. */
function byWorker(tasks: readonly TaskSummary[]): [string, TaskSummary[]][] {
  const found = new Map<string, TaskSummary[]>();
  for (const task of tasks) {
    const worker = task.lease?.worker ?? "";
    found.set(worker, [...(found.get(worker) ?? []), task]);
  }
  return [...found].sort((a, b) => b[1].length - a[1].length);
}

function Worker({ worker, tasks }: { worker: string; tasks: readonly TaskSummary[] }) {
  return (
    <section class="card worker">
      <h2>
        <code>{worker || "worker unknown"}</code> <span class="muted">{counted(tasks.length, "task")}</span>
      </h2>
      <table class="cards" aria-label={`Tasks of ${worker}`}>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Task</th>
            <th scope="col">Attempt</th>
            <th scope="col">Started</th>
            <th scope="col">Lease ends</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={task.id} data-row={task.id}>
              <td>
                <StateChip state={task.state} />
              </td>
              <td>
                <a href={href(["tasks", task.id])} data-open>
                  {task.type}
                </a>{" "}
                <span class="muted">{task.name}</span> {task.progress && <span class="muted">{task.progress.percent}%</span>}
              </td>
              <td data-label="Attempt">
                {task.attempt} of {task.retry.max_attempts}
              </td>
              <td data-label="Started">
                <Time at={task.started_at} /> <Relative at={task.started_at} />
              </td>
              <td data-label="Lease ends">
                <Relative at={task.lease?.expires_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Pulled({ settings }: { settings: DeploymentSettings }) {
  if (!settings.pulled_types.length) return null;
  return (
    <section class="card worker">
      <h2>Types for your own workers</h2>
      <ul>
        {settings.pulled_types.map((each) => (
          <li key={each.type}>
            <code>{each.type}</code> <span class="muted">{each.may_lease ? "you may lease its tasks" : "you may not lease its tasks"}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
