/** One task, with the reason why it waits, its state machine, attempts, events, contents and actions. */
import { useEffect } from "preact/hooks";
import { useLive } from "../api/live";
import { useResource } from "../api/resource";
import type { AttemptPage, StepPage, Task, TaskEventPage, TaskExplanation, TaskPage as ListedTasks } from "../api/types";
import { Attempts } from "../components/attempts";
import { Copy, Facts, ProblemBox, Relative, StateChip, Time, Took } from "../components/basics";
import { Message, PayloadView } from "../components/payload_view";
import { CreateTask } from "../components/create_task";
import { Events } from "../components/events";
import { Lifecycle } from "../components/lifecycle";
import { Logs } from "../components/logs";
import { Steps } from "../components/steps";
import { TaskActions, type KnownChildren } from "../components/task_actions";
import { TaskTable } from "../components/task_table";
import { Why } from "../components/why";
import { dollars } from "../money";
import { href } from "../router";
import { ENDED, tagSearch } from "../search";
import { counted, duration, serverNow } from "../time";

const SHOWN_CHILDREN = 20;

export function TaskPage({ subject: id }: { subject: string }) {
  const path = `/v1/tasks/${encodeURIComponent(id)}`;
  const task = useResource<Task>(path);
  const explanation = useResource<TaskExplanation>(`${path}/explain`);
  const attempts = useResource<AttemptPage>(`${path}/attempts`);
  const events = useResource<TaskEventPage>(`${path}/events`);
  // Few tasks have steps.
  const steps = useResource<StepPage>(explanation.data.value?.steps.length ? `${path}/steps` : null);
  // Few tasks that have not started are named as a parent.
  const children = useResource<ListedTasks>(task.data.value?.attempt ? `/v1/tasks?parent_task_id=${encodeURIComponent(id)}&order=asc&limit=${SHOWN_CHILDREN}` : null);
  const reload = () => [task, explanation, attempts, events, steps, children].forEach((each) => void each.reload());
  useLive(`task:${id}`, ({ version }) => {
    if (version > (task.data.peek()?.version ?? 0)) reload();
  });
  useFollowUp(task.data.value, reload);

  const read = task.data.value;
  // Without a part of the page, the reason is shown; usually, all requests fail for the same reason.
  const problem = [task, explanation, attempts, events, steps, children].map((each) => each.problem.value).find(Boolean);
  if (!read) return task.problem.value ? <ProblemBox problem={task.problem.value} retry={reload} /> : <p class="muted">Loading the task…</p>;
  return (
    <>
      <Head task={read} children={knownOf(children.data.value)} reload={reload} />
      {problem && <ProblemBox problem={problem} retry={reload} />}
      <div class="grid">
        <div class="stack">
          {explanation.data.value && <Why explanation={explanation.data.value} />}
          <Contents task={read} />
        </div>
        <div class="stack">
          <Lifecycle task={read} events={events.data.value?.events ?? []} />
          <About task={read} />
        </div>
        <Attempts task={read} attempts={attempts.data.value?.attempts ?? null} />
        {steps.data.value && <Steps steps={steps.data.value.steps} />}
        {children.data.value && <Children page={children.data.value} />}
        {read.attempt > 0 && <Logs taskId={read.id} createdAt={read.created_at} />}
        <Events events={events.data.value?.events ?? null} dropped={events.data.value?.dropped ?? 0} />
      </div>
    </>
  );
}

/** Between its due time and its end, a task may change without a push, for example when a timer expires. */
function useFollowUp(task: Task | null, reload: () => void): void {
  const next = task && !task.finished_at ? task.next_at : null;
  useEffect(() => {
    const wait = next ? Date.parse(next) - serverNow() + 1500 : -1;
    if (wait < 0 || wait > 60_000) return undefined;
    const timer = setTimeout(reload, wait);
    return () => clearTimeout(timer);
  }, [next]);
}

function knownOf(page: ListedTasks | null): KnownChildren | null {
  if (!page?.tasks.length) return null;
  return { count: page.tasks.length, open: page.tasks.filter((child) => !ENDED.includes(child.state)).length, hasMore: Boolean(page.next_token) };
}

function Head({ task, children, reload }: { task: Task; children: KnownChildren | null; reload: () => void }) {
  return (
    <div class="page-head">
      <div>
        <p class="crumbs">
          <a href={href(["tasks"])}>Tasks</a> <span aria-hidden="true">/</span> <code>{task.id}</code> <Copy text={task.id} label="Copy id" />
        </p>
        <h1>
          {task.name ?? task.type} <StateChip state={task.state} />
        </h1>
        <p class="muted">
          {task.name && <>type {task.type} · </>}due <Time at={task.due_at} /> (<Relative at={task.due_at} />)
        </p>
      </div>
      <div class="actions">
        <TaskActions task={task} done={reload} node={task.topology !== null} children={children} />
        <CreateTask from={task} />
      </div>
    </div>
  );
}

function Contents({ task }: { task: Task }) {
  return (
    <>
      {task.error && (
        <section class="card failed">
          <h2>Error</h2>
          <p>
            <code>{task.error.type}</code> <Message text={task.error.message} />
          </p>
        </section>
      )}
      {task.progress && (
        <section class="card">
          <h2>Progress</h2>
          <progress max={100} value={task.progress.percent} aria-label="Progress" /> {task.progress.percent}% <Message text={task.progress.message} />
        </section>
      )}
      <section class="card">
        <h2>Payload</h2>
        <PayloadView value={task.payload} label="Payload" task={task.id} />
      </section>
      {(task.result !== null || task.state === "succeeded") && (
        <section class="card">
          <h2>Result</h2>
          <PayloadView value={task.result} label="Result" />
        </section>
      )}
    </>
  );
}

/** The first tasks that a task started. */
function Children({ page: { tasks: children, next_token: token } }: { page: ListedTasks }) {
  if (!children.length) return null;
  return (
    <section class="card wide">
      <h2>Children</h2>
      <p class="muted">The {token ? `first ${counted(children.length, "task")}` : counted(children.length, "task")} that this task started.</p>
      <TaskTable tasks={children} label="Children" />
    </section>
  );
}

function LockLink({ lock }: { lock: NonNullable<Task["lock"]> }) {
  return <><a href={href(["locks", lock.key])}>{lock.key}</a>{lock.mode === "shared" && ", shared"}</>;
}

function About({ task }: { task: Task }) {
  const { schedule, topology, lock, order } = task;
  const tags = Object.entries(task.tags);
  return (
    <section class="card">
      <h2>About</h2>
      <Facts
        rows={[
          ["Type", <a href={href(["tasks"], { q: `type:${task.type}` })}>{task.type}</a>],
          ["Due", <Time at={task.due_at} />],
          ["Created", <Time at={task.created_at} />],
          ["Started", <Time at={task.started_at} />],
          ["Finished", <Time at={task.finished_at} />],
          ...(task.kept_until ? ([["Kept until", <Time at={task.kept_until} />]] as const) : []),
          ["Late", <Took ms={task.lateness_ms} />],
          ["Cost", `${dollars(task.cost_dollars)} so far, estimated by assumed public prices`],
          ["Priority", task.priority],
          ["Target", target(task)],
          ["Time limit", `${task.timeout_seconds} s an attempt`],
          ["Retries", `${counted(task.retry.max_attempts, "attempt")}, waits up to ${task.retry.initial_seconds} s, ×${task.retry.multiplier}, at most ${task.retry.max_seconds} s`],
          ...(schedule ? ([["Schedule", <a href={href(["schedules", schedule.name])}>{schedule.name}</a>]] as const) : []),
          ...(task.after?.length ? ([["After", <After task={task} />]] as const) : []),
          ...(task.parent_task_id ? ([["Parent", <a href={href(["tasks", task.parent_task_id])}>{task.parent_task_id}</a>]] as const) : []),
          ...(task.group ? ([["Group", <a href={href(["groups", task.group.id])}>{task.group.id}</a>]] as const) : []),
          ...(task.completes_group ? ([["After the group", <a href={href(["groups", task.completes_group])}>{task.completes_group}</a>]] as const) : []),
          ...(topology ? ([["Topology", <a href={href(["topologies", topology.id], { node: topology.node })}>node {topology.node}</a>]] as const) : []),
          ...(task.target.kind === "topology" ? ([["Graph", <a href={href(["topologies", task.id])}>its nodes</a>]] as const) : []),
          ...(task.fair_key ? ([["Fair key", `${task.fair_key}${task.fair_weight ? `, weight ${task.fair_weight}` : ""}`]] as const) : []),
          ...(lock ? ([["Lock", <LockLink lock={lock} />]] as const) : []),
          ...(task.locks ? ([["Locks", task.locks.map((each) => <div key={each.key}><LockLink lock={each} /></div>)]] as const) : []),
          ...(order ? ([["Ordered key", `${order.key}${order.on_failure === "stop" ? ", stops on failure" : ""}`]] as const) : []),
          ...(task.rate ? ([["Rate", <><a href={href(["rates", task.rate.key])}>{task.rate.key}</a>: {often(task.rate)}</>]] as const) : []),
          ...(task.expires_at ? ([["Expires", <><Time at={task.expires_at} /> if it has not started</>]] as const) : []),
          ...(task.callback_url ? ([["Callback", <code>{task.callback_url}</code>]] as const) : []),
          ...(task.notify_on ? ([["Notices", notices(task.notify_on)]] as const) : []),
          ...(task.lease ? ([["Worker", task.lease.worker]] as const) : []),
          ...(tags.length ? ([["Tags", tags.map(([key, value]) => <a key={key} class="tag" href={href(["tasks"], { q: tagSearch(key, value) })}>{key}:{value}</a>)]] as const) : []),
          ["Version", String(task.version)],
        ]}
      />
    </section>
  );
}

function often({ limit, per_seconds: seconds, burst }: { limit: number; per_seconds: number; burst: number }): string {
  return `${limit} starts in ${seconds} s${burst ? `, ${burst} more at once` : ""}`;
}

function notices({ to, failed, late_seconds: late, running_seconds: running }: NonNullable<Task["notify_on"]>) {
  const of = [failed && "a failure for good", late !== null && `a start ${duration(late * 1000)} late`, running !== null && `an attempt of more than ${duration(running * 1000)}`].filter(Boolean).join(" and ");
  return (
    <>
      of {of} to <code>{to}</code>
    </>
  );
}

function target({ target }: Task): string {
  if (target.kind === "http") return `${target.kind} ${target.url}`;
  if (target.kind === "wait_for_event") {
    const key = target.key ? ` with the key ${target.key}` : "";
    return `${target.kind} ${target.event}${key}${target.when ? `, when ${target.when}` : ""}`;
  }
  if ("arn" in target) return `${target.kind} ${target.arn}`;
  return target.kind;
}

/** The tasks that this task waits for or has waited for. */
function After({ task }: { task: Task }) {
  return (
    <>
      {task.after?.map((each) => {
        const id = typeof each === "string" ? each : each.task_id;
        const name = typeof each === "string" ? each : `${each.schedule} at ${each.occurrence}`;
        const link = id ? href(["tasks", id]) : href(["schedules", typeof each === "string" ? "" : each.schedule]);
        return <a key={name} class="tag" href={link}>{name}</a>;
      })}{" "}
      {task.trigger_rule !== "all_success" && task.trigger_rule}
    </>
  );
}
