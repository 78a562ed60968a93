/** Creating a task by a form or as JSON; also "run again", with the old payload to edit. */
import { useSignal } from "@preact/signals";
import { command, newKey, type Call } from "../api/client";
import type { Task, TaskCreate } from "../api/types";
import { parsed } from "../json";
import { href, navigate } from "../router";
import { useSending } from "./action";
import { Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";

export function CreateTask({ created, from }: { created?: () => void; from?: Task }) {
  const open = useSignal(false);
  return (
    <>
      <button type="button" class={from ? "" : "primary"} onClick={() => (open.value = true)}>
        {from ? "Run again…" : "New task"}
      </button>
      {open.value && <Form close={() => (open.value = false)} created={created} from={from} />}
    </>
  );
}

/** The request that would create the same task anew, now. */
function copyOf(task: Task): TaskCreate {
  const { type, payload, target, retry, timeout_seconds, notify_within_seconds, rollback_on_failure, priority } = task;
  return {
    ...{ type, payload, target, retry, timeout_seconds, notify_within_seconds, rollback_on_failure, priority },
    lock: task.lock,
    callback_url: task.callback_url,
    name: task.name,
    tags: task.tags,
  } as TaskCreate;
}

function callOf(body: TaskCreate, key: string): Call {
  const words = ["tasks", "create", body.type];
  if (body.payload !== undefined) words.push("--payload", JSON.stringify(body.payload));
  if (body.delay_seconds) words.push("--in", `${body.delay_seconds}s`);
  if (body.name) words.push("--name", body.name);
  return { method: "POST", path: "/v1/tasks", body, headers: { "Idempotency-Key": key }, command: command(...words) };
}

function Form({ close, created, from }: { close: () => void; created?: (() => void) | undefined; from?: Task | undefined }) {
  const base: Partial<TaskCreate> = from ? copyOf(from) : {};
  const type = useSignal(from?.type ?? "");
  const payload = useSignal(JSON.stringify(from?.payload ?? null, null, 2));
  const delay = useSignal("0");
  const name = useSignal(from?.name ?? "");
  const fault = useSignal("");
  // A request that is sent twice, for the answer was lost, creates one task.
  const key = useSignal(newKey());
  const { busy, problem, send } = useSending();

  const submit = async (event: Event) => {
    event.preventDefault();
    const read = parsed(payload.value || "null");
    fault.value = read.fault && `The payload is no JSON: ${read.fault}`;
    if (read.fault) return;
    const body = { ...base, type: type.value, payload: read.value, delay_seconds: Number(delay.value) || 0 } as TaskCreate;
    body.name = name.value || null;
    const task = await send<Task>(callOf(body, key.value));
    if (!task) return;
    close();
    created?.();
    navigate(href(["tasks", task.id]));
  };
  return (
    <Dialog title={from ? "Run again" : "New task"} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <Field label="Type" hint="The name of its handler, or of a kind of work.">
          <input required value={type.value} onInput={(event) => edit(type, key, event.currentTarget.value)} autofocus />
        </Field>
        <Field label="Payload" hint="Any JSON.">
          <textarea rows={6} spellcheck={false} value={payload.value} onInput={(event) => edit(payload, key, event.currentTarget.value)} />
        </Field>
        {from && JSON.stringify(from.payload ?? null, null, 2) !== payload.value && <Difference before={JSON.stringify(from.payload ?? null, null, 2)} after={payload.value} />}
        <div class="fields">
          <Field label="Due in seconds">
            <input type="number" min="0" step="any" value={delay.value} onInput={(event) => edit(delay, key, event.currentTarget.value)} />
          </Field>
          <Field label="Name" hint="Optional, for people.">
            <input maxLength={128} value={name.value} onInput={(event) => edit(name, key, event.currentTarget.value)} />
          </Field>
        </div>
        {fault.value && <p class="fault" role="alert">{fault.value}</p>}
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            Create
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function edit(field: { value: string }, key: { value: string }, value: string): void {
  field.value = value;
  key.value = newKey();
}

/** The lines that differ, before and after. */
function Difference({ before, after }: { before: string; after: string }) {
  const [old, next] = [before.split("\n"), after.split("\n")];
  return (
    <pre class="difference" aria-label="What changes in the payload">
      {old.filter((line) => !next.includes(line)).map((line, index) => (
        <del key={`-${index}`}>{`- ${line}\n`}</del>
      ))}
      {next.filter((line) => !old.includes(line)).map((line, index) => (
        <ins key={`+${index}`}>{`+ ${line}\n`}</ins>
      ))}
    </pre>
  );
}
