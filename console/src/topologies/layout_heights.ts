/** Vertical positions of nodes and edge corners in their columns. */
import { NODE_HEIGHT, type Vertices } from "./layout_vertices";

const ROW_GAP = 12;
const LINE_GAP = 5;
const SWEEPS = 8;
/** Distance between centers. */
export const ROW = NODE_HEIGHT + ROW_GAP;

/** Compute vertical positions, with each vertex as close to its neighbors as order and distances allow, and straight
 * long lines.
 * */
export function* positions(vertices: Vertices, layers: readonly number[][]): Generator<void, Float64Array> {
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
  return one || other ? NODE_HEIGHT / 2 + ROW_GAP : ROW;
}

/** The target position of a vertex by its neighbors, with weight; corners keep lines straight. */
function pull(vertex: number, sides: readonly number[][][], y: Float64Array, isCorner: (vertex: number) => boolean): [number, number] {
  let [sum, weight] = [0, 0];
  for (const neighbors of sides) {
    for (const each of neighbors[vertex] ?? []) {
      const strength = isCorner(vertex) ? (isCorner(each) ? 8 : 2) : isCorner(each) ? 2 : 1;
      sum += strength * (y[each] ?? 0);
      weight += strength;
    }
  }
  return weight ? [sum / weight, weight] : [y[vertex] ?? 0, 0.01];
}

/** Least squares with minimum distances in a column, where overlapping neighbors form a block (isotonic regression). */
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
