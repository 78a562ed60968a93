/** Actions on the selected rows of a list, with one request per task; two tasks can be compared. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiProblem, change, command, showCalls, type Call } from "../api/client";
import type { TaskSummary } from "../api/types";
import { href } from "../router";
import { counted } from "../time";
import { Field } from "./basics";
import { Dialog } from "./dialog";

const ACTS = {
  cancel: { title: "Cancel", text: "The tasks will not run. Running attempts are asked to stop." },
  retry: { title: "Retry", text: "Failed tasks run again from their first attempt." },
  pause: { title: "Pause", text: "The tasks do not start until they are resumed. Running attempts are asked to pause." },
  resume: { title: "Resume", text: "The tasks run at their due times, or now if the due times are past." },
} as const;
type Act = keyof typeof ACTS;

interface SelectionProps {
  tasks: readonly TaskSummary[];
  clear: () => void;
  done: () => void;
}

export function Selection({ tasks, clear, done }: SelectionProps) {
  const act = useSignal<Act | null>(null);
  const [first, second] = tasks;
  return (
    <div class="selection" role="group" aria-label="Selected tasks">
      <strong>{tasks.length.toLocaleString("en")} selected</strong>
      {(Object.keys(ACTS) as Act[]).map((each) => (
        <button key={each} type="button" class="small" onClick={() => (act.value = each)}>
          {ACTS[each].title}…
        </button>
      ))}
      {tasks.length === 2 && first && second && (
        <a href={href(["tasks", "compare"], { a: first.id, b: second.id })}>Compare</a>
      )}
      <button type="button" class="quiet small" onClick={clear}>
        Clear
      </button>
      {act.value && <ActDialog act={act.value} tasks={tasks} close={() => (act.value = null)} done={done} />}
    </div>
  );
}

function ActDialog({ act, tasks, close, done }: { act: Act; tasks: readonly TaskSummary[]; close: () => void; done: () => void }) {
  // The selection when the dialog is opened, because rows may leave the list while it is open.
  const chosen = useSignal(tasks);
  const reason = useSignal("");
  const changed = useSignal(0);
  const refused = useSignal<readonly { id: string; problem: ApiProblem }[]>([]);
  const isOpen = useRef(true);
  useEffect(() => () => void (isOpen.current = false), []);
  const state = useSignal<"asked" | "busy" | "done">("asked");
  const { title, text } = ACTS[act];
  const sent: Call[] = [];
  const send = async (task: TaskSummary) => {
    const why = reason.value.trim();
    const body = { ...(why ? { reason: why } : {}), ...(act === "cancel" && ["preparing", "running"].includes(task.state) ? { force: true } : {}) };
    try {
      const words = ["tasks", act, task.id, ...("force" in body ? ["--force"] : []), ...(why ? ["--reason", why] : [])];
      const call = { method: "POST", path: `/v1/tasks/${task.id}/${act}`, body, command: command(...words) };
      await change(call);
      sent.push(call);
      changed.value += 1;
    } catch (error) {
      if (error instanceof ApiProblem) refused.value = [...refused.value, { id: task.id, problem: error }];
    }
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    state.value = "busy";
    for (const task of chosen.value) {
      // Closing the dialog keeps the remaining tasks as they are.
      if (!isOpen.current) break;
      await send(task);
    }
    state.value = "done";
    showCalls(sent);
    done();
    if (refused.value.length === 0) close();
  };
  return (
    <Dialog title={`${title} ${counted(chosen.value.length, "task")}`} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{text}</p>
        {state.value === "asked" && (
          <Field label="Reason" hint="Optional. Shown in the events of each task.">
            <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} autofocus />
          </Field>
        )}
        {state.value !== "asked" && (
          <p role="status">
            {changed.value} of {chosen.value.length} changed{refused.value.length > 0 && `, ${refused.value.length} refused`}
          </p>
        )}
        {refused.value.length > 0 && (
          <ul>
            {refused.value.map(({ id, problem }) => (
              <li key={id}>
                <a href={href(["tasks", id])}>{id}</a> <code>{problem.code}</code> {problem.message}
              </li>
            ))}
          </ul>
        )}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            {state.value === "done" ? "Close" : state.value === "busy" ? "Stop" : "Keep them"}
          </button>
          {state.value !== "done" && (
            <button type="submit" class={act === "cancel" ? "danger" : "primary"} disabled={state.value === "busy"}>
              {title} {chosen.value.length}
            </button>
          )}
        </footer>
      </form>
    </Dialog>
  );
}
