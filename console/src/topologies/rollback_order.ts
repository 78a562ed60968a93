/** The order of a rollback, in which all of a node's dependents come before the node. */
import type { TopologyNode } from "../api/types";
import type { Graph } from "./graph";
import type { Nodes } from "./live_topology";

const isConcerned = (node: TopologyNode | undefined): boolean =>
  node !== undefined && (["succeeded", "rolling_back", "rolled_back"].includes(node.state) || (node.state === "failed" && node.started_at !== null));

/** The rolled-back nodes by step; a step begins when the previous step has ended. */
export function rollbackOrder(graph: Graph, nodes: Nodes): string[][] {
  const step = new Int32Array(graph.keys.length);
  const concerned = graph.keys.map((key) => isConcerned(nodes.get(key)));
  for (let at = graph.order.length - 1; at >= 0; at -= 1) {
    const node = graph.order[at] ?? 0;
    for (const child of graph.children[node] ?? []) {
      step[node] = Math.max(step[node] ?? 0, (step[child] ?? 0) + (concerned[child] ? 1 : 0));
    }
  }
  const steps: string[][] = [];
  for (const node of graph.order) {
    const key = graph.keys[node];
    if (concerned[node] && key !== undefined) (steps[step[node] ?? 0] ??= []).push(key);
  }
  return steps.filter(Boolean);
}
