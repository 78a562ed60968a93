/** An action on all tasks that match the search. The tasks are counted first, a filter is required, and for more
 * than 100 tasks, the user confirms by typing the number. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiProblem, ask, command } from "../api/client";
import { MOST_PAGES } from "../api/reading";
import type { BulkOperation, FilterActionResult } from "../api/types";
import { href, navigate } from "../router";
import { bulkFilter, type Search } from "../search";
import { counted as numberOf } from "../time";
import { useSending } from "./action";
import { Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";

const TYPED_ABOVE = 100;

const OPTIONS: Record<string, string> = {
  type: "--type",
  name: "--of-name",
  name_contains: "--name-contains",
  error_contains: "--error-contains",
  due_after: "--due-after",
  due_before: "--due-before",
  error_type: "--error-type",
};

/** The equivalent command, if the command line supports all conditions. */
function commandOf(kind: "cancel" | "retry", filter: Record<string, unknown>, given: { reason: string | undefined; per_second: number | undefined }): { command?: string } {
  const words = kind === "cancel" ? ["tasks", "cancel"] : ["dead-letters", "retry"];
  for (const [name, value] of Object.entries(filter)) {
    const option = OPTIONS[name];
    if (option) words.push(option, String(value));
    else if (name === "tags") Object.entries(value as Record<string, string>).forEach(([key, tag]) => words.push("--of-tag", `${key}=${tag}`));
    else if (name === "state" && (value as string[]).length === 1) words.push("--state", ...(value as string[]));
    else return {};
  }
  if (given.reason) words.push("--reason", given.reason);
  if (given.per_second) words.push("--per-second", String(given.per_second));
  return { command: command(...words) };
}

interface Counted {
  matched: number;
  examined: number;
  pages: number;
  /** The token that continues the count; null at its end. */
  next: string | null;
  /** The token that confirms the count. */
  token: string | null;
}

function filterOf(kind: "cancel" | "retry", search: Search): Record<string, unknown> {
  const filter = bulkFilter(search);
  if (kind === "retry") delete filter["state"];
  return filter;
}

const NOTHING: Counted = { matched: 0, examined: 0, pages: 0, next: null, token: null };

export function BulkDialog({ kind, search, close, done }: { kind: "cancel" | "retry"; search: Search; close: () => void; done: () => void }) {
  const counted = useSignal<Counted | null>(null);
  const typed = useSignal("");
  const reason = useSignal("");
  const pace = useSignal("");
  const counting = useSignal(false);
  const { busy, problem, send } = useSending();
  // Relative times mean the time at which the dialog was opened, so that the action has the filter that was counted.
  const filter = useRef(filterOf(kind, search)).current;

  const stopping = useRef<AbortController | null>(null);
  const stop = () => stopping.current?.abort();
  useEffect(() => stop, []);

  /** Continues counting page by page until the end, until the user stops it, or for this many pages. */
  const count = async () => {
    const { signal } = (stopping.current = new AbortController());
    let read = counted.value ?? NOTHING;
    const most = read.pages + MOST_PAGES;
    counting.value = true;
    problem.value = null;
    try {
      do {
        // The first page's token makes all pages count the tasks that existed then.
        const body = { filter, dry_run: true, ...(read.next && { next_token: read.next, confirmation_token: read.token }) };
        const page = await ask<FilterActionResult>(`/v1/tasks/${kind}`, body, signal);
        read = {
          matched: read.matched + page.matched,
          examined: read.examined + page.examined,
          pages: read.pages + 1,
          next: page.next_token,
          token: page.confirmation_token,
        };
        counted.value = read;
      } while (read.next && read.pages < most);
    } catch (error) {
      if (error instanceof ApiProblem) problem.value = error;
    }
    counting.value = false;
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    const found = counted.value;
    if (!found) return count();
    const given = { reason: reason.value.trim() || undefined, per_second: Number(pace.value) || undefined };
    const body = { filter, ...given, confirmation_token: found.token };
    const answer = await send<FilterActionResult | BulkOperation>({ method: "POST", path: `/v1/tasks/${kind}`, body, ...commandOf(kind, filter, given) });
    if (problem.value) return undefined;
    close();
    // Longer actions continue in the background.
    if (answer && "id" in answer) return navigate(href(["bulk-operations", answer.id]));
    return done();
  };
  const found = counted.value;
  const must = found && found.matched > TYPED_ABOVE ? String(found.matched) : "";
  return (
    <Dialog title={kind === "cancel" ? "Cancel all matching tasks" : "Retry all matching failed tasks"} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>
          {search.terms.map((term) => (
            <code key={term.text}>{term.text} </code>
          ))}
        </p>
        {found && (
          <p role="status">
            <strong>{numberOf(found.matched, "task")}</strong> {found.matched === 1 ? "matches" : "match"}, of {found.examined.toLocaleString("en")} examined
            {found.next === null ? "" : counting.value ? " so far" : "; there may be more"}. Nodes of topologies are included, but tasks that are created later are not.{" "}
            <a href={href(["tasks"], { q: [...search.terms.filter((term) => term.qualifier !== "nodes").map((term) => term.text), "nodes:yes"].join(" ") })} onClick={close}>
              Show them
            </a>
          </p>
        )}
        {found?.next && (
          <p>
            {counting.value && <progress aria-label="Counting" />}{" "}
            <button type="button" class="small" onClick={counting.value ? stop : () => void count()}>
              {counting.value ? "Stop counting" : "Continue counting"}
            </button>
          </p>
        )}
        {found && found.matched > 0 && (
          <Field label="Reason" hint="Shown in the events of each task. Optional.">
            <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} />
          </Field>
        )}
        {found && found.matched > 0 && (
          <Field label="Tasks a second, at most" hint="Optional. Limits the rate to protect the targets.">
            <input type="number" min="0.1" step="any" value={pace.value} onInput={(event) => (pace.value = event.currentTarget.value)} />
          </Field>
        )}
        {must && (
          <Field label={`Type ${must} to continue`}>
            <input inputMode="numeric" value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} />
          </Field>
        )}
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Keep them
          </button>
          <button
            type="submit"
            class={found ? "danger" : "primary"}
            disabled={busy.value || counting.value || (found !== null && (found.matched === 0 || typed.value !== must))}
          >
            {!found ? "Count the tasks" : `${kind === "cancel" ? "Cancel" : "Retry"} ${found.matched}${found.next ? " or more" : ""}`}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
