/** Formats times with their zone. The clock follows the server's, from its responses. */
import { computed, signal } from "@preact/signals";
import { zone } from "./settings";

let offset = 0;

let clockIsKnown: () => void;
const LONGEST_WAIT_MS = 3_000;

/** Resolved once a response has given the server's time, or after three seconds. Before that, this computer's clock may
 * be wrong. */
export const clockKnown = new Promise<void>((resolve) => {
  clockIsKnown = resolve;
  setTimeout(resolve, LONGEST_WAIT_MS);
});

/** Adopt the clock of a response; differences below two seconds are within the header's precision. */
export function setServerClock(header: string | null): void {
  // The code that waits runs after this function.
  clockIsKnown();
  const difference = header ? Date.parse(header) - Date.now() : NaN;
  const next = Math.abs(difference) > 2000 ? difference : 0;
  if (Number.isNaN(difference) || Math.abs(next - offset) < 2000) return;
  offset = next;
  now.value = serverNow();
}

export const serverNow = (): number => Date.now() + offset;

/** The current time, updated every second while the page is visible. */
export const now = signal(serverNow());
setInterval(() => {
  if (!document.hidden) now.value = serverNow();
}, 1000);

export const zoneName = computed(() =>
  zone.value === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : zone.value,
);

const formats = new Map<string, Intl.DateTimeFormat>();

function format(timeZone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = timeZone + JSON.stringify(options);
  let found = formats.get(key);
  if (!found) formats.set(key, (found = new Intl.DateTimeFormat("en-GB", { timeZone, ...options })));
  return found;
}

const DAY: Intl.DateTimeFormatOptions = { day: "2-digit", month: "short" };
const TIME: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };

/** `20:46:04` for today, otherwise `22 Nov 20:46:04`, with the year if it differs and without the zone. */
export function shortTime(iso: string, timeZone = zoneName.value): string {
  const at = new Date(iso);
  const day = format(timeZone, { ...DAY, year: "numeric" });
  const today = new Date(now.value);
  const time = format(timeZone, TIME).format(at);
  if (day.format(at) === day.format(today)) return time;
  const year = format(timeZone, { year: "numeric" });
  return `${format(timeZone, year.format(at) === year.format(today) ? DAY : { ...DAY, year: "numeric" }).format(at)} ${time}`;
}

/** The day of an instant in the displayed zone, as a text that is the same throughout a day. */
export const dayOf = (instant: number): string => format(zoneName.value, { ...DAY, year: "numeric" }).format(instant);

/** The weekday and day of the month of an instant in the displayed zone: `Fri 27`. */
export const weekdayOf = (iso: string): string => format(zoneName.value, { weekday: "short", day: "numeric" }).format(new Date(iso));

/** The short name of a zone at a time, such as `CET` or `GMT+9`. */
export function zoneLabel(iso?: string, timeZone = zoneName.value): string {
  const parts = format(timeZone, { timeZoneName: "short" }).formatToParts(iso ? new Date(iso) : new Date(now.value));
  return parts.find((part) => part.type === "timeZoneName")?.value ?? timeZone;
}

/** `22 Nov 20:46:04 CET`. */
export const zonedTime = (iso: string, timeZone = zoneName.value): string =>
  `${shortTime(iso, timeZone)} ${zoneLabel(iso, timeZone)}`;

/** A text from the server with its times converted to the displayed zone. */
export const inZone = (text: string): string => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (iso) => zonedTime(iso));

/** `in 3 min`, `12 s ago`. */
export function relativeTime(iso: string): string {
  const difference = Date.parse(iso) - now.value;
  if (Math.abs(difference) < 1000) return "now";
  const text = duration(Math.abs(difference));
  return difference > 0 ? `in ${text}` : `${text} ago`;
}

/** `1 run`, `12 runs`. */
export const counted = (count: number, unit: string, plural = `${unit}s`): string => `${count.toLocaleString("en")} ${count === 1 ? unit : plural}`;

const UNITS: [number, string][] = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];

/** `480 ms`, `3.2 s`, `2 min 5 s`, `3 h 12 min`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10_000) return `${(Math.floor(milliseconds / 100) / 10).toString()} s`;
  for (const [index, [size, unit]] of UNITS.entries()) {
    if (milliseconds < size) continue;
    const next = UNITS[index + 1];
    const count = Math.floor(milliseconds / size);
    const rest = next && count < 10 ? Math.floor((milliseconds % size) / next[0]) : 0;
    return rest && next ? `${count} ${unit} ${rest} ${next[1]}` : `${count} ${unit}`;
  }
  return "";
}

const WEEKDAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: "UTC" });

/** `Sun 2027-03-28 01:30` for a local time from the server, such as `2027-03-28T01:30:00+00:00`; a label shows the
 * offset. */
export function wallTime(local: string): string {
  const [day = "", rest = ""] = local.split("T", 2);
  const clock = rest.slice(0, 8);
  return `${WEEKDAY.format(new Date(`${day}T00:00:00Z`))} ${day} ${clock.endsWith(":00") ? clock.slice(0, 5) : clock}`;
}

/** The difference between a zone's local time and UTC at an instant, in milliseconds. */
export function offsetOf(instant: number, timeZone = zoneName.value): number {
  const parts = format(timeZone, { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric", hourCycle: "h23" }).formatToParts(instant);
  const of = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  return Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second")) - Math.floor(instant / 1000) * 1000;
}

const LOCAL = /^(?:(\d{4})-(\d\d)-(\d\d)(?:[T ](?=\d))?)?(?:(\d{1,2}):(\d\d)(?::(\d\d))?)?$/;

/** A typed time without an offset, in the displayed zone: `2026-12-01T09:00`, `2026-12-01`, or `09:00` of today.
 * Null for any other text. */
export function typedTime(text: string, timeZone = zoneName.value): number | null {
  const found = LOCAL.exec(text);
  if (!text || !found) return null;
  const today = new Date(now.peek() + offsetOf(now.peek(), timeZone));
  const [year, month, day, hour = 0, minute = 0, second = 0] = found.slice(1).map((part) => (part === undefined ? undefined : Number(part)));
  const local = Date.UTC(year ?? today.getUTCFullYear(), month === undefined ? today.getUTCMonth() : month - 1, day ?? today.getUTCDate(), hour, minute, second);
  if (hour > 23 || minute > 59 || second > 59 || (day !== undefined && new Date(local).toISOString().slice(0, 10) !== text.slice(0, 10))) return null;
  // If the clock changes in between, the offset of the result decides.
  const first = local - offsetOf(local, timeZone);
  return local - offsetOf(first, timeZone);
}

const two = (count: number): string => String(count).padStart(2, "0");

/** An instant with the offset of the displayed zone: `2026-12-01T09:00:00+01:00`. */
export function isoWithOffset(instant: number, timeZone = zoneName.value): string {
  const offset = offsetOf(instant, timeZone);
  const minutes = Math.abs(Math.round(offset / 60_000));
  const local = new Date(instant + offset).toISOString().slice(0, 19);
  return `${local}${minutes ? `${offset < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}` : "Z"}`;
}

const STEP_MS = 86_400_000;
const MINUTE_MS = 60_000;
const LOOKED_AHEAD = 400;

/** The time of a zone's next clock change within about a year; null if there is none, or the zone is unknown. */
export function nextClockChange(timeZone: string): number | null {
  let from = Math.floor(now.peek() / MINUTE_MS) * MINUTE_MS;
  try {
    const offset = offsetOf(from, timeZone);
    for (let day = 0; day < LOOKED_AHEAD; day += 1, from += STEP_MS) {
      if (offsetOf(from + STEP_MS, timeZone) === offset) continue;
      let [before, after] = [from, from + STEP_MS];
      while (after - before > MINUTE_MS) {
        const middle = Math.floor((before + after) / 2 / MINUTE_MS) * MINUTE_MS;
        if (offsetOf(middle, timeZone) === offset) before = middle;
        else after = middle;
      }
      return after;
    }
  } catch {
    // The browser does not know the zone.
  }
  return null;
}
