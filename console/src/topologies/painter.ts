/** Draws the visible part of a graph on a canvas, with less detail at small scales, within the time of a frame. */
import type { Graph } from "./graph";
import { NODE_HEIGHT, NODE_WIDTH, type Layout } from "./layout";
import type { Size, Viewport } from "./viewport";

/** The data to draw. The arrays have one entry for each node. */
export interface Scene {
  graph: Graph;
  layout: Layout;
  status: readonly string[];
  /** Progress of the node in percent. */
  percent: readonly number[];
  /** The nodes of the critical path, in order. */
  critical: readonly number[];
  /** Nodes that match the search; null for all. */
  found: ReadonlySet<number> | null;
  selected: number | null;
}

export interface Palette {
  states: ReadonlyMap<string, string>;
  text: string;
  card: string;
  line: string;
  accent: string;
  font: string;
}

/** Minimum scales for showing names, marks and curves. */
const READABLE = 0.3;
const MARKED = 0.42;
const CURVED = 0.12;
/** The number of edges per frame; other edges follow in later frames, once the picture is still. */
const EDGES_A_FRAME = 600;
const DIMMED = 0.25;
/** Minimum font size in pixels; longer names are cut. */
const SMALLEST_TEXT = 10;
const TEXT = 12.5;

export class Painter {
  #labels: (string | undefined)[] = [];
  #textSize = 0;
  readonly #critical: ReadonlySet<number>;
  /** The successor of each node on the critical path. */
  readonly #after: ReadonlyMap<number, number>;
  #next = 0;

  constructor(
    readonly context: CanvasRenderingContext2D,
    readonly scene: Scene,
    readonly palette: Palette,
  ) {
    this.#critical = new Set(scene.critical);
    this.#after = new Map(scene.critical.slice(1).map((node, at) => [scene.critical[at] ?? node, node]));
  }

  /** Redraw the nodes, and then as many edges beneath them as fit into a frame. */
  paint(view: Viewport, screen: Size, ratio: number): void {
    const { context } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, screen.width * ratio, screen.height * ratio);
    context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, -view.x * view.scale * ratio, -view.y * view.scale * ratio);
    this.#nodes(view, screen);
    this.#marked(view);
    this.#next = 0;
    this.paintEdges(view, screen);
  }

  /** Draw more edges beneath the picture; returns whether all are drawn. */
  paintEdges(view: Viewport, screen: Size): boolean {
    const { context, scene, palette } = this;
    const { edges } = scene.layout;
    const seen = area(view, screen);
    context.globalCompositeOperation = "destination-over";
    context.globalAlpha = scene.found || scene.selected !== null ? 0.5 : 1;
    context.strokeStyle = palette.line;
    context.lineWidth = Math.max(1.2, 0.6 / view.scale);
    context.beginPath();
    for (let drawn = 0; drawn < EDGES_A_FRAME && this.#next < edges.length; this.#next += 1) {
      if (this.#edge(this.#next, view, seen)) drawn += 1;
    }
    context.stroke();
    context.globalAlpha = 1;
    context.globalCompositeOperation = "source-over";
    return this.#next >= edges.length;
  }

  /** The node at a point of the picture. */
  static hit({ x, y }: Layout, atX: number, atY: number): number | null {
    for (let node = x.length - 1; node >= 0; node -= 1) {
      const [dx, dy] = [atX - (x[node] ?? 0), atY - (y[node] ?? 0)];
      if (dx >= 0 && dx <= NODE_WIDTH && dy >= 0 && dy <= NODE_HEIGHT) return node;
    }
    return null;
  }

  #nodes(view: Viewport, screen: Size): void {
    const { layout, status, found } = this.scene;
    const seen = area(view, screen);
    const groups = new Map<string, number[]>();
    for (let node = 0; node < layout.x.length; node += 1) {
      const [x, y] = [layout.x[node] ?? 0, layout.y[node] ?? 0];
      if (x > seen.right || y > seen.bottom || x + NODE_WIDTH < seen.left || y + NODE_HEIGHT < seen.top) continue;
      const name = `${found && !found.has(node) ? "-" : "+"}${status[node] ?? ""}`;
      const group = groups.get(name);
      if (group) group.push(node);
      else groups.set(name, [node]);
    }
    for (const [name, nodes] of groups) {
      this.context.globalAlpha = name.startsWith("-") ? DIMMED : 1;
      const color = this.palette.states.get(name.slice(1)) ?? this.palette.line;
      if (view.scale >= READABLE) nodes.forEach((node) => this.#box(node, color, view.scale));
      else this.#blocks(nodes, color, view);
    }
    this.context.globalAlpha = 1;
  }

  /** A node with a readable name. */
  #box(node: number, color: string, viewScale: number): void {
    const { context, palette, scene } = this;
    const [x, y] = [scene.layout.x[node] ?? 0, scene.layout.y[node] ?? 0];
    const isSelected = node === scene.selected;
    const isCritical = this.#critical.has(node);
    context.beginPath();
    context.roundRect(x, y, NODE_WIDTH, NODE_HEIGHT, 6);
    context.fillStyle = palette.card;
    context.fill();
    const alpha = context.globalAlpha;
    context.globalAlpha = alpha * 0.14;
    context.fillStyle = color;
    context.fill();
    context.globalAlpha = alpha;
    context.strokeStyle = isSelected ? palette.accent : color;
    context.lineWidth = isSelected ? 3.5 : isCritical ? 2.5 : 1.2;
    context.stroke();
    context.fillStyle = color;
    const isMarked = viewScale >= MARKED;
    if (isMarked) {
      context.beginPath();
      context.roundRect(x + 9, y + 11, 10, 10, ROUND.has(scene.status[node] ?? "") ? 5 : 2);
      context.fill();
    }
    const percent = scene.percent[node] ?? 0;
    if (percent > 0 && percent < 100) context.fillRect(x + 4, y + NODE_HEIGHT - 4, (NODE_WIDTH - 8) * (percent / 100), 2.5);
    context.fillStyle = palette.text;
    const size = Math.max(TEXT, SMALLEST_TEXT / viewScale);
    context.font = `${isCritical ? "600 " : ""}${size}px ${palette.font}`;
    context.textBaseline = "middle";
    const left = isMarked ? 26 : 8;
    context.fillText(this.#label(node, size, NODE_WIDTH - left - 6), x + left, y + NODE_HEIGHT / 2 + 1);
  }

  /** Nodes as colored blocks, drawn color by color. */
  #blocks(nodes: readonly number[], color: string, view: Viewport): void {
    const { context, palette, scene } = this;
    const { x, y } = scene.layout;
    const height = Math.max(NODE_HEIGHT, 2 / view.scale);
    context.fillStyle = color;
    for (const node of nodes) context.fillRect(x[node] ?? 0, y[node] ?? 0, NODE_WIDTH, height);
    for (const node of nodes) {
      const isSelected = node === scene.selected;
      if (!isSelected && !this.#critical.has(node)) continue;
      context.strokeStyle = isSelected ? palette.accent : palette.text;
      context.lineWidth = (isSelected ? 4 : 1.5) / view.scale;
      context.strokeRect(x[node] ?? 0, y[node] ?? 0, NODE_WIDTH, height);
    }
  }

  /** The critical path and the selected node's edges: beneath the nodes, above other edges. */
  #marked(view: Viewport): void {
    const { context, palette, scene } = this;
    const everything = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };
    context.globalCompositeOperation = "destination-over";
    for (const [color, width, isMarked] of [
      [palette.accent, 2.2, (from: number, to: number) => from === scene.selected || to === scene.selected],
      [palette.text, 2.2, (from: number, to: number) => this.#after.get(from) === to],
    ] as const) {
      context.strokeStyle = color;
      context.lineWidth = Math.max(width, 1.2 / view.scale);
      context.beginPath();
      scene.layout.edges.forEach(({ from, to }, at) => isMarked(from, to) && this.#edge(at, view, everything));
      context.stroke();
    }
    context.globalCompositeOperation = "source-over";
  }

  /** Add an edge to the path; returns whether it is visible. */
  #edge(index: number, view: Viewport, seen: Area): boolean {
    const { layout } = this.scene;
    const edge = layout.edges[index];
    if (!edge) return false;
    const startX = (layout.x[edge.from] ?? 0) + NODE_WIDTH;
    const startY = (layout.y[edge.from] ?? 0) + NODE_HEIGHT / 2;
    const endX = layout.x[edge.to] ?? 0;
    const endY = (layout.y[edge.to] ?? 0) + NODE_HEIGHT / 2;
    if (startX > seen.right || endX < seen.left) return false;
    let [top, bottom] = [Math.min(startY, endY), Math.max(startY, endY)];
    for (let at = 1; at < edge.corners.length; at += 2) {
      top = Math.min(top, edge.corners[at] ?? 0);
      bottom = Math.max(bottom, edge.corners[at] ?? 0);
    }
    if (top > seen.bottom || bottom < seen.top) return false;
    const { context } = this;
    context.moveTo(startX, startY);
    let [x, y] = [startX, startY];
    const to = (nextX: number, nextY: number) => {
      const middle = (x + nextX) / 2;
      if (view.scale >= CURVED) context.bezierCurveTo(middle, y, middle, nextY, nextX, nextY);
      else context.lineTo(nextX, nextY);
    };
    for (let at = 0; at < edge.corners.length; at += 2) {
      const [cornerX, cornerY] = [edge.corners[at] ?? 0, edge.corners[at + 1] ?? 0];
      to(cornerX, cornerY);
      context.lineTo(cornerX + NODE_WIDTH, cornerY);
      [x, y] = [cornerX + NODE_WIDTH, cornerY];
    }
    to(endX, endY);
    return true;
  }

  /** The name of a node, cut to its box. */
  #label(node: number, size: number, most: number): string {
    if (size !== this.#textSize) [this.#labels, this.#textSize] = [[], size];
    let label = this.#labels[node];
    if (label === undefined) {
      label = (this.scene.graph.keys[node] ?? "").slice(this.scene.graph.prefix);
      if (this.context.measureText(label).width > most) {
        let length = label.length;
        while (length > 4 && this.context.measureText(shortened(label, length)).width > most) length -= 1;
        label = shortened(label, length);
      }
      this.#labels[node] = label;
    }
    return label;
  }
}

/** Keeps the end of a name, because nodes are often numbered. */
const shortened = (label: string, length: number): string => `${label.slice(0, Math.ceil((length - 1) * 0.45))}…${label.slice(label.length - Math.floor((length - 1) * 0.55))}`;

const ROUND = new Set(["succeeded", "running", "preparing", "rolling_back"]);

interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const area = (view: Viewport, screen: Size): Area => ({
  left: view.x,
  top: view.y,
  right: view.x + screen.width / view.scale,
  bottom: view.y + screen.height / view.scale,
});
