/** One lock, with its holders, its waiting tasks in order, and its forced release. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import { useResource } from "../api/resource";
import type { Lock } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { ProblemBox, Relative, Time } from "../components/basics";
import { TaskLink, useTasks } from "../components/task_names";
import { href } from "../router";
import { counted } from "../time";

export function LockDetail({ subject: key }: { subject: string }) {
  const path = `/v1/locks/${encodeURIComponent(key)}`;
  const lock = useResource<Lock>(path);
  const releasing = useSignal(false);
  const tasks = useTasks([...(lock.data.value?.holders ?? []), ...(lock.data.value?.waiters ?? [])].map((each) => each.task_id));
  const reload = () => void lock.reload();
  const read = lock.data.value;
  if (!read) return lock.problem.value ? <ProblemBox problem={lock.problem.value} retry={reload} /> : <p class="muted">Loading the lock…</p>;
  const release: Action = {
    title: `Release ${read.key} by force`,
    text: `The first waiting task gets the lock at once. ${counted(read.holders.length, "holder")} will learn of the release with the next heartbeat and stop; until then, two tasks may believe that they hold the lock.`,
    verb: "Release by force",
    danger: true,
    call: () => ({ method: "DELETE", path, command: command("locks", "release", read.key) }),
  };
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
          {read.holders.length > 0 && (
            <button type="button" onClick={() => (releasing.value = true)}>
              Release by force…
            </button>
          )}
        </div>
      </div>
      {lock.problem.value && <ProblemBox problem={lock.problem.value} retry={reload} />}
      <div class="grid">
        <section class="card">
          <h2>
            Held by <span class="muted">{read.holders.length}</span>
          </h2>
          {read.holders.length === 0 && <p class="muted">No task holds the lock; the next task that requests it gets it.</p>}
          <ol class="line">
            {read.holders.map((holder) => (
              <li key={holder.task_id}>
                <TaskLink id={holder.task_id} task={tasks.get(holder.task_id)} />{" "}
                <span class="muted">
                  {holder.mode === "shared" && "· shared "}· {holder.fence === null ? "reserved" : `fence ${holder.fence}`}, taken back <Relative at={holder.expires_at} /> unless a heartbeat renews it
                </span>
              </li>
            ))}
          </ol>
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
                  {waiter.mode === "shared" && "· to share it "}· due <Time at={waiter.due_at} /> <Relative at={waiter.due_at} />
                </span>
              </li>
            ))}
          </ol>
        </section>
      </div>
      {releasing.value && <ActionDialog action={release} close={() => (releasing.value = false)} done={reload} />}
    </>
  );
}
