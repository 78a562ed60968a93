/** One rate, with its limit, use and waiting tasks in order, and the actions pause, reset and pin. */
import { useSignal } from "@preact/signals";
import { command, type Call } from "../api/client";
import { useResource } from "../api/resource";
import type { Rate } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { Facts, Field, ProblemBox, Relative, Time } from "../components/basics";
import { TaskLink, useTasks } from "../components/task_names";
import { href } from "../router";
import { often, RateState } from "./limits";

export function RateDetail({ subject: key }: { subject: string }) {
  const path = `/v1/rates/${encodeURIComponent(key)}`;
  const rate = useResource<Rate>(path);
  const action = useSignal<Action | null>(null);
  const limit = useSignal("10");
  const seconds = useSignal("1");
  const tasks = useTasks((rate.data.value?.waiters ?? []).map((each) => each.task_id));
  const reload = () => void rate.reload();
  const read = rate.data.value;
  if (!read) return rate.problem.value ? <ProblemBox problem={rate.problem.value} retry={reload} /> : <p class="muted">Loading the rate…</p>;
  const simple = (verb: string, text: string): Action => ({
    title: `${verb} the rate ${read.key}`,
    text,
    verb,
    reason: true,
    call: (reason): Call => ({ method: "POST", path: `${path}/${verb.toLowerCase()}`, body: { reason }, command: command("rates", verb.toLowerCase(), read.key, ...(reason ? ["--reason", reason] : [])) }),
  });
  const pin: Action = {
    title: `Pin the limit of ${read.key}`,
    text: "The pinned limit replaces the limits that tasks request, until it is unpinned.",
    verb: "Pin",
    reason: true,
    call: (reason) => ({
      method: "PUT",
      path,
      body: { limit: Number(limit.value), per_seconds: Number(seconds.value), reason },
      command: command("rates", "pin", read.key, limit.value, "--per", seconds.value, ...(reason ? ["--reason", reason] : [])),
    }),
    more: (
      <>
        <Field label="Starts">
          <input type="number" min={1} value={limit.value} onInput={(event) => (limit.value = event.currentTarget.value)} />
        </Field>
        <Field label="In seconds">
          <input type="number" min={1} value={seconds.value} onInput={(event) => (seconds.value = event.currentTarget.value)} />
        </Field>
      </>
    ),
  };
  const unpin: Action = {
    title: `Unpin the limit of ${read.key}`,
    text: "The limits that tasks request apply again.",
    verb: "Unpin",
    call: () => ({ method: "DELETE", path, command: command("rates", "unpin", read.key) }),
  };
  const actions = [
    read.paused_at ? simple("Resume", "The first 100 waiting tasks are checked at once, others within 85 seconds.") : simple("Pause", "No task with this rate starts until the rate is resumed; running attempts continue."),
    pin,
    ...(read.pinned ? [unpin] : []),
    simple("Reset", "Forgets the counted starts and the waiting line, so that twice as many tasks can start within one window."),
  ];
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["limits"])}>Limits</a>
          </p>
          <h1>{read.key}</h1>
        </div>
        <div class="actions">
          {actions.map((each) => (
            <button key={each.verb} type="button" onClick={() => (action.value = each)}>
              {each.verb}…
            </button>
          ))}
        </div>
      </div>
      {rate.problem.value && <ProblemBox problem={rate.problem.value} retry={reload} />}
      <div class="grid">
        <section class="card">
          <h2>Limit and use</h2>
          <Facts
            rows={[
              ["Limit", often(read)],
              ...(read.pinned && read.asked ? ([["Tasks ask for", often(read.asked)]] as const) : []),
              ["State", <RateState rate={read} />],
              ["Used", `${read.used} of ${read.used + read.available} starts that are possible at once`],
            ]}
          />
        </section>
        <section class="card">
          <h2>
            Waiting, the next one first <span class="muted">{read.waiters.length}</span>
          </h2>
          {read.waiters.length === 0 && <p class="muted">Nobody.</p>}
          <ol class="line">
            {read.waiters.map((waiter) => (
              <li key={waiter.task_id}>
                <TaskLink id={waiter.task_id} task={tasks.get(waiter.task_id)} />{" "}
                <span class="muted">
                  · {read.paused_at ? "checked again" : "its turn"} <Relative at={waiter.next_at} />, due <Time at={waiter.due_at} />
                </span>
              </li>
            ))}
          </ol>
        </section>
      </div>
      {action.value && <ActionDialog action={action.value} close={() => (action.value = null)} done={reload} />}
    </>
  );
}
