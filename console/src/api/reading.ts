/**
 * A list that is read on by itself.
 *
 * A page of a list covers a limited number of records: it may be short, or empty, and still have a next one. So a list
 * is read page after page until it has as many entries as are shown, or was read to its end; only then is it known what
 * it does not have.
 */
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { now } from "../time";
import { ApiProblem, get } from "./client";
import { rereads } from "./live";
import type { Summary, TaskState } from "./types";

const EVERY_MS = 30_000;
/** What took several pages is read again only after this many times as long as it took. */
const REST_PER_WORK = 30;

interface AnyPage {
  next_token?: string | null;
  applied?: object;
}

/** What lists of tasks say besides of how far they were read. */
interface Examined {
  examined?: number;
  examined_to?: string | null;
}

/** What was read of a list so far. */
export interface Found<P, E> {
  entries: readonly E[];
  /** The first page, for what it says besides its entries. */
  page: P;
  pages: number;
  /** How many records were looked at: entries, where a list does not say. */
  examined: number;
  /** The due time of the record that was looked at last; null where a list does not say, and at its end. */
  examinedTo: string | null;
  /** Goes on with the list; null if it was read to its end. */
  token: string | null;
  /** Whether it has as much as was wanted, or all there is: what is not in it is not there, or comes later. */
  isKnown: boolean;
  /** When reading began, by the server's clock. */
  at: number;
}

export interface Reading<P, E> {
  /** What was found last; while it is read again, it stays until that has come to its end. */
  found: ReadonlySignal<Found<P, E> | null>;
  /** How far the reading is that goes on now; null if none does. */
  going: ReadonlySignal<Found<P, E> | null>;
  problem: ReadonlySignal<ApiProblem | null>;
  /** Read it anew; says whether that came to its end. */
  reload: () => Promise<boolean>;
  /** Read it anew unless it was read lately: what takes several pages is not read for each change. */
  refresh: () => void;
  stop: () => void;
  /** Go on where it was stopped. */
  readOn: () => void;
}

export interface Wanted<P, E> {
  entries: (page: P) => readonly E[];
  /** As soon as there are so many, no further page is read. */
  enough: number;
  /** Which entries count for that; all of them if left out. */
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
      // The first rows are shown as they come; those of a list that was read before stay until all is there.
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
    // What was read until now is all that is known.
    if (going.peek()) found.value = going.peek();
    going.value = null;
    restsUntil.current = Infinity;
  }, []);

  const refresh = useCallback(() => {
    if (!document.hidden && going.peek() === null && performance.now() >= restsUntil.current) void run(null);
  }, [run]);

  useEffect(() => {
    // The page of another subject must not show this one's content.
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

  // More may be wanted than when it was read.
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

/** How many tasks are in some states by the summary; null if it does not count all of them. */
export function countOf(summary: Summary | null, states: readonly TaskState[]): number | null {
  return summary?.is_complete ? states.reduce((sum, state) => sum + (summary.states[state] ?? 0), 0) : null;
}
