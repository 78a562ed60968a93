/** The task list: one search, one page of at most 100 tasks, live. New tasks wait behind a button: nothing jumps. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { liveState, useLive, type WatchedTask } from "../api/live";
import { useResource } from "../api/resource";
import type { TaskPage, TaskSummary } from "../api/types";
import { Command, Empty, ProblemBox } from "../components/basics";
import { BulkMenu } from "../components/bulk";
import { CreateTask } from "../components/create_task";
import { SavedSearches } from "../components/saved_searches";
import { SearchBox } from "../components/search_box";
import { TaskTable, useNewest } from "../components/task_table";
import { setQuery, usePlace } from "../router";
import { matches, parameters, parseSearch, STATES, toggled } from "../search";

const LIMIT = "100";

export function Tasks() {
  const { query: shownQuery } = usePlace("tasks");
  const text = shownQuery.get("q") ?? "";
  const token = shownQuery.get("page") ?? "";
  const order = shownQuery.get("order") ?? "desc";
  const search = parseSearch(text);
  const query = parameters(search);
  query.set("limit", LIMIT);
  if (order !== "desc") query.set("order", order);
  if (token) query.set("next_token", token);
  const page = useResource<TaskPage>(search.faults.length ? null : `/v1/tasks?${query}`);
  const { tasks, fresh, clear } = useChanges(text, page.data);
  const shown = useNewest(tasks, fresh.pushed);

  const go = (q: string) => setQuery({ q, page: "" });
  const read = async () => {
    await page.reload();
    clear();
  };
  return (
    <>
      <div class="page-head">
        <h1>Tasks</h1>
        <CreateTask created={() => void read()} />
      </div>
      <SearchBox text={text} seen={shown.value} search={go} />
      <StateFilter text={text} go={go} />
      {search.faults.map((fault) => (
        <p key={fault} class="fault" role="alert">
          {fault}
        </p>
      ))}
      <div class="list-tools">
        <SavedSearches text={text} />
        <BulkMenu search={search} done={() => void page.reload()} />
        <button type="button" class="quiet small" onClick={() => setQuery({ order: order === "desc" ? "asc" : "", page: "" })}>
          {order === "desc" ? "Latest due first" : "Earliest due first"}
        </button>
        {fresh.count.value > 0 && (
          <button type="button" class="pill" onClick={() => (token ? setQuery({ page: "" }) : void read())}>
            {fresh.count} new
          </button>
        )}
        <span class="visually-hidden" aria-live="polite">
          {fresh.count.value > 0 ? `${fresh.count.value} new tasks` : ""}
        </span>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      {shown.value.length > 0 && <TaskTable tasks={shown.value} label="Tasks" />}
      {page.data.value && shown.value.length === 0 && <Nothing filtered={text !== ""} more={Boolean(page.data.value.next_token)} />}
      {page.data.value && <Pager page={page.data.value} token={token} />}
    </>
  );
}

/** What is pushed while the list is shown: newer versions of its tasks, and the number of tasks that are not on it. */
function useChanges(text: string, page: { readonly value: TaskPage | null }) {
  const pushed = useSignal(new Map<string, WatchedTask | null>());
  const unknown = useSignal(new Set<string>());
  const count = useComputed(() => unknown.value.size);
  const tasks = useComputed<readonly TaskSummary[] | null>(() => page.value?.tasks ?? null);
  const clear = () => {
    pushed.value = new Map();
    unknown.value = new Set();
  };
  useEffect(clear, [text]);
  useLive("mine", ({ id, item, version }) => {
    if (tasks.peek()?.some((task) => task.id === id)) {
      const known = pushed.peek().get(id);
      if (known === undefined || (known && known.version < version) || item === null) {
        pushed.value = new Map(pushed.peek()).set(id, item);
      }
    } else if (item && tasks.peek() && item.version === 1 && matches(parseSearch(text), item)) {
      unknown.value = new Set(unknown.peek()).add(id);
    }
  });
  return { tasks, fresh: { pushed, count }, clear };
}

function StateFilter({ text, go }: { text: string; go: (text: string) => void }) {
  const words = parseSearch(text).terms.map((term) => term.text);
  return (
    <div class="states" role="group" aria-label="States">
      {STATES.map((state) => {
        const term = `state:${state}`;
        return (
          <button
            key={state}
            type="button"
            class={`chip state-${state}`}
            aria-pressed={words.includes(term)}
            onClick={() => go(toggled(text, term))}
          >
            <i aria-hidden="true" />
            {state.replaceAll("_", " ")}
          </button>
        );
      })}
    </div>
  );
}

function Nothing({ filtered, more }: { filtered: boolean; more: boolean }) {
  if (more) return <Empty title="None on this page"><p>Later pages may have some: a page covers a limited number of tasks.</p></Empty>;
  if (filtered) return <Empty title="No task matches"><p>Remove a term of the search, or press a state again to take it away.</p></Empty>;
  return (
    <Empty title="No tasks yet">
      <p>A task is one piece of work with a due time. Create one here, by the command line, or over REST:</p>
      <Command text={`duetime tasks create echo --payload '"hello"' --in 3s`} />
      {liveState.value === "live" && <p class="muted">It will be announced here by itself.</p>}
    </Empty>
  );
}

function Pager({ page, token }: { page: TaskPage; token: string }) {
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span class="muted">
        {page.tasks.length} shown, {page.applied.examined} read
      </span>
      {token && (
        <button type="button" onClick={() => setQuery({ page: "" })}>
          First page
        </button>
      )}
      {page.next_token && (
        <button type="button" onClick={() => setQuery({ page: page.next_token ?? "" })}>
          Next page
        </button>
      )}
    </nav>
  );
}
