/** The schedules with timing, last and next run, in the schedule's own zone first. */
import { useSignal } from "@preact/signals";
import { useReading } from "../api/reading";
import type { SchedulePage, ScheduleSummary } from "../api/types";
import { Command, Pager, ProblemBox, Relative, StateChip, Time } from "../components/basics";
import { ScheduleForm } from "../components/schedule_form";
import { lineOf } from "../components/timing_lines";
import { NoneFound, ReadingLine } from "../components/reading";
import { href, setQuery, usePlace } from "../router";

/** The timing as written; an expression in another dialect is prefixed with the dialect's name if needed. */
export function timingOf(schedule: ScheduleSummary): string {
  if (schedule.cron) return ["cron", "eventbridge"].includes(schedule.dialect) ? schedule.cron : lineOf(schedule);
  if (schedule.rate) return schedule.rate;
  if (schedule.interval) return schedule.interval;
  if (schedule.dates) return `${schedule.dates.length} dates`;
  if (schedule.timings) return schedule.timings.map(lineOf).join("; ");
  return schedule.permanent ? `again ${schedule.permanent.gap_seconds} s after each run` : "";
}

const LIMIT = 100;

export function Schedules() {
  const { query } = usePlace("schedules");
  const token = query.get("page") ?? "";
  const state = query.get("state") ?? "";
  const asked = new URLSearchParams({ limit: String(LIMIT), ...(state && { state }), ...(token && { next_token: token }) });
  const page = useReading<SchedulePage, ScheduleSummary>(`/v1/schedules?${asked}`, { entries: (each) => each.schedules, enough: LIMIT });
  const making = useSignal(false);
  const read = page.found.value;
  return (
    <>
      <div class="page-head">
        <h1>Schedules</h1>
        <button type="button" class="primary" onClick={() => (making.value = true)}>
          New schedule
        </button>
      </div>
      {making.value && <ScheduleForm close={() => (making.value = false)} />}
      <div class="states" role="group" aria-label="States">
        {["active", "paused", "ended"].map((each) => (
          <button key={each} type="button" class={`chip state-${each}`} aria-pressed={state === each} onClick={() => setQuery({ state: state === each ? "" : each, page: "" })}>
            <i aria-hidden="true" />
            {each}
          </button>
        ))}
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      {read && read.entries.length > 0 && <Table schedules={read.entries} />}
      <NoneFound reading={page} title={token ? "No more schedules" : state ? `No schedule is ${state}` : "No schedules yet"}>
        <p>A schedule creates a task at each of its times: by cron, at a fixed rate, or on dates.</p>
        <Command text={`duetime schedules create nightly echo --cron "0 2 * * *" --timezone Europe/Berlin`} />
      </NoneFound>
      <ReadingLine reading={page} what="schedules" />
      <Pager token={read?.isKnown ? read.token : null} />
    </>
  );
}

function Table({ schedules }: { schedules: readonly ScheduleSummary[] }) {
  return (
    <table class="schedules cards" aria-label="Schedules">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Schedule</th>
          <th scope="col">Timing</th>
          <th scope="col">Latest task</th>
          <th scope="col">Next run</th>
        </tr>
      </thead>
      <tbody>
        {schedules.map((each) => (
          <tr key={each.name} data-row={each.name}>
            <td>
              <StateChip state={each.state} />
            </td>
            <td>
              <a href={href(["schedules", each.name])} data-open>
                {each.name}
              </a>
              <div class="muted">{each.task.type}</div>
              {each.paused_reason && <div class="muted">{each.paused_reason}</div>}
            </td>
            <td>
              {each.description} <span class="muted">{each.timezone}</span>
              {each.cron && (
                <div>
                  <code class="muted">{timingOf(each)}</code>
                </div>
              )}
            </td>
            <td data-label="Latest">
              {each.last_run ? (
                <a href={href(["tasks", each.last_run.task_id])}>
                  <Time at={each.last_run.scheduled_at} zone={each.timezone} /> <Relative at={each.last_run.scheduled_at} />
                </a>
              ) : (
                <span class="muted">none</span>
              )}
            </td>
            <td data-label="Next">
              <Time at={each.next_at} zone={each.timezone} /> <Relative at={each.next_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
