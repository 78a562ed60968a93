/** The attempts of a task as a waterfall: waits and runs on one time axis, with the next retry. */
import type { Attempt, Task } from "../api/types";
import { dollars } from "../money";
import { duration, now } from "../time";
import { Relative, StateChip, Time, Took } from "./basics";
import { Message } from "./payload_view";

interface Bar {
  attempt: Attempt | null;
  start: number;
  end: number;
  label: string;
  kind: string;
}

/** The run number of each attempt; when a task is run again, its attempts are numbered from one again. */
function runsOf(attempts: readonly Attempt[]): number[] {
  let run = 1;
  return attempts.map((attempt, index) => {
    if (attempt.attempt <= (attempts[index - 1]?.attempt ?? 0)) run += 1;
    return run;
  });
}

function bars(task: Task, attempts: readonly Attempt[]): Bar[] {
  const runs = runsOf(attempts);
  const labelOf = (attempt: number, run: number) => ((runs.at(-1) ?? 1) > 1 || run > 1 ? `Run ${run}, attempt ${attempt}` : `Attempt ${attempt}`);
  // An attempt whose number is not higher than the previous one begins another run.
  const nextRun = (runs.at(-1) ?? 1) + (task.attempt <= (attempts.at(-1)?.attempt ?? 0) ? 1 : 0);
  const made: Bar[] = attempts.map((attempt, index) => {
    const start = Date.parse(attempt.started_at ?? attempt.planned_at ?? task.due_at);
    return { attempt, start, end: start + (attempt.duration_ms ?? 0), label: labelOf(attempt.attempt, runs[index] ?? 1), kind: attempt.outcome };
  });
  const isRunning = ["preparing", "running", "rolling_back"].includes(task.state);
  const last = made.at(-1)?.end ?? Date.parse(task.started_at ?? task.due_at);
  if (isRunning) made.push({ attempt: null, start: last, end: now.value, label: labelOf(task.attempt, nextRun), kind: "running" });
  if (task.state === "waiting" && task.next_at && !task.waiting_for) {
    const next = Date.parse(task.next_at);
    made.push({ attempt: null, start: next, end: next, label: labelOf(task.attempt + 1, runs.at(-1) ?? 1), kind: "planned" });
  }
  return made;
}

export function Attempts({ task, attempts }: { task: Task; attempts: readonly Attempt[] | null }) {
  if (!attempts) return null;
  const rows = bars(task, attempts);
  const start = Math.min(...rows.map((row) => row.start));
  const span = Math.max(1, Math.max(...rows.map((row) => row.end)) - start);
  const cost = attempts.reduce((sum, attempt) => sum + (attempt.cost_dollars ?? 0), 0);
  return (
    <section class="card wide">
      <h2>
        Attempts <span class="muted">{task.attempt} of {task.retry.max_attempts}</span>
        {cost > 0 && <span class="muted" title="Estimated, by assumed public prices"> · {dollars(cost)}</span>}
      </h2>
      {rows.length === 0 && <p class="muted">No attempts yet. The first is planned for <Time at={task.next_at ?? task.due_at} />.</p>}
      <ol class="waterfall">
        {rows.map((row) => (
          <li key={`${row.label}-${row.attempt?.fence ?? row.kind}`}>
            <span class="attempt-name">{row.label}</span>
            <span class="track" aria-hidden="true">
              <i
                class={`bar-${row.kind}`}
                style={{ left: `${((row.start - start) / span) * 100}%`, width: `${Math.max(0.6, ((row.end - row.start) / span) * 100)}%` }}
              />
            </span>
            <span class="attempt-facts">
              {row.attempt ? <StateChip state={row.attempt.outcome} /> : <StateChip state={row.kind === "planned" ? "waiting" : task.state} />}{" "}
              {row.kind === "planned" ? <Relative at={task.next_at} /> : row.attempt ? <Took ms={row.attempt.duration_ms} /> : duration(row.end - row.start)}
            </span>
            {row.attempt && <Details attempt={row.attempt} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Details({ attempt }: { attempt: Attempt }) {
  return (
    <div class="attempt-details">
      <span class="muted">
        {attempt.worker ?? "worker unknown"} · {attempt.function_version && <>version {attempt.function_version} · </>}<Time at={attempt.started_at} /> · late <Took ms={attempt.lateness_ms} /> · fence {attempt.fence}
      </span>
      {attempt.error && (
        <p>
          <code>{attempt.error.type}</code> <Message text={attempt.error.message} />
        </p>
      )}
      {attempt.error?.traceback && (
        <details>
          <summary>Traceback</summary>
          <pre tabIndex={0} aria-label="Traceback"><Message text={attempt.error.traceback} /></pre>
        </details>
      )}
    </div>
  );
}
