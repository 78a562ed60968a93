/** Two tasks side by side, with the differences in their times, outcomes, payloads and results. */
import type { ComponentChildren } from "preact";
import { hiddenText } from "../api/codec";
import { useResource } from "../api/resource";
import { bytesOf } from "../api/uploads";
import type { Task } from "../api/types";
import { ProblemBox, StateChip, Time, Took } from "../components/basics";
import { Difference } from "../components/create_task_form";
import { dollars } from "../money";
import { href, usePlace } from "../router";

type Row = [name: string, of: (task: Task) => ComponentChildren, key: (task: Task) => unknown];

const ran = ({ started_at: start, finished_at: end }: Task): number | null => (start && end ? Date.parse(end) - Date.parse(start) : null);

const ROWS: readonly Row[] = [
  ["State", (task) => <StateChip state={task.state} />, (task) => task.state],
  ["Type", (task) => task.type, (task) => task.type],
  ["Name", (task) => task.name ?? "–", (task) => task.name],
  ["Due", (task) => <Time at={task.due_at} />, (task) => task.due_at],
  ["Started", (task) => <Time at={task.started_at} />, (task) => task.started_at],
  ["Finished", (task) => <Time at={task.finished_at} />, (task) => task.finished_at],
  ["Late", (task) => <Took ms={task.lateness_ms} />, (task) => task.lateness_ms],
  ["From start to end", (task) => <Took ms={ran(task)} />, ran],
  ["Attempts", (task) => `${task.attempt} of ${task.retry.max_attempts}`, (task) => task.attempt],
  ["Priority", (task) => task.priority, (task) => task.priority],
  ["Error", (task) => (task.error ? hiddenText(`${task.error.type}: ${task.error.message}`) : "–"), (task) => task.error],
  ["Cost", (task) => dollars(task.cost_dollars), (task) => task.cost_dollars],
];

/** A value as text, without the address of uploaded bytes, which is signed anew for each reading. */
const text = (value: unknown): string => JSON.stringify(bytesOf(value)?.url === undefined ? (value ?? null) : { $binary: { ...bytesOf(value), url: undefined } }, null, 2);

export function Compare() {
  const { query } = usePlace("tasks", "compare");
  const ids = [query.get("a") ?? "", query.get("b") ?? ""];
  const resources = ids.map((id) => useResource<Task>(`/v1/tasks/${encodeURIComponent(id)}`));
  const [a, b] = resources.map((each) => each.data.value);
  const fault = resources.map((each) => each.problem.value).find(Boolean);
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["tasks"])}>Tasks</a>
          </p>
          <h1>Compare two tasks</h1>
        </div>
      </div>
      {fault && <ProblemBox problem={fault} />}
      {a && b ? <Comparison a={a} b={b} /> : !fault && <p class="muted">Loading…</p>}
    </>
  );
}

function Comparison({ a, b }: { a: Task; b: Task }) {
  return (
    <>
      <table class="compare" aria-label="Comparison">
        <thead>
          <tr>
            <th scope="col"><span class="visually-hidden">Field</span></th>
            {[a, b].map((task) => (
              <th key={task.id} scope="col"><a href={href(["tasks", task.id])}>{task.id}</a></th>
            ))}
          </tr>
        </thead>
        <tbody>
          {ROWS.map(([name, of, key]) => (
            <tr key={name} class={text(key(a)) === text(key(b)) ? "" : "differs"}>
              <th scope="row">{name}</th>
              <td>{of(a)}</td>
              <td>{of(b)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {(["payload", "result"] as const).map((name) => (
        <section key={name} class="card">
          <h2>{name === "payload" ? "Payload" : "Result"}</h2>
          {text(a[name]) === text(b[name]) ? <p class="muted">{bytesOf(a[name])?.url === undefined ? "The same." : "Uploaded bytes of the same size and type, which are not compared."}</p> : <Difference before={text(a[name])} after={text(b[name])} label={`Lines of the ${name} that differ`} />}
        </section>
      ))}
    </>
  );
}
