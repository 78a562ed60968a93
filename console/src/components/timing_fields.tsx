/** Form fields for a schedule's timing, which has one of six kinds, a zone, and calendars. */
import type { Signal } from "@preact/signals";
import { useReading } from "../api/reading";
import type { Calendar, CalendarPage, Schedule } from "../api/types";
import { zoneName } from "../time";
import { Field } from "./basics";
import { DIALECTS, lineOf, optionOf, timingIn } from "./timing_lines";

/** Handling of an occurrence that a calendar excludes. */
export const EXCLUDED: Record<string, string> = {
  skip: "does not run",
  move: "moves to the next time that is not excluded",
  previous_day: "runs at its time of day on an earlier day",
  next_day: "runs at its time of day on a later day",
};

export type Kind = "cron" | "rate" | "interval" | "dates" | "permanent" | "timings";

/** The input as text, where an empty text means unset. */
export interface TimingValues {
  kind: Kind;
  cron: string;
  dialect: string;
  rate: string;
  interval: string;
  dates: string;
  permanent: string;
  /** Several timings, one per line. */
  timings: string;
  timezone: string;
  dst_gap: string;
  dst_fold: string;
  calendars: readonly string[];
  on_excluded: string;
  extra_dates: string;
  excluded_dates: string;
  spread_seconds: string;
  jitter_seconds: string;
  start_at: string;
  end_at: string;
  remaining_runs: string;
}

export function initialTiming(schedule?: Schedule): TimingValues {
  const kind = (["cron", "rate", "interval", "dates", "permanent", "timings"] as const).find((each) => schedule?.[each]) ?? "cron";
  return {
    kind,
    cron: schedule?.cron ?? "0 2 * * *",
    dialect: schedule?.dialect ?? "cron",
    rate: schedule?.rate ?? "5 minutes",
    interval: schedule?.interval ?? "P1M",
    dates: schedule?.dates?.join("\n") ?? "",
    permanent: String(schedule?.permanent?.gap_seconds ?? 60),
    timings: schedule?.timings?.map(lineOf).join("\n") ?? "",
    timezone: schedule?.timezone ?? zoneName.value,
    dst_gap: schedule?.dst_gap ?? "skip",
    dst_fold: schedule?.dst_fold ?? "first",
    calendars: schedule?.calendars ?? [],
    on_excluded: schedule?.on_excluded ?? "skip",
    extra_dates: schedule?.extra_dates?.join(", ") ?? "",
    excluded_dates: schedule?.excluded_dates?.join(", ") ?? "",
    spread_seconds: String(schedule?.spread_seconds ?? 0),
    jitter_seconds: String(schedule?.jitter_seconds ?? 0),
    start_at: schedule?.start_at ?? "",
    end_at: schedule?.end_at ?? "",
    remaining_runs: String(schedule?.remaining_runs ?? ""),
  };
}

const linesOf = (text: string): string[] => text.split("\n").flatMap((line) => line.trim() || []);
const listed = (text: string): string[] => text.split(",").flatMap((each) => each.trim() || []);

/** The fields of a request; empty fields are null, so that an update removes them. */
export function timingBody(values: TimingValues): Record<string, unknown> {
  const written: Record<Kind, unknown> = {
    cron: values.cron,
    rate: values.rate,
    interval: values.interval,
    dates: linesOf(values.dates),
    permanent: { gap_seconds: Number(values.permanent) },
    timings: linesOf(values.timings).map(timingIn),
  };
  return {
    [values.kind]: written[values.kind],
    ...(values.kind === "cron" ? { dialect: values.dialect } : {}),
    timezone: values.timezone,
    dst_gap: values.dst_gap,
    dst_fold: values.dst_fold,
    calendars: values.calendars,
    on_excluded: values.on_excluded,
    extra_dates: listed(values.extra_dates),
    excluded_dates: listed(values.excluded_dates),
    spread_seconds: Number(values.spread_seconds || 0),
    jitter_seconds: Number(values.jitter_seconds || 0),
    start_at: values.start_at || null,
    end_at: values.end_at || null,
    remaining_runs: values.remaining_runs ? Number(values.remaining_runs) : null,
  };
}

/** The equivalent command options; null if one of several timings has no option. */
export function timingOptions(values: TimingValues): string[] | null {
  const several = linesOf(values.timings).map((line) => optionOf(timingIn(line)));
  if (values.kind === "timings" && several.includes(null)) return null;
  const written: Record<Kind, string[]> = {
    cron: ["--cron", values.cron, ...(values.dialect === "cron" ? [] : ["--dialect", values.dialect])],
    rate: ["--rate", values.rate],
    interval: ["--interval", values.interval],
    dates: linesOf(values.dates).flatMap((line) => ["--date", line]),
    permanent: ["--permanent", `${values.permanent}s`],
    timings: several.flatMap((option) => ["--timing", option ?? ""]),
  };
  const option = (name: string, value: string, usual: string) => (value === usual ? [] : [name, value]);
  return [
    ...written[values.kind],
    ...["--timezone", values.timezone],
    ...option("--dst-gap", values.dst_gap, "skip"),
    ...option("--dst-fold", values.dst_fold, "first"),
    ...values.calendars.flatMap((name) => ["--calendar", name]),
    ...option("--on-excluded", values.on_excluded, "skip"),
    ...listed(values.extra_dates).flatMap((date) => ["--extra-date", date]),
    ...listed(values.excluded_dates).flatMap((date) => ["--exclude-date", date]),
    ...option("--spread", `${values.spread_seconds || 0}s`, "0s"),
    ...option("--jitter", `${values.jitter_seconds || 0}s`, "0s"),
    ...option("--start", values.start_at, ""),
    ...option("--end", values.end_at, ""),
    ...option("--runs", values.remaining_runs, ""),
  ];
}

const KINDS: Record<Kind, string> = {
  cron: "Cron: at times of the calendar",
  rate: "Rate: repeatedly after a fixed time",
  interval: "Interval: every month, week or day (ISO 8601)",
  dates: "Dates: a list of times",
  permanent: "Permanent: again after each run has ended",
  timings: "Several timings",
};

export function TimingFields({ values }: { values: Signal<TimingValues> }) {
  const { kind } = values.value;
  const set = (change: Partial<TimingValues>) => (values.value = { ...values.value, ...change });
  return (
    <>
      <div class="fields">
        <Choice label="Runs" value={kind} options={KINDS} set={(each) => set({ kind: each as Kind })} />
        {kind === "cron" && <Text label="Cron" value={values.value.cron} set={(cron) => set({ cron })} required hint="Minute, hour, day of month, month, weekday; six fields begin with seconds. L, W and # are supported." />}
        {kind === "rate" && <Text label="Every" value={values.value.rate} set={(rate) => set({ rate })} required hint="Elapsed time, such as 5 minutes, 4h30m or 36 hours." />}
        {kind === "interval" && <Text label="Interval" value={values.value.interval} set={(interval) => set({ interval })} required hint="Such as P1M, P2W or R5/2026-12-31T18:00:00/P1M." />}
        {kind === "permanent" && <Text label="Seconds between runs" value={values.value.permanent} set={(permanent) => set({ permanent })} required number hint="From the end of one run to the start of the next." />}
        <Zone value={values.value.timezone} set={(timezone) => set({ timezone })} />
      </div>
      {kind === "dates" && (
        <Field label="Dates" hint="One per line, such as 2026-12-24T09:00:00. Times without an offset are in the zone's local time.">
          <textarea rows={4} required spellcheck={false} value={values.value.dates} onInput={(event) => set({ dates: event.currentTarget.value })} />
        </Field>
      )}
      {kind === "timings" && (
        <Field label="Timings" hint="One per line: cron 0 9 * * mon-fri, eventbridge cron(0 12 ? * SAT *), rate 36 hours, interval P1D, or dates separated by commas: dates 2026-12-24T09:00:00.">
          <textarea rows={4} required spellcheck={false} value={values.value.timings} onInput={(event) => set({ timings: event.currentTarget.value })} />
        </Field>
      )}
      <ClockChanges values={values.value} set={set} />
      <Limits values={values.value} set={set} />
    </>
  );
}

type Set = (change: Partial<TimingValues>) => void;

/** Handling of clock changes, which affect only timings in local time. */
function ClockChanges({ values, set }: { values: TimingValues; set: Set }) {
  if (["rate", "permanent"].includes(values.kind)) return null;
  return (
    <div class="fields">
      <Choice label="A time that the clock skips" value={values.dst_gap} set={(dst_gap) => set({ dst_gap })} options={{ skip: "does not run", shift_forward: "runs after the gap" }} />
      <Choice label="A time that occurs twice" value={values.dst_fold} set={(dst_fold) => set({ dst_fold })} options={{ first: "runs once", both: "runs twice" }} />
    </div>
  );
}

function Limits({ values, set }: { values: TimingValues; set: Set }) {
  const calendars = useReading<CalendarPage, Calendar>("/v1/calendars", { entries: (page) => page.calendars, enough: Infinity }).found.value?.entries ?? [];
  const chosen = values.calendars;
  const toggle = (name: string) => set({ calendars: chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name] });
  return (
    <details class="more">
      <summary>Calendars, dates, start, end and jitter</summary>
      {calendars.length > 0 && (
        <fieldset class="checks">
          <legend>Calendars that decide when the schedule does not run</legend>
          {calendars.map(({ name }) => (
            <label key={name}>
              <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} /> {name}
            </label>
          ))}
        </fieldset>
      )}
      <div class="fields">
        {chosen.length > 0 && (
          <Choice label="An occurrence that a calendar excludes" value={values.on_excluded} set={(on_excluded) => set({ on_excluded })} options={EXCLUDED} />
        )}
        <Text label="Not before" value={values.start_at} set={(start_at) => set({ start_at })} hint="Such as 2026-12-01T00:00:00Z." />
        <Text label="Not after" value={values.end_at} set={(end_at) => set({ end_at })} />
        <Text label="Runs left" value={values.remaining_runs} set={(remaining_runs) => set({ remaining_runs })} number hint="Leave empty for no limit." />
        <Text label="Dates added" value={values.extra_dates} set={(extra_dates) => set({ extra_dates })} hint="Such as 2026-12-30T09:00:00, separated by commas." />
        <Text label="Dates left out" value={values.excluded_dates} set={(excluded_dates) => set({ excluded_dates })} hint="Days or times, such as 2026-12-28, separated by commas." />
        <Text label="Spread in seconds" value={values.spread_seconds} set={(spread_seconds) => set({ spread_seconds })} number hint="All occurrences are delayed by the same time, up to this limit. The delay is derived from the name." />
        <Text label="Jitter in seconds" value={values.jitter_seconds} set={(jitter_seconds) => set({ jitter_seconds })} number hint="Each occurrence has its own random delay, up to this limit." />
        {values.kind === "cron" && (
          <Choice label="Dialect" value={values.dialect} set={(dialect) => set({ dialect })} options={DIALECTS} />
        )}
      </div>
    </details>
  );
}

function Zone({ value, set }: { value: string; set: (value: string) => void }) {
  return (
    <Field label="Time zone" hint="An IANA name.">
      <input required list="zones" spellcheck={false} value={value} onInput={(event) => set(event.currentTarget.value)} />
      <datalist id="zones">
        {Intl.supportedValuesOf("timeZone").map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </Field>
  );
}

interface TextProps {
  label: string;
  value: string;
  set: (value: string) => void;
  hint?: string;
  required?: boolean;
  /** Whole numbers only. */
  number?: boolean;
  /** Any number. */
  decimal?: boolean;
  placeholder?: string;
}

const NUMBERS = { inputMode: "numeric", pattern: "[0-9]*" } as const;
const DECIMALS = { inputMode: "decimal", pattern: "[0-9]*[.]?[0-9]*" } as const;

export function Text({ label, value, set, hint, required = false, number = false, decimal = false, placeholder }: TextProps) {
  return (
    <Field label={label} {...(hint ? { hint } : {})}>
      <input required={required} {...(number ? NUMBERS : decimal ? DECIMALS : {})} placeholder={placeholder} spellcheck={false} value={value} onInput={(event) => set(event.currentTarget.value)} />
    </Field>
  );
}

export function Choice({ label, value, options, set, hint }: { label: string; value: string; options: Record<string, string>; set: (value: string) => void; hint?: string }) {
  const shown = value in options ? options : { ...options, [value]: value };
  return (
    <Field label={label} {...(hint ? { hint } : {})}>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {Object.entries(shown).map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}
