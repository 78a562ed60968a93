/** The steps of a rollback, with their nodes and progress. */
import type { Topology } from "../api/types";
import { StateChip } from "../components/basics";
import { setQuery } from "../router";
import type { Graph } from "./graph";
import { statusOf, type Nodes } from "./live_topology";
import { rollbackOrder } from "./rollback_order";

const MOST_STEPS = 30;
const MOST_IN_A_STEP = 12;

/** The actions of a rollback, actual or hypothetical, in order. */
export function Rollback({ topology, graph, nodes }: { topology: Topology; graph: Graph; nodes: Nodes }) {
  const isUnderWay = [...nodes.values()].some((node) => ["rolling_back", "rolled_back"].includes(node.state));
  if (topology.on_failure !== "rollback" && !isUnderWay) return null;
  const steps = rollbackOrder(graph, nodes);
  return (
    <details class="card rollback" open={isUnderWay}>
      <summary>Order of the rollback</summary>
      <p class="muted">
        {isUnderWay ? "Before a node is rolled back, all nodes that depend on it are rolled back." : "If a node fails, the nodes that have run until now are rolled back in this order."}
        {steps.length === 0 && " No node has run yet."}
      </p>
      <ol>
        {steps.slice(0, MOST_STEPS).map((keys, index) => (
          <li key={index}>
            {keys.slice(0, MOST_IN_A_STEP).map((key) => {
              const node = nodes.get(key);
              return (
                <span key={key} class="rollback-node">
                  <button type="button" class="link" onClick={() => setQuery({ node: key })}>
                    {key}
                  </button>{" "}
                  {node && <StateChip state={statusOf(node)} />}
                </span>
              );
            })}
            {keys.length > MOST_IN_A_STEP && <span class="muted">and {keys.length - MOST_IN_A_STEP} more</span>}
          </li>
        ))}
      </ol>
      {steps.length > MOST_STEPS && <p class="muted">and {steps.length - MOST_STEPS} more steps</p>}
    </details>
  );
}
