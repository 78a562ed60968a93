/** The events of a task or schedule, each with its time, actor and reason. */
import type { ComponentChildren } from "preact";
import { hiddenText } from "../api/codec";
import type { ScheduleEvent, TaskHistoryEvent } from "../api/types";
import { href } from "../router";
import { counted } from "../time";
import { StateChip, Time } from "./basics";

function who(actor: ScheduleEvent["actor"] | null, worker?: string | null): string {
  if (!actor) return worker ?? "";
  return actor.kind === "system" ? "duetime" : `${actor.kind} ${actor.name ?? ""}`;
}

const named = (event: { type: string; fields?: readonly string[] | null; nodes?: readonly string[] | null }): string => {
  const name = event.type.replaceAll("_", " ");
  if (event.nodes?.length) return `${name} from ${event.nodes.join(", ")}`;
  return event.fields?.length ? `${name}: ${event.fields.join(", ")}` : name;
};

export function Events({ events, dropped }: { events: readonly TaskHistoryEvent[] | null; dropped: number }) {
  if (!events) return null;
  const rows = events.map((event) => ({
    at: event.at,
    what: (
      <>
        {event.attempt !== null ? named({ type: event.type }).replace("attempt", `attempt ${event.attempt}`) : named(event)}{" "}
        {event.outcome && <StateChip state={event.outcome} />} {event.state && <StateChip state={event.state} />}
      </>
    ),
    who: who(event.actor, event.worker),
    why: event.reason ?? (event.error ? hiddenText(`${event.error.type}: ${event.error.message}`) : ""),
  }));
  return <EventTable rows={rows} note={droppedNote(dropped, "action")} />;
}

/** Old and new values: `cron: 0 2 * * * → 0 3 * * *`. */
function Values({ values }: { values: ScheduleEvent["values"] }) {
  return (
    <>
      {values.map(({ field, before, after }) => (
        <div key={field} class="changes">
          {field}: <del>{before ?? "none"}</del> → <ins>{after ?? "none"}</ins>
        </div>
      ))}
    </>
  );
}

/** Types of schedule events for which a reason could be given. */
const REASONED = new Set(["updated", "paused", "resumed", "run_requested"]);

/** The history of a schedule, latest first. */
export function ScheduleEvents({ events, dropped }: { events: readonly ScheduleEvent[]; dropped: number }) {
  const rows = events.map((event) => ({
    at: event.at,
    what: (
      <>
        {named(event.values.length ? { ...event, fields: event.fields.filter((field) => !event.values.some((value) => value.field === field)) } : event)}{" "}
        <Values values={event.values} /> {event.task_id && <a href={href(["tasks", event.task_id])}>its task</a>}
      </>
    ),
    who: who(event.actor),
    why: event.reason ?? (REASONED.has(event.type) ? <span class="muted">no reason given</span> : ""),
  }));
  return <EventTable rows={rows.reverse()} note={droppedNote(dropped, "event")} />;
}

const droppedNote = (dropped: number, what: string): string => (dropped ? `${counted(dropped, `older ${what}`)} ${dropped === 1 ? "is" : "are"} no longer kept.` : "");

interface EventRow {
  at: string | null;
  what: ComponentChildren;
  who: string;
  why: ComponentChildren;
}

function EventTable({ rows, note }: { rows: readonly EventRow[]; note?: string }) {
  return (
    <section class="card wide">
      <h2>Events</h2>
      <table class="events" aria-label="Events">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">What</th>
            <th scope="col">Who</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              <td>
                <Time at={row.at} />
              </td>
              <td>{row.what}</td>
              <td>{row.who}</td>
              <td>{row.why}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {note && <p class="muted">{note}</p>}
    </section>
  );
}
