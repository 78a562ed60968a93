/** A task's options besides its type, payload and name, as form fields, in the request and in the command. */
import type { Signal } from "@preact/signals";
import { parsed } from "../json";
import { Field } from "./basics";
import { Choice, Text } from "./timing_fields";

interface TaskOption {
  /** The option's path in a request: a field, or a field and a subfield. */
  path: string;
  label: string;
  kind: "text" | "number" | "check" | "json" | "tags" | Record<string, string>;
  hint?: string;
  /** The default, which is shown in the empty field and is not copied from a task. */
  usual?: string;
  /** The equivalent option of the command. */
  option?: string;
}

const START: readonly TaskOption[] = [
  { path: "due_at", label: "Due at", kind: "text", option: "--due-at", hint: "Replaces “Due in seconds”. Such as 2026-12-01T09:00:00+01:00." },
  { path: "priority", label: "Priority", kind: { "": "normal", high: "high", low: "low" }, option: "--priority", hint: "Order among tasks that are due at the same time." },
  { path: "expires_seconds", label: "Expires after seconds", kind: "number", option: "--expires", hint: "A task that has not started this long after its due time fails with Expired." },
  { path: "fair_key", label: "Fair key", kind: "text", option: "--fair-key", hint: "Tasks with other keys do not wait behind tasks with this key." },
  { path: "fair_weight", label: "Weight of the fair key", kind: "number", usual: "1", option: "--fair-weight", hint: "The share of the key, from 1 to 5, while several keys have many tasks." },
  { path: "lock.key", label: "Lock", kind: "text", option: "--lock", hint: "The lock is held while the task runs." },
  { path: "lock.max_holders", label: "Holders of the lock", kind: "number", usual: "1", option: "--lock-max-holders", hint: "The maximum at any time." },
  { path: "lock.wait_seconds", label: "Longest wait for the lock", kind: "number", option: "--lock-wait", hint: "In seconds; after this time, the task fails with LockWaitExpired." },
  { path: "lock.mode", label: "The lock is", kind: { "": "for one task, or for as many as may hold it", shared: "shared with all tasks that share it" } },
  { path: "lock.scope", label: "The lock is held", kind: { "": "for all phases", run: "for run and rollback only" } },
  { path: "locks", label: "Several locks", kind: "json", usual: "[]", hint: 'Replaces the single lock. JSON such as [{"key": "db-17"}, {"key": "gpu", "mode": "shared"}].' },
  { path: "rate.key", label: "Rate", kind: "text", option: "--rate-key", hint: "Limits how often attempts of all tasks with this key start." },
  { path: "rate.limit", label: "Starts at most", kind: "number", option: "--rate-limit", hint: "Attempts within the time in the next field." },
  { path: "rate.per_seconds", label: "In seconds", kind: "number", usual: "1", option: "--rate-per" },
  { path: "rate.burst", label: "And at once", kind: "number", usual: "0", option: "--rate-burst", hint: "Additional starts after a pause." },
];
const ATTEMPTS: readonly TaskOption[] = [
  { path: "timeout_seconds", label: "Timeout in seconds", kind: "number", usual: "60", option: "--timeout", hint: "The limit for one attempt." },
  { path: "retry.max_attempts", label: "Attempts", kind: "number", usual: "5", option: "--max-attempts", hint: "The maximum; 1 means no retry." },
  { path: "retry.initial_seconds", label: "First wait", kind: "number", usual: "1", hint: "The maximum in seconds." },
  { path: "retry.multiplier", label: "Each wait grows by", kind: "number", usual: "2" },
  { path: "retry.max_seconds", label: "Longest wait", kind: "number", usual: "300", hint: "In seconds." },
  { path: "retry.max_duration_seconds", label: "No attempt later than", kind: "number", option: "--retry-for", hint: "Seconds after the start of the first attempt." },
  { path: "notify_within_seconds", label: "Reports within seconds", kind: "number", usual: "3600", option: "--notify-within", hint: "For a target that accepts work and reports later." },
  { path: "rollback_on_failure", label: "Roll back when the task has failed for good", kind: "check", option: "--rollback-on-failure" },
];
const TARGET: readonly TaskOption[] = [
  { path: "target", label: "Target", kind: "json", usual: '{"kind":"handler"}', hint: 'JSON with a kind, such as {"kind": "lambda", "arn": …}. Leave empty for the type\'s handler.' },
  { path: "allow_unknown_type", label: "Accept the task even if its handler is not deployed yet", kind: "check", option: "--allow-unknown-type" },
];
const NOTICES: readonly TaskOption[] = [
  { path: "callback_url", label: "Callback URL", kind: "text", option: "--callback-url", hint: "The signed outcome is posted to this URL." },
  { path: "notify_on.to", label: "Notices go to", kind: "text", option: "--notify-to", hint: "A URL, an SNS topic or an event bus." },
  { path: "notify_on.late_seconds", label: "Notice of a start this late", kind: "number", option: "--notify-late", hint: "In seconds. Leave empty for no notice." },
  { path: "notify_on.running_seconds", label: "Notice of an attempt this long", kind: "number", option: "--notify-running", hint: "In seconds. Leave empty for no notice." },
  { path: "tags", label: "Tags", kind: "tags", option: "--tag", hint: "One per line, such as team=dba." },
  { path: "notify_on.failed", label: "Notice when the task has failed for good", kind: "check", option: "--notify-failed" },
];
const SAME_KEY: readonly TaskOption[] = [
  { path: "group.id", label: "Member of the group", kind: "text", option: "--group", hint: "The group is created if it does not exist." },
  { path: "unique.key", label: "Unique key", kind: "text", option: "--unique", hint: "Only one of your tasks at a time can hold this key." },
  { path: "unique.until", label: "The key is held", kind: { "": "until it has ended", started: "until it starts" }, option: "--unique-until" },
  { path: "unique.on_conflict", label: "If another task holds the key", kind: { "": "that task is kept", replace: "that task gets these fields", refuse: "this task is refused" }, option: "--on-conflict" },
  { path: "debounce.key", label: "Debounce key", kind: "text", option: "--unique", hint: "Each later creation with the key replaces the task's fields." },
  { path: "debounce.seconds", label: "Postponed by seconds", kind: "number", option: "--debounce", hint: "Seconds from the latest creation, instead of a due time." },
  { path: "debounce.max_seconds", label: "Postponed at most by", kind: "number", option: "--debounce-max", hint: "Seconds from the first creation." },
  { path: "order.key", label: "After the tasks with the key", kind: "text", option: "--order", hint: "The task waits for the outcome of tasks that were created before it." },
  { path: "order.on_failure", label: "If the task fails for good", kind: { "": "the next task runs", stop: "the next tasks wait until it succeeds after a retry, or is deleted" }, option: "--order-stop" },
];
const GROUPS: readonly [string, readonly TaskOption[]][] = [
  ["When it starts", START],
  ["Attempts", ATTEMPTS],
  ["What is called", TARGET],
  ["Notices and tags", NOTICES],
  ["Other tasks of the same key", SAME_KEY],
];
const OPTIONS = GROUPS.flatMap(([, options]) => options);
/** Subfields that have no meaning without the subfield that names the object. */
const NAMED_BY: Record<string, string> = { lock: "lock.key", rate: "rate.key", notify_on: "notify_on.to", unique: "unique.key", debounce: "debounce.key", order: "order.key", group: "group.id" };
/** Fields for a single creation, which are not used for copies and for a schedule's tasks. */
const OF_ONE_CREATION = ["due_at", "unique", "debounce", "order", "group"];
const isOfOne = (path: string): boolean => OF_ONE_CREATION.includes(path.split(".")[0] ?? "");
/** Checkboxes that are checked by default. */
const CHECKED = ["notify_on.failed"];

/** The input by option path; a checkbox has a boolean. */
export type OptionValues = Record<string, string | boolean>;

/** The values of an existing or a new task. */
export function initialOptions(task?: object): OptionValues {
  return Object.fromEntries(OPTIONS.map((each) => [each.path, written(each, valueAt(task, each.path))]));
}

function valueAt(task: object | undefined, path: string): unknown {
  if (isOfOne(path)) return undefined;
  return path.split(".").reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], task);
}

function written({ path, kind, usual }: TaskOption, value: unknown): string | boolean {
  if (kind === "check") return value === undefined ? CHECKED.includes(path) : value === true;
  if (value === undefined || value === null) return "";
  if (kind === "json") return JSON.stringify(value) === usual ? "" : JSON.stringify(value, null, 2);
  if (kind === "tags") return Object.entries(value).map((tag) => tag.join("=")).join("\n");
  const text = String(value as string | number);
  return text === usual || (typeof kind === "object" && !(text in kind)) ? "" : text;
}

/** The fields of a request, without empty ones. `fault` describes invalid input. */
export function optionBody(values: OptionValues): { body: Record<string, unknown>; fault: string } {
  const body: Record<string, unknown> = {};
  let fault = "";
  for (const option of OPTIONS) {
    const [field = "", part] = option.path.split(".");
    const value = values[option.path] ?? "";
    const needed = NAMED_BY[field];
    if (value === "" || (needed && !values[needed]) || (value === false && !CHECKED.includes(option.path))) continue;
    const [read, wrong] = readValue(option, value);
    fault ||= wrong;
    if (part === undefined) body[field] = read;
    else body[field] = { ...(body[field] as object | undefined), [part]: read };
  }
  return { body, fault };
}

function readValue({ kind, label }: TaskOption, value: string | boolean): [unknown, string] {
  if (typeof value === "boolean") return [value, ""];
  if (kind === "number") return [Number(value), Number.isNaN(Number(value)) ? `${label}: ${value} is not a number` : ""];
  if (kind === "tags") return [Object.fromEntries(tagLines(value).map((line) => line.split(/=(.*)/s).slice(0, 2).map((part) => part.trim()))), tagLines(value).every((line) => line.includes("=")) ? "" : "Tags: a line is not key=value"];
  if (kind !== "json") return [value.trim(), ""];
  const { value: json, fault } = parsed(value);
  return [json, fault && `The ${label.toLowerCase()} is not valid JSON: ${fault}`];
}

const tagLines = (text: string): string[] => text.split("\n").flatMap((line) => line.trim() || []);

/** The equivalent command options; null if a field has no option. */
export function optionWords(values: OptionValues): string[] | null {
  const words: string[] = [];
  for (const { path, kind, option } of OPTIONS) {
    const value = values[path] ?? "";
    const needed = NAMED_BY[path.split(".")[0] ?? ""];
    if (value === "" || (needed && !values[needed]) || value === CHECKED.includes(path)) continue;
    if (!option) return null;
    if (value === false) words.push(option.replace("--", "--no-"));
    else if (value === true) words.push(option);
    else if (kind === "tags") words.push(...tagLines(value).flatMap((line) => [option, line]));
    // The value `stop` is a flag of the command.
    else if (path === "order.on_failure") words.push(option);
    else words.push(option, value.trim());
  }
  return words;
}

/** A merge patch from `before` to `after`; removed fields are null. */
export function patchOf(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const gone = Object.keys(before).filter((name) => !(name in after));
  const kept = Object.entries(after).map(([name, value]) => [name, isPart(before[name]) && isPart(value) && before[name]["kind"] === value["kind"] ? patchOf(before[name], value) : value]);
  return { ...Object.fromEntries(kept), ...Object.fromEntries(gone.map((name) => [name, null])) };
}

const isPart = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields in groups, for schedules without the due time of a single task. */
export function TaskOptionFields({ values, changed, ofSchedule = false }: { values: Signal<OptionValues>; changed?: () => void; ofSchedule?: boolean }) {
  const set = (path: string, value: string | boolean) => {
    values.value = { ...values.value, [path]: value };
    changed?.();
  };
  return (
    <details class="more">
      <summary>{ofSchedule ? "Options of its tasks" : "More options"}</summary>
      {GROUPS.filter(([, options]) => !(ofSchedule && options.every(({ path }) => isOfOne(path)))).map(([title, options]) => (
        <fieldset key={title} class="options-of">
          <legend>{title}</legend>
          <div class="fields">
            {options.filter((each) => each.kind !== "check" && !(ofSchedule && isOfOne(each.path))).map((each) => (
              <OptionField key={each.path} option={each} value={values.value[each.path] ?? ""} set={(value) => set(each.path, value)} />
            ))}
          </div>
          {options.filter((each) => each.kind === "check").map((each) => (
            <label key={each.path} class="check" data-option={each.path}>
              <input type="checkbox" checked={values.value[each.path] === true} onChange={(event) => set(each.path, event.currentTarget.checked)} /> {each.label}
            </label>
          ))}
        </fieldset>
      ))}
    </details>
  );
}

function OptionField({ option, value, set }: { option: TaskOption; value: string | boolean; set: (value: string) => void }) {
  const { label, kind, path, usual } = option;
  const text = String(value);
  const hint = option.hint ? { hint: option.hint } : {};
  if (typeof kind === "object") return <div data-option={path}><Choice label={label} value={text} options={kind} set={set} {...hint} /></div>;
  if (kind === "json" || kind === "tags")
    return (
      <div data-option={path}>
        <Field label={label} {...hint}>
          <textarea rows={3} spellcheck={false} value={text} onInput={(event) => set(event.currentTarget.value)} />
        </Field>
      </div>
    );
  return <div data-option={path}><Text label={label} value={text} set={set} decimal={kind === "number"} {...hint} {...(usual ? { placeholder: usual } : {})} /></div>;
}
