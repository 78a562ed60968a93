/** Explains why a task waits or where its time went, gate by gate, and why a schedule ran or did not. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import { hiddenText } from "../api/codec";
import { useResource } from "../api/resource";
import type { Gate, ScheduleExplanation, TaskExplanation } from "../api/types";
import { href } from "../router";
import { ENDED } from "../search";
import { duration, inZone, isoWithOffset, typedTime, zoneName } from "../time";
import { ProblemBox, Relative, Time } from "./basics";
import { Message } from "./payload_view";

const MARKS: Record<Gate["state"], string> = { passed: "✓", waiting: "●", ahead: "○", unknown: "?" };

export function Why({ explanation }: { explanation: TaskExplanation }) {
  // The time before the due time and between two runs is not a delay, and would dwarf the other parts.
  const lengthOf = (gate: Gate) => (gate.name === "ended" || (gate.name === "due" && gate.state === "passed") ? 0 : (gate.duration_ms ?? 0));
  const longest = Math.max(1, ...explanation.gates.map(lengthOf));
  const isOpen = explanation.gates.some((gate) => gate.state === "waiting");
  return (
    <section class={`card why ${isOpen ? "open" : ""}`} aria-label="Why">
      <h2>{isOpen ? "Why it waits" : "Where its time went"}</h2>
      <p class="answer"><Message text={inZone(explanation.text)} /></p>
      {explanation.steps.length > 0 && <p>Steps done: {explanation.steps.join(", ")}.{!ENDED.includes(explanation.state) && " The next attempt does not repeat them."}</p>}
      <ol class="gates">
        {explanation.gates.map((gate, index) => (
          <li key={`${gate.name}-${index}`} class={`gate gate-${gate.state}`}>
            <span class="mark" title={gate.state}>
              {MARKS[gate.state]}
            </span>
            <span class="gate-name">{gate.name.replaceAll("_", " ")}</span>
            <span class="gate-text">
              {/* The text above already says what the task waits for. */}
              {!(gate.state === "waiting" && explanation.text.startsWith(gate.text)) && hiddenText(inZone(gate.text))} <WaitsFor gate={gate} />
              {gate.state === "waiting" && gate.until && (
                <span class="muted">
                  {" "}
                  until <Time at={gate.until} /> (<Relative at={gate.until} />)
                </span>
              )}
            </span>
            <span class="number">{gate.duration_ms === null ? "" : duration(gate.duration_ms)}</span>
            <span class="bar" aria-hidden="true">
              <i style={{ width: `${(lengthOf(gate) / longest) * 100}%` }} />
            </span>
          </li>
        ))}
      </ol>
      <p class="muted">
        As of <Time at={explanation.as_of} />; {duration(explanation.total_ms)} in all, {duration(explanation.overdue_ms)} of which are after the due time.
      </p>
    </section>
  );
}

/** Links to the resources that hold a task back. */
function WaitsFor({ gate: { waits_for: waits } }: { gate: Gate }) {
  if (!waits) return null;
  return (
    <>
      {waits.lock && <a href={href(["locks", waits.lock.key])}>lock {waits.lock.key}</a>}
      {waits.rate && <a href={href(["rates", waits.rate.key])}>rate {waits.rate.key}</a>}
      {waits.switch && <a href={href(["switches"])}>switch {waits.switch.name}</a>}
      {waits.schedule && <a href={href(["schedules", waits.schedule.name])}>schedule {waits.schedule.name}</a>}
      {(waits.tasks ?? waits.order?.tasks)?.slice(0, 5).map((task) => (
        <a key={task.task_id} href={href(["tasks", task.task_id])}>
          {task.node ?? task.task_id}{" "}
        </a>
      ))}
      {waits.lock?.holders.slice(0, 5).map((task) => (
        <span key={task.task_id}>
          {" "}
          held by <a href={href(["tasks", task.task_id])}>{task.task_id}</a>
        </span>
      ))}
    </>
  );
}

/** The outcome of a schedule's latest or requested occurrence. */
export function ScheduleWhy({ name, path }: { name: string; path: string }) {
  const typed = useSignal("");
  const at = useSignal("");
  const found = useResource<ScheduleExplanation>(`${path}/explain${at.value ? `?at=${encodeURIComponent(at.value)}` : ""}`);
  const answer = found.data.value;
  return (
    <section class="card wide why" aria-label="Why">
      <h2>Why it ran, or did not</h2>
      {found.problem.value && <ProblemBox problem={found.problem.value} retry={() => void found.reload()} />}
      {answer && !found.problem.value && (
        <p class="answer" aria-live="polite">
          <Time at={answer.scheduled_at ?? answer.at} />: <strong>{answer.outcome.replaceAll("_", " ")}</strong>. <Message text={inZone(answer.text)} />
        </p>
      )}
      {answer?.task_id && (
        <p>
          <a href={href(["tasks", answer.task_id])}>Its task</a>
        </p>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const local = typedTime(typed.value.trim());
          at.value = local === null ? typed.value.trim() : isoWithOffset(local);
        }}
      >
        <label>
          At another time{" "}
          <input size={26} placeholder="02:00 or 2026-11-21T02:00" value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} />
        </label>
        <span class="muted">{zoneName.value}</span>
        <button type="submit">Explain</button>
        <code class="muted">{command("why", "--schedule", name, ...(at.value ? ["--at", at.value] : []))}</code>
      </form>
    </section>
  );
}
