/** The task list, with one search and one live page of at most 100 tasks. New tasks are added by a button, so that rows
 * do not move. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/client";
import { liveState, useLive, type WatchedTask } from "../api/live";
import { useReading, type Found } from "../api/reading";
import type { ListedTask, TaskPage, TaskSummary } from "../api/types";
import { Command, ProblemBox, Time, useLater } from "../components/basics";
import { BulkMenu } from "../components/bulk";
import { CreateTask } from "../components/create_task";
import { NoneFound, ReadingLine, Rows } from "../components/reading";
import { SavedViews } from "../components/saved_views";
import { SearchBox, useOffsets } from "../components/search_box";
import { TaskTable, useNewest } from "../components/task_table";
import { dollars } from "../money";
import { href, setQuery, usePlace } from "../router";
import { hasNodes, isTimed, matches, parameters, parseSearch, STATES, toggled, withOffsets, written } from "../search";
import { columns } from "../settings";
import { counted } from "../time";

const LIMIT = 100;

/** The request of a list; relative times are resolved at each call. */
function pathOf(text: string, query: URLSearchParams): string {
  const asked = parameters(parseSearch(text));
  asked.set("limit", String(LIMIT));
  for (const [name, value] of [["order", query.get("order")], ["order_by", query.get("by")], ["next_token", query.get("page")]] as const) {
    if (value) asked.set(name, value);
  }
  return `/v1/tasks?${asked}`;
}

const go = (q: string) => setQuery({ q: withOffsets(q), page: "" });

export function Tasks() {
  const { query } = usePlace("tasks");
  const text = query.get("q") ?? "";
  const token = query.get("page") ?? "";
  const search = parseSearch(text);
  useOffsets(text);
  const key = search.faults.length ? null : JSON.stringify([withOffsets(text), query.get("order"), query.get("by"), token]);
  const page = useReading<TaskPage, ListedTask>(isTimed(search) ? () => pathOf(text, query) : pathOf(text, query), { entries: (each) => each.tasks, enough: LIMIT }, key);
  const { tasks, fresh, listed } = useChanges(text, page.found);
  const shown = useNewest(tasks, fresh.pushed);
  const selected = useSignal<ReadonlySet<string>>(new Set());
  useEffect(() => void (selected.value = new Set()), [key]);
  const Selection = useLater(selected.value.size > 0, async () => (await import("../components/selection")).Selection);
  const named = search.terms.find((term) => term.qualifier === "name")?.value ?? "";
  const Named = useLater(named !== "", async () => (await import("../components/named")).AlsoNamed);
  const applied = page.found.value?.page.applied;
  const isByEnd = applied?.order_by === "finished_at";

  const read = async () => {
    // Tasks that are announced during the reading may be missing in its result.
    const announced = fresh.announced();
    if (await page.reload()) listed(announced);
  };
  return (
    <>
      <div class="page-head">
        <h1>Tasks</h1>
        <CreateTask created={() => void read()} />
      </div>
      <SearchBox text={text} seen={shown.value} search={go} />
      <StateFilter text={text} />
      {search.faults.map((fault) => (
        <p key={fault} class="fault" role="alert">
          {fault}
        </p>
      ))}
      <div class="list-tools">
        <SavedViews />
        <BulkMenu search={search} done={() => void page.reload()} />
        <Options text={text} isByEnd={isByEnd} isAscending={query.get("order") === "asc"} />
        {fresh.count.value > 0 && (
          <button type="button" class="pill" onClick={() => (token ? setQuery({ page: "" }) : void read())}>
            {newText(fresh.count.value)}
          </button>
        )}
        <span class="visually-hidden" aria-live="polite">
          {fresh.count.value > 0 ? `Tasks: ${newText(fresh.count.value)}` : ""}
        </span>
      </div>
      {Named && <Named name={named} />}
      {Selection && <Selection tasks={shown.value.filter((task) => selected.value.has(task.id))} clear={() => (selected.value = new Set())} done={() => void read()} />}
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <Rows reading={page}>{shown.value.length > 0 && <TaskTable tasks={shown.value} label="Tasks" shown={isByEnd ? [...columns.value, "finished"] : columns.value} selected={selected} />}</Rows>
      <NoneFound reading={page} title={token ? "No more tasks" : text ? "No task matches" : "No tasks yet"}>
        <Nothing filtered={text !== "" || token !== ""} named={named} />
      </NoneFound>
      {search.faults.length === 0 && <ReadingLine reading={page} />}
      {page.found.value && !page.isOld && <Pager page={page.found.value} token={token} text={text} key={text} />}
    </>
  );
}

/** Order, nodes, dates and columns. */
function Options({ text, isByEnd, isAscending }: { text: string; isByEnd: boolean; isAscending: boolean }) {
  const isOpen = useSignal(false);
  const Panel = useLater(isOpen.value, async () => (await import("../components/list_options")).ListOptions);
  const order = (chosen: string) => {
    const [by, direction] = chosen.split(" ");
    setQuery({ by: by === "finished_at" || isByEnd ? (by ?? "") : "", order: direction === "asc" ? "asc" : "", page: "" });
  };
  return (
    <>
      <select class="small" aria-label="Order" value={`${isByEnd ? "finished_at" : "due_at"} ${isAscending ? "asc" : "desc"}`} onChange={(event) => order(event.currentTarget.value)}>
        <option value="due_at desc">Latest due first</option>
        <option value="due_at asc">Earliest due first</option>
        <option value="finished_at desc">Latest end first</option>
        <option value="finished_at asc">Earliest end first</option>
      </select>
      <button type="button" class="quiet small" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        Dates and columns
      </button>
      {Panel && <Panel text={text} search={go} />}
    </>
  );
}

/** New tasks beyond this number are not counted. */
const MOST_NEW = 10_000;
const newText = (count: number): string => `${count.toLocaleString("en")}${count < MOST_NEW ? "" : " or more"} new`;

/** Pushed changes to a shown list: newer versions of its tasks, and the number of new tasks that are not on it. */
function useChanges(text: string, page: { readonly value: Found<TaskPage, ListedTask> | null }) {
  const pushed = useSignal(new Map<string, WatchedTask | null>());
  // The map is changed in place, because a copy for each of many new tasks would take longer and longer.
  const unknown = useRef(new Set<string>()).current;
  const count = useSignal(0);
  const tasks = useComputed<readonly TaskSummary[] | null>(() => page.value?.entries ?? null);
  const clear = () => {
    pushed.value = new Map();
    unknown.clear();
    count.value = 0;
  };
  const listed = (ids: Iterable<string>) => {
    for (const id of ids) unknown.delete(id);
    count.value = unknown.size;
  };
  useEffect(clear, [text]);
  useEffect(() => {
    // The list is also read again regularly; what it then shows is no longer new.
    listed((tasks.peek() ?? []).map((task) => task.id));
  }, [page.value]);
  useLive("mine", ({ id, item, version }) => {
    if (tasks.peek()?.some((task) => task.id === id)) {
      const known = pushed.peek().get(id);
      if (known === undefined || (known && known.version < version) || item === null) {
        pushed.value = new Map(pushed.peek()).set(id, item);
      }
    } else if (item && tasks.peek() && item.version === 1 && matches(parseSearch(text), item)) {
      if (unknown.size < MOST_NEW) count.value = unknown.add(id).size;
    }
  });
  return { tasks, fresh: { pushed, count, announced: () => [...unknown] }, listed };
}

function StateFilter({ text }: { text: string }) {
  const search = parseSearch(text);
  const words = search.terms.map((term) => term.text);
  const isFixed = hasNodes(search) && !words.includes("nodes:yes");
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
      <button
        type="button"
        class="chip with-nodes"
        aria-pressed={hasNodes(search)}
        disabled={isFixed}
        title={isFixed ? "Lists by state or topology always have nodes" : "List nodes of topologies, too"}
        onClick={() => go(toggled(text, "nodes:yes"))}
      >
        with nodes
      </button>
    </div>
  );
}

function Nothing({ filtered, named }: { filtered: boolean; named: string }) {
  if (filtered)
    return (
      <>
        {named && (
          <p>
            Only full names match, in the same case. <a href={href(["tasks"], { q: `contains:${written(named)}` })}>Search for a part of a name</a>: this search examines tasks one by one, the latest due first.
          </p>
        )}
        <p>Remove a term of the search, or press a state again to remove it.</p>
      </>
    );
  return (
    <>
      <p>A task is one piece of work with a due time. Create one here, on the command line, or over REST:</p>
      <Command text={`duetime tasks create echo --payload '"hello"' --in 3s`} />
      {liveState.value === "live" && <p class="muted">New tasks are announced here automatically.</p>}
    </>
  );
}

/** Counts the tasks on all pages and their cost, but only on request, because this examines up to a thousand tasks. */
function Count({ text, label }: { text: string; label: string }) {
  const count = useSignal<{ tasks: number; is_exact: boolean; cost_dollars: number } | "counting" | "unknown" | null>(null);
  const read = async () => {
    count.value = "counting";
    const asked = parameters(parseSearch(text));
    asked.set("limit", "1");
    asked.set("count", "true");
    try {
      count.value = (await get<TaskPage>(`/v1/tasks?${asked}`)).applied.count ?? "unknown";
    } catch {
      count.value = "unknown";
    }
  };
  const known = count.value;
  if (known === null)
    return (
      <button type="button" class="quiet small" onClick={() => void read()}>
        {label}
      </button>
    );
  const number = typeof known === "string" ? "" : counted(known.tasks, "task");
  return (
    <span class="muted" role="status">
      {known === "counting" ? "Counting…" : known === "unknown" ? "Number not known" : known.is_exact ? `${number} in all` : `${number} of the first thousand or so that were examined; there are more`}
      {typeof known === "object" && <>, <span title="Estimated cost of these tasks so far, by assumed public prices">{dollars(known.cost_dollars)}</span></>}
    </span>
  );
}

/** The time of the last change in the list; an old time means that no task has changed since. */
function LastChange({ at }: { at: string }) {
  return (
    <span title="Changes to tasks are listed after some seconds. None of your tasks has changed since this time, except perhaps in the last seconds.">
      , last change listed at <Time at={at} short />
    </span>
  );
}

function Pager({ page, token, text }: { page: Found<TaskPage, ListedTask>; token: string; text: string }) {
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span class="muted">
        {page.entries.length} shown, {page.examined.toLocaleString("en")} examined
        {page.page.applied.last_change_at && <LastChange at={page.page.applied.last_change_at} />}
      </span>
      {page.entries.length > 0 && <Count text={text} label={page.token ? "Count all" : "Total cost"} />}
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
