/** A task's life, drawn as a state machine with past and current states. */
import type { Task, TaskHistoryEvent, TaskState } from "../api/types";

const WIDTH = 92;
const HEIGHT = 30;

/** The position of each state, as column and row. */
const PLACES: Record<TaskState, [number, number]> = {
  blocked: [0, 0],
  scheduled: [0, 1],
  paused: [0, 2],
  preparing: [1, 0],
  running: [1, 1],
  waiting: [1, 2],
  succeeded: [2, 0],
  failed: [2, 1],
  cancelled: [2, 2],
  rolling_back: [3, 0],
  rolled_back: [3, 1],
};

const MOVES: readonly (readonly [TaskState, TaskState])[] = [
  ["blocked", "scheduled"],
  ["scheduled", "running"],
  ["scheduled", "preparing"],
  ["scheduled", "paused"],
  ["preparing", "running"],
  ["running", "waiting"],
  ["running", "succeeded"],
  ["running", "failed"],
  ["waiting", "cancelled"],
  ["failed", "rolling_back"],
  ["rolling_back", "rolled_back"],
];

const STEP_X = 128;
const STEP_Y = 48;
const at = (state: TaskState): [number, number] => [PLACES[state][0] * STEP_X + 4, PLACES[state][1] * STEP_Y + 4];

/** The past states of a task, from its record and events. */
function visited(task: Task, events: readonly TaskHistoryEvent[]): Set<TaskState> {
  const isDependent = task.topology !== null || Boolean(task.after?.length);
  const been = new Set<TaskState>([task.state, isDependent ? "blocked" : "scheduled"]);
  // A task may be cancelled or paused while it is blocked.
  if (isDependent && (task.attempt > 0 || !["blocked", "cancelled", "paused"].includes(task.state))) been.add("scheduled");
  for (const event of events) {
    if (event.type === "attempt_started" || event.outcome) been.add("running");
    if (event.outcome === "retried" || event.outcome === "lost") been.add("waiting");
    if (event.type === "paused" || event.outcome === "paused") been.add("paused");
    if (event.type === "retried") been.add("failed");
    if (event.type === "rollback_requested") been.add("rolling_back");
    if (event.state) been.add(event.state);
  }
  if (task.attempt > 0) been.add("running");
  if (been.has("rolled_back")) been.add("rolling_back");
  return been;
}

export function Lifecycle({ task, events }: { task: Task; events: readonly TaskHistoryEvent[] }) {
  const been = visited(task, events);
  const states = Object.keys(PLACES) as TaskState[];
  const path = states.filter((state) => been.has(state)).join(", ");
  return (
    <section class="card">
      <h2>Life</h2>
      <svg class="lifecycle" viewBox="0 0 484 136" role="img" aria-label={`Now ${task.state}. States so far: ${path}.`}>
        {MOVES.map(([from, to]) => (
          <path key={`${from}-${to}`} d={line(from, to)} class={been.has(from) && been.has(to) ? "move been" : "move"} />
        ))}
        {states.map((state) => {
          const [x, y] = at(state);
          const kind = state === task.state ? "now" : been.has(state) ? "been" : "";
          return (
            <g key={state} class={`node state-${state} ${kind}`}>
              <rect x={x} y={y} width={WIDTH} height={HEIGHT} rx={8} />
              <text x={x + WIDTH / 2} y={y + HEIGHT / 2 + 4}>
                {state.replaceAll("_", " ")}
              </text>
            </g>
          );
        })}
      </svg>
    </section>
  );
}

function line(from: TaskState, to: TaskState): string {
  const [x1, y1] = at(from);
  const [x2, y2] = at(to);
  if (x1 === x2) {
    const down = y2 > y1;
    return `M${x1 + WIDTH / 2},${down ? y1 + HEIGHT : y1} V${down ? y2 : y2 + HEIGHT}`;
  }
  const middle = (x1 + WIDTH + x2) / 2;
  return `M${x1 + WIDTH},${y1 + HEIGHT / 2} C${middle},${y1 + HEIGHT / 2} ${middle},${y2 + HEIGHT / 2} ${x2},${y2 + HEIGHT / 2}`;
}
