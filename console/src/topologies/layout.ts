/**
 * Computes the layout of a graph in columns from left to right, with parents before children (Sugiyama's method). It
 * works in short steps, so that a page with ten thousand nodes stays responsive. Columns that are much longer than
 * other columns are split.
 */
import type { Graph } from "./graph";
import { positions, ROW } from "./layout_heights";
import { layersOf, reduceCrossings } from "./layout_order";
import { grouped, mean, NODE_HEIGHT, NODE_WIDTH, verticesOf, type Vertices } from "./layout_vertices";

export { NODE_HEIGHT, NODE_WIDTH };
const COLUMN_GAP = 64;
/** Aspect ratio of a column, relative to the picture's. */
const ASPECT = 1.6;
const FEWEST_ROWS = 16;

export interface Edge {
  from: number;
  to: number;
  /** The points where the edge passes intermediate columns, as alternating x and y. */
  corners: readonly number[];
}

export interface Layout {
  /** The top left corner of each node. */
  x: Float64Array;
  y: Float64Array;
  edges: readonly Edge[];
  width: number;
  height: number;
}

/** Compute a layout in slices of a few milliseconds; null if stopped. */
export async function layoutOf(graph: Graph, stop: AbortSignal): Promise<Layout | null> {
  const steps = layoutSteps(graph);
  for (;;) {
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      const { done, value } = steps.next();
      if (done) return value;
    }
    await new Promise((resume) => setTimeout(resume));
    if (stop.aborted) return null;
  }
}

const SLICE_MS = 10;

function* layoutSteps(graph: Graph): Generator<void, Layout> {
  const { columns, isBroken } = yield* brokenColumns(graph, columnOf(graph));
  yield;
  const vertices = verticesOf(graph, columns, isBroken);
  yield;
  const layers = layersOf(vertices);
  yield* reduceCrossings(vertices, layers);
  const y = yield* positions(vertices, layers);
  return finished(vertices, layers.length, y);
}

/** The longest path from the first column; nodes without parents are placed just before their first child. */
function columnOf(graph: Graph): number[] {
  const column = graph.keys.map(() => 0);
  for (const node of graph.order) {
    for (const child of graph.children[node] ?? []) column[child] = Math.max(column[child] ?? 0, (column[node] ?? 0) + 1);
  }
  for (const [node, parents] of graph.parents.entries()) {
    const children = graph.children[node] ?? [];
    if (parents.length || !children.length) continue;
    column[node] = children.reduce((least, child) => Math.min(least, (column[child] ?? 0) - 1), Infinity);
  }
  return column;
}

/** The columns of the picture, and which of them are parts of a split column. */
interface Columns {
  columns: readonly number[];
  isBroken: readonly boolean[];
}

/** Split columns that are too long for the picture, with nodes grouped by their parents' positions. */
function* brokenColumns(graph: Graph, column: readonly number[]): Generator<void, Columns> {
  const rows = Math.max(FEWEST_ROWS, Math.ceil(Math.sqrt((graph.keys.length * (NODE_WIDTH + COLUMN_GAP)) / ROW / ASPECT)));
  const members = grouped(column);
  const place = new Float64Array(column.length);
  const broken = [...column];
  const isBroken: boolean[] = [];
  for (const nodes of members) {
    const next = isBroken.length;
    const wanted = new Map(nodes.map((node, at) => [node, mean(graph.parents[node] ?? [], place, at)]));
    nodes.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
    const parts = Math.ceil(nodes.length / (rows * 1.25)) || 1;
    const size = Math.ceil(nodes.length / parts);
    for (const [at, node] of nodes.entries()) {
      place[node] = at / nodes.length;
      broken[node] = next + Math.floor(at / size);
    }
    for (let part = 0; part < parts; part += 1) isBroken.push(parts > 1);
    yield;
  }
  return { columns: broken, isBroken };
}

function finished({ column, routes, nodes }: Vertices, columns: number, center: Float64Array): Layout {
  const x = new Float64Array(nodes);
  const y = new Float64Array(nodes);
  const step = NODE_WIDTH + COLUMN_GAP;
  const top = center.reduce((least, each) => Math.min(least, each), Infinity) - NODE_HEIGHT / 2;
  const bottom = center.reduce((most, each) => Math.max(most, each), -Infinity) + NODE_HEIGHT / 2;
  for (let node = 0; node < nodes; node += 1) {
    x[node] = (column[node] ?? 0) * step;
    y[node] = (center[node] ?? 0) - NODE_HEIGHT / 2 - top;
  }
  const edges = routes.map(({ from, to, corners }) => ({
    from,
    to,
    corners: corners.flatMap((corner) => [(column[corner] ?? 0) * step, (center[corner] ?? 0) - top]),
  }));
  return { x, y, edges, width: columns * step - COLUMN_GAP, height: bottom - top };
}
