/** An action on all tasks that match the search: counted first, never without a filter, confirmed by typing above 100.
 * */
import { useSignal } from "@preact/signals";
import { ApiProblem, ask, command } from "../api/client";
import type { BulkOperation, FilterActionResult } from "../api/types";
import { href, navigate } from "../router";
import { bulkFilter, type Search } from "../search";
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
  complete: boolean;
  token: string | null;
}

export function BulkDialog({ kind, search, close, done }: { kind: "cancel" | "retry"; search: Search; close: () => void; done: () => void }) {
  const counted = useSignal<Counted | null>(null);
  const typed = useSignal("");
  const reason = useSignal("");
  const pace = useSignal("");
  const counting = useSignal(false);
  const { busy, problem, send } = useSending();
  const filter = bulkFilter(search);
  if (kind === "retry") delete filter["state"];

  const count = async () => {
    counting.value = true;
    problem.value = null;
    try {
      const result = await ask<FilterActionResult>(`/v1/tasks/${kind}`, { filter, dry_run: true });
      counted.value = { ...result, complete: !result.next_token, token: result.confirmation_token };
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
    <Dialog title={kind === "cancel" ? "Cancel all that match" : "Retry all failed that match"} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>
          {search.terms.map((term) => (
            <code key={term.text}>{term.text} </code>
          ))}
        </p>
        {found && (
          <p role="status">
            <strong>{found.matched} tasks</strong> match, of {found.examined} examined
            {found.complete ? "" : "; there may be more"}. Nodes of topologies are included. Tasks that are created later are not.{" "}
            <a href={href(["tasks"], { q: [...search.terms.filter((term) => term.qualifier !== "nodes").map((term) => term.text), "nodes:yes"].join(" ") })} onClick={close}>
              Show them
            </a>
          </p>
        )}
        {found && found.matched > 0 && (
          <Field label="Reason" hint="Shown in the events of each task. Optional.">
            <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} />
          </Field>
        )}
        {found && found.matched > 0 && (
          <Field label="Tasks a second, at most" hint="Optional: limits the rate, to protect the targets.">
            <input type="number" min="0.1" step="any" value={pace.value} onInput={(event) => (pace.value = event.currentTarget.value)} />
          </Field>
        )}
        {must && (
          <Field label={`Type ${must} to go on`}>
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
            {!found ? "Count them" : kind === "cancel" ? `Cancel ${found.matched}` : `Retry ${found.matched}`}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
