/** The events of a task: what happened, when, who did it, and why. */
import type { TaskHistoryEvent } from "../api/types";
import { StateChip, Time } from "./basics";

const who = (event: TaskHistoryEvent): string => {
  if (!event.actor) return event.worker ?? "";
  return event.actor.kind === "system" ? "duetime" : `${event.actor.kind} ${event.actor.name ?? ""}`;
};

function what(event: TaskHistoryEvent): string {
  const name = event.type.replaceAll("_", " ");
  if (event.attempt !== null) return `${name.replace("attempt", `attempt ${event.attempt}`)}`;
  return event.fields?.length ? `${name}: ${event.fields.join(", ")}` : name;
}

export function Events({ events }: { events: readonly TaskHistoryEvent[] | null }) {
  if (!events) return null;
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
          {events.map((event, index) => (
            <tr key={index}>
              <td>
                <Time at={event.at} />
              </td>
              <td>
                {what(event)} {event.outcome && <StateChip state={event.outcome} />} {event.state && <StateChip state={event.state} />}
              </td>
              <td>{who(event)}</td>
              <td>{event.reason ?? (event.error ? `${event.error.type}: ${event.error.message}` : "")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
