/** One of several timings as a line of text with its kind and value. */
import type { Schedule } from "../api/types";

type SingleTiming = NonNullable<Schedule["timings"]>[number];
/** The timing's form in a request, which has one of four kinds. */
type SingleTimingRequest = Partial<{ cron: string; dialect: string; rate: string; interval: string; dates: string[] }>;

/** The cron dialects by their names in the form. */
export const DIALECTS = {
  cron: "cron",
  vixie: "Vixie cron, as in a crontab",
  kubernetes: "Kubernetes",
  quartz: "Quartz, Sunday is 1",
  spring: "Spring",
  eventbridge: "EventBridge, with a year last",
};

/** Format a timing as a line. */
export function lineOf({ cron, dialect, rate, interval, dates }: SingleTiming): string {
  if (cron) return `${dialect ?? "cron"} ${cron}`;
  if (rate) return `rate ${rate}`;
  return interval ? `interval ${interval}` : `dates ${dates?.join(", ")}`;
}

/** Parse a line as a timing; a line without a kind is read as cron, which the server validates. */
export function timingIn(line: string): SingleTimingRequest {
  const [, kind, text = ""] = /^(\S+)\s+(.*)$/.exec(line.trim()) ?? [];
  switch (kind) {
    case "cron":
      return { cron: text };
    case "rate":
      return { rate: text };
    case "interval":
      return { interval: text };
    case "dates":
      return { dates: text.split(",").flatMap((each) => each.trim() || []) };
    default:
      return kind && kind in DIALECTS ? { cron: text, dialect: kind } : { cron: line.trim() };
  }
}

/** The value for the command's `--timing`; null if the timing cannot be expressed. */
export function optionOf({ cron, dialect, rate, interval }: SingleTimingRequest): string | null {
  if (cron) return `${dialect ?? "cron"} ${cron}`;
  if (rate) return `rate ${rate}`;
  return interval ? `interval ${interval}` : null;
}
