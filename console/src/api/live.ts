/** Live updates over a WebSocket. REST remains the source of truth; without a connection, pages poll. */
import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask, unreachableSince } from "./client";
import type { TaskState, WatchTicket } from "./types";

/** A pushed task; see `WatchedTask` in the AsyncAPI document. */
export interface WatchedTask {
  id: string;
  type: string;
  name: string | null;
  state: TaskState;
  due_at: string;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  tags: Record<string, string>;
  attempt: number;
  progress: { percent: number; message: string } | null;
  error: { type: string; message: string } | null;
  schedule: string | null;
  topology: string | null;
  /** The task's node name in that topology. */
  node: string | null;
  version: number;
}

export interface Change {
  id: string;
  version: number;
  refs: string[];
  left: string[];
  item: WatchedTask | null;
  /** Whether this is the state at the start of the subscription, which a page that was read later already has. */
  isSnapshot?: boolean;
}

interface Subscription {
  ref: string;
  topic: string;
  filter: Record<string, unknown> | undefined;
  changed: (change: Change) => void;
}

export type LiveState = "live" | "connecting" | "offline";
export const liveState = signal<LiveState>("connecting");
/** Callbacks for possibly missed changes. */
export const rereads = new Set<() => void>();

const PING_EVERY = 5 * 60_000;
const LIFE = 115 * 60_000;
const HIDDEN_LIFE = 5 * 60_000;
const LONGEST_PAUSE = 30_000;

const subscriptions = new Map<string, Subscription>();
let socket: WebSocket | null = null;
let failures = 0;
let refs = 0;
let waiting: Change[] = [];
let timers: number[] = [];
let retry = 0;
let pending = new Set<string>();
/** Subscriptions that the server refused. */
let refused = new Set<string>();
/** The number of the latest attempt to connect; earlier attempts, such as for another owner, are abandoned. */
let attempts = 0;

/** Call back on each change of a topic while the component is mounted. */
export function useLive(topic: string | null, changed: (change: Change) => void, filter?: Record<string, unknown>): void {
  const key = JSON.stringify([topic, filter]);
  // The latest rendering's callback, because a subscription outlives the rendering that began it.
  const latest = useRef(changed);
  latest.current = changed;
  useEffect(() => {
    if (topic === null) return undefined;
    const one = { ref: String(++refs), topic, filter, changed: (change: Change) => latest.current(change) };
    subscriptions.set(one.ref, one);
    say({ do: "subscribe", ref: one.ref, topic, filter });
    return () => {
      subscriptions.delete(one.ref);
      settled(one.ref);
      say({ do: "unsubscribe", ref: one.ref });
    };
  }, [key]);
}

function say(message: object): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

/** Connect, and stay connected. */
export async function connect(): Promise<void> {
  clearTimeout(retry);
  if (socket || document.hidden) return;
  liveState.value = "connecting";
  const mine = (attempts += 1);
  try {
    const ticket = await ask<WatchTicket>("/v1/watch-tickets");
    if (mine === attempts) open(`${ticket.url}?ticket=${encodeURIComponent(ticket.ticket)}`);
  } catch {
    if (mine === attempts) lost();
  }
}

/** A subscription is confirmed or has ended. */
function settled(ref: string): void {
  const isChanged = [pending.delete(ref), refused.delete(ref)].includes(true);
  if (isChanged && socket?.readyState === WebSocket.OPEN) judge();
}

/** Without a subscription, a part of the page has no live updates. */
function judge(): void {
  liveState.value = pending.size ? "connecting" : refused.size ? "offline" : "live";
}

/** Reconnect, for another owner. */
export function reconnect(): void {
  if (socket) {
    socket.onclose = null;
    socket.close();
  }
  timers.forEach(clearInterval);
  socket = null;
  reread();
  void connect();
}

function open(address: string): void {
  const mine = (socket = new WebSocket(address));
  mine.onopen = () => {
    pending = new Set(subscriptions.keys());
    refused = new Set();
    if (!pending.size) liveState.value = "live";
    const again = failures > 0;
    failures = 0;
    for (const { ref, topic, filter } of subscriptions.values()) say({ do: "subscribe", ref, topic, filter });
    timers = [
      window.setInterval(() => say({ do: "ping" }), PING_EVERY),
      // API Gateway closes every connection after two hours, so the connection is renewed earlier.
      window.setTimeout(() => mine.close(), LIFE),
    ];
    if (again) reread();
  };
  mine.onmessage = (event) => take(JSON.parse(String(event.data)) as Frame);
  mine.onclose = () => {
    timers.forEach(clearInterval);
    if (socket === mine) {
      socket = null;
      lost();
    }
  };
}

interface Frame {
  kind: string;
  ref?: string;
  version?: number;
  item?: WatchedTask | null;
  changes?: Change[];
}

function take(frame: Frame): void {
  if (frame.kind === "stale") reread();
  if (frame.kind === "snapshot") begin(frame);
  if (frame.kind === "error" && frame.ref && subscriptions.has(frame.ref)) {
    pending.delete(frame.ref);
    refused.add(frame.ref);
    judge();
  }
  if (frame.kind !== "change" || !frame.changes) return;
  // All changes before the next frame are applied together.
  if (waiting.length === 0) setTimeout(apply, 100);
  waiting.push(...frame.changes);
}

function begin({ ref = "", version = 0, item }: Frame): void {
  // Changes are pushed only from now on; the snapshot contains the changes since the page was read.
  settled(ref);
  if (item) subscriptions.get(ref)?.changed({ id: item.id, version, refs: [ref], left: [], item, isSnapshot: true });
}

function apply(): void {
  const changes = waiting;
  waiting = [];
  for (const change of changes) {
    for (const ref of new Set([...change.refs, ...change.left])) subscriptions.get(ref)?.changed(change);
  }
}

function lost(): void {
  liveState.value = "offline";
  failures += 1;
  const pause = Math.min(LONGEST_PAUSE, 1000 * 2 ** Math.min(failures - 1, 5));
  retry = window.setTimeout(() => void connect(), pause * (0.5 + Math.random() / 2));
}

function reread(): void {
  for (const each of rereads) each();
}

let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) {
    // Connection minutes are billed.
    hiding = window.setTimeout(() => socket?.close(), HIDDEN_LIFE);
  } else if (!socket) {
    void connect();
  }
});

const UNREACHABLE_EVERY = 5_000;

addEventListener("offline", () => (unreachableSince.value ??= Date.now()));
addEventListener("online", () => {
  reread();
  void connect();
});

/** While the API does not respond, resources are read again every few seconds. */
effect(() => {
  if (unreachableSince.value === null) return undefined;
  const timer = setInterval(reread, UNREACHABLE_EVERY);
  return () => clearInterval(timer);
});
