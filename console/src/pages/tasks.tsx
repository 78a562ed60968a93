/** The task list: one search, one live page of at most 100 tasks. New tasks are added by a button, so that rows do not
 * move. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { liveState, useLive, type WatchedTask } from "../api/live";
import { useReading, type Found } from "../api/reading";
import type { ListedTask, TaskPage, TaskSummary } from "../api/types";
import { Command, ProblemBox } from "../components/basics";
import { BulkMenu } from "../components/bulk";
import { CreateTask } from "../components/create_task";
import { NoneFound, ReadingLine } from "../components/reading";
import { SavedSearches } from "../components/saved_searches";
import { SearchBox } from "../components/search_box";
import { TaskTable, useNewest } from "../components/task_table";
import { setQuery, usePlace } from "../router";
import { matches, parameters, parseSearch, STATES, toggled } from "../search";

const LIMIT = 100;

export function Tasks() {
  const { query: shownQuery } = usePlace("tasks");
  const text = shownQuery.get("q") ?? "";
  const token = shownQuery.get("page") ?? "";
  const order = shownQuery.get("order") ?? "desc";
  const search = parseSearch(text);
  const query = parameters(search);
  query.set("limit", String(LIMIT));
  if (order !== "desc") query.set("order", order);
  if (token) query.set("next_token", token);
  const page = useReading<TaskPage, ListedTask>(search.faults.length ? null : `/v1/tasks?${query}`, { entries: (each) => each.tasks, enough: LIMIT });
  const { tasks, fresh, clear } = useChanges(text, page.found);
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
      <NoneFound reading={page} title={token ? "No more tasks" : text ? "No task matches" : "No tasks yet"}>
        <Nothing filtered={text !== "" || token !== ""} />
      </NoneFound>
      <ReadingLine reading={page} />
      {page.found.value && <Pager page={page.found.value} token={token} />}
    </>
  );
}

/** Pushed changes of a shown list: newer versions of its tasks, and the number of tasks not on it. */
function useChanges(text: string, page: { readonly value: Found<TaskPage, ListedTask> | null }) {
  const pushed = useSignal(new Map<string, WatchedTask | null>());
  const unknown = useSignal(new Set<string>());
  const count = useComputed(() => unknown.value.size);
  const tasks = useComputed<readonly TaskSummary[] | null>(() => page.value?.entries ?? null);
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

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <p>Remove a term of the search, or press a state again to remove it.</p>;
  return (
    <>
      <p>A task is one piece of work with a due time. Create one here, by the command line, or over REST:</p>
      <Command text={`duetime tasks create echo --payload '"hello"' --in 3s`} />
      {liveState.value === "live" && <p class="muted">New tasks are announced here automatically.</p>}
    </>
  );
}

function Pager({ page, token }: { page: Found<TaskPage, ListedTask>; token: string }) {
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span class="muted">
        {page.entries.length} shown, {page.examined.toLocaleString("en")} read
      </span>
      {token && (
        <button type="button" onClick={() => setQuery({ page: "" })}>
          First page
        </button>
      )}
      {page.token && page.isKnown && (
        <button type="button" onClick={() => setQuery({ page: page.token ?? "" })}>
          Next page
        </button>
      )}
    </nav>
  );
}
