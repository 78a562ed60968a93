/**
 * Where the nodes of a graph are drawn: in columns from left to right, parents before children (the method of Sugiyama).
 * It works in short steps, so that a page with ten thousand nodes still answers. Columns that are much longer than the
 * others are broken into several.
 */
import type { Graph } from "./graph";

export const NODE_WIDTH = 168;
export const NODE_HEIGHT = 32;
const COLUMN_GAP = 64;
const ROW_GAP = 12;
const LINE_GAP = 5;
const SWEEPS = 8;
/** Width by height of a column of the picture, in relation to that of the picture. */
const ASPECT = 1.6;
const FEWEST_ROWS = 16;
/** Lines with more corners than this together are drawn straight: the picture is too full to follow one. */
const MOST_CORNERS = 60_000;

export interface Edge {
  from: number;
  to: number;
  /** Where it passes the columns between them: x and y in turn. */
  corners: readonly number[];
}

export interface Layout {
  /** The left upper corner of each node. */
  x: Float64Array;
  y: Float64Array;
  edges: readonly Edge[];
  width: number;
  height: number;
}

/** Compute a layout in slices of some milliseconds; null if it was stopped. */
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

/** Vertices are the nodes, then the corners of edges. */
interface Vertices {
  column: number[];
  left: number[][];
  right: number[][];
  /** The corners of each edge. */
  routes: { from: number; to: number; corners: number[] }[];
  /** From here on vertices are corners. */
  nodes: number;
}

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

/** The longest way from the first column; what has no parents stands just before its first child. */
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

/** The columns of the picture, and which of them are parts of one that would be too long. */
interface Columns {
  columns: readonly number[];
  isBroken: readonly boolean[];
}

/** Break columns that are too long for the picture into several, their nodes grouped by where their parents are. */
function* brokenColumns(graph: Graph, column: readonly number[]): Generator<void, Columns> {
  const rows = Math.max(FEWEST_ROWS, Math.ceil(Math.sqrt((graph.keys.length * (NODE_WIDTH + COLUMN_GAP)) / (NODE_HEIGHT + ROW_GAP) / ASPECT)));
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

function grouped(column: readonly number[]): number[][] {
  const groups: number[][] = [];
  column.forEach((at, vertex) => (groups[at] ??= []).push(vertex));
  return Array.from(groups, (group) => group ?? []);
}

function mean(vertices: readonly number[], of: Float64Array, otherwise: number): number {
  let sum = 0;
  for (const vertex of vertices) sum += of[vertex] ?? 0;
  return vertices.length ? sum / vertices.length : otherwise;
}

/** The graph with a corner in each column that an edge passes; in a broken one there is no room, it passes behind the nodes. */
function verticesOf(graph: Graph, columns: readonly number[], isBroken: readonly boolean[]): Vertices {
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

/** The first order: neighbours of the same parent together. */
function layersOf({ column, left }: Vertices): number[][] {
  const layers = grouped(column);
  const place = new Float64Array(column.length);
  for (const layer of layers) {
    const wanted = new Map(layer.map((vertex, at) => [vertex, mean(left[vertex] ?? [], place, at / layer.length)]));
    layer.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
    layer.forEach((vertex, at) => (place[vertex] = at / layer.length));
  }
  return layers;
}

/** Order each column by the mean of its neighbours, forwards and backwards, and keep the order with the fewest crossings. */
function* reduceCrossings(vertices: Vertices, layers: number[][]): Generator<void, void> {
  const place = new Float64Array(vertices.column.length);
  const number = (layer: readonly number[]) => layer.forEach((vertex, at) => (place[vertex] = at));
  layers.forEach(number);
  let fewest = yield* crossings(vertices, layers, place);
  let best = layers.map((layer) => [...layer]);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const isForward = sweep % 2 === 0;
    const neighbours = isForward ? vertices.left : vertices.right;
    for (const layer of isForward ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((vertex) => [vertex, mean(neighbours[vertex] ?? [], place, place[vertex] ?? 0)]));
      layer.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
      number(layer);
      yield;
    }
    const count = yield* crossings(vertices, layers, place);
    if (count < fewest) [fewest, best] = [count, layers.map((layer) => [...layer])];
  }
  best.forEach((layer, at) => (layers[at] = layer));
}

/** How often edges cross, counted with a tree of sums. */
function* crossings({ right }: Vertices, layers: readonly number[][], place: Float64Array): Generator<void, number> {
  let count = 0;
  for (const [at, layer] of layers.entries()) {
    const size = layers[at + 1]?.length ?? 0;
    const sums = new Int32Array(size + 1);
    let seen = 0;
    for (const vertex of layer) {
      const ends = (right[vertex] ?? []).map((end) => place[end] ?? 0);
      for (const end of ends) {
        let before = 0;
        for (let node = end + 1; node > 0; node -= node & -node) before += sums[node] ?? 0;
        count += seen - before;
      }
      for (const end of ends) {
        for (let node = end + 1; node <= size; node += node & -node) sums[node] = (sums[node] ?? 0) + 1;
      }
      seen += ends.length;
    }
    yield;
  }
  return count;
}

/** Heights: each vertex as near to its neighbours as the order and the distances allow, and long lines straight. */
function* positions(vertices: Vertices, layers: readonly number[][]): Generator<void, Float64Array> {
  const y = new Float64Array(vertices.column.length);
  const isCorner = (vertex: number) => vertex >= vertices.nodes;
  const offsets = layers.map((layer) => {
    let below = 0;
    return layer.map((vertex, at) => {
      const before = layer[at - 1];
      if (before !== undefined) below += distance(isCorner(before), isCorner(vertex));
      y[vertex] = below;
      return below;
    });
  });
  const tallest = Math.max(...offsets.map((each) => each.at(-1) ?? 0));
  layers.forEach((layer, at) => layer.forEach((vertex) => (y[vertex] = (y[vertex] ?? 0) + (tallest - (offsets[at]?.at(-1) ?? 0)) / 2)));
  for (let sweep = 0; sweep < SWEEPS + 2; sweep += 1) {
    const isForward = sweep % 2 === 0;
    const sides = sweep >= SWEEPS ? [vertices.left, vertices.right] : [isForward ? vertices.left : vertices.right];
    for (let step = 0; step < layers.length; step += 1) {
      const at = isForward ? step : layers.length - 1 - step;
      settle(layers[at] ?? [], offsets[at] ?? [], y, (vertex) => pull(vertex, sides, y, isCorner));
      yield;
    }
  }
  return y;
}

function distance(one: boolean, other: boolean): number {
  if (one && other) return LINE_GAP;
  return one || other ? NODE_HEIGHT / 2 + ROW_GAP : NODE_HEIGHT + ROW_GAP;
}

/** Where the neighbours of a vertex draw it, and how much: corners keep lines straight. */
function pull(vertex: number, sides: readonly number[][][], y: Float64Array, isCorner: (vertex: number) => boolean): [number, number] {
  let [sum, weight] = [0, 0];
  for (const neighbours of sides) {
    for (const each of neighbours[vertex] ?? []) {
      const strength = isCorner(vertex) ? (isCorner(each) ? 8 : 2) : isCorner(each) ? 2 : 1;
      sum += strength * (y[each] ?? 0);
      weight += strength;
    }
  }
  return weight ? [sum / weight, weight] : [y[vertex] ?? 0, 0.01];
}

/** Least squares under the distances of a column: neighbours that would overlap form a block (isotonic regression). */
function settle(layer: readonly number[], offsets: readonly number[], y: Float64Array, wanted: (vertex: number) => [number, number]): void {
  const blocks: { at: number; weight: number; size: number }[] = [];
  layer.forEach((vertex, index) => {
    const [at, weight] = wanted(vertex);
    let block = { at: at - (offsets[index] ?? 0), weight, size: 1 };
    for (let last = blocks.at(-1); last && last.at > block.at; last = blocks.at(-1)) {
      blocks.pop();
      const sum = last.weight + block.weight;
      block = { at: (last.at * last.weight + block.at * block.weight) / sum, weight: sum, size: last.size + block.size };
    }
    blocks.push(block);
  });
  let index = 0;
  for (const block of blocks) {
    for (let each = 0; each < block.size; each += 1, index += 1) y[layer[index] ?? 0] = block.at + (offsets[index] ?? 0);
  }
}

function finished({ column, routes, nodes }: Vertices, columns: number, centre: Float64Array): Layout {
  const x = new Float64Array(nodes);
  const y = new Float64Array(nodes);
  const step = NODE_WIDTH + COLUMN_GAP;
  const top = centre.reduce((least, each) => Math.min(least, each), Infinity) - NODE_HEIGHT / 2;
  const bottom = centre.reduce((most, each) => Math.max(most, each), -Infinity) + NODE_HEIGHT / 2;
  for (let node = 0; node < nodes; node += 1) {
    x[node] = (column[node] ?? 0) * step;
    y[node] = (centre[node] ?? 0) - NODE_HEIGHT / 2 - top;
  }
  const edges = routes.map(({ from, to, corners }) => ({
    from,
    to,
    corners: corners.flatMap((corner) => [(column[corner] ?? 0) * step, (centre[corner] ?? 0) - top]),
  }));
  return { x, y, edges, width: columns * step - COLUMN_GAP, height: bottom - top };
}
