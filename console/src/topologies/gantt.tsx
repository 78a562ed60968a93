/** The time when each node ran, with one bar per node, ordered by start. Only visible rows are rendered. */
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { TopologyNode } from "../api/types";
import { setQuery } from "../router";
import { duration, now, shortTime, zoneLabel } from "../time";
import type { Graph } from "./graph";
import { statusOf, type Nodes } from "./live_topology";
import { marks, timeAxis, type TimeAxis } from "./time_axis";

const ROW = 26;
const MOST_ZOOM = 64;
const BEYOND = 8;
const PIXELS_A_MARK = 130;

interface Row {
  key: string;
  node: TopologyNode;
  start: number;
  end: number;
}

interface GanttProps {
  graph: ReadonlySignal<Graph>;
  nodes: ReadonlySignal<Nodes>;
  critical: readonly string[];
  found: ReadonlySet<string> | null;
  selected: string;
  query: URLSearchParams;
}

export function Gantt({ graph, nodes, critical, found, selected, query }: GanttProps) {
  const isOpen = (node: TopologyNode) => !node.finished_at && ["running", "preparing", "waiting", "paused", "rolling_back"].includes(node.state);
  const rows = rowsOf(nodes.value, found, [...nodes.value.values()].some(isOpen) ? now.value : 0);
  const isFolding = query.get("fold") !== "0";
  const zoom = Math.min(MOST_ZOOM, Math.max(1, Number(query.get("zoom")) || 1));
  const axis = timeAxis(rows, isFolding);
  const onPath = new Set(critical);
  if (!rows.length) return <p class="muted graph-note">{found ? "No matching node has started yet." : "No node has started yet."}</p>;
  const rescale = (to: number) => setQuery({ zoom: to <= 1 ? "" : String(to) }, true);
  return (
    <div class="gantt">
      <div class="graph-tools" role="group" aria-label="View of the times">
        <button type="button" class="small" disabled={zoom === 1} onClick={() => rescale(1)}>
          Fit
        </button>
        <button type="button" class="small" aria-label="Zoom in" disabled={zoom >= MOST_ZOOM} onClick={() => rescale(zoom * 2)}>
          +
        </button>
        <button type="button" class="small" aria-label="Zoom out" disabled={zoom === 1} onClick={() => rescale(zoom / 2)}>
          −
        </button>
        <button type="button" class="small" aria-pressed={isFolding} onClick={() => setQuery({ fold: isFolding ? "0" : "" }, true)}>
          Fold pauses
        </button>
        <span class="muted">
          {rows.length.toLocaleString("en")} of {(found ?? nodes.value).size.toLocaleString("en")} {found ? "matching nodes" : "nodes"} have started
        </span>
      </div>
      <Rows rows={rows} axis={axis} zoom={zoom} onPath={onPath} selected={selected} prefix={graph.value.prefix} />
    </div>
  );
}

function rowsOf(nodes: Nodes, found: ReadonlySet<string> | null, at: number): Row[] {
  const rows: Row[] = [];
  for (const [key, node] of nodes) {
    if (!node.started_at || (found && !found.has(key))) continue;
    const start = Date.parse(node.started_at);
    rows.push({ key, node, start, end: Math.max(start, node.finished_at ? Date.parse(node.finished_at) : at) });
  }
  return rows.sort((one, other) => one.start - other.start || one.end - other.end);
}

interface RowsProps {
  rows: readonly Row[];
  axis: TimeAxis;
  zoom: number;
  onPath: ReadonlySet<string>;
  selected: string;
  /** The length of the common prefix of all names. */
  prefix: number;
}

function Rows({ rows, axis, zoom, onPath, selected, prefix }: RowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const seen = useSignal({ top: 0, height: 600, width: 800 });
  const measure = () => {
    if (box.current) seen.value = { top: box.current.scrollTop, height: box.current.clientHeight, width: box.current.clientWidth };
  };
  useLayoutEffect(measure, []);
  const first = Math.max(0, Math.floor(seen.value.top / ROW) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((seen.value.top + seen.value.height) / ROW) + BEYOND);
  const percent = (part: number) => `${part * 100}%`;
  return (
    <div class="gantt-box" ref={box} onScroll={measure} tabIndex={0} role="region" aria-label={`Times of ${rows.length} nodes`}>
      <div class="gantt-sheet" style={{ width: percent(zoom) }}>
        <div class="gantt-axis" aria-hidden="true">
          <span class="gantt-name">{zoneLabel()}</span>
          <div class="gantt-track">
            {marks(axis, Math.max(2, Math.floor((seen.value.width * zoom) / PIXELS_A_MARK))).filter((time) => axis.place(time) < 1 - 0.08 / zoom).map((time) => (
              <span key={time} style={{ left: percent(axis.place(time)) }}>
                {shortTime(new Date(time).toISOString())}
              </span>
            ))}
          </div>
        </div>
        <div class="gantt-rows" style={{ height: `${rows.length * ROW}px` }}>
          <div class="gantt-folds" aria-hidden="true">
            {axis.folds.map((fold) => (
              <i key={fold.start} title={`Nothing ran for ${duration(fold.end - fold.start)}`} style={{ left: percent(fold.at), width: percent(fold.width) }}>
                <span>{duration(fold.end - fold.start)}</span>
              </i>
            ))}
          </div>
          {rows.slice(first, last).map((row, index) => (
            <GanttRow key={row.key} row={row} name={row.key.slice(prefix)} top={(first + index) * ROW} axis={axis} isCritical={onPath.has(row.key)} isSelected={row.key === selected} />
          ))}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  row: Row;
  name: string;
  top: number;
  axis: TimeAxis;
  isCritical: boolean;
  isSelected: boolean;
}

function GanttRow({ row, name, top, axis, isCritical, isSelected }: RowProps) {
  const { key, node, start, end } = row;
  const [from, to] = [axis.place(start), axis.place(end)];
  const took = duration(end - start);
  const status = statusOf(node).replaceAll("_", " ");
  return (
    <button
      type="button"
      class={`gantt-row ${isCritical ? "critical" : ""}`}
      aria-pressed={isSelected}
      title={`${key} · ${status} · ${took}`}
      style={{ top: `${top}px` }}
      onClick={() => setQuery({ node: isSelected ? "" : key })}
    >
      <span class="gantt-name">{name}</span>
      <span class="visually-hidden">, {status}, </span>
      <span class="gantt-track">
        <i class={`state-${statusOf(node)}`} style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }} />
        <Label from={from} to={to} text={took} />
      </span>
    </button>
  );
}

/** The node's duration, which is shown after, before or within the bar, wherever it fits. */
function Label({ from, to, text }: { from: number; to: number; text: string }) {
  if (to <= 0.88) return <small style={{ left: `${to * 100}%` }}>{text}</small>;
  if (from >= 0.12) return <small style={{ right: `${(1 - from) * 100}%` }}>{text}</small>;
  return (
    <small class="inside" style={{ right: `${(1 - to) * 100}%` }}>
      {text}
    </small>
  );
}
