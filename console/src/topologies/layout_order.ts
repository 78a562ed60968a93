/** Orders the nodes in each column, with neighbors together and few crossings. */
import type { Vertices } from "./layout_vertices";
import { grouped, mean } from "./layout_vertices";

const SWEEPS = 8;

/** The initial order, with children of the same parent together. */
export function layersOf({ column, left }: Vertices): number[][] {
  const layers = grouped(column);
  const place = new Float64Array(column.length);
  for (const layer of layers) {
    const wanted = new Map(layer.map((vertex, at) => [vertex, mean(left[vertex] ?? [], place, at / layer.length)]));
    layer.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
    layer.forEach((vertex, at) => (place[vertex] = at / layer.length));
  }
  return layers;
}

/** Order each column by the mean of its neighbors, forwards and backwards, and keep the order with the fewest
 * crossings. */
export function* reduceCrossings(vertices: Vertices, layers: number[][]): Generator<void, void> {
  const place = new Float64Array(vertices.column.length);
  const number = (layer: readonly number[]) => layer.forEach((vertex, at) => (place[vertex] = at));
  layers.forEach(number);
  let fewest = yield* crossings(vertices, layers, place);
  let best = layers.map((layer) => [...layer]);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const isForward = sweep % 2 === 0;
    const neighbors = isForward ? vertices.left : vertices.right;
    for (const layer of isForward ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((vertex) => [vertex, mean(neighbors[vertex] ?? [], place, place[vertex] ?? 0)]));
      layer.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
      number(layer);
      yield;
    }
    const count = yield* crossings(vertices, layers, place);
    if (count < fewest) [fewest, best] = [count, layers.map((layer) => [...layer])];
  }
  best.forEach((layer, at) => (layers[at] = layer));
}

/** The number of edge crossings, counted with a Fenwick tree. */
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
