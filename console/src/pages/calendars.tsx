/** The calendars, which are named sets of times that exclude or limit schedules' runs. */
import { useSignal } from "@preact/signals";
import { useReading } from "../api/reading";
import type { Calendar, CalendarPage } from "../api/types";
import { Command, Pager, ProblemBox, Time } from "../components/basics";
import { CalendarForm, MODES } from "../components/calendar_form";
import { NoneFound, ReadingLine } from "../components/reading";
import { href, usePlace } from "../router";
import { counted } from "../time";

const LIMIT = 100;

export function Calendars() {
  const token = usePlace("calendars").query.get("page") ?? "";
  const asked = new URLSearchParams({ limit: String(LIMIT), ...(token && { next_token: token }) });
  const page = useReading<CalendarPage, Calendar>(`/v1/calendars?${asked}`, { entries: (each) => each.calendars, enough: LIMIT });
  const making = useSignal(false);
  const read = page.found.value;
  return (
    <>
      <div class="page-head">
        <h1>Calendars</h1>
        <button type="button" class="primary" onClick={() => (making.value = true)}>
          New calendar
        </button>
      </div>
      {making.value && <CalendarForm close={() => (making.value = false)} />}
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title={token ? "No more calendars" : "No calendars yet"}>
        <p>A calendar is a set of dates, weekdays, hours and periods. A schedule that names the calendar does not run at these times, or runs only at these times.</p>
        <p>You can also use files from calendar programs (iCalendar):</p>
        <Command text="duetime calendars put uk-holidays holidays.ics --timezone Europe/London" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <table class="cards" aria-label="Calendars">
          <thead>
            <tr>
              <th scope="col">Calendar</th>
              <th scope="col">Purpose</th>
              <th scope="col">Has</th>
              <th scope="col">Time zone</th>
              <th scope="col">Known until</th>
            </tr>
          </thead>
          <tbody>
            {read.entries.map((each) => (
              <tr key={each.name} data-row={each.name}>
                <td>
                  <a href={href(["calendars", each.name])} data-open>
                    {each.name}
                  </a>
                </td>
                <td>{MODES[each.mode]}</td>
                <td>{partsOf(each)}</td>
                <td class="muted">{each.timezone}</td>
                <td class="muted" data-label="Known until">{each.known_until ? <Time at={each.known_until} zone={each.timezone} /> : "always"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <ReadingLine reading={page} what="calendars" />
      <Pager token={read?.isKnown ? read.token : null} />
    </>
  );
}

/** The numbers of a calendar's times by kind. */
export function partsOf(calendar: Calendar): string {
  const parts: [number, string][] = [
    [Object.keys(calendar.dates).length, "date"],
    [calendar.weekdays.length, "weekday"],
    [calendar.windows.length, "window"],
    [calendar.spans.length, "period"],
  ];
  return parts.flatMap(([count, unit]) => (count ? counted(count, unit) : [])).join(", ") || "nothing";
}
