/** The vertices of a layout, which are nodes and, in the columns that edges pass, corners. */
import type { Graph } from "./graph";

export const NODE_WIDTH = 168;
export const NODE_HEIGHT = 32;
/** Above this total number of corners, edges are drawn straight, because the picture is too dense to follow an edge. */
const MOST_CORNERS = 60_000;

/** Vertices are the nodes, then the corners of edges. */
export interface Vertices {
  column: number[];
  left: number[][];
  right: number[][];
  /** The corners of each edge. */
  routes: { from: number; to: number; corners: number[] }[];
  /** Vertices from this index on are corners. */
  nodes: number;
}

/** The graph with a corner in each column that an edge passes, except split columns, where the edge passes behind
 * the nodes. */
export function verticesOf(graph: Graph, columns: readonly number[], isBroken: readonly boolean[]): Vertices {
  const column = [...columns];
  const left: number[][] = columns.map(() => []);
  const right: number[][] = columns.map(() => []);
  const routes: Vertices["routes"] = [];
  const link = (from: number, to: number) => {
    right[from]?.push(to);
    left[to]?.push(from);
  };
  for (const from of graph.order) {
    for (const to of graph.children[from] ?? []) {
      const [first, last] = [columns[from] ?? 0, columns[to] ?? 0];
      const corners: number[] = [];
      const fits = column.length - columns.length + last - first < MOST_CORNERS;
      for (let at = first + 1; fits && at < last; at += 1) {
        if (isBroken[at]) continue;
        corners.push(column.length);
        column.push(at);
        left.push([]);
        right.push([]);
      }
      const ends = [from, ...corners, to];
      if (fits) ends.slice(1).forEach((vertex, at) => link(ends[at] ?? from, vertex));
      routes.push({ from, to, corners });
    }
  }
  return { column, left, right, routes, nodes: columns.length };
}

export function grouped(column: readonly number[]): number[][] {
  const groups: number[][] = [];
  column.forEach((at, vertex) => (groups[at] ??= []).push(vertex));
  return Array.from(groups, (group) => group ?? []);
}

export function mean(vertices: readonly number[], of: Float64Array, otherwise: number): number {
  let sum = 0;
  for (const vertex of vertices) sum += of[vertex] ?? 0;
  return vertices.length ? sum / vertices.length : otherwise;
}
