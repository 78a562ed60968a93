/** Load of the next 24 hours: scheduled runs and tasks with a due time, as bars with marked collisions. */
import type { Found } from "../api/reading";
import type { Forecast, ListedTask, TaskPage } from "../api/types";
import { href } from "../router";
import { counted, shortTime, zoneName } from "../time";
import { Relative, Time } from "./basics";

const SHOWN = 4;
const LABEL_EVERY = 8;

interface Bar {
  at: string;
  runs: number;
  tasks: number;
  collides: boolean;
  text: string;
}

type Waiting = Found<TaskPage, ListedTask> | null;

function barsOf(forecast: Forecast, waiting: Waiting): Bar[] {
  const length = forecast.period_seconds * 1000;
  // Scheduled runs are already part of the forecast.
  const due = (waiting?.entries ?? []).filter((task) => !task.schedule).map((task) => Date.parse(task.next_at ?? task.due_at));
  return forecast.periods.map((period) => {
    const start = Date.parse(period.start_at);
    const isWithin = (time: number) => time >= start && time < start + length;
    const tasks = due.filter(isWithin).length;
    const collisions = forecast.collisions.filter((each) => isWithin(Date.parse(each.at))).length;
    const names = period.schedules.map((each) => `${each.name} ${each.runs}`).join(", ");
    const parts = [counted(period.runs, "run"), names && `(${names})`, tasks && counted(tasks, "task"), collisions && `${counted(collisions, "minute")} with several`];
    return { at: period.start_at, runs: period.runs, tasks, collides: collisions > 0, text: `From ${shortTime(period.start_at)}: ${parts.filter(Boolean).join(" ")}` };
  });
}

export function ComingLoad({ forecast, waiting }: { forecast: Forecast | null; waiting: Waiting }) {
  return (
    <section class="card wide coming-load">
      <h2>Next 24 hours</h2>
      {forecast ? <Load forecast={forecast} waiting={waiting} /> : <p class="muted">Reading…</p>}
    </section>
  );
}

function Load({ forecast, waiting }: { forecast: Forecast; waiting: Waiting }) {
  const bars = barsOf(forecast, waiting);
  const most = Math.max(1, ...bars.map((bar) => bar.runs + bar.tasks));
  const runs = bars.reduce((sum, bar) => sum + bar.runs, 0);
  const tasks = bars.reduce((sum, bar) => sum + bar.tasks, 0);
  const busiest = bars.reduce((best, bar) => (bar.runs + bar.tasks > best.runs + best.tasks ? bar : best), bars[0] as Bar);
  const isKnown = forecast.is_complete && waiting?.isKnown;
  if (runs + tasks === 0) return <p class="muted">{isKnown ? "No schedule runs, and no task is due." : "No run of a schedule and no due task found so far."}</p>;
  return (
    <>
      <ol class="load" aria-label={`Planned work by half hours, in the zone ${zoneName.value}`}>
        {bars.map((bar, index) => (
          <li key={bar.at} title={bar.text}>
            <span class="visually-hidden">{bar.text}</span>
            {bar.collides && <b aria-hidden="true" />}
            {bar.tasks > 0 && <i class="tasks-due" style={{ height: `${(bar.tasks / most) * 100}%` }} />}
            {bar.runs > 0 && <i style={{ height: `${(bar.runs / most) * 100}%` }} />}
            {index % LABEL_EVERY === 0 && index < bars.length - 1 && <small aria-hidden="true">{shortTime(bar.at).slice(-8, -3)}</small>}
          </li>
        ))}
      </ol>
      <p class="legend muted">
        <span><i class="of-schedules" aria-hidden="true" /> {counted(runs, "run")} of schedules</span>
        <span><i class="of-tasks" aria-hidden="true" /> {counted(tasks, "task")}{waiting?.token ? ` of the first ${waiting.entries.length} found` : ""}</span>
        {forecast.collisions.length > 0 && <span><b aria-hidden="true" /> several schedules begin in one minute</span>}
        <span>busiest from <Time at={busiest.at} /></span>
        {!forecast.is_complete && <span class="bad">only the first schedules by name are counted: there are more</span>}
      </p>
      <Collisions forecast={forecast} />
    </>
  );
}

function Collisions({ forecast }: { forecast: Forecast }) {
  if (!forecast.collisions.length) return null;
  return (
    <ol class="coming" aria-label="Minutes in which several schedules begin">
      {forecast.collisions.slice(0, SHOWN).map((each) => (
        <li key={each.at}>
          <Time at={each.at} /> <Relative at={each.at} />{" "}
          {each.schedules.map((name) => (
            <a key={name} class="tag" href={href(["schedules", name])}>
              {name}
            </a>
          ))}
        </li>
      ))}
    </ol>
  );
}
