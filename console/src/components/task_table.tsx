/** A table of tasks. On a narrow screen, each row is a card. */
import { useComputed, type ReadonlySignal, type Signal } from "@preact/signals";
import type { VNode } from "preact";
import { memo } from "preact/compat";
import { hiddenText } from "../api/codec";
import type { WatchedTask } from "../api/live";
import type { TaskSummary } from "../api/types";
import { href } from "../router";
import { dollars } from "../money";
import { tagSearch } from "../search";
import { zoneLabel } from "../time";
import { Relative, StateChip, Time, Took } from "./basics";

/** The columns that can be chosen, with their titles. */
export const COLUMNS = {
  due: "Due",
  late: "Late",
  finished: "Finished",
  created: "Created",
  attempt: "Attempt",
  cost: "Cost",
  note: "Note",
} as const;
type Column = keyof typeof COLUMNS;

const NUMBERS = new Set<Column>(["late", "attempt", "cost"]);
const TIMES = new Set<Column>(["due", "finished", "created"]);

interface TaskTableProps {
  tasks: readonly TaskSummary[];
  label: string;
  shown?: readonly string[];
  /** The ids of selected tasks; if this is given, rows can be selected. */
  selected?: Signal<ReadonlySet<string>>;
}

const DEFAULT = ["due", "late", "attempt", "note"];

export function TaskTable({ tasks, label, shown = DEFAULT, selected }: TaskTableProps) {
  const columns = (Object.keys(COLUMNS) as Column[]).filter((each) => shown.includes(each));
  const ids = tasks.map((task) => task.id);
  const isAll = selected !== undefined && ids.length > 0 && ids.every((id) => selected.value.has(id));
  return (
    <table class="tasks" aria-label={label}>
      <thead>
        <tr>
          {selected && (
            <th scope="col" class="col-select">
              <input type="checkbox" aria-label="Select all rows" checked={isAll} onChange={() => (selected.value = new Set(isAll ? [] : ids))} />
            </th>
          )}
          <th scope="col" class="col-state">State</th>
          <th scope="col">Task</th>
          {columns.map((each) => (
            <th key={each} scope="col" class={`col-${TIMES.has(each) ? "time" : each}${NUMBERS.has(each) ? " number" : ""}`} title={each === "cost" ? "Estimated cost so far, by assumed public prices" : undefined}>
              {COLUMNS[each]}
              {TIMES.has(each) && ` (${zoneLabel()})`}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <Row key={task.id} task={task} columns={columns.join()} isSelected={selected?.value.has(task.id)} select={selected && toggle(selected)} />
        ))}
      </tbody>
    </table>
  );
}

const toggles = new WeakMap<Signal<ReadonlySet<string>>, (id: string) => void>();

/** The function that selects or deselects a row. It never changes, so unchanged rows are not redrawn. */
function toggle(selected: Signal<ReadonlySet<string>>): (id: string) => void {
  const known = toggles.get(selected);
  if (known) return known;
  const made = (id: string) => {
    const next = new Set(selected.peek());
    if (!next.delete(id)) next.add(id);
    selected.value = next;
  };
  toggles.set(selected, made);
  return made;
}

/** A short explanation of a task's state. */
function note(task: TaskSummary): string {
  if (task.error && task.state !== "succeeded") return hiddenText(`${task.error.type}: ${task.error.message}`);
  if (task.waiting_for) return task.waiting_for.text;
  if (task.requested_action) return `asked to ${task.requested_action}`;
  if (task.progress && task.state === "running") return hiddenText(`${task.progress.percent}% ${task.progress.message}`);
  if (task.topology?.reason) return task.topology.reason.replaceAll("_", " ");
  return "";
}

interface RowProps {
  task: TaskSummary;
  columns: string;
  isSelected: boolean | undefined;
  select: ((id: string) => void) | undefined;
}

const Row = memo(({ task, columns, isSelected, select }: RowProps) => (
  <tr data-row={task.id}>
    {select && (
      <td class="cell-select">
        <input type="checkbox" aria-label={`Select ${task.name ?? task.id}`} checked={isSelected} onChange={() => select(task.id)} />
      </td>
    )}
    <td class="cell-state">
      <StateChip state={task.state} />
    </td>
    <td class="cell-task">
      <a href={href(["tasks", task.id])} title={task.id} data-open>
        <span class="type">{task.type}</span> {task.name && <span class="name">{task.name}</span>}
      </a>
      {Object.entries(task.tags).map(([key, value]) => (
        <a key={key} class="tag" href={href(["tasks"], { q: tagSearch(key, value) })}>
          {key}:{value}
        </a>
      ))}
    </td>
    {(columns.split(",") as Column[]).map((each) => CELLS[each]?.(task))}
  </tr>
));

const timeCell = (kind: string, at: string | null) => (
  <td key={kind} class={`cell-due cell-${kind}`} data-label={COLUMNS[kind as Column]}>
    <Time at={at} short /> <Relative at={at} />
  </td>
);

const CELLS: Record<Column, (task: TaskSummary) => VNode> = {
  due: (task) => timeCell("due", task.due_at),
  finished: (task) => timeCell("finished", task.finished_at),
  created: (task) => timeCell("created", task.created_at),
  late: (task) => (
    <td key="late" class="number cell-late">
      <Took ms={task.lateness_ms} />
    </td>
  ),
  attempt: (task) => (
    <td key="attempt" class="number cell-attempt">
      {task.attempt}
      <span class="muted">/{task.retry.max_attempts}</span>
    </td>
  ),
  cost: (task) => (
    <td key="cost" class="number cell-cost" title={`Estimated: $${task.cost_dollars}`}>
      {dollars(task.cost_dollars)}
    </td>
  ),
  note: (task) => (
    <td key="note" class="cell-note" title={note(task)}>
      {note(task)}
    </td>
  ),
};

/** A listed task with its pushed changes; fields that are not pushed are updated by the next reading. */
function merged(task: TaskSummary, pushed: WatchedTask): TaskSummary {
  const { state, due_at, started_at, finished_at, attempt, tags, name, version } = pushed;
  const progress = pushed.progress as TaskSummary["progress"];
  const waiting_for = state === task.state ? task.waiting_for : null;
  const requested_action = state === task.state ? task.requested_action : null;
  return { ...task, state, due_at, started_at, finished_at, attempt, tags, name, version, progress, waiting_for, requested_action, error: pushed.error };
}

/** Updates a list of tasks with pushed changes, which are the newest versions by id, or null for a deleted task. */
export function useNewest(read: ReadonlySignal<readonly TaskSummary[] | null>, pushed: ReadonlySignal<Map<string, WatchedTask | null>>) {
  return useComputed(() =>
    (read.value ?? []).flatMap((task) => {
      const newer = pushed.value.get(task.id);
      if (newer === null) return [];
      return newer && newer.version > task.version ? [merged(task, newer)] : [task];
    }),
  );
}
