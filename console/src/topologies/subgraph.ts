/** Extracts a part of a graph as a separate graph. */
interface GraphNode {
  depends_on?: string[];
  inputs?: string[];
}

export type GraphNodes = Record<string, GraphNode>;

/** A node and all its dependents. Dependencies on other nodes are omitted, because those nodes are not in the new graph. */
export function subgraph(nodes: GraphNodes, first: string): GraphNodes {
  const children = new Map<string, string[]>();
  for (const [key, node] of Object.entries(nodes)) {
    for (const parent of node.depends_on ?? []) {
      const known = children.get(parent);
      if (known) known.push(key);
      else children.set(parent, [key]);
    }
  }
  const chosen = new Set([first]);
  for (const key of chosen) children.get(key)?.forEach((child) => chosen.add(child));
  const part = Object.entries(nodes).filter(([key]) => chosen.has(key));
  return Object.fromEntries(part.map(([key, node]) => [key, within(node, chosen)]));
}

function within(node: GraphNode, chosen: ReadonlySet<string>): GraphNode {
  const { depends_on, inputs, ...rest } = node;
  const kept = (names: string[] | undefined) => (names ?? []).filter((name) => chosen.has(name));
  return {
    ...rest,
    ...(kept(depends_on).length ? { depends_on: kept(depends_on) } : {}),
    ...(kept(inputs).length ? { inputs: kept(inputs) } : {}),
  };
}
