/** One group, with its members by state, its first members, and actions on all members. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import { useResource } from "../api/resource";
import type { Group, TaskPage as ListedTasks } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { ProblemBox, Relative, StateChip, Time } from "../components/basics";
import { TaskLink } from "../components/task_names";
import { href } from "../router";
import { counted } from "../time";

const SHOWN_MEMBERS = 20;

export function GroupDetail({ subject: id }: { subject: string }) {
  const path = `/v1/groups/${encodeURIComponent(id)}`;
  const group = useResource<Group>(path);
  const members = useResource<ListedTasks>(`/v1/tasks?group=${encodeURIComponent(id)}&order=asc&limit=${SHOWN_MEMBERS}`);
  const asked = useSignal<Action | null>(null);
  const reload = () => [group, members].forEach((each) => void each.reload());
  const read = group.data.value;
  if (!read) return group.problem.value ? <ProblemBox problem={group.problem.value} retry={reload} /> : <p class="muted">Loading the group…</p>;
  const open = read.total - read.ended;
  const close: Action = {
    title: `Close ${id}`,
    text: "No more tasks can join. To run a task once all members have ended, close the group with the command or the API.",
    verb: "Close",
    call: () => ({ method: "PUT", path, body: {}, command: command("groups", "close", id) }),
  };
  const cancel: Action = {
    title: `Cancel the members of ${id}`,
    text: `${counted(open, "member has", "members have")} not ended. Running members continue.`,
    verb: "Cancel the members",
    danger: true,
    call: () => ({ method: "POST", path: `${path}/cancel`, body: {}, command: command("groups", "cancel", id) }),
  };
  const retry: Action = {
    title: `Retry the failed members of ${id}`,
    text: `${counted(read.counts.failed ?? 0, "member has", "members have")} failed. They run again from their first attempt.`,
    verb: "Retry",
    call: () => ({ method: "POST", path: `${path}/retry`, body: {}, command: command("groups", "retry", id) }),
  };
  const offered = [...(read.state === "open" ? [close] : []), ...(open ? [cancel] : []), ...(read.counts.failed ? [retry] : [])];
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["groups"])}>Groups</a>
          </p>
          <h1>{id}</h1>
        </div>
        <div class="actions">
          {offered.map((action) => (
            <button key={action.verb} type="button" onClick={() => (asked.value = action)}>
              {action.verb}…
            </button>
          ))}
        </div>
      </div>
      {group.problem.value && <ProblemBox problem={group.problem.value} retry={reload} />}
      <div class="grid">
        <section class="card">
          <h2>
            Members <span class="muted">{read.total}</span>
          </h2>
          <p>
            <progress max={Math.max(1, read.total)} value={read.ended} aria-label="Progress" /> The group is {read.state}: {read.ended} of {counted(read.total, "member")} have ended ({read.progress}%).
          </p>
          <ul>
            {Object.entries(read.counts).map(([state, number]) => (
              <li key={state}>
                {number} <StateChip state={state} />
              </li>
            ))}
          </ul>
          <p class="muted">
            Created <Relative at={read.created_at} />
            {read.completed_at && (
              <>
                , complete since <Time at={read.completed_at} />
              </>
            )}
          </p>
          {read.on_complete && (
            <p>
              Then <TaskLink id={read.on_complete.task_id} task={undefined} /> runs by the rule {read.on_complete.rule}.
            </p>
          )}
        </section>
        <section class="card">
          <h2>The first members</h2>
          {members.problem.value && <ProblemBox problem={members.problem.value} retry={reload} />}
          <ol class="line">
            {(members.data.value?.tasks ?? []).map((task) => (
              <li key={task.id}>
                <TaskLink id={task.id} task={task} /> <span class="muted">· {task.state}</span>
              </li>
            ))}
          </ol>
        </section>
      </div>
      {asked.value && <ActionDialog action={asked.value} close={() => (asked.value = null)} done={reload} />}
    </>
  );
}
