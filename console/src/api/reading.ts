/**
 * A list that continues reading by itself.
 *
 * A page of a list covers a limited number of records: it may be short, or empty, and still have a next one. So pages
 * are read until there are enough entries to show, or the list ends; only then is it known which entries do not exist.
 */
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { now } from "../time";
import { ApiProblem, get } from "./client";
import { rereads } from "./live";
import type { Summary, TaskState } from "./types";

const EVERY_MS = 30_000;
/** A list of several pages is re-read only after this multiple of its reading time. */
const REST_PER_WORK = 30;

interface AnyPage {
  next_token?: string | null;
  applied?: object;
}

/** Progress fields of task lists. */
interface Examined {
  examined?: number;
  examined_to?: string | null;
}

/** The part of a list read so far. */
export interface Found<P, E> {
  entries: readonly E[];
  /** The first page, for its other fields. */
  page: P;
  pages: number;
  /** The number of records scanned; the number of entries if the list does not report it. */
  examined: number;
  /** The due time of the last record scanned; null at the end of the list or if not reported. */
  examinedTo: string | null;
  /** Continues the list; null at its end. */
  token: string | null;
  /** Whether it has enough entries or reached the end; missing entries do not exist or come later. */
  isKnown: boolean;
  /** When reading started, by the server's clock. */
  at: number;
}

export interface Reading<P, E> {
  /** The last result; kept during a re-read until that completes. */
  found: ReadonlySignal<Found<P, E> | null>;
  /** The progress of the current reading; null if there is none. */
  going: ReadonlySignal<Found<P, E> | null>;
  problem: ReadonlySignal<ApiProblem | null>;
  /** Read it again; resolves to whether that completed. */
  reload: () => Promise<boolean>;
  /** Read it again unless that was done recently; lists of several pages are not re-read on every change. */
  refresh: () => void;
  stop: () => void;
  /** Continue where it was stopped. */
  readOn: () => void;
}

export interface Wanted<P, E> {
  entries: (page: P) => readonly E[];
  /** Stop after this many entries. */
  enough: number;
  /** Which entries count; all by default. */
  counts?: (entry: E) => boolean;
}

/** Read the list at `path`, and keep reading it while the page is visible; null reads nothing. */
export function useReading<P extends AnyPage, E>(path: string | null, wanted: Wanted<P, E>): Reading<P, E> {
  const found = useSignal<Found<P, E> | null>(null);
  const going = useSignal<Found<P, E> | null>(null);
  const problem = useSignal<ApiProblem | null>(null);
  const current = useRef<AbortController | null>(null);
  const restsUntil = useRef(0);
  const wish = useRef(wanted);
  wish.current = wanted;

  const run = useCallback(
    async (before: Found<P, E> | null) => {
      if (path === null) return false;
      current.current?.abort();
      const mine = (current.current = new AbortController());
      const began = now.peek();
      const started = performance.now();
      // The first rows are shown as they arrive; the rows of an earlier reading stay until the new one completes.
      const shows = found.peek() === null || before !== null;
      let read = before;
      try {
        do {
          const page = await get<P>(read?.token ? `${path}${path.includes("?") ? "&" : "?"}next_token=${encodeURIComponent(read.token)}` : path, mine.signal);
          if (current.current !== mine) return false;
          read = joined(read, page, wish.current, began);
          if (shows) found.value = read;
          going.value = read.isKnown ? null : read;
        } while (!read.isKnown);
        found.value = read;
        problem.value = null;
      } catch (error) {
        if (current.current !== mine) return false;
        problem.value = error instanceof ApiProblem ? error : new ApiProblem(0, "page", "The page failed", String(error));
        going.value = null;
      }
      const took = performance.now() - started;
      restsUntil.current = performance.now() + ((read?.pages ?? 0) > 1 ? took * REST_PER_WORK : 0);
      return problem.peek() === null;
    },
    [path],
  );

  const stop = useCallback(() => {
    current.current?.abort();
    current.current = null;
    // Only the entries read so far are known.
    if (going.peek()) found.value = going.peek();
    going.value = null;
    restsUntil.current = Infinity;
  }, []);

  const refresh = useCallback(() => {
    if (!document.hidden && going.peek() === null && performance.now() >= restsUntil.current) void run(null);
  }, [run]);

  useEffect(() => {
    // The page of another resource must not show this content.
    found.value = null;
    going.value = null;
    problem.value = null;
    restsUntil.current = 0;
    void run(null);
    const timer = setInterval(refresh, EVERY_MS);
    addEventListener("focus", refresh);
    rereads.add(refresh);
    return () => {
      current.current?.abort();
      current.current = null;
      clearInterval(timer);
      removeEventListener("focus", refresh);
      rereads.delete(refresh);
    };
  }, [path, run, refresh]);

  // More entries may be needed than before.
  useEffect(() => {
    const read = found.peek();
    if (read?.token && !read.isKnown && going.peek() === null && restsUntil.current < Infinity && !problem.peek()) void run(read);
  }, [wanted.enough]);

  return { found, going, problem, reload: () => run(null), refresh, stop, readOn: () => void run(found.peek()) };
}

function joined<P extends AnyPage, E>(before: Found<P, E> | null, page: P, { entries, enough, counts }: Wanted<P, E>, began: number): Found<P, E> {
  const mine = entries(page);
  const all = [...(before?.entries ?? []), ...mine];
  const token = page.next_token ?? null;
  const applied: Examined = page.applied ?? {};
  return {
    entries: all,
    page: before?.page ?? page,
    pages: (before?.pages ?? 0) + 1,
    examined: (before?.examined ?? 0) + (applied.examined ?? mine.length),
    examinedTo: applied.examined_to ?? null,
    token,
    isKnown: token === null || (counts ? all.filter(counts) : all).length >= enough,
    at: before?.at ?? began,
  };
}

/** The number of tasks in some states by the summary; null if it does not count all of them. */
export function countOf(summary: Summary | null, states: readonly TaskState[]): number | null {
  return summary?.is_complete ? states.reduce((sum, state) => sum + (summary.states[state] ?? 0), 0) : null;
}
