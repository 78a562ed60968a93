/** One of several timings as a line of text: its kind, and what it says. */
import type { Schedule } from "../api/types";

type SingleTiming = NonNullable<Schedule["timings"]>[number];
/** What a request says of it: one of four kinds. */
type SingleTimingRequest = Partial<{ cron: string; dialect: string; rate: string; interval: string; dates: string[] }>;

/** The dialects of cron, as the form names them. */
export const DIALECTS = {
  cron: "cron",
  vixie: "Vixie cron, as in a crontab",
  kubernetes: "Kubernetes",
  quartz: "Quartz, Sunday is 1",
  spring: "Spring",
  eventbridge: "EventBridge, with a year last",
};

/** The line of a timing. */
export function lineOf({ cron, dialect, rate, interval, dates }: SingleTiming): string {
  if (cron) return `${dialect ?? "cron"} ${cron}`;
  if (rate) return `rate ${rate}`;
  return interval ? `interval ${interval}` : `dates ${dates?.join(", ")}`;
}

/** The timing that a line says; one without a kind counts as cron, and the server says why it is none. */
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

/** The value of the command's `--timing`; null if that cannot say it. */
export function optionOf({ cron, dialect, rate, interval }: SingleTimingRequest): string | null {
  if (cron) return `${dialect ?? "cron"} ${cron}`;
  if (rate) return `rate ${rate}`;
  return interval ? `interval ${interval}` : null;
}
