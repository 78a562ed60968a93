/** A topology's graph as arrays with numbered nodes, which is fast enough for ten thousand nodes. */
import type { TopologyNode } from "../api/types";

export interface Graph {
  keys: readonly string[];
  index: ReadonlyMap<string, number>;
  parents: readonly (readonly number[])[];
  children: readonly (readonly number[])[];
  /** All nodes, parents before children. */
  order: readonly number[];
  /** The length of the common prefix of all names, which is omitted where space is limited. */
  prefix: number;
}

export function graphOf(nodes: ReadonlyMap<string, Pick<TopologyNode, "depends_on">>): Graph {
  const keys = [...nodes.keys()];
  const index = new Map(keys.map((key, at) => [key, at]));
  const parents = keys.map((key) => (nodes.get(key)?.depends_on ?? []).flatMap((parent) => index.get(parent) ?? []));
  const children: number[][] = keys.map(() => []);
  parents.forEach((of, child) => of.forEach((parent) => children[parent]?.push(child)));
  return { keys, index, parents, children, order: ordered(parents, children), prefix: commonPrefix(keys).length };
}

function ordered(parents: readonly (readonly number[])[], children: readonly (readonly number[])[]): number[] {
  const missing = parents.map((of) => of.length);
  const order = missing.flatMap((count, node) => (count === 0 ? [node] : []));
  for (const node of order) {
    for (const child of children[node] ?? []) {
      missing[child] = (missing[child] ?? 0) - 1;
      if (missing[child] === 0) order.push(child);
    }
  }
  return order;
}

/** A key of the graph's structure; the layout changes only with it. */
export const signatureOf = (nodes: ReadonlyMap<string, Pick<TopologyNode, "depends_on">>): string =>
  JSON.stringify([...nodes].map(([key, node]) => [key, node.depends_on]));

const SHORTEST_PREFIX = 12;

/** The common prefix of all names up to a separator; empty if short. */
function commonPrefix(keys: Iterable<string>): string {
  let prefix: string | null = null;
  for (const key of keys) {
    prefix ??= key;
    while (prefix && !key.startsWith(prefix)) prefix = prefix.slice(0, -1);
  }
  const cut = /^.*[._:/-]/.exec(prefix ?? "")?.[0] ?? "";
  return cut.length >= SHORTEST_PREFIX ? cut : "";
}
