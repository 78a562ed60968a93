/** The calendars: named sets of times in which schedules do not run, or in which alone they run. */
import { useSignal } from "@preact/signals";
import { useResource } from "../api/resource";
import type { Calendar, CalendarPage } from "../api/types";
import { Command, Empty, Pager, ProblemBox, Time } from "../components/basics";
import { CalendarForm, MODES } from "../components/calendar_form";
import { href, usePlace } from "../router";
import { counted } from "../time";

export function Calendars() {
  const token = usePlace("calendars").query.get("page") ?? "";
  const asked = new URLSearchParams({ limit: "100", ...(token && { next_token: token }) });
  const page = useResource<CalendarPage>(`/v1/calendars?${asked}`);
  const making = useSignal(false);
  const read = page.data.value;
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
      {read && read.calendars.length === 0 && (
        <Empty title="No calendars yet">
          <p>A calendar is a set of dates, weekdays, hours and periods. A schedule that names it does not run in these times, or only in them.</p>
          <p>Files of calendar programs are taken, too:</p>
          <Command text="duetime calendars put uk-holidays holidays.ics --timezone Europe/London" />
        </Empty>
      )}
      {read && read.calendars.length > 0 && (
        <table class="cards" aria-label="Calendars">
          <thead>
            <tr>
              <th scope="col">Calendar</th>
              <th scope="col">What it is for</th>
              <th scope="col">Has</th>
              <th scope="col">Time zone</th>
              <th scope="col">Known until</th>
            </tr>
          </thead>
          <tbody>
            {read.calendars.map((each) => (
              <tr key={each.name} data-row={each.name}>
                <td>
                  <a href={href(["calendars", each.name])} data-open>
                    {each.name}
                  </a>
                </td>
                <td>{MODES[each.mode]}</td>
                <td>{partsOf(each)}</td>
                <td class="muted">{each.timezone}</td>
                <td class="muted">{each.known_until ? <Time at={each.known_until} zone={each.timezone} /> : "always"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Pager token={read?.next_token} />
    </>
  );
}

/** How many times of each kind it has. */
export function partsOf(calendar: Calendar): string {
  const parts: [number, string][] = [
    [Object.keys(calendar.dates).length, "date"],
    [calendar.weekdays.length, "weekday"],
    [calendar.windows.length, "window"],
    [calendar.spans.length, "period"],
  ];
  return parts.flatMap(([count, unit]) => (count ? counted(count, unit) : [])).join(", ") || "nothing";
}
