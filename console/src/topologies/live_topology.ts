/** The current state of a topology, from the last REST reading and the changes pushed since. */
import { useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { useLive, type WatchedTask } from "../api/live";
import { useResource, type Resource } from "../api/resource";
import type { Topology, TopologyNode } from "../api/types";
import { graphOf, signatureOf, type Graph } from "./graph";

export type Nodes = ReadonlyMap<string, TopologyNode>;

export interface LiveTopology {
  resource: Resource<Topology>;
  /** The topology itself, whose state is as recent as its nodes' states. */
  topology: ReadonlySignal<Topology | null>;
  nodes: ReadonlySignal<Nodes>;
  /** The same object as long as no node and no edge has changed. */
  graph: ReadonlySignal<Graph>;
  reload: () => Promise<void>;
}

interface Pushed {
  item: WatchedTask;
  order: number;
}

const SHORTEST_PAUSE_MS = 1500;
/** Reading a topology reads all of its nodes, so large topologies are read less often. */
const PAUSE_MS_A_NODE = 3;

export function useTopology(id: string): LiveTopology {
  const resource = useResource<Topology>(`/v1/topologies/${encodeURIComponent(id)}`);
  const pushed = useSignal<ReadonlyMap<string, Pushed>>(new Map());
  const counter = useRef(0);
  const timer = useRef(0);

  const reload = useCallback(async () => {
    const before = counter.current;
    if (!(await resource.reload())) return;
    // Changes pushed during the reading may be newer.
    pushed.value = new Map([...pushed.peek()].filter(([, { order }]) => order > before));
  }, [resource.reload]);

  // Progress, the critical path and skip reasons are not pushed. Another change does not abort a reading, because with
  // many changes no reading would complete.
  const readLater = () => {
    const pause = Math.max(SHORTEST_PAUSE_MS, PAUSE_MS_A_NODE * Object.keys(resource.data.peek()?.nodes ?? {}).length);
    timer.current ||= window.setTimeout(async () => {
      const before = counter.current;
      await reload();
      timer.current = 0;
      if (counter.current > before) readLater();
    }, pause);
  };
  useLive(`topology:${id}`, ({ item }) => {
    counter.current += 1;
    const known = item && pushed.peek().get(item.id);
    if (item && (!known || known.item.version <= item.version)) {
      pushed.value = new Map(pushed.peek()).set(item.id, { item, order: counter.current });
    }
    readLater();
  });
  useEffect(() => {
    pushed.value = new Map();
    return () => {
      clearTimeout(timer.current);
      timer.current = 0;
    };
  }, [id]);

  const topology = useComputed(() => {
    const read = resource.data.value;
    const own = pushed.value.get(id)?.item;
    return read && own && own.version > read.version ? { ...read, state: own.state, finished_at: own.finished_at, error: own.error } : read;
  });
  const read = useComputed<Nodes>(() => new Map(Object.entries(resource.data.value?.nodes ?? {})));
  const nodes = useComputed<Nodes>(() => merged(read.value, pushed.value));
  const signature = useComputed(() => signatureOf(read.value));
  const graph = useComputed(() => (signature.value ? graphOf(read.peek()) : graphOf(new Map())));
  return { resource, topology, nodes, graph, reload };
}

function merged(read: Nodes, pushed: ReadonlyMap<string, Pushed>): Nodes {
  const made = new Map(read);
  for (const { item } of pushed.values()) {
    const node = item.node === null ? undefined : made.get(item.node);
    // An earlier run has other tasks.
    if (!item.node || !node || (node.task_id !== null && node.task_id !== item.id)) continue;
    const { state, started_at, finished_at } = item;
    const reason = state === node.state ? node.reason : null;
    made.set(item.node, { ...node, task_id: item.id, state, reason, started_at, finished_at, percent: state === "succeeded" ? 100 : item.progress?.percent ?? node.percent });
  }
  return made;
}

/** The display state of a node: the reason if duetime cancelled it, otherwise its state. */
export const statusOf = (node: TopologyNode): string => node.reason ?? node.state;
