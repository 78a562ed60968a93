/** Creating a schedule, or changing one: what its timing means is shown while one types, as the server computes it. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiProblem, ask, command, type Call } from "../api/client";
import type { Preview, PreviewOccurrence, Schedule } from "../api/types";
import { href, navigate } from "../router";
import { zoneName } from "../time";
import { useSending } from "./action";
import { Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";

const WAIT_MS = 250;

export function ScheduleForm({ schedule, close, done }: { schedule?: Schedule; close: () => void; done?: () => void }) {
  const name = useSignal(schedule?.name ?? "");
  const type = useSignal(schedule?.task.type ?? "");
  const payload = useSignal(JSON.stringify(schedule?.task.payload ?? null, null, 2));
  const cron = useSignal(schedule?.cron ?? "0 2 * * *");
  const timezone = useSignal(schedule?.timezone ?? zoneName.value);
  const overlap = useSignal<string>(schedule?.overlap ?? "skip");
  const gap = useSignal<string>(schedule?.dst_gap ?? "skip");
  const fold = useSignal<string>(schedule?.dst_fold ?? "first");
  const fault = useSignal("");
  const { busy, problem, send } = useSending();
  const timing = { cron: cron.value, timezone: timezone.value, dst_gap: gap.value, dst_fold: fold.value };

  const submit = async (event: Event) => {
    event.preventDefault();
    let parsed: unknown;
    try {
      parsed = JSON.parse(payload.value || "null");
      fault.value = "";
    } catch (error) {
      fault.value = `The payload is no JSON: ${(error as Error).message}`;
      return;
    }
    const body = { ...timing, overlap: overlap.value, task: { type: type.value, payload: parsed } };
    const made = await send<Schedule>(callOf(body, name.value, schedule));
    if (!made) return;
    close();
    done?.();
    if (!schedule) navigate(href(["schedules", made.name]));
  };
  return (
    <Dialog title={schedule ? `Change ${schedule.name}` : "New schedule"} close={close} wide>
      <form onSubmit={(event) => void submit(event)}>
        <div class="fields">
          {!schedule && <Text label="Name" field={name} required />}
          <Text label="Task type" field={type} required />
          <Text label="Cron" field={cron} required hint="Minute, hour, day, month, weekday." />
          <Text label="Time zone" field={timezone} required hint="An IANA name." />
          <Choice label="A time that the clock skips" field={gap} options={{ skip: "does not run", shift_forward: "runs after the gap" }} />
          <Choice label="A time that comes twice" field={fold} options={{ first: "runs once", both: "runs twice" }} />
          <Choice label="While the last run goes on" field={overlap} options={OVERLAPS} />
        </div>
        <LivePreview timing={timing} />
        <Field label="Payload" hint="Any JSON.">
          <textarea rows={4} spellcheck={false} value={payload.value} onInput={(event) => (payload.value = event.currentTarget.value)} />
        </Field>
        {fault.value && (
          <p class="fault" role="alert">
            {fault.value}
          </p>
        )}
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            {schedule ? "Change" : "Create"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

const OVERLAPS = { skip: "the next one is skipped", buffer_one: "one waits", allow_all: "all run" };

function callOf(body: Record<string, unknown> & { cron: string; timezone: string; task: { type: string } }, name: string, schedule?: Schedule): Call {
  const words = ["--cron", body.cron, "--timezone", body.timezone];
  if (schedule) {
    const path = `/v1/schedules/${encodeURIComponent(schedule.name)}`;
    return { method: "PATCH", path, body, headers: {}, command: command("schedules", "update", schedule.name, ...words) };
  }
  const made = command("schedules", "create", name, body.task.type, ...words);
  return { method: "POST", path: "/v1/schedules", body: { ...body, name }, command: made };
}

interface TextField {
  value: string;
}

function Text({ label, field, hint, required }: { label: string; field: TextField; hint?: string; required?: boolean }) {
  return (
    <Field label={label} {...(hint ? { hint } : {})}>
      <input required={required ?? false} spellcheck={false} value={field.value} onInput={(event) => (field.value = event.currentTarget.value)} />
    </Field>
  );
}

function Choice({ label, field, options }: { label: string; field: TextField; options: Record<string, string> }) {
  return (
    <Field label={label}>
      <select value={field.value} onChange={(event) => (field.value = event.currentTarget.value)}>
        {Object.entries({ ...options, ...(field.value in options ? {} : { [field.value]: field.value }) }).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** The next occurrences of a timing, with what clock changes and calendars do to them. */
function LivePreview({ timing }: { timing: Record<string, string> }) {
  const found = useSignal<readonly PreviewOccurrence[]>([]);
  const problem = useSignal<ApiProblem | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        found.value = (await ask<Preview>("/v1/schedules/preview", { ...timing, count: 6 }, stop.signal)).occurrences;
        problem.value = null;
      } catch (error) {
        if (error instanceof ApiProblem) problem.value = error;
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [JSON.stringify(timing)]);
  return (
    <section class="preview" aria-label="Next occurrences" aria-live="polite">
      {problem.value ? (
        <p class="fault">{problem.value.errors[0]?.reason ?? problem.value.message}</p>
      ) : (
        <Occurrences occurrences={found.value} />
      )}
    </section>
  );
}

export function Occurrences({ occurrences }: { occurrences: readonly PreviewOccurrence[] }) {
  return (
    <ol class="occurrences">
      {occurrences.map((each) => (
        <li key={each.scheduled_at} class={each.runs ? "" : "not"}>
          <time dateTime={each.scheduled_at} title={each.scheduled_at}>
            {each.local_time.replace("T", " ")}
          </time>{" "}
          {!each.runs && <strong>does not run</strong>} {each.note && <span class="note">{each.note}</span>}
        </li>
      ))}
    </ol>
  );
}
