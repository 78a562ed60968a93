/** Creates a task from a form or JSON, or runs a task again with its payload to edit. */
import { useSignal } from "@preact/signals";
import { change, command, newKey, type Call } from "../api/client";
import type { Task, TaskCreate } from "../api/types";
import { upload, uploadOfFile, uploadOfTask, type Uploadable } from "../api/uploads";
import { parsed } from "../json";
import { href, navigate } from "../router";
import { useSending } from "./action";
import { Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";
import { payloadOfFile } from "./payload_view";
import { knownType, payloadOf, TypeField, useTypes } from "./type_field";
import { initialOptions, optionBody, TaskOptionFields, optionWords, type OptionValues } from "./task_options";

const UPLOAD = "$upload";

/** The payload of a request that refers to an upload. */
const referenceTo = (large: Uploadable): string => JSON.stringify({ [UPLOAD]: large.id });

/** Whether an upload is the payload of a request. */
const isPayloadOf = (body: TaskCreate, large: Uploadable): boolean => (body.payload as Record<string, unknown> | null)?.[UPLOAD] === large.id;

function callOf(body: TaskCreate, options: string[] | null, key: string, large: Uploadable | null): Call {
  const call: Call = { method: "POST", path: "/v1/tasks", body, headers: { "Idempotency-Key": key } };
  if (!options) return call;
  const words = ["tasks", "create", body.type];
  if (large) words.push("--payload-file", large.name, "--content-type", large.type);
  else if (body.payload !== undefined) words.push("--payload", JSON.stringify(body.payload));
  if (body.delay_seconds) words.push("--in", `${body.delay_seconds}s`);
  if (body.name) words.push("--name", body.name);
  return { ...call, command: command(...words, ...options) };
}

interface Values {
  type: string;
  payload: string;
  delay: string;
  name: string;
}

/** The request for the fields, and errors in them. */
function requestOf(values: Values, options: OptionValues): { body: TaskCreate; fault: string } {
  const read = parsed(values.payload || "null");
  const { body, fault } = optionBody(options);
  const due = "due_at" in body || "debounce" in body ? {} : { delay_seconds: Number(values.delay) || 0 };
  const asked = { type: values.type, payload: read.value, ...due, ...(values.name ? { name: values.name } : {}), ...body };
  return { body: asked as TaskCreate, fault: read.fault ? `The payload is not valid JSON: ${read.fault}` : fault };
}

export interface CreateTaskProps {
  close: () => void;
  created?: (() => void) | undefined;
  /** The task to repeat. */
  from?: Task | undefined;
}

export function CreateTaskForm({ close, created, from }: CreateTaskProps) {
  /** The payload of the task to repeat, if the payload was uploaded. */
  const copied = useSignal(from ? uploadOfTask(from) : null).value;
  /** A payload that is too large for the request: the uploaded payload or a file. */
  const large = useSignal(copied);
  const before = JSON.stringify(copied ? null : (from?.payload ?? null), null, 2);
  const payload = copied ? referenceTo(copied) : before;
  const values = useSignal<Values>({ type: from?.type ?? "", payload, delay: "0", name: from?.name ?? "" });
  const options = useSignal(initialOptions(from));
  const types = useTypes();
  /** The payload that was filled in for the type. */
  const suggested = useSignal("");
  /** The request as JSON, once the user edits it as JSON. */
  const json = useSignal<string | null>(null);
  const fault = useSignal("");
  // Even if the request is resent after a lost response, only one task is created.
  const key = useSignal(newKey());
  const { busy, problem, attempt } = useSending();
  const edited = () => (key.value = newKey());
  const set = (change: Partial<Values>) => {
    values.value = { ...values.value, ...change };
    edited();
  };

  /** Sets the type, and an initial payload unless the user has written one. */
  const choose = (type: string) => {
    const start = payloadOf(knownType(types.value, type));
    const isOwn = ![before, suggested.value].includes(values.value.payload) || from !== undefined;
    if (start !== null && !isOwn) suggested.value = start;
    set(start === null || isOwn ? { type } : { type, payload: start });
  };

  const take = async (file: File | undefined) => {
    if (!file) return;
    const taken = await payloadOfFile(file);
    fault.value = taken.fault;
    if (taken.fault) return;
    large.value = taken.upload && uploadOfFile(taken.upload);
    set({ payload: large.value ? referenceTo(large.value) : taken.text });
  };
  const leaveFile = () => {
    large.value = null;
    set({ payload: before });
  };

  const read = (): { call: Call; fault: string } => {
    if (json.value !== null) {
      const { value, fault: wrong } = parsed(json.value);
      return { call: callOf(value as TaskCreate, null, key.value, null), fault: wrong && `This is not valid JSON: ${wrong}` };
    }
    const asked = requestOf(values.value, options.value);
    return { call: callOf(asked.body, optionWords(options.value), key.value, large.value), fault: asked.fault };
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    const asked = read();
    fault.value = asked.fault;
    if (asked.fault) return;
    const uploaded = large.value;
    const task = await attempt(async () => {
      if (uploaded && isPayloadOf(asked.call.body as TaskCreate, uploaded)) await upload(uploaded);
      return change<Task>(asked.call);
    });
    if (!task) return;
    close();
    created?.();
    navigate(href(["tasks", task.id]));
  };
  const toJson = () => {
    const asked = requestOf(values.value, options.value);
    fault.value = asked.fault;
    if (!asked.fault) json.value = JSON.stringify(asked.body, null, 2);
  };
  return (
    <Dialog title={from ? "Run again" : "New task"} close={close} wide>
      <form onSubmit={(event) => void submit(event)}>
        {json.value === null ? (
          <>
            <TypeField types={types.value} value={values.value.type} changed={choose} />
            {large.value ? (
              <LargePayload large={large.value} isCopy={large.value === copied} leave={leaveFile} />
            ) : (
              <>
                <Field label="Payload" hint="Any JSON.">
                  <textarea rows={5} spellcheck={false} value={values.value.payload} onInput={(event) => set({ payload: event.currentTarget.value })} />
                </Field>
                <Field label="File" hint="The file's bytes (at most 5 MB) are the payload, instead of JSON.">
                  <input type="file" onChange={(event) => void take(event.currentTarget.files?.[0])} />
                </Field>
              </>
            )}
            {from && !copied && !large.value && before !== values.value.payload && <Difference before={before} after={values.value.payload} />}
            <div class="fields">
              <Field label="Due in seconds">
                <input type="number" min="0" step="any" value={values.value.delay} onInput={(event) => set({ delay: event.currentTarget.value })} />
              </Field>
              <Field label="Name" hint="Optional, for people.">
                <input maxLength={128} value={values.value.name} onInput={(event) => set({ name: event.currentTarget.value })} />
              </Field>
            </div>
            <TaskOptionFields values={options} changed={edited} />
          </>
        ) : (
          <Field label="Request" hint="The body of POST /v1/tasks.">
            <textarea rows={18} spellcheck={false} value={json.value} onInput={(event) => { json.value = event.currentTarget.value; edited(); }} />
          </Field>
        )}
        {fault.value && <p class="fault" role="alert">{fault.value}</p>}
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          {json.value === null && (
            <button type="button" class="quiet first" onClick={toJson}>
              Edit as JSON
            </button>
          )}
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            {busy.value && large.value ? "Uploading…" : "Create"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** A payload that is uploaded when the task is created. */
function LargePayload({ large, isCopy, leave }: { large: Uploadable; isCopy: boolean; leave: () => void }) {
  const hint = isCopy ? "The bytes are uploaded again" : "The file is uploaded";
  return (
    <Field label="Payload" hint={`${hint} when you create the task; no other task can use this upload.`}>
      <output>
        <strong>{large.name}</strong>: {large.size.toLocaleString("en")} bytes of <code>{large.type}</code>
      </output>
      <button type="button" class="quiet small" onClick={leave}>
        Choose another
      </button>
    </Field>
  );
}

/** The lines that differ before and after the change. */
export function Difference({ before, after, label = "What changes in the payload" }: { before: string; after: string; label?: string }) {
  const [old, next] = [before.split("\n"), after.split("\n")];
  return (
    <pre class="difference" aria-label={label}>
      {old.filter((line) => !next.includes(line)).map((line, index) => (
        <del key={`-${index}`}>{`- ${line}\n`}</del>
      ))}
      {next.filter((line) => !old.includes(line)).map((line, index) => (
        <ins key={`+${index}`}>{`+ ${line}\n`}</ins>
      ))}
    </pre>
  );
}
