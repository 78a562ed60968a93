/** Dead letters are tasks that have failed for good, grouped by type and error; each group can be retried or discarded. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiProblem, ask, command } from "../api/client";
import { hiddenText } from "../api/codec";
import { MOST_PAGES, useReading } from "../api/reading";
import { useResource } from "../api/resource";
import type { FilterActionResult, ListedTask, Summary, TaskPage, TaskSummary } from "../api/types";
import { useSending } from "../components/action";
import { Command, Field, ProblemBox, Relative, Time } from "../components/basics";
import { NoneFound, ReadingLine } from "../components/reading";
import { Dialog } from "../components/dialog";
import { Text } from "../components/timing_fields";
import { href } from "../router";
import { written } from "../search";
import { counted } from "../time";

const LIMIT = 100;

interface Group {
  type: string;
  error: string;
  tasks: TaskSummary[];
}

/** Groups in order of descending frequency, with tasks in list order. */
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
  const asked = new URLSearchParams({ state: "failed", limit: String(LIMIT) });
  // The API has no totals for groups, so all failed tasks are read to compute them.
  const page = useReading<TaskPage, ListedTask>(`/v1/tasks?${asked}`, { entries: (each) => each.tasks, enough: Infinity });
  const summary = useResource<Summary>("/v1/summary");
  const chosen = useSignal<{ group: Group; act: "retry" | "discard" } | null>(null);
  const read = page.found.value;
  const groups = groupsOf(read?.entries ?? []);
  const total = summary.data.value?.is_complete ? (summary.data.value.states.failed ?? 0) : null;
  const reload = () => {
    void page.reload();
    void summary.reload();
  };
  const close = () => (chosen.value = null);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Dead letters</h1>
          <p class="muted">Tasks that have failed for good, after their last attempt or with an error that is not retried.</p>
        </div>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={reload} />}
      <NoneFound reading={page} title="No task has failed for good">
        <p>A task that fails is first retried according to its policy. Tasks that still fail are listed here until they are retried, deleted or no longer kept.</p>
        <Command text="duetime dead-letters list" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <>
          <p class="muted group-note">
            {counted(read.entries.length, "task")} in {counted(groups.length, "group")}
            {!read.isKnown && `, of the tasks that were read so far${total === null ? "" : `; ${total.toLocaleString("en")} have failed in all`}`}.
          </p>
          <ul class="groups">
            {groups.map((group) => (
              <GroupCard key={`${group.type}/${group.error}`} group={group} isWhole={read.isKnown} choose={(act) => (chosen.value = { group, act })} />
            ))}
          </ul>
        </>
      )}
      <ReadingLine reading={page} />
      {chosen.value && <GroupDialog group={chosen.value.group} act={chosen.value.act} close={close} done={reload} />}
    </>
  );
}

function GroupCard({ group, isWhole, choose }: { group: Group; isWhole: boolean; choose: (act: "retry" | "discard") => void }) {
  const ends = group.tasks.flatMap((task) => task.finished_at ?? []).sort();
  const latest = group.tasks.find((task) => task.finished_at === ends.at(-1)) ?? group.tasks[0];
  const search = `state:failed type:${written(group.type)}${group.error ? ` error:${written(group.error)}` : ""}`;
  return (
    <li class="card group" data-row={group.type}>
      <div class="group-count">
        <strong title={isWhole ? undefined : "Of the tasks that were read so far"}>
          {group.tasks.length.toLocaleString("en")}
          {isWhole ? "" : "+"}
        </strong>
      </div>
      <div class="group-text">
        <h2>
          <code class="bad">{group.error || "no error recorded"}</code> <span class="muted">in</span>{" "}
          <a href={href(["tasks"], { q: search })} data-open>
            {group.type}
          </a>
        </h2>
        <p>{hiddenText(latest?.error?.message ?? "")}</p>
        <p class="muted">
          Latest: {latest && <a href={href(["tasks", latest.id])}>{latest.name ?? latest.id}</a>} <Time at={latest?.finished_at} /> <Relative at={latest?.finished_at} />, after {counted(latest?.attempt ?? 0, "attempt")}
          {ends.length > 1 && <>; the first at <Time at={ends[0]} /></>}
        </p>
      </div>
      <div class="actions">
        <button type="button" disabled={!group.error} onClick={() => choose("retry")}>
          Retry…
        </button>
        <button type="button" disabled={!group.error} onClick={() => choose("discard")}>
          Discard…
        </button>
      </div>
    </li>
  );
}

interface GroupAction {
  title: string;
  text: string;
  verb: string;
  path: string;
  words: readonly string[];
  pace: string;
  danger?: boolean;
}

function groupAction(act: "retry" | "discard", group: Group): GroupAction {
  const name = `${group.error} in ${group.type}`;
  if (act === "retry") return { title: `Retry ${name}`, text: "Each task runs again from its first attempt. Tasks that fail again are listed here again.", verb: "Retry", path: "/v1/tasks/retry", words: ["dead-letters", "retry"], pace: "10" };
  return {
    title: `Discard ${name}`,
    text: "Deletes the tasks of this group with payloads, results and attempts. This cannot be undone. A task that no longer matches is kept.",
    verb: "Delete",
    path: "/v1/tasks/delete",
    words: ["dead-letters", "delete"],
    pace: "",
    danger: true,
  };
}

/** Retries or deletes every failed task of a group, including those that were not read, after counting them. */
function GroupDialog({ group, act, close, done }: { group: Group; act: "retry" | "discard"; close: () => void; done: () => void }) {
  const action = groupAction(act, group);
  const found = useSignal<FilterActionResult | null>(null);
  const pace = useSignal(action.pace);
  const reason = useSignal("");
  const { busy, problem, send } = useSending();
  const filter = { type: group.type, error_type: group.error, ...(act === "discard" ? { state: "failed" } : {}) };
  const counting = useSignal(false);
  const stopping = useRef(new AbortController()).current;
  useEffect(() => () => stopping.abort(), []);
  /** Counts page by page until the end, or for this many pages; the first page's token fixes the time of the count. */
  const count = async () => {
    problem.value = null;
    counting.value = true;
    try {
      for (let pages = 0; pages < MOST_PAGES && (found.peek() === null || found.peek()?.next_token); pages += 1) {
        const before = found.peek();
        const more = before ? { next_token: before.next_token, confirmation_token: before.confirmation_token } : {};
        const page = await ask<FilterActionResult>(action.path, { filter, dry_run: true, ...more }, stopping.signal);
        found.value = { ...page, matched: (before?.matched ?? 0) + page.matched };
      }
    } catch (error) {
      if (error instanceof ApiProblem) problem.value = error;
    }
    counting.value = false;
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!found.value) return count();
    const words = [...action.words, "--type", group.type, "--error-type", group.error, ...(pace.value ? ["--per-second", pace.value] : []), ...(reason.value ? ["--reason", reason.value] : [])];
    await send({
      method: "POST",
      path: action.path,
      body: { filter, ...(pace.value ? { per_second: Number(pace.value) } : {}), reason: reason.value, confirmation_token: found.value.confirmation_token },
      command: command(...words),
    });
    if (problem.value) return undefined;
    close();
    return done();
  };
  const matched = found.value?.matched ?? 0;
  return (
    <Dialog title={action.title} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{action.text}</p>
        {found.value && (
          <p role="status">
            <strong>{counted(matched, "task")}</strong> {matched === 1 ? "matches" : "match"}
            {found.value.next_token ? (counting.value ? " so far" : " so far; there may be more") : ""}. Tasks that fail from now on are not included. An action that takes longer than a second continues as a bulk operation.
          </p>
        )}
        <Text label="Tasks a second" value={pace.value} set={(text) => (pace.value = text)} required={act === "retry"} number hint={act === "retry" ? "Slow enough for the failed target to recover." : "Leave empty for the maximum speed."} />
        <Field label="Reason" hint={act === "retry" ? "Shown in the events of each task. Optional." : "Recorded in the audit log. Optional."}>
          <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </Field>
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Keep them
          </button>
          <button type="submit" class={action.danger ? "danger" : "primary"} disabled={busy.value || counting.value || (found.value !== null && matched === 0)}>
            {found.value ? `${action.verb} ${matched}${found.value.next_token ? " or more" : ""}` : "Count the tasks"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
