/** A table of tasks. On a narrow screen each row is a card. */
import { useComputed, type ReadonlySignal } from "@preact/signals";
import { memo } from "preact/compat";
import type { WatchedTask } from "../api/live";
import type { TaskSummary } from "../api/types";
import { href } from "../router";
import { dollars } from "../money";
import { zoneLabel } from "../time";
import { Relative, StateChip, Time, Took } from "./basics";

export function TaskTable({ tasks, label }: { tasks: readonly TaskSummary[]; label: string }) {
  return (
    <table class="tasks" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Task</th>
          <th scope="col">Due ({zoneLabel()})</th>
          <th scope="col" class="number">Late</th>
          <th scope="col" class="number">Attempt</th>
          <th scope="col" class="number" title="Estimated cost so far, by assumed public prices">Cost</th>
          <th scope="col">Note</th>
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <Row key={task.id} task={task} />
        ))}
      </tbody>
    </table>
  );
}

/** A short explanation of its state. */
function note(task: TaskSummary): string {
  if (task.error && task.state !== "succeeded") return `${task.error.type}: ${task.error.message}`;
  if (task.waiting_for) return task.waiting_for.text;
  if (task.requested_action) return `asked to ${task.requested_action}`;
  if (task.progress && task.state === "running") return `${task.progress.percent}% ${task.progress.message}`;
  if (task.topology?.reason) return task.topology.reason.replaceAll("_", " ");
  return "";
}

const Row = memo(({ task }: { task: TaskSummary }) => (
  <tr data-row={task.id}>
    <td class="cell-state">
      <StateChip state={task.state} />
    </td>
    <td class="cell-task">
      <a href={href(["tasks", task.id])} title={task.id} data-open>
        <span class="type">{task.type}</span> {task.name && <span class="name">{task.name}</span>}
      </a>
      {Object.entries(task.tags).map(([key, value]) => (
        <a key={key} class="tag" href={href(["tasks"], { q: `tag:${key}:${value}` })}>
          {key}:{value}
        </a>
      ))}
    </td>
    <td class="cell-due">
      <Time at={task.due_at} short /> <Relative at={task.due_at} />
    </td>
    <td class="number cell-late">
      <Took ms={task.lateness_ms} />
    </td>
    <td class="number cell-attempt">
      {task.attempt}
      <span class="muted">/{task.retry.max_attempts}</span>
    </td>
    <td class="number cell-cost" title={`Estimated: $${task.cost_dollars}`}>
      {dollars(task.cost_dollars)}
    </td>
    <td class="cell-note" title={note(task)}>
      {note(task)}
    </td>
  </tr>
));

/** A listed task merged with pushed changes; fields that are not pushed are updated with the next reading. */
function merged(task: TaskSummary, pushed: WatchedTask): TaskSummary {
  const { state, due_at, started_at, finished_at, attempt, tags, name, version } = pushed;
  const progress = pushed.progress as TaskSummary["progress"];
  const waiting_for = state === task.state ? task.waiting_for : null;
  const requested_action = state === task.state ? task.requested_action : null;
  return { ...task, state, due_at, started_at, finished_at, attempt, tags, name, version, progress, waiting_for, requested_action, error: pushed.error };
}

/** Updates a list of tasks with pushed changes: the newest version by id; null for a deleted task. */
export function useNewest(read: ReadonlySignal<readonly TaskSummary[] | null>, pushed: ReadonlySignal<Map<string, WatchedTask | null>>) {
  return useComputed(() =>
    (read.value ?? []).flatMap((task) => {
      const newer = pushed.value.get(task.id);
      if (newer === null) return [];
      return newer && newer.version > task.version ? [merged(task, newer)] : [task];
    }),
  );
}
