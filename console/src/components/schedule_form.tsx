/** Creates or changes a schedule, with the server's live interpretation of its timing. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { argument, command, type Call } from "../api/client";
import type { Schedule } from "../api/types";
import { parsed } from "../json";
import { href, navigate } from "../router";
import { useSending } from "./action";
import { Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";
import { LivePreview } from "./occurrences";
import { initialOptions, optionBody, optionWords, patchOf, TaskOptionFields } from "./task_options";
import { Choice, initialTiming, Text, TimingFields, timingBody, timingOptions, type TimingValues } from "./timing_fields";

/** The effect of each overlap policy when a run is due while the previous one is still running. */
export const OVERLAPS: Record<string, string> = {
  skip: "the next run is skipped",
  buffer_one: "one run waits, and starts afterwards",
  buffer_all: "all runs wait, and run one after another",
  cancel_other: "the active run is asked to stop; the latest run starts after its end",
  replace_other: "the active run is asked to stop; the latest run starts at once",
  allow_all: "all run at the same time",
};

interface Behavior {
  overlap: string;
  catch_up_seconds: string;
  catch_up_mode: string;
  pause_on_failure: boolean;
  expect_success_by: string;
  expect_every_seconds: string;
  expect_duration_factor: string;
}

export function ScheduleForm({ schedule: latest, close, done }: { schedule?: Schedule; close: () => void; done?: (changed: Schedule) => void }) {
  // The schedule when the form was opened, so that older values do not overwrite changes that others make meanwhile.
  const schedule = useRef(latest).current;
  const name = useSignal(schedule?.name ?? "");
  const type = useSignal(schedule?.task.type ?? "");
  const payload = useSignal(JSON.stringify(schedule?.task.payload ?? null, null, 2));
  const timing = useSignal<TimingValues>(initialTiming(schedule));
  const behavior = useSignal<Behavior>(initialBehavior(schedule));
  const options = useSignal(initialOptions(schedule?.task));
  const reason = useSignal("");
  /** The request as JSON, once the user edits it as JSON. */
  const json = useSignal<string | null>(null);
  const fault = useSignal("");
  const { busy, problem, send } = useSending();
  // A payload too large for the response is not in the form; an update keeps it unchanged.
  const keepsPayload = schedule !== undefined && !("payload" in schedule.task);

  const asked = (): { call: Call; fault: string } => {
    const read = parsed(payload.value || "null");
    const before = optionBody(initialOptions(schedule?.task)).body;
    const { body, fault: wrong } = optionBody(options.value);
    const removed = Object.keys(before).some((field) => !(field in body));
    const task = { type: type.value, ...(keepsPayload ? {} : { payload: read.value }), ...patchOf(before, body) };
    const words = removed ? null : optionWords(options.value);
    const call = withReason(callOf(timing.value, behavior.value, task, words, name.value, schedule), reason.value.trim());
    return { call, fault: read.fault ? `The payload is not valid JSON: ${read.fault}` : wrong };
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    const { call, fault: wrong } = asked();
    const typed = json.value === null ? null : parsed(json.value);
    fault.value = typed ? typed.fault && `This is not valid JSON: ${typed.fault}` : wrong;
    if (fault.value) return;
    const made = await send<Schedule>(typed ? { method: call.method, path: call.path, headers: call.headers ?? {}, body: typed.value } : call);
    if (!made) return;
    close();
    done?.(made);
    if (!schedule) navigate(href(["schedules", made.name]));
  };
  const toJson = () => {
    const { call, fault: wrong } = asked();
    fault.value = wrong;
    if (!wrong) json.value = JSON.stringify(call.body, null, 2);
  };
  return (
    <Dialog title={schedule ? `Change ${schedule.name}` : "New schedule"} close={close} wide>
      <form onSubmit={(event) => void submit(event)}>
        {json.value === null ? (
          <>
            <div class="fields">
              {!schedule && <Text label="Name" value={name.value} set={(text) => (name.value = text)} required />}
              <Text label="Task type" value={type.value} set={(text) => (type.value = text)} required />
            </div>
            <TimingFields values={timing} />
            <LivePreview timing={timingBody(timing.value)} zone={timing.value.timezone} />
            <BehaviorFields values={behavior.value} set={(change) => (behavior.value = { ...behavior.value, ...change })} />
            <TaskOptionFields values={options} ofSchedule />
            {!keepsPayload && (
              <Field label="Payload" hint="Any JSON.">
                <textarea rows={3} spellcheck={false} value={payload.value} onInput={(event) => (payload.value = event.currentTarget.value)} />
              </Field>
            )}
          </>
        ) : (
          <Field label="Request" hint={schedule ? "The body of the PATCH: null removes a field." : "The body of POST /v1/schedules."}>
            <textarea rows={22} spellcheck={false} value={json.value} onInput={(event) => (json.value = event.currentTarget.value)} />
          </Field>
        )}
        {schedule && json.value === null && <Changes schedule={schedule} body={asked().call.body as Record<string, unknown>} />}
        {schedule && (
          <Field label="Reason" hint="Optional. Shown with the change in its events.">
            <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} />
          </Field>
        )}
        {fault.value && (
          <p class="fault" role="alert">
            {fault.value}
          </p>
        )}
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
            {schedule ? "Change" : "Create"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Adds the reason to a request and its command. */
function withReason(call: Call, reason: string): Call {
  if (!reason) return call;
  const path = `${call.path}?${new URLSearchParams({ reason })}`;
  return call.command ? { ...call, path, command: `${call.command} --reason ${argument(reason)}` } : { ...call, path };
}

const shownValue = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value ?? null));

/** The old and new values of what the form changes. */
function Changes({ schedule, body }: { schedule: Schedule; body: Record<string, unknown> }) {
  const { task: taskAfter, ...after } = body as Record<string, unknown> & { task: Record<string, unknown> };
  const { task: _task, ...before } = callOf(initialTiming(schedule), initialBehavior(schedule), { type: schedule.task.type }, null, schedule.name, schedule).body as Record<string, unknown>;
  const taskBefore = schedule.task as Record<string, unknown>;
  const changes: [string, unknown, unknown][] = [
    ...[...new Set([...Object.keys(before), ...Object.keys(after)])].map((field): [string, unknown, unknown] => [field, before[field], after[field]]),
    ...Object.keys(taskAfter).map((field): [string, unknown, unknown] => [`task.${field}`, taskBefore[field], taskAfter[field]]),
  ].filter(([, old, now]) => shownValue(old) !== shownValue(now));
  if (changes.length === 0) return <p class="muted">Nothing has been changed.</p>;
  return (
    <ul class="changes" aria-label="Changes">
      {changes.map(([field, before, after]) => (
        <li key={field}>
          {field.replaceAll("_", " ")}: <del>{shownValue(before)}</del> → <ins>{shownValue(after)}</ins>
        </li>
      ))}
    </ul>
  );
}

function initialBehavior(schedule?: Schedule): Behavior {
  return {
    overlap: schedule?.overlap ?? "skip",
    catch_up_seconds: String(schedule?.catch_up_seconds ?? 3600),
    catch_up_mode: schedule?.catch_up_mode ?? "latest",
    pause_on_failure: schedule?.pause_on_failure ?? false,
    expect_success_by: schedule?.expect_success_by ?? "",
    expect_every_seconds: String(schedule?.expect_every_seconds ?? ""),
    expect_duration_factor: String(schedule?.expect_duration_factor ?? ""),
  };
}

/** Policies for overlapping, missed and failed runs. */
function BehaviorFields({ values, set }: { values: Behavior; set: (change: Partial<Behavior>) => void }) {
  return (
    <>
      <div class="fields">
        <Choice label="While the last run is active" value={values.overlap} set={(overlap) => set({ overlap })} options={OVERLAPS} />
        <Text label="Catch up after an outage" value={values.catch_up_seconds} set={(catch_up_seconds) => set({ catch_up_seconds })} number hint="In seconds. A missed run still starts if it is not later than this." />
        <Choice label="Of the missed runs" value={values.catch_up_mode} set={(catch_up_mode) => set({ catch_up_mode })} options={{ latest: "the latest one runs", all: "all run, in order" }} />
      </div>
      <details class="more">
        <summary>Failures and expectations</summary>
        <label class="check">
          <input type="checkbox" checked={values.pause_on_failure} onChange={(event) => set({ pause_on_failure: event.currentTarget.checked })} /> Pause the schedule when a task has failed for good
        </label>
        <div class="fields">
          <Text label="A success by" value={values.expect_success_by} set={(expect_success_by) => set({ expect_success_by })} hint="Local time, such as 06:00. A missed deadline sets off an alarm." />
          <Text label="A success every" value={values.expect_every_seconds} set={(expect_every_seconds) => set({ expect_every_seconds })} number hint="In seconds. A missed deadline sets off an alarm." />
          <Text label="Longest run" value={values.expect_duration_factor} set={(expect_duration_factor) => set({ expect_duration_factor })} decimal hint="A multiple of the median of the latest successful runs. A longer run sends a notice." />
        </div>
      </details>
    </>
  );
}

function callOf(timing: TimingValues, behavior: Behavior, task: { type: string; payload?: unknown }, options: string[] | null, name: string, schedule?: Schedule): Call {
  const body = {
    ...timingBody(timing),
    overlap: behavior.overlap,
    catch_up_seconds: Number(behavior.catch_up_seconds || 0),
    catch_up_mode: behavior.catch_up_mode,
    pause_on_failure: behavior.pause_on_failure,
    expect_success_by: behavior.expect_success_by || null,
    expect_every_seconds: behavior.expect_every_seconds ? Number(behavior.expect_every_seconds) : null,
    expect_duration_factor: behavior.expect_duration_factor ? Number(behavior.expect_duration_factor) : null,
    task,
  };
  const words = options && optionsOf(timing, behavior);
  const before = schedule ? optionsOf(initialTiming(schedule), initialBehavior(schedule)) : [];
  // The command leaves out options with their default, so it cannot express that an option was set to its default.
  // The command for a change has no such option.
  const isUnknown = schedule !== undefined && options?.includes("--allow-unknown-type");
  const isReset = (before ?? []).some((word) => word.startsWith("--") && !OF_KIND.has(word) && !words?.includes(word));
  const ofTask = "payload" in task && (!schedule || jsonOf(task.payload) !== jsonOf(schedule.task.payload)) ? ["--payload", jsonOf(task.payload)] : [];
  const said = (...first: string[]) => (options && words && !isReset && !isUnknown ? { command: command("schedules", ...first, ...words, ...ofTask, ...options) } : {});
  if (!schedule) return { method: "POST", path: "/v1/schedules", body: { ...body, name }, ...said("create", name, task.type) };
  const path = `/v1/schedules/${encodeURIComponent(schedule.name)}`;
  const type = task.type === schedule.task.type ? [] : ["--type", task.type];
  return { method: "PATCH", path, body, headers: { "If-Match": `"${schedule.version}"` }, ...said("update", schedule.name, ...type) };
}

/** Options that another kind of timing replaces. */
const OF_KIND = new Set(["--cron", "--dialect", "--rate", "--interval", "--date", "--permanent", "--timing"]);

const jsonOf = (value: unknown): string => JSON.stringify(value ?? null);

/** The command's options for the timing and the behavior, without defaults; null if one of several timings has no option. */
function optionsOf(timing: TimingValues, behavior: Behavior): string[] | null {
  const when = timingOptions(timing);
  if (!when) return null;
  return [
    ...when,
    ...(behavior.overlap === "skip" ? [] : ["--overlap", behavior.overlap]),
    ...(behavior.catch_up_seconds === "3600" ? [] : ["--catch-up", `${behavior.catch_up_seconds}s`]),
    ...(behavior.catch_up_mode === "latest" ? [] : ["--catch-up-mode", behavior.catch_up_mode]),
    ...(behavior.pause_on_failure ? ["--pause-on-failure"] : []),
    ...(behavior.expect_success_by ? ["--expect-success-by", behavior.expect_success_by] : []),
    ...(behavior.expect_every_seconds ? ["--expect-every", `${behavior.expect_every_seconds}s`] : []),
    ...(behavior.expect_duration_factor ? ["--expect-duration-factor", behavior.expect_duration_factor] : []),
  ];
}
