/** One calendar, with its days drawn as months, its times as text, the schedules that use it, and its actions. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import { useReading } from "../api/reading";
import { useResource } from "../api/resource";
import type { Calendar, SchedulePage, ScheduleSummary } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { Facts, ProblemBox, StateChip, Time } from "../components/basics";
import { CalendarForm, MODES } from "../components/calendar_form";
import { ReadingLine } from "../components/reading";
import { Months } from "../components/months";
import { EXCLUDED } from "../components/timing_fields";
import { href, navigate } from "../router";
import { counted, now } from "../time";
import { partsOf } from "./calendars";

export function CalendarDetail({ subject: name }: { subject: string }) {
  const path = `/v1/calendars/${encodeURIComponent(name)}`;
  const calendar = useResource<Calendar>(path);
  const changing = useSignal(false);
  const deleting = useSignal(false);
  const reload = () => void calendar.reload();
  const read = calendar.data.value;
  if (!read) return calendar.problem.value ? <ProblemBox problem={calendar.problem.value} retry={reload} /> : <p class="muted">Loading the calendar…</p>;
  const remove: Action = {
    title: `Delete ${read.name}`,
    text: "The deletion is rejected while a schedule uses the calendar.",
    verb: "Delete",
    danger: true,
    call: () => ({ method: "DELETE", path, command: command("calendars", "delete", read.name) }),
  };
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["calendars"])}>Calendars</a>
          </p>
          <h1>{read.name}</h1>
          <p class="muted">
            {MODES[read.mode]}, {read.timezone} · {partsOf(read)}
          </p>
        </div>
        <div class="actions">
          <button type="button" onClick={() => (changing.value = true)}>
            Change…
          </button>
          <button type="button" class="remove" onClick={() => (deleting.value = true)}>
            Delete
          </button>
        </div>
      </div>
      {calendar.problem.value && <ProblemBox problem={calendar.problem.value} retry={reload} />}
      <section class="card wide months-card">
        <h2>The next twelve months</h2>
        <Months times={read} from={now.peek()} count={12} />
        <p class="muted legend">
          <i class="day-whole" /> the whole day <i class="day-part" /> a part of the day <i class="day-excepted" /> excepted
        </p>
      </section>
      <div class="grid">
        <Times calendar={read} />
        <Users name={read.name} />
      </div>
      {changing.value && <CalendarForm calendar={read} close={() => (changing.value = false)} done={calendar.reload} />}
      {deleting.value && <ActionDialog action={remove} close={() => (deleting.value = false)} done={() => navigate(href(["calendars"]))} />}
    </>
  );
}

const SHOWN = 60;

function Times({ calendar }: { calendar: Calendar }) {
  const dates = Object.entries(calendar.dates);
  return (
    <section class="card">
      <h2>Times</h2>
      <Facts
        rows={[
          ["Known until", calendar.known_until ? <Time at={calendar.known_until} zone={calendar.timezone} /> : "always"],
          ["Weekdays", calendar.weekdays.join(", ") || "none"],
          ["Hours", calendar.windows.length ? calendar.windows.map((each) => <div key={`${each.start}${each.label}`}>{each.start} to {each.end} <span class="muted">{each.weekdays.length < 7 && each.weekdays.join(", ")} {each.label}</span></div>) : "none"],
          ["Periods", calendar.spans.length ? calendar.spans.slice(0, SHOWN).map((each) => <div key={each.start}><Time at={each.start} zone={calendar.timezone} /> to <Time at={each.end} zone={calendar.timezone} /> <span class="muted">{each.reason}</span></div>) : "none"],
          ...(calendar.spans.length > SHOWN ? ([["Later periods", `and ${counted(calendar.spans.length - SHOWN, "more period")}`]] as const) : []),
          ["Dates", dates.length ? dates.slice(0, SHOWN).map(([day, label]) => <div key={day}><time dateTime={day}>{day}</time> <span class="muted">{label}</span></div>) : "none"],
          ...(dates.length > SHOWN ? ([["", `and ${dates.length - SHOWN} more dates`]] as const) : []),
          ["Except", calendar.except_dates.join(", ") || "none"],
        ]}
      />
    </section>
  );
}

/** The schedules that use a calendar, found by reading all schedules. */
function Users({ name }: { name: string }) {
  const page = useReading<SchedulePage, ScheduleSummary>("/v1/schedules?limit=100", { entries: (each) => each.schedules, enough: Infinity });
  const read = page.found.value;
  const found = (read?.entries ?? []).filter((each) => each.calendars.includes(name));
  return (
    <section class="card">
      <h2>Schedules that use it</h2>
      {read && found.length === 0 && <p class="muted">{read.isKnown ? "None." : "None found so far."}</p>}
      <ul>
        {found.map((each) => (
          <li key={each.name}>
            <a href={href(["schedules", each.name])}>{each.name}</a> <StateChip state={each.state} /> <span class="muted">an excluded occurrence {EXCLUDED[each.on_excluded] ?? each.on_excluded}</span>
          </li>
        ))}
      </ul>
      <ReadingLine reading={page} what="schedules" />
    </section>
  );
}
