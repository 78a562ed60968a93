/** A calendar's days drawn as months, with full days, parts of days, and exceptions. */
import type { Calendar } from "../api/types";

export type CalendarTimes = Pick<Calendar, "mode" | "timezone" | "dates" | "except_dates" | "weekdays" | "windows" | "spans" | "known_until">;

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
const DAY_MS = 86_400_000;

interface Mark {
  kind: "whole" | "part" | "excepted" | "none";
  text: string;
}

/** The calendar's entries for one day. */
function markOf(times: CalendarTimes, day: string, weekday: (typeof WEEKDAYS)[number]): Mark {
  const spans = times.spans.filter((span) => localDay(span.start, times.timezone) <= day && day <= localDay(span.end, times.timezone, -1));
  const spanned: Mark | null = spans.length ? { kind: "part", text: spans.map((span) => span.reason || "a period").join(", ") } : null;
  if (times.except_dates.includes(day)) return spanned ?? { kind: "excepted", text: "excepted" };
  const label = times.dates[day];
  if (label !== undefined) return { kind: "whole", text: label || "a date of the calendar" };
  if (times.weekdays.includes(weekday)) return { kind: "whole", text: "a weekday of the calendar" };
  if (spanned) return spanned;
  const windows = times.windows.filter((window) => window.weekdays.includes(weekday));
  if (!windows.length) return { kind: "none", text: "" };
  return { kind: "part", text: windows.map((window) => `${window.start} to ${window.end} ${window.label}`.trim()).join(", ") };
}

/** The day of an instant in a zone, or in UTC if the browser does not know the zone. */
function localDay(iso: string, zone: string, shift = 0): string {
  const at = new Date(Date.parse(iso) + shift);
  if (Number.isNaN(at.getTime())) return "";
  try {
    return new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(at);
  } catch {
    return at.toISOString().slice(0, 10);
  }
}

export function Months({ times, from, count }: { times: CalendarTimes; from: number; count: number }) {
  const start = new Date(from);
  const today = localDay(start.toISOString(), times.timezone);
  const months = Array.from({ length: count }, (_, index) => Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + index, 1));
  return (
    <div class="months">
      {months.map((first) => (
        <Month key={first} first={first} times={times} today={today} />
      ))}
    </div>
  );
}

function Month({ first, times, today }: { first: number; times: CalendarTimes; today: string }) {
  const begin = new Date(first);
  const length = new Date(Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth() + 1, 0)).getUTCDate();
  const offset = (begin.getUTCDay() + 6) % 7;
  const days = Array.from({ length }, (_, index) => {
    const day = new Date(first + index * DAY_MS).toISOString().slice(0, 10);
    return { day, mark: markOf(times, day, WEEKDAYS[(offset + index) % 7] ?? "mon") };
  });
  const cells = [...Array.from({ length: offset }, () => null), ...days];
  const weeks = Array.from({ length: Math.ceil(cells.length / 7) }, (_, index) => cells.slice(index * 7, index * 7 + 7));
  return (
    <table class="month" aria-label={MONTH.format(begin)}>
      <caption>{MONTH.format(begin)}</caption>
      <thead>
        <tr>
          {WEEKDAYS.map((each) => (
            <th key={each} scope="col" abbr={each}>
              {each[0]?.toUpperCase()}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeks.map((week, index) => (
          <tr key={index}>
            {week.map((cell, column) =>
              cell ? (
                <td key={column} class={`day day-${cell.mark.kind} ${cell.day === today ? "today" : ""}`} title={cell.mark.text}>
                  {Number(cell.day.slice(8))}
                  {cell.mark.text && <span class="visually-hidden"> {cell.mark.text}</span>}
                </td>
              ) : (
                <td key={column} />
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
