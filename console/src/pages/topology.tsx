/** One topology, with its live graph, node times, reasons why nodes did not run, its rollback and its actions. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Topology } from "../api/types";
import { Copy, ProblemBox, Relative, StateChip, Time } from "../components/basics";
import { OperationProgress } from "../components/operation_progress";
import { Message } from "../components/payload_view";
import { href, setQuery, usePlace } from "../router";
import { duration, now } from "../time";
import { Gantt } from "../topologies/gantt";
import { STATUSES } from "../topologies/graph_canvas";
import { GraphView } from "../topologies/graph_view";
import { statusOf, useTopology, type Nodes } from "../topologies/live_topology";
import { NodePanel } from "../topologies/node_panel";
import { NodeTable } from "../topologies/node_table";
import { Rollback } from "../topologies/rollback";
import { TopologyActions } from "../topologies/topology_actions";

const VIEWS = { graph: "Graph", times: "Times", nodes: "Nodes" } as const;

export function TopologyPage({ subject: id }: { subject: string }) {
  const { resource, topology, nodes, graph, reload } = useTopology(id);
  const { query } = usePlace("topologies", id);
  useFailed(topology.value, nodes.value, query);
  const read = topology.value;
  if (!read) {
    return resource.problem.value ? <ProblemBox problem={resource.problem.value} retry={() => void reload()} /> : <p class="muted">Loading the topology…</p>;
  }
  const view = Object.keys(VIEWS).find((each) => each === query.get("view")) ?? "graph";
  const selected = query.get("node") ?? "";
  const found = matching(nodes.value, query.get("q") ?? "", query.get("status") ?? "");
  const shared = { graph, nodes, critical: query.get("path") === "0" ? [] : read.critical_path.nodes, found, query };
  return (
    <>
      <Head topology={read} done={() => void reload()} />
      {resource.problem.value && <ProblemBox problem={resource.problem.value} retry={() => void reload()} />}
      <Progress topology={read} nodes={nodes.value} chosen={query.get("status") ?? ""} />
      <Tools view={view} query={query} />
      <div class={selected ? "with-panel" : ""}>
        <section class="card topology-view" aria-label={VIEWS[view as keyof typeof VIEWS]}>
          {view === "graph" && <GraphView {...shared} selected={selected} />}
          {view === "times" && <Gantt {...shared} selected={selected} />}
          {view === "nodes" && <NodeTable {...shared} />}
        </section>
        {selected && <NodePanel key={selected} topology={read} name={selected} nodes={nodes} done={() => void reload()} />}
      </div>
      <Rollback topology={read} graph={graph.value} nodes={nodes.value} />
    </>
  );
}

/** Failed nodes, beginning with the node that failed first. */
const failedOf = (nodes: Nodes): string[] =>
  [...nodes]
    .filter(([, node]) => statusOf(node) === "failed")
    .sort(([, a], [, b]) => Date.parse(a.finished_at ?? "") - Date.parse(b.finished_at ?? ""))
    .map(([name]) => name);

/** Selects the first failed node if the topology had failed before the page was opened. */
function useFailed(topology: Topology | null, nodes: Nodes, query: URLSearchParams): void {
  const isOpened = useRef(false);
  useEffect(() => {
    if (!topology || isOpened.current) return;
    isOpened.current = true;
    const [first] = failedOf(nodes);
    if (topology.state === "failed" && first !== undefined && !query.has("node")) setQuery({ node: first }, true);
  }, [topology]);
}

/** The nodes that match the search and chosen states; null without a filter. */
function matching(nodes: Nodes, text: string, chosen: string): Set<string> | null {
  if (!text && !chosen) return null;
  const wanted = new Set(chosen.split(",").filter(Boolean));
  const lower = text.toLowerCase();
  const matches = [...nodes].filter(
    ([key, node]) => (!wanted.size || wanted.has(statusOf(node))) && (key.toLowerCase().includes(lower) || node.type.toLowerCase().includes(lower)),
  );
  return new Set(matches.map(([key]) => key));
}

const POLICIES: Record<Topology["on_failure"], string> = {
  stop: "Stops on failure",
  continue: "Continues after a failure",
  rollback: "Rolls back on failure",
};

function Head({ topology, done }: { topology: Topology; done: () => void }) {
  const { id, name, type, state, run, on_failure, requested_action, topology: outer } = topology;
  return (
    <div class="page-head">
      <div>
        <p class="crumbs">
          <a href={href(["topologies"])}>Topologies</a> <span aria-hidden="true">/</span> <code>{id}</code> <Copy text={id} label="Copy id" />
        </p>
        <h1>
          {name ?? type} <StateChip state={state} /> {requested_action && <span class="tag">asked to {requested_action}</span>}
        </h1>
        <p class="muted">
          due <Time at={topology.due_at} /> (<Relative at={topology.due_at} />) · {POLICIES[on_failure]}
          {run > 1 && <> · run {run}</>}
          {outer && <> · <a href={href(["topologies", outer.id], { node: outer.node })}>node {outer.node} of another topology</a></>} · <a href={href(["tasks", id])}>its own task</a>
        </p>
        <Origin topology={topology} />
      </div>
      <TopologyActions topology={topology} done={done} />
    </div>
  );
}

/** The definition from which the topology was created, with its parameters and the nodes whose results it returns. */
function Origin({ topology: { id, definition, outputs, state } }: { topology: Topology }) {
  if (!definition && outputs.length === 0) return null;
  const values = Object.entries(definition?.parameters ?? {});
  return (
    <p class="muted">
      {definition && (
        <>
          run of{" "}
          <a href={href(["definitions", definition.name], definition.version === null ? {} : { version: String(definition.version) })}>
            {definition.name} version {definition.version}
          </a>
          {values.length > 0 && " with "}
          {values.map(([name, value]) => (
            <code key={name} class="tag">
              {name} = {JSON.stringify(value)}
            </code>
          ))}
        </>
      )}
      {definition && outputs.length > 0 && " · "}
      {outputs.length > 0 && (
        <>
          outputs{" "}
          {outputs.map((name) => (
            <button key={name} type="button" class="link" onClick={() => setQuery({ node: name })}>
              {name}
            </button>
          ))}
          {state === "succeeded" && <> (in the <a href={href(["tasks", id])}>result</a>)</>}
        </>
      )}
    </p>
  );
}

const counted = (nodes: Nodes): Map<string, number> => {
  const counts = new Map(STATUSES.map((status) => [status, 0]));
  for (const node of nodes.values()) counts.set(statusOf(node), (counts.get(statusOf(node)) ?? 0) + 1);
  return new Map([...counts].filter(([, count]) => count));
};

const SHOWN_FAILED = 3;

function Progress({ topology, nodes, chosen }: { topology: Topology; nodes: Nodes; chosen: string }) {
  const { percent, critical_path: path, started_at, finished_at, error, operation } = topology;
  const took = started_at ? (finished_at ? Date.parse(finished_at) : now.value) - Date.parse(started_at) : null;
  const text = `${percent}% done`;
  const failed = failedOf(nodes).slice(0, SHOWN_FAILED);
  return (
    <section class="card topology-progress" aria-label="Progress">
      <div class="stacked" role="img" aria-label={text}>
        {[...counted(nodes)].map(([status, count]) => (
          <i key={status} class={`state-${status}`} title={`${count} ${status.replaceAll("_", " ")}`} style={{ flexGrow: count }} />
        ))}
      </div>
      <States counts={counted(nodes)} chosen={chosen.split(",").filter(Boolean)} />
      <p>
        <strong>{text}</strong>
        <span class="muted">
          {took !== null && <> · {finished_at ? "took" : "running for"} {duration(Math.max(0, took))}</>} · critical path {duration(path.seconds * 1000)},{" "}
          {path.nodes.length} {path.nodes.length === 1 ? "node" : "nodes"}
          {took !== null && finished_at && took - path.seconds * 1000 >= 1000 && <>; {duration(took - path.seconds * 1000)} of {duration(took)} were not spent on this path</>}
        </span>
      </p>
      {error && (
        <p class="bad">
          <code>{error.type}</code> <Message text={error.message} />{" "}
          {failed.map((name) => (
            <button key={name} type="button" class="link" onClick={() => setQuery({ node: name })}>
              Show node {name}
            </button>
          ))}
        </p>
      )}
      {operation && !operation.finished_at && <OperationProgress operation={operation} />}
    </section>
  );
}

/** Node counts by state; selected states filter all views. */
function States({ counts, chosen }: { counts: ReadonlyMap<string, number>; chosen: readonly string[] }) {
  const toggle = (status: string) => {
    const next = chosen.includes(status) ? chosen.filter((each) => each !== status) : [...chosen, status];
    setQuery({ status: next.join(","), page: "" });
  };
  return (
    <div class="states" role="group" aria-label="Nodes by state">
      {[...counts].map(([status, count]) => (
        <button key={status} type="button" class={`chip state-${status}`} aria-pressed={chosen.includes(status)} onClick={() => toggle(status)}>
          <i aria-hidden="true" />
          {status.replaceAll("_", " ")} {count.toLocaleString("en")}
        </button>
      ))}
    </div>
  );
}

function Tools({ view, query }: { view: string; query: URLSearchParams }) {
  const isMarked = query.get("path") !== "0";
  return (
    <div class="topology-tools">
      <div class="tabs" role="group" aria-label="View">
        {Object.entries(VIEWS).map(([name, title]) => (
          <button key={name} type="button" aria-pressed={name === view} onClick={() => setQuery({ view: name === "graph" ? "" : name })}>
            {title}
          </button>
        ))}
      </div>
      <NodeSearch text={query.get("q") ?? ""} />
      <button type="button" aria-pressed={isMarked} onClick={() => setQuery({ path: isMarked ? "0" : "" }, true)}>
        Critical path
      </button>
    </div>
  );
}

const TYPED_MS = 200;

function NodeSearch({ text }: { text: string }) {
  const typed = useSignal(text);
  useEffect(() => void (typed.value = text), [text]);
  useEffect(() => {
    if (typed.value === text) return undefined;
    const timer = setTimeout(() => setQuery({ q: typed.value, page: "" }, true), TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed.value]);
  return (
    <input
      type="search"
      data-search
      aria-label="Search nodes"
      placeholder="Search nodes"
      value={typed.value}
      onInput={(event) => (typed.value = event.currentTarget.value)}
    />
  );
}
