/** An action with a dialog for the reason, which shows the API's response. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ApiProblem, change, type Call } from "../api/client";
import { Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";

export interface Action {
  title: string;
  /** A sentence that describes the effect. */
  text: string;
  /** The label of the button. */
  verb: string;
  danger?: boolean;
  /** Whether a reason can be given. */
  reason?: boolean;
  call: (reason: string) => Call;
  more?: ComponentChildren;
}

/** Send requests; `busy` and `problem` show progress and failure. */
export function useSending() {
  const busy = useSignal(false);
  const problem = useSignal<ApiProblem | null>(null);
  /** Requests that belong together; if a request fails, the following requests are not sent. */
  const attempt = async <T,>(requests: () => Promise<T>): Promise<T | undefined> => {
    if (busy.value) return undefined;
    busy.value = true;
    problem.value = null;
    try {
      return await requests();
    } catch (error) {
      problem.value = error instanceof ApiProblem ? error : new ApiProblem(0, "page", "The page failed", String(error));
      return undefined;
    } finally {
      busy.value = false;
    }
  };
  return { busy, problem, attempt, send: <T,>(call: Call) => attempt(() => change<T>(call)) };
}

export function ActionDialog({ action, close, done }: { action: Action; close: () => void; done: () => void }) {
  const reason = useSignal("");
  const { busy, problem, send } = useSending();
  const submit = async (event: Event) => {
    event.preventDefault();
    await send(action.call(reason.value.trim()));
    if (problem.value) return;
    close();
    done();
  };
  return (
    <Dialog title={action.title} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{action.text}</p>
        {action.more}
        {action.reason && (
          <Field label="Reason" hint="Optional. Shown with the action.">
            <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} autofocus />
          </Field>
        )}
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Keep as it is
          </button>
          <button type="submit" class={action.danger ? "danger" : "primary"} disabled={busy.value}>
            {action.verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
