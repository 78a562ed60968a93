/** An API resource that a page shows and re-reads every 30 seconds, on focus, and on live updates. */
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { ApiProblem, get } from "./client";
import { rereads } from "./live";

const EVERY = 30_000;

export interface Resource<T> {
  /** The last content, which is kept while new content is loading or cannot be loaded. */
  data: ReadonlySignal<T | null>;
  problem: ReadonlySignal<ApiProblem | null>;
  loading: ReadonlySignal<boolean>;
  /** Read the resource again; resolves to whether the reading succeeded. */
  reload: () => Promise<boolean>;
  /** Replace the content, for example by a newer pushed version. */
  set: (data: T) => void;
}

/** Read `path`, and keep reading it while the page is visible; if it is null, nothing is read. */
export function useResource<T>(path: string | null): Resource<T> {
  const data = useSignal<T | null>(null);
  const problem = useSignal<ApiProblem | null>(null);
  const loading = useSignal(false);
  const current = useRef<AbortController | null>(null);

  const reload = useCallback(async () => {
    if (path === null) return false;
    current.current?.abort();
    const mine = (current.current = new AbortController());
    loading.value = true;
    try {
      const read = await get<T>(path, mine.signal);
      if (current.current !== mine) return false;
      data.value = read;
      problem.value = null;
    } catch (error) {
      if (current.current !== mine) return false;
      problem.value = error instanceof ApiProblem ? error : new ApiProblem(0, "page", "The page failed", String(error));
    }
    loading.value = false;
    return problem.peek() === null;
  }, [path]);

  useEffect(() => {
    // The page of another resource must not show this content.
    data.value = null;
    problem.value = null;
    void reload();
    const again = () => {
      if (!document.hidden) void reload();
    };
    const timer = setInterval(again, EVERY);
    addEventListener("focus", again);
    rereads.add(again);
    return () => {
      current.current?.abort();
      current.current = null;
      clearInterval(timer);
      removeEventListener("focus", again);
      rereads.delete(again);
    };
  }, [path, reload]);

  return { data, problem, loading, reload, set: (value) => (data.value = value) };
}
