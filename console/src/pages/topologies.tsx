/** The topologies, with one search and one live page of at most 100. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { hiddenText } from "../api/codec";
import { useLive, type WatchedTask } from "../api/live";
import { useReading } from "../api/reading";
import type { TopologyPage, TopologySummary } from "../api/types";
import { Command, Pager, ProblemBox, Relative, StateChip, Time, Took } from "../components/basics";
import { NoneFound, ReadingLine, Rows } from "../components/reading";
import { SearchBox, useOffsets } from "../components/search_box";
import { href, setQuery, usePlace } from "../router";
import { isTimed, matches, parameters, parseSearch, tagSearch, toggled, TOPOLOGY_QUALIFIERS, withOffsets } from "../search";
import { now, zoneLabel } from "../time";
import { CreateTopology } from "../topologies/create_topology";

const LIMIT = 100;
const SHOWN_STATES = ["scheduled", "blocked", "waiting", "running", "paused", "succeeded", "failed", "rolling_back", "rolled_back", "cancelled"];

export function Topologies() {
  const { query: shown } = usePlace("topologies");
  const text = shown.get("q") ?? "";
  const token = shown.get("page") ?? "";
  const search = parseSearch(text, TOPOLOGY_QUALIFIERS);
  const path = () => {
    const query = parameters(parseSearch(text, TOPOLOGY_QUALIFIERS));
    query.set("limit", String(LIMIT));
    if (token) query.set("next_token", token);
    return `/v1/topologies?${query}`;
  };
  useOffsets(text);
  const key = search.faults.length ? null : JSON.stringify([withOffsets(text), token]);
  const page = useReading<TopologyPage, TopologySummary>(isTimed(search) ? path : path(), { entries: (each) => each.topologies, enough: LIMIT }, key);
  const pushed = useSignal(new Map<string, WatchedTask | null>());
  const unknown = useSignal(new Set<string>());
  const read = page.found;
  const clear = () => {
    pushed.value = new Map();
    unknown.value = new Set();
  };
  useEffect(clear, [text]);
  const listed = (ids: ReadonlySet<string>) => {
    if ([...unknown.peek()].some((id) => ids.has(id))) unknown.value = new Set([...unknown.peek()].filter((id) => !ids.has(id)));
  };
  // The list is also read again regularly; what it then shows is no longer new.
  useEffect(() => listed(new Set(read.peek()?.entries.map((each) => each.id))), [read.value]);
  const readNew = async () => {
    // Topologies that are announced during the reading may be missing in its result.
    const announced = unknown.peek();
    if (await page.reload()) listed(announced);
  };
  useLive("mine", ({ id, item }) => {
    if (read.peek()?.entries.some((each) => each.id === id)) pushed.value = new Map(pushed.peek()).set(id, item);
    // Tasks of other types may be topologies, which are found when the list is read again.
    else if (item?.type === "topology" && item.version === 1 && matches(parseSearch(text, TOPOLOGY_QUALIFIERS), item)) unknown.value = new Set(unknown.peek()).add(id);
  });
  const topologies = useComputed(() => (read.value?.entries ?? []).flatMap((each) => newest(each, pushed.value.get(each.id))));
  const go = (q: string) => setQuery({ q: withOffsets(q), page: "" });
  const words = search.terms.map((term) => term.text);
  return (
    <>
      <div class="page-head">
        <h1>Topologies</h1>
        <CreateTopology />
      </div>
      <SearchBox text={text} seen={[]} search={go} label="Search topologies" qualifiers={TOPOLOGY_QUALIFIERS} />
      <div class="states" role="group" aria-label="States">
        {SHOWN_STATES.map((state) => (
          <button key={state} type="button" class={`chip state-${state}`} aria-pressed={words.includes(`state:${state}`)} onClick={() => go(toggled(text, `state:${state}`, TOPOLOGY_QUALIFIERS))}>
            <i aria-hidden="true" />
            {state.replaceAll("_", " ")}
          </button>
        ))}
      </div>
      {search.faults.map((fault) => (
        <p key={fault} class="fault" role="alert">
          {fault}
        </p>
      ))}
      <div class="list-tools" aria-live="polite">
        {unknown.value.size > 0 && (
          <button type="button" class="pill" onClick={() => (token ? setQuery({ page: "" }) : void readNew())}>
            {unknown.value.size} new
          </button>
        )}
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <Rows reading={page}>{topologies.value.length > 0 && <Table topologies={topologies.value} />}</Rows>
      <NoneFound reading={page} title={token ? "No more topologies" : text ? "No topology matches" : "No topologies yet"}>
        <Nothing isFiltered={text !== "" || token !== ""} />
      </NoneFound>
      {search.faults.length === 0 && <ReadingLine reading={page} />}
      <Pager token={read.value?.isKnown ? read.value.token : null} />
    </>
  );
}

function newest(read: TopologySummary, pushed: WatchedTask | null | undefined): TopologySummary[] {
  if (pushed === null) return [];
  if (!pushed || pushed.version <= read.version) return [read];
  const { state, started_at, finished_at, version } = pushed;
  const error = pushed.error as TopologySummary["error"];
  return [{ ...read, state, started_at, finished_at, version, error, requested_action: state === read.state ? read.requested_action : null }];
}

function Table({ topologies }: { topologies: readonly TopologySummary[] }) {
  return (
    <table class="cards topologies" aria-label="Topologies">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Topology</th>
          <th scope="col">Due ({zoneLabel()})</th>
          <th scope="col" class="number">Took</th>
          <th scope="col">Note</th>
        </tr>
      </thead>
      <tbody>
        {topologies.map((each) => (
          <tr key={each.id} data-row={each.id}>
            <td>
              <StateChip state={each.state} />
            </td>
            <td>
              <a href={href(["topologies", each.id])} title={each.id} data-open>
                <strong>{each.name ?? each.type}</strong>
              </a>{" "}
              {each.type !== "topology" && each.name && <span class="muted">{each.type}</span>}{" "}
              {Object.entries(each.tags).map(([key, value]) => (
                <a key={key} class="tag" href={href(["topologies"], { q: tagSearch(key, value) })}>
                  {key}:{value}
                </a>
              ))}
            </td>
            <td>
              <Time at={each.due_at} short /> <Relative at={each.due_at} />
            </td>
            <td class="number">
              {each.started_at && <span class="narrow-only muted">{each.finished_at ? "took " : "running for "}</span>}
              <Took ms={each.started_at ? Math.max(0, (each.finished_at ? Date.parse(each.finished_at) : now.value) - Date.parse(each.started_at)) : null} />
            </td>
            <td class="muted">{each.error ? hiddenText(each.error.message) : each.requested_action ? `asked to ${each.requested_action}` : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <p>Remove a term of the search, or press a state again to remove it.</p>;
  return (
    <>
      <p>A topology is a graph of tasks: each node starts as soon as its dependencies allow it.</p>
      <Command text="duetime topologies run nightly.json --watch" />
    </>
  );
}
