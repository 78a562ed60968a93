/**
 * A list that continues reading automatically.
 *
 * A page of a list covers a limited number of records, so it may be short or empty although another page follows. Pages
 * are read until there are enough entries to show or the list ends; only then is it known which entries do not exist.
 * After `MOST_PAGES` pages, the user decides whether to load more.
 */
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { clockKnown, now } from "../time";
import { ApiProblem, get } from "./client";
import { rereads } from "./live";

const EVERY_MS = 30_000;
export const MOST_PAGES = 20;
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
  last_change_at?: string | null;
}

/** The part of a list read so far. */
export interface Found<P, E> {
  /** The key for which the list was read. */
  key: string;
  /** The path of the first page, with absolute times. */
  path: string;
  entries: readonly E[];
  /** The first page, for its other fields. */
  page: P;
  pages: number;
  /** The number of records scanned; the number of entries if the list does not report it. */
  examined: number;
  /** The time, in the order of the list, of the last record scanned; null at the end of the list or if not reported. */
  examinedTo: string | null;
  /** The time of the last change that the list includes; null if it was read from the tasks themselves. */
  lastChangeAt: string | null;
  /** The token that continues the list; null at its end. */
  token: string | null;
  /** Whether enough entries or the end were reached, so that missing entries do not exist or come later. */
  isKnown: boolean;
  /** When reading started, by the server's clock. */
  at: number;
}

export interface Reading<P, E> {
  /** The last result, which is kept until another reading, even for another key, has a page to show. */
  found: ReadonlySignal<Found<P, E> | null>;
  /** The progress of the current reading; null if there is none. */
  going: ReadonlySignal<Found<P, E> | null>;
  problem: ReadonlySignal<ApiProblem | null>;
  /** Whether the last result is for an earlier key. */
  isOld: boolean;
  /** Read the list again; resolves to whether the reading was completed. */
  reload: () => Promise<boolean>;
  /** Read the list again unless it was read recently; lists of several pages are not re-read on every change. */
  refresh: () => void;
  stop: () => void;
  /** Continue where the reading was stopped. */
  loadMore: () => void;
}

export interface Wanted<P, E> {
  entries: (page: P) => readonly E[];
  /** Stop after this many entries. */
  enough: number;
  /** Which entries count; all by default. */
  counts?: (entry: E) => boolean;
}

/** Read a list, and keep reading it while the page is visible. The path is made at the start of each reading, so that it
 * can hold the current time; `key` identifies the list. If `path` is null, nothing is read. */
export function useReading<P extends AnyPage, E>(path: string | null | (() => string), wanted: Wanted<P, E>, key: string | null = typeof path === "function" ? path() : path): Reading<P, E> {
  const found = useSignal<Found<P, E> | null>(null);
  const going = useSignal<Found<P, E> | null>(null);
  const problem = useSignal<ApiProblem | null>(null);
  const current = useRef<AbortController | null>(null);
  const restsUntil = useRef(0);
  const latest = useRef({ wanted, path });
  latest.current = { wanted, path };

  const run = useCallback(
    async (before: Found<P, E> | null) => {
      if (key === null) return false;
      current.current?.abort();
      const mine = (current.current = new AbortController());
      if (typeof latest.current.path === "function") await clockKnown;
      if (current.current !== mine) return false;
      const first = before?.path ?? (typeof latest.current.path === "function" ? latest.current.path() : latest.current.path);
      if (first === null) return false;
      const started = performance.now();
      // The first rows are shown as they arrive; an earlier reading's rows stay until the new reading ends.
      const shows = found.peek()?.key !== key || before !== null;
      let read = before ?? emptyOf<P, E>(key, first);
      const most = read.pages + MOST_PAGES;
      try {
        do {
          const page = await get<P>(read.token ? `${first}${first.includes("?") ? "&" : "?"}next_token=${encodeURIComponent(read.token)}` : first, mine.signal);
          if (current.current !== mine) return false;
          read = joined(read, page, latest.current.wanted);
          if (shows) found.value = read;
          going.value = read.isKnown ? null : read;
        } while (!read.isKnown && read.pages < most);
        found.value = read;
        problem.value = null;
      } catch (error) {
        if (current.current !== mine) return false;
        problem.value = error instanceof ApiProblem ? error : new ApiProblem(0, "page", "The page failed", String(error));
      }
      going.value = null;
      const took = performance.now() - started;
      restsUntil.current = read.isKnown ? performance.now() + (read.pages > 1 ? took * REST_PER_WORK : 0) : problem.peek() ? 0 : Infinity;
      return problem.peek() === null;
    },
    [key],
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
  }, [key, run, refresh]);

  // More entries may be needed than before.
  useEffect(() => {
    const read = found.peek();
    if (read?.token && read.key === key && countOf(read.entries, wanted) < wanted.enough && going.peek() === null && restsUntil.current < Infinity && !problem.peek()) void run(read);
  }, [wanted.enough]);

  const isOld = found.value !== null && found.value.key !== key;
  return { found, going, problem, isOld, reload: () => run(null), refresh, stop, loadMore: () => void run(found.peek()) };
}

const emptyOf = <P, E>(key: string, path: string): Found<P, E> => ({ key, path, entries: [], page: null as P, pages: 0, examined: 0, examinedTo: null, lastChangeAt: null, token: null, isKnown: false, at: now.peek() });

const countOf = <P, E>(entries: readonly E[], { counts }: Wanted<P, E>): number => (counts ? entries.filter(counts) : entries).length;

function joined<P extends AnyPage, E>(before: Found<P, E>, page: P, wanted: Wanted<P, E>): Found<P, E> {
  const mine = wanted.entries(page);
  const all = [...before.entries, ...mine];
  const token = page.next_token ?? null;
  const applied: Examined = page.applied ?? {};
  return {
    ...before,
    entries: all,
    page: before.pages ? before.page : page,
    pages: before.pages + 1,
    examined: before.examined + (applied.examined ?? mine.length),
    examinedTo: applied.examined_to ?? null,
    lastChangeAt: applied.last_change_at ?? null,
    token,
    isKnown: token === null || countOf(all, wanted) >= wanted.enough,
  };
}
