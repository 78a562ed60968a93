/** A view of a topology's graph in which users pan, zoom, select a node, and follow running nodes. The table of nodes
 * shows the same content as text. */
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { setQuery } from "../router";
import { theme } from "../settings";
import type { Graph } from "./graph";
import { GraphCanvas } from "./graph_canvas";
import { layoutOf, type Layout } from "./layout";
import { statusOf, type Nodes } from "./live_topology";
import type { Scene } from "./painter";
import { parsedViewport, written } from "./viewport";

export interface GraphProps {
  graph: ReadonlySignal<Graph>;
  nodes: ReadonlySignal<Nodes>;
  critical: readonly string[];
  found: ReadonlySet<string> | null;
  selected: string;
  query: URLSearchParams;
}

export function GraphView(props: GraphProps) {
  const graph = props.graph.value;
  const layout = useLayout(graph);
  const element = useRef<HTMLCanvasElement>(null);
  const canvas = useRef<GraphCanvas | null>(null);
  const hint = useSignal("");
  const isFollowing = props.query.get("follow") === "1";
  const at = props.query.get("at");

  useEffect(() => {
    if (!element.current || !layout) return undefined;
    const made = new GraphCanvas(element.current, layout, {
      select: (node) => setQuery({ node: (node !== null && graph.keys[node]) || "" }),
      moved: (view) => setQuery({ at: written(view), follow: "" }, true),
      hovered: (node) => (hint.value = node === null ? "" : hintOf(graph, props.nodes.peek(), node)),
    });
    canvas.current = made;
    made.show(parsedViewport(at));
    return () => {
      canvas.current = null;
      made.close();
    };
  }, [layout]);

  const scene = sceneOf(props, graph, layout);
  useEffect(() => {
    if (scene) canvas.current?.draw(scene);
    if (scene && isFollowing) canvas.current?.follow(running(scene));
  });
  useEffect(() => {
    // Navigation back, or another link to the same page.
    if (layout) canvas.current?.show(parsedViewport(at));
  }, [at]);
  useRepaint(canvas, theme.value);
  const fit = () => {
    canvas.current?.show(null);
    setQuery({ at: "", follow: "" }, true);
  };

  return (
    <div class="graph">
      <div class="graph-tools" role="group" aria-label="View of the graph">
        <button type="button" class="small" onClick={fit}>
          Fit
        </button>
        <button type="button" class="small" aria-label="Zoom in" onClick={() => canvas.current?.zoom(1.4)}>
          +
        </button>
        <button type="button" class="small" aria-label="Zoom out" onClick={() => canvas.current?.zoom(1 / 1.4)}>
          −
        </button>
        <button type="button" class="small" aria-pressed={isFollowing} onClick={() => setQuery({ follow: isFollowing ? "" : "1" }, true)}>
          Follow running
        </button>
      </div>
      <canvas
        ref={element}
        tabIndex={0}
        role="application"
        aria-label={`Graph of ${graph.keys.length} nodes. Arrow keys select a node, + and − zoom, 0 shows all. The nodes are also listed in the table.`}
        onKeyDown={(event) => {
          if (event.key === "0") return fit();
          const next = canvas.current && nextNode(event.key, graph, layout, graph.index.get(props.selected));
          if (next !== null && next !== undefined) {
            setQuery({ node: graph.keys[next] ?? "" }, true);
            canvas.current?.reveal(next);
          } else if (!canvas.current?.keyed(event.key)) return undefined;
          event.preventDefault();
          return undefined;
        }}
      />
      {!layout && <p class="muted graph-note">Arranging {graph.keys.length.toLocaleString("en")} nodes…</p>}
      <p class="graph-hint" aria-hidden="true">
        {hint.value}
      </p>
    </div>
  );
}

/** The layout of a graph; null while it is computed. */
function useLayout(graph: Graph): Layout | null {
  const found = useSignal<{ graph: Graph; layout: Layout } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    void layoutOf(graph, stop.signal).then((layout) => {
      if (layout) found.value = { graph, layout };
    });
    return () => stop.abort();
  }, [graph]);
  return found.value?.graph === graph ? found.value.layout : null;
}

function sceneOf({ nodes, critical, found, selected }: GraphProps, graph: Graph, layout: Layout | null): Scene | null {
  const now = nodes.value;
  if (!layout) return null;
  const numbers = (keys: Iterable<string>) => [...keys].flatMap((key) => graph.index.get(key) ?? []);
  const each = graph.keys.map((key) => now.get(key));
  return {
    graph,
    layout,
    status: each.map((node) => (node ? statusOf(node) : "")),
    percent: each.map((node) => (node?.state === "running" ? node.percent : 0)),
    critical: numbers(critical),
    found: found && new Set(numbers(found)),
    selected: graph.index.get(selected) ?? null,
  };
}

const running = (scene: Scene): number[] =>
  scene.status.flatMap((status, node) => (["running", "preparing", "rolling_back"].includes(status) ? [node] : []));

function hintOf(graph: Graph, nodes: Nodes, at: number): string {
  const key = graph.keys[at] ?? "";
  const node = nodes.get(key);
  return node ? `${key} · ${statusOf(node).replaceAll("_", " ")}` : key;
}

/** Arrow keys: to a parent, to a child, or to the nearest node above or below. */
function nextNode(key: string, graph: Graph, layout: Layout | null, from: number | undefined): number | null {
  if (!layout || !key.startsWith("Arrow")) return null;
  if (from === undefined) return graph.order[0] ?? null;
  if (key === "ArrowLeft") return graph.parents[from]?.[0] ?? from;
  if (key === "ArrowRight") return graph.children[from]?.[0] ?? from;
  const sign = key === "ArrowDown" ? 1 : -1;
  const distance = (node: number) => sign * ((layout.y[node] ?? 0) - (layout.y[from] ?? 0));
  const column = graph.keys.flatMap((_, node) => (layout.x[node] === layout.x[from] && distance(node) > 0 ? [node] : []));
  return column.reduce((best, node) => (best === from || distance(node) < distance(best) ? node : best), from);
}

/** Colors are re-read when the theme changes, by choice or by the system. */
function useRepaint(canvas: { current: GraphCanvas | null }, chosen: string): void {
  useEffect(() => {
    canvas.current?.recolor();
    const system = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => canvas.current?.recolor();
    system.addEventListener("change", changed);
    return () => system.removeEventListener("change", changed);
  }, [chosen]);
}
