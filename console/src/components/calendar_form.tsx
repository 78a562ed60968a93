/** Creates or replaces a calendar, with a live drawing of its days. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { command, etagOf, type Call } from "../api/client";
import type { Calendar } from "../api/types";
import { href, navigate } from "../router";
import { now, zoneName } from "../time";
import { useSending } from "./action";
import { Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";
import { Months, WEEKDAYS, type CalendarTimes } from "./months";
import { Choice, Text } from "./timing_fields";

interface Values {
  mode: string;
  timezone: string;
  weekdays: readonly string[];
  dates: string;
  except_dates: string;
  windows: string;
  spans: string;
  known_until: string;
}

const lines = (text: string): string[] => text.split("\n").flatMap((line) => line.trim() || []);
const rest = (line: string, words: number): string => line.split(/\s+/).slice(words).join(" ");

/** Parse the fields as a calendar; the rest of a line is its label. */
function timesOf(values: Values): CalendarTimes {
  return {
    mode: values.mode as Calendar["mode"],
    timezone: values.timezone,
    weekdays: WEEKDAYS.filter((each) => values.weekdays.includes(each)),
    dates: Object.fromEntries(lines(values.dates).map((line) => [line.split(/\s+/)[0] ?? "", rest(line, 1)])),
    except_dates: lines(values.except_dates),
    windows: lines(values.windows).map((line) => {
      const [hours = "", days = ""] = line.split(/\s+/);
      const [start = "", end = ""] = hours.split("-");
      const named = days.split(",").filter((each) => (WEEKDAYS as readonly string[]).includes(each)) as Calendar["windows"][number]["weekdays"];
      return { start, end, weekdays: named.length ? named : [...WEEKDAYS], label: rest(line, named.length ? 2 : 1) };
    }),
    spans: lines(values.spans).map((line) => {
      const [start = "", end = ""] = line.split(/\s+/);
      return { start, end, reason: rest(line, 2) };
    }),
    known_until: values.known_until.trim() || null,
  };
}

function valuesOf(calendar?: Calendar): Values {
  return {
    mode: calendar?.mode ?? "excludes",
    timezone: calendar?.timezone ?? zoneName.value,
    weekdays: calendar?.weekdays ?? [],
    dates: Object.entries(calendar?.dates ?? {}).map(([day, label]) => `${day} ${label}`.trim()).join("\n"),
    except_dates: (calendar?.except_dates ?? []).join("\n"),
    windows: (calendar?.windows ?? []).map((each) => `${each.start}-${each.end} ${each.weekdays.join(",")} ${each.label}`.trim()).join("\n"),
    spans: (calendar?.spans ?? []).map((each) => `${each.start} ${each.end} ${each.reason}`.replaceAll(".000Z", "Z").trim()).join("\n"),
    known_until: calendar?.known_until?.replace(".000Z", "Z") ?? "",
  };
}

export const MODES: Record<string, string> = {
  excludes: "schedules do not run at these times",
  includes: "schedules run only at these times",
};

export function CalendarForm({ calendar, close, done }: { calendar?: Calendar; close: () => void; done?: () => Promise<unknown> }) {
  // The version from which the form was filled, so that changes that others make meanwhile are not overwritten.
  const etag = useRef(calendar && etagOf(pathOf(calendar.name))).current;
  const name = useSignal(calendar?.name ?? "");
  const values = useSignal(valuesOf(calendar));
  const { busy, problem, send } = useSending();
  const set = (change: Partial<Values>) => (values.value = { ...values.value, ...change });
  const submit = async (event: Event) => {
    event.preventDefault();
    const made = await send<Calendar>(callOf(name.value, timesOf(values.value), calendar ? { "If-Match": etag ?? "*" } : { "If-None-Match": "*" }));
    if (!made) return;
    // The next change must be based on this version.
    await done?.();
    close();
    if (!calendar) navigate(href(["calendars", made.name]));
  };
  const toggle = (day: string) => set({ weekdays: values.value.weekdays.includes(day) ? values.value.weekdays.filter((each) => each !== day) : [...values.value.weekdays, day] });
  return (
    <Dialog title={calendar ? `Change ${calendar.name}` : "New calendar"} close={close} wide>
      <form onSubmit={(event) => void submit(event)}>
        <div class="fields">
          {!calendar && <Text label="Name" value={name.value} set={(text) => (name.value = text)} required />}
          <Choice label="Purpose" value={values.value.mode} options={MODES} set={(mode) => set({ mode })} />
          <Text label="Time zone" value={values.value.timezone} set={(timezone) => set({ timezone })} required hint="An IANA name." />
          <Text label="Known until" value={values.value.known_until} set={(known_until) => set({ known_until })} hint="Such as 2028-12-01T00:00:00Z, if later times are not known yet. You are notified a month before this time." />
        </div>
        <fieldset class="checks">
          <legend>Weekdays</legend>
          {WEEKDAYS.map((each) => (
            <label key={each}>
              <input type="checkbox" checked={values.value.weekdays.includes(each)} onChange={() => toggle(each)} /> {each}
            </label>
          ))}
        </fieldset>
        <div class="fields lines">
          <Lines label="Dates" value={values.value.dates} set={(dates) => set({ dates })} hint="One per line, with a label: 2026-12-25 Christmas Day" />
          <Lines label="Except" value={values.value.except_dates} set={(except_dates) => set({ except_dates })} hint="Dates to which only the periods below apply." />
          <Lines label="Hours" value={values.value.windows} set={(windows) => set({ windows })} hint="22:00-06:00 mon,tue Night. Without weekdays, the hours apply every day." />
          <Lines label="Periods" value={values.value.spans} set={(spans) => set({ spans })} hint="2026-12-24T12:00:00Z 2027-01-02T00:00:00Z Freeze" />
        </div>
        <Months times={timesOf(values.value)} from={now.peek()} count={3} />
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            {calendar ? "Replace" : "Create"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

const pathOf = (name: string) => `/v1/calendars/${encodeURIComponent(name)}`;

/** A conditional write, so that concurrent changes are not overwritten. */
function callOf(name: string, body: CalendarTimes, headers: Record<string, string>): Call {
  return { method: "PUT", path: pathOf(name), body, headers, command: command("calendars", "put", name, "calendar.json") };
}

function Lines({ label, value, set, hint }: { label: string; value: string; set: (value: string) => void; hint: string }) {
  return (
    <Field label={label} hint={hint}>
      <textarea rows={3} spellcheck={false} value={value} onInput={(event) => set(event.currentTarget.value)} />
    </Field>
  );
}
