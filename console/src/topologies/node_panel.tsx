/** The panel of one node, with the reason for its state, its rule, neighbors, task and actions. */
import type { ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useResource } from "../api/resource";
import type { Task, Topology, TopologyNode } from "../api/types";
import { Facts, ProblemBox, StateChip, Time, Took } from "../components/basics";
import { Message } from "../components/payload_view";
import { TaskActions } from "../components/task_actions";
import { href, setQuery } from "../router";
import { now } from "../time";
import { CreateTopology } from "./create_topology";
import { RULES, decisive, whyOf } from "./explanation";
import { statusOf, type Nodes } from "./live_topology";
import { RunAgainFrom } from "./topology_actions";

const MOST_NEIGHBORS = 12;

interface NodePanelProps {
  topology: Topology;
  name: string;
  nodes: ReadonlySignal<Nodes>;
  done: () => void;
}

export function NodePanel({ topology, name, nodes, done }: NodePanelProps) {
  const node = nodes.value.get(name);
  const task = useResource<Task>(node?.task_id ? `/v1/tasks/${node.task_id}` : null);
  const state = node?.state;
  useEffect(() => {
    if (task.data.peek()) void task.reload();
  }, [state]);
  const children = [...nodes.value].flatMap(([key, each]) => (each.depends_on.includes(name) ? [key] : []));
  return (
    <aside class="card node-panel" aria-label={`Node ${name}`}>
      <header>
        <h2>{name}</h2>
        <button type="button" class="quiet small" aria-label="Close the node" onClick={() => setQuery({ node: "" })}>
          ✕
        </button>
      </header>
      {!node && <p class="muted">There is no such node in this topology.</p>}
      {node && (
        <>
          <p aria-live="polite">
            <StateChip state={statusOf(node)} /> {node.task_id && <a href={href(["tasks", node.task_id])}>Open its task</a>}{" "}
            {node.is_topology && node.task_id && <a href={href(["topologies", node.task_id])}>Open its graph</a>}
          </p>
          <Why node={node} nodes={nodes.value} task={task.data.value} />
          <About node={node} />
          <Neighbors title="Depends on" keys={node.depends_on} nodes={nodes.value} decided={decisive(node, nodes.value)} />
          <Neighbors title="Needed by" keys={children} nodes={nodes.value} decided={[]} />
          {task.problem.value && <ProblemBox problem={task.problem.value} />}
          <div class="actions">
            {task.data.value && state !== "blocked" && (
              <TaskActions
                task={task.data.value}
                node
                done={() => {
                  void task.reload();
                  done();
                }}
              />
            )}
            <RunAgainFrom topology={topology} node={name} done={done} />
            <CreateTopology from={topology.id} node={name} />
          </div>
        </>
      )}
    </aside>
  );
}

function Why({ node, nodes, task }: { node: TopologyNode; nodes: Nodes; task: Task | null }) {
  const text = whyOf(node, nodes);
  const error = task?.error;
  return (
    <>
      {text && <p class="node-why">{text}</p>}
      {error && node.state !== "succeeded" && (
        <p class="node-error">
          <code>{error.type}</code> <Message text={error.message} />
        </p>
      )}
    </>
  );
}

function About({ node }: { node: TopologyNode }) {
  const end = node.finished_at ? Date.parse(node.finished_at) : now.value;
  return (
    <Facts
      rows={[
        ["Type", <a href={href(["tasks"], { q: `type:${node.type}` })}>{node.type}</a>],
        ["Rule", <><code>{node.trigger_rule}</code> <span class="muted">{RULES[node.trigger_rule]}</span></>],
        ...(node.when ? ([["Condition", <code>{node.when}</code>]] as const) : []),
        ["Started", <Time at={node.started_at} />],
        ["Took", <Took ms={node.started_at ? Math.max(0, end - Date.parse(node.started_at)) : null} />],
        ...(node.expected_seconds === null ? [] : ([["Expected", <Took ms={node.expected_seconds * 1000} />]] as const)),
        ...(node.state === "running" && node.percent > 0 ? ([["Progress", `${node.percent}%`]] as const) : []),
      ]}
    />
  );
}

/** Parents or children, beginning with the nodes that decided the state. */
function Neighbors({ title, keys, nodes, decided }: { title: string; keys: readonly string[]; nodes: Nodes; decided: readonly string[] }) {
  const first = new Set(decided);
  const sorted = [...keys].sort((one, other) => Number(first.has(other)) - Number(first.has(one)));
  return (
    <section>
      <h3>
        {title} <span class="muted">{keys.length || "no nodes"}</span>
      </h3>
      <ul class="neighbors">
        {sorted.slice(0, MOST_NEIGHBORS).map((key) => {
          const node = nodes.get(key);
          return (
            <li key={key}>
              {node && <StateChip state={statusOf(node)} />}{" "}
              <button type="button" class="link" onClick={() => setQuery({ node: key })}>
                {key}
              </button>
              {first.has(key) && <span class="tag">decided</span>}
            </li>
          );
        })}
      </ul>
      {keys.length > MOST_NEIGHBORS && <p class="muted">and {keys.length - MOST_NEIGHBORS} more</p>}
    </section>
  );
}
