/** The load in the next day or week: scheduled runs and tasks with a due time, shown as bars with marked collisions. */
import { useSignal } from "@preact/signals";
import type { Found, Reading } from "../api/reading";
import type { Resource } from "../api/resource";
import type { Forecast, ListedTask, TaskPage } from "../api/types";
import { href } from "../router";
import { counted, isoWithOffset, shortTime, weekdayOf, zoneName } from "../time";
import { ProblemBox, Relative, Time } from "./basics";

const SHOWN = 4;
const LABEL_EVERY = 8;

interface Bar {
  at: string;
  end: number;
  runs: number;
  tasks: number;
  schedules: Forecast["periods"][number]["schedules"];
  collides: boolean;
  text: string;
}

type Tasks = Found<TaskPage, ListedTask>;

function barsOf(forecast: Forecast, next: Tasks | null): Bar[] {
  const length = forecast.period_seconds * 1000;
  // Scheduled runs are already part of the forecast.
  const due = (next?.entries ?? []).filter((task) => !task.schedule).map((task) => Date.parse(task.due_at));
  return forecast.periods.map((period) => {
    const start = Date.parse(period.start_at);
    const end = Math.floor(start / length) * length + length;
    const isWithin = (time: number) => time >= start && time < end;
    const tasks = due.filter(isWithin).length;
    const collisions = forecast.collisions.filter((each) => isWithin(Date.parse(each.at))).length;
    const names = period.schedules.slice(0, SHOWN).map((each) => `${each.name} ${each.runs}`).join(", ");
    const parts = [counted(period.runs, "run"), names && `(${names}${period.schedules.length > SHOWN ? ", …" : ""})`, tasks && counted(tasks, "task"), collisions && `${counted(collisions, "minute")} with several`];
    return { at: period.start_at, end, runs: period.runs, tasks, schedules: period.schedules, collides: collisions > 0, text: `From ${shortTime(period.start_at)}: ${parts.filter(Boolean).join(" ")}` };
  });
}

const LENGTHS = [[24, "24 hours"], [168, "7 days"]] as const;

/** The load in the given number of hours, which `choose` changes. */
export function ComingLoad({ forecast, next, hours, choose }: { forecast: Resource<Forecast>; next: Reading<TaskPage, ListedTask>; hours: number; choose: (hours: number) => void }) {
  return (
    <section class="card wide coming-load">
      <div class="load-head">
        <h2>Next {hours === 24 ? "24 hours" : "7 days"}</h2>
        <span role="group" aria-label="Length of the forecast">
          {LENGTHS.map(([each, title]) => (
            <button key={each} type="button" class="quiet small" aria-pressed={hours === each} onClick={() => choose(each)}>
              {title}
            </button>
          ))}
        </span>
      </div>
      {forecast.problem.value && <ProblemBox problem={forecast.problem.value} retry={() => void forecast.reload()} />}
      {forecast.data.value && <Load forecast={forecast.data.value} next={next.found.value} />}
      {!forecast.data.value && !forecast.problem.value && <p class="muted">Loading…</p>}
    </section>
  );
}

function Load({ forecast, next }: { forecast: Forecast; next: Tasks | null }) {
  const chosen = useSignal("");
  const bars = barsOf(forecast, next);
  const isWeek = forecast.period_seconds > 1800;
  const most = Math.max(1, ...bars.map((bar) => bar.runs + bar.tasks));
  const runs = bars.reduce((sum, bar) => sum + bar.runs, 0);
  const tasks = bars.reduce((sum, bar) => sum + bar.tasks, 0);
  const busiest = bars.reduce((best, bar) => (bar.runs + bar.tasks > best.runs + best.tasks ? bar : best), bars[0] as Bar);
  const last = next?.entries.at(-1);
  const isKnown = forecast.is_complete && next?.isKnown;
  if (runs + tasks === 0) return <p class="muted">{isKnown ? "No schedule runs, and no task is due." : "No schedule run or due task has been found so far."}</p>;
  return (
    <>
      <p class="load-scale muted" aria-hidden="true">
        {most.toLocaleString("en")} in {isWeek ? "three hours" : "half an hour"}
      </p>
      <ol class="load" aria-label={`Planned work per ${isWeek ? "three hours" : "half hour"}, in the zone ${zoneName.value}`}>
        {bars.map((bar, index) => (
          <li key={bar.at}>
            <button type="button" title={bar.text} aria-pressed={chosen.value === bar.at} onClick={() => (chosen.value = chosen.value === bar.at ? "" : bar.at)}>
              <span class="visually-hidden">{bar.text}</span>
              {bar.collides && <b aria-hidden="true" />}
              {bar.tasks > 0 && <i class="tasks-due" style={{ height: `${(bar.tasks / most) * 100}%` }} />}
              {bar.runs > 0 && <i style={{ height: `${(bar.runs / most) * 100}%` }} />}
            </button>
            {index % LABEL_EVERY === 0 && index < bars.length - 1 && <small aria-hidden="true">{isWeek ? weekdayOf(bar.at) : shortTime(bar.at).slice(-8, -3)}</small>}
          </li>
        ))}
      </ol>
      {bars.filter((bar) => bar.at === chosen.value).map((bar) => <Period key={bar.at} bar={bar} />)}
      <p class="legend muted">
        <span><i class="of-schedules" aria-hidden="true" /> {counted(runs, "run")} of {forecast.is_complete ? "schedules" : "only the first schedules by name, because there are too many to count"}</span>
        <span><i class="of-tasks" aria-hidden="true" /> {counted(tasks, "task")}{next?.token && last ? <> of the next {next.entries.length}, until <Time at={last.due_at} /></> : ""}</span>
        {forecast.collisions.length > 0 && <span><b aria-hidden="true" /> several schedules begin in one minute</span>}
        <span>busiest from <Time at={busiest.at} /></span>
      </p>
      <Collisions forecast={forecast} />
    </>
  );
}

/** The content of the chosen bar. */
function Period({ bar }: { bar: Bar }) {
  const range = `due:>${isoWithOffset(Date.parse(bar.at))} due:<${isoWithOffset(bar.end)}`;
  return (
    <p class="period" aria-live="polite">
      <Time at={bar.at} />: {bar.schedules.length === 0 && "no run of a schedule"}
      {bar.schedules.map((each) => (
        <a key={each.name} class="tag" href={href(["schedules", each.name])}>
          {each.name} {each.runs}
        </a>
      ))}{" "}
      <a href={href(["tasks"], { q: range, order: "asc" })}>Tasks due then</a>
    </p>
  );
}

function Collisions({ forecast }: { forecast: Forecast }) {
  return (
    <>
      {forecast.collisions.slice(0, SHOWN).map((each) => (
        <details key={each.at} class="collision">
          <summary>
            <Time at={each.at} /> · {counted(each.schedules.length, "schedule")} <Relative at={each.at} />
          </summary>
          {each.schedules.map((name) => (
            <a key={name} class="tag" href={href(["schedules", name])}>
              {name}
            </a>
          ))}
          <p class="muted">“Spread in seconds” moves a schedule's runs apart from the runs of other schedules.</p>
        </details>
      ))}
    </>
  );
}
