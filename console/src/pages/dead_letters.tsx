/** Dead letters: finally failed tasks, grouped by type and error; each group can be retried or discarded. */
import { useSignal } from "@preact/signals";
import { ApiProblem, ask, change, command } from "../api/client";
import { useReading } from "../api/reading";
import type { FilterActionResult, ListedTask, TaskPage, TaskSummary } from "../api/types";
import { useSending } from "../components/action";
import { Command, Field, Pager, ProblemBox, Relative, Time } from "../components/basics";
import { NoneFound, ReadingLine } from "../components/reading";
import { Dialog } from "../components/dialog";
import { Text } from "../components/timing_fields";
import { href, usePlace } from "../router";
import { written } from "../search";
import { counted } from "../time";

const LIMIT = 100;

interface Group {
  type: string;
  error: string;
  tasks: TaskSummary[];
}

/** Groups by descending frequency; tasks in list order. */
function groupsOf(tasks: readonly TaskSummary[]): Group[] {
  const found = new Map<string, Group>();
  for (const task of tasks) {
    const error = task.error?.type ?? "";
    const key = JSON.stringify([task.type, error]);
    const group = found.get(key) ?? { type: task.type, error, tasks: [] };
    group.tasks.push(task);
    found.set(key, group);
  }
  return [...found.values()].sort((a, b) => b.tasks.length - a.tasks.length);
}

export function DeadLetters() {
  const token = usePlace("dead-letters").query.get("page") ?? "";
  const asked = new URLSearchParams({ state: "failed", limit: String(LIMIT), ...(token && { next_token: token }) });
  const page = useReading<TaskPage, ListedTask>(`/v1/tasks?${asked}`, { entries: (each) => each.tasks, enough: LIMIT });
  const chosen = useSignal<{ group: Group; act: "retry" | "discard" } | null>(null);
  const read = page.found.value;
  const reload = () => void page.reload();
  const close = () => (chosen.value = null);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Dead letters</h1>
          <p class="muted">Tasks that have failed for good: after their last attempt, or with an error that is not retried.</p>
        </div>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={reload} />}
      <NoneFound reading={page} title={token ? "No more tasks have failed for good" : "No task has failed for good"}>
        <p>A task that fails is retried by its policy first. Those that still fail are listed here, until you retry or delete them.</p>
        <Command text="duetime dead-letters list" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <>
          <p class="muted group-note">{read.token || token ? `${counted(read.entries.length, "task")} of this page, in groups.` : `${counted(read.entries.length, "task")} in ${counted(groupsOf(read.entries).length, "group")}.`}</p>
          <ul class="groups">
            {groupsOf(read.entries).map((group) => (
              <GroupCard key={`${group.type}/${group.error}`} group={group} choose={(act) => (chosen.value = { group, act })} />
            ))}
          </ul>
        </>
      )}
      <ReadingLine reading={page} />
      <Pager token={read?.isKnown ? read.token : null} />
      {chosen.value?.act === "retry" && <RetryDialog group={chosen.value.group} close={close} done={reload} />}
      {chosen.value?.act === "discard" && <DiscardDialog group={chosen.value.group} close={close} done={reload} />}
    </>
  );
}

function GroupCard({ group, choose }: { group: Group; choose: (act: "retry" | "discard") => void }) {
  const [latest] = group.tasks;
  const search = `state:failed type:${written(group.type)}${group.error ? ` error:${written(group.error)}` : ""}`;
  return (
    <li class="card group" data-row={group.type}>
      <div class="group-count">
        <strong>{group.tasks.length}</strong>
      </div>
      <div class="group-text">
        <h2>
          <code class="bad">{group.error || "no error recorded"}</code> <span class="muted">in</span>{" "}
          <a href={href(["tasks"], { q: search })} data-open>
            {group.type}
          </a>
        </h2>
        <p>{latest?.error?.message}</p>
        <p class="muted">
          Latest: {latest && <a href={href(["tasks", latest.id])}>{latest.name ?? latest.id}</a>} <Time at={latest?.finished_at} /> <Relative at={latest?.finished_at} />, after {counted(latest?.attempt ?? 0, "attempt")}
        </p>
      </div>
      <div class="actions">
        <button type="button" disabled={!group.error} onClick={() => choose("retry")}>
          Retry…
        </button>
        <button type="button" onClick={() => choose("discard")}>
          Discard…
        </button>
      </div>
    </li>
  );
}

/** Retries every failed task of a group, including those beyond the page, at a limited rate, after counting them. */
function RetryDialog({ group, close, done }: { group: Group; close: () => void; done: () => void }) {
  const found = useSignal<FilterActionResult | null>(null);
  const pace = useSignal("10");
  const reason = useSignal("");
  const { busy, problem, send } = useSending();
  const filter = { type: group.type, error_type: group.error };
  const count = async () => {
    problem.value = null;
    try {
      found.value = await ask<FilterActionResult>("/v1/tasks/retry", { filter, dry_run: true });
    } catch (error) {
      if (error instanceof ApiProblem) problem.value = error;
    }
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!found.value) return count();
    const words = ["--type", group.type, "--error-type", group.error, "--per-second", pace.value, ...(reason.value ? ["--reason", reason.value] : [])];
    await send({
      method: "POST",
      path: "/v1/tasks/retry",
      body: { filter, per_second: Number(pace.value), reason: reason.value, confirmation_token: found.value.confirmation_token },
      command: command("dead-letters", "retry", ...words),
    });
    if (problem.value) return undefined;
    close();
    return done();
  };
  const matched = found.value?.matched ?? 0;
  return (
    <Dialog title={`Retry ${group.error} in ${group.type}`} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>Each task runs again from its first attempt. Those that fail again come back here.</p>
        {found.value && (
          <p role="status">
            <strong>{counted(matched, "task")}</strong> {matched === 1 ? "matches" : "match"}
            {found.value.next_token ? " so far; there may be more" : ""}. Tasks that fail from now on are not among them.
          </p>
        )}
        <Text label="Tasks a second" value={pace.value} set={(text) => (pace.value = text)} required number hint="Slow enough for what failed to recover." />
        <Field label="Reason" hint="Shown in the events of each task. Optional.">
          <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </Field>
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Keep them
          </button>
          <button type="submit" class="primary" disabled={busy.value || (found.value !== null && matched === 0)}>
            {found.value ? `Retry ${matched}` : "Count them"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Deletes the listed tasks of a group one by one, because the API cannot delete by filter. */
function DiscardDialog({ group, close, done }: { group: Group; close: () => void; done: () => void }) {
  const deleted = useSignal(0);
  const isRunning = useSignal(false);
  const stopped = useSignal(false);
  const problem = useSignal<ApiProblem | null>(null);
  const end = () => {
    stopped.value = true;
    close();
    done();
  };
  const run = async () => {
    isRunning.value = true;
    for (const task of group.tasks) {
      if (stopped.value) return;
      try {
        await change({ method: "DELETE", path: `/v1/tasks/${task.id}`, headers: { "If-Match": `"${task.version}"` }, command: command("tasks", "delete", task.id) });
        deleted.value += 1;
      } catch (error) {
        if (error instanceof ApiProblem) problem.value = error;
        isRunning.value = false;
        return;
      }
    }
    end();
  };
  const total = group.tasks.length;
  return (
    <Dialog title={`Discard ${group.error || "tasks"} in ${group.type}`} close={end}>
      <p>
        Deletes the {counted(total, "task")} of this group that this page lists, with payloads, results and attempts. This cannot be undone. A task that has changed
        meanwhile is kept.
      </p>
      {(isRunning.value || deleted.value > 0) && (
        <p role="status">
          <progress max={total} value={deleted.value} aria-label="Deleted" /> {deleted.value} of {total} deleted
        </p>
      )}
      {problem.value && <ProblemBox problem={problem.value} />}
      <footer>
        <button type="button" class="quiet" onClick={end}>
          {isRunning.value ? "Stop" : "Keep them"}
        </button>
        <button type="button" class="danger" disabled={isRunning.value} onClick={() => void run()}>
          Delete {total - deleted.value}
        </button>
      </footer>
    </Dialog>
  );
}
