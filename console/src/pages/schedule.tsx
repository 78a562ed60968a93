/** One schedule, with its runs as a strip, upcoming runs, settings and actions. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { command } from "../api/client";
import { hiddenText } from "../api/codec";
import { useLive } from "../api/live";
import { useReading, type Reading } from "../api/reading";
import { useResource } from "../api/resource";
import type { Schedule, ScheduleEventPage, ScheduleRun, ScheduleRunPage } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { Facts, ProblemBox, Relative, StateChip, Time, Took } from "../components/basics";
import { Message, PayloadView } from "../components/payload_view";
import { BackfillForm, Backfills } from "../components/backfill";
import { ScheduleEvents } from "../components/events";
import { NoneYet, ReadingLine } from "../components/reading";
import { Occurrences } from "../components/occurrences";
import { OVERLAPS, ScheduleForm } from "../components/schedule_form";
import { ScheduleWhy } from "../components/why";
import { EXCLUDED } from "../components/timing_fields";
import { href, navigate } from "../router";
import { duration } from "../time";
import { timingOf } from "./schedules";

export function SchedulePage({ subject: name }: { subject: string }) {
  const path = `/v1/schedules/${encodeURIComponent(name)}`;
  const schedule = useResource<Schedule>(path);
  const wanted = useSignal(SHOWN_RUNS);
  const runs = useReading<ScheduleRunPage, ScheduleRun>(`${path}/runs?limit=${SHOWN_RUNS}`, { entries: (page) => page.runs, enough: wanted.value, counts: hasCome });
  const shown = shownRuns(runs.found.value?.entries ?? [], wanted.value);
  const events = useResource<ScheduleEventPage>(`${path}/events`);
  const reload = () => {
    [schedule, events].forEach((each) => void each.reload());
    runs.refresh();
  };
  useLive(`schedule:${name}`, ({ version, isSnapshot }) => {
    if (!isSnapshot || version > (schedule.data.peek()?.version ?? 0)) reload();
  });
  const changed = (now: Schedule) => {
    // The next change must be based on this version, even before the schedule is read again.
    schedule.set(now);
    reload();
  };
  const read = schedule.data.value;
  if (!read) return schedule.problem.value ? <ProblemBox problem={schedule.problem.value} retry={reload} /> : <p class="muted">Loading the schedule…</p>;
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["schedules"])}>Schedules</a>
          </p>
          <h1>
            {read.name} <StateChip state={read.state} />
          </h1>
          <p class="muted">
            Runs {read.description}, {read.timezone} <code>{timingOf(read)}</code>
            {read.paused_reason && <> · paused: {read.paused_reason}</>}
          </p>
        </div>
        <Actions schedule={read} path={path} done={reload} changed={changed} />
      </div>
      {schedule.problem.value && <ProblemBox problem={schedule.problem.value} retry={reload} />}
      <div class="grid">
        <Strip runs={shown} reading={runs} zone={read.timezone} />
        <ScheduleWhy name={read.name} path={path} />
        <div class="stack">
          <section class="card">
            <h2>Next</h2>
            {read.upcoming.length ? <Occurrences occurrences={read.upcoming} zone={read.timezone} /> : <p class="muted">{read.permanent && read.state === "active" ? "Not planned: each run starts after the previous run has ended." : `None, because the schedule is ${read.state}.`}</p>}
          </section>
          <section class="card">
            <h2>Payload</h2>
            {"payload" in read.task ? <PayloadView value={read.task.payload} label="Payload" /> : <p class="muted">It is too large to be shown here; the schedule's tasks show it.</p>}
          </section>
        </div>
        <About schedule={read} />
        <Backfills schedule={read} done={reload} />
        <RunTable runs={shown} reading={runs} zone={read.timezone} more={() => (wanted.value += SHOWN_RUNS)} />
        {events.problem.value && !schedule.problem.value && <ProblemBox problem={events.problem.value} retry={reload} />}
        {events.data.value && <ScheduleEvents {...events.data.value} />}
      </div>
    </>
  );
}

function Actions({ schedule, path, done, changed }: { schedule: Schedule; path: string; done: () => void; changed: (now: Schedule) => void }) {
  const chosen = useSignal<{ action: Action; after: () => void } | null>(null);
  const changing = useSignal(false);
  const backfilling = useSignal(false);
  const name = schedule.name;
  const act = (title: string, text: string, verb: string, more: Partial<Action> = {}): Action => ({
    title,
    text,
    verb: title,
    reason: true,
    call: (reason) => ({
      method: "POST",
      path: `${path}/${verb}`,
      ...(reason ? { body: { reason } } : {}),
      command: command("schedules", verb, name, ...(reason ? ["--reason", reason] : [])),
    }),
    ...more,
  });
  const pause = act("Pause", "The schedule's queued tasks will not run, and no new runs start until the schedule is resumed.", "pause");
  const resume = act("Resume", "The schedule runs from now on; runs missed during the pause are not caught up.", "resume");
  const run = act("Run now", "The schedule's task runs once, now. The timing does not change.", "run");
  const remove: Action = {
    ...act("Delete", "The schedule's queued tasks will not run. Tasks that have run are kept.", "delete", { danger: true, reason: false }),
    call: () => ({ method: "DELETE", path, command: command("schedules", "delete", name) }),
  };
  const choose = (action: Action, after = done) => (chosen.value = { action, after });
  return (
    <div class="actions">
      {schedule.state === "active" && <button type="button" onClick={() => choose(pause)}>Pause</button>}
      {schedule.state === "paused" && <button type="button" onClick={() => choose(resume)}>Resume</button>}
      <button type="button" onClick={() => choose(run)}>Run now</button>
      <button type="button" onClick={() => (changing.value = true)}>Change…</button>
      {!schedule.permanent && <button type="button" onClick={() => (backfilling.value = true)}>Backfill…</button>}
      <button type="button" class="remove" onClick={() => choose(remove, () => navigate(href(["schedules"])))}>Delete</button>
      {chosen.value && <ActionDialog action={chosen.value.action} close={() => (chosen.value = null)} done={chosen.value.after} />}
      {backfilling.value && <BackfillForm schedule={schedule} close={() => (backfilling.value = false)} done={done} />}
      {changing.value && <ScheduleForm schedule={schedule} close={() => (changing.value = false)} done={changed} />}
    </div>
  );
}

type Runs = Reading<ScheduleRunPage, ScheduleRun>;
const SHOWN_RUNS = 50;
const SHOWN_PLANNED = 20;
const hasCome = (run: ScheduleRun) => run.status !== "planned";

/** The latest and the next runs, whose number is limited because a frequent schedule plans many. */
function shownRuns(runs: readonly ScheduleRun[], wanted: number): ScheduleRun[] {
  return [...runs.filter((run) => !hasCome(run)).slice(-SHOWN_PLANNED), ...runs.filter(hasCome).slice(0, wanted)];
}

/** The shown runs, from the oldest to the planned ones, as marks with text on hover and for screen readers. */
function Strip({ runs, reading, zone }: { runs: readonly ScheduleRun[]; reading: Runs; zone: string }) {
  return (
    <section class="card wide">
      <h2>Runs</h2>
      <NoneYet reading={reading} text="None yet." what="occurrences" />
      <ol class="strip">
        {[...runs].reverse().map((run) => {
          const text = hiddenText(`${run.local_time}: ${run.status}${run.reason ? `, ${run.reason}` : ""}`);
          const mark = <i class={`state-${run.status}`} title={text} aria-hidden="true" />;
          return (
            <li key={`${run.scheduled_at}-${run.task_id}`}>
              {run.task_id ? (
                <a href={href(["tasks", run.task_id])} aria-label={text}>
                  {mark}
                </a>
              ) : (
                <>
                  {mark}
                  <span class="visually-hidden">{text}</span>
                </>
              )}
            </li>
          );
        })}
      </ol>
      <p class="muted">In the zone {zone}.</p>
      <ReadingLine reading={reading} what="occurrences" />
    </section>
  );
}

function RunTable({ runs, reading, zone, more }: { runs: readonly ScheduleRun[]; reading: Runs; zone: string; more: () => void }) {
  const found = reading.found.value;
  const applied = found?.page.applied;
  const hasMore = found?.isKnown && (found.token !== null || found.entries.filter(hasCome).length > runs.filter(hasCome).length);
  return (
    <section class="card wide">
      <h2>List of runs</h2>
      <table class="events" aria-label="Runs">
        <thead>
          <tr>
            <th scope="col">Scheduled</th>
            <th scope="col">Status</th>
            <th scope="col">Late</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={`${run.scheduled_at}-${run.task_id}`}>
              <td>
                {run.task_id ? (
                  <a href={href(["tasks", run.task_id])}>
                    <Time at={run.scheduled_at} zone={zone} />
                  </a>
                ) : (
                  <Time at={run.scheduled_at} zone={zone} />
                )}{" "}
                <Relative at={run.scheduled_at} />
              </td>
              <td><StateChip state={run.status} /></td>
              <td data-label="Late"><Took ms={run.lateness_ms} /></td>
              <td>{run.reason && <Message text={run.reason} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {hasMore && !reading.going.value && (
        <p>
          <button type="button" class="small" onClick={more}>
            Show older runs
          </button>
        </p>
      )}
      {found?.isKnown && !hasMore && applied && (
        <p class="muted">
          Every occurrence since <Time at={applied.complete_since} zone={zone} /> is listed.
        </p>
      )}
    </section>
  );
}

/** The schedule's expectation, and whether the expectation is met. */
function expectations(schedule: Schedule): [string, ComponentChildren][] {
  const { expect_success_by: by, expect_every_seconds: every, expect_duration_factor: factor, expectation } = schedule;
  const longest: [string, ComponentChildren][] = factor ? [["Longest run", `${factor} times the median of its latest successful runs`]] : [];
  if (!by && !every) return longest;
  const wanted = [by && `by ${by}`, every && `every ${duration(every * 1000)}`].filter(Boolean).join(", ");
  const missed = expectation?.missed_at && (!expectation.met_at || expectation.met_at < expectation.missed_at);
  return [["Expected", <>a success {wanted}{missed && <strong class="bad"> · missed <Relative at={expectation.missed_at} /></strong>}</>], ...longest];
}

function About({ schedule }: { schedule: Schedule }) {
  return (
    <section class="card">
      <h2>About</h2>
      <Facts
        rows={[
          ["Task type", schedule.task.type],
          ["Time zone", schedule.timezone],
          ["Clock forward", schedule.dst_gap === "skip" ? "a skipped time does not run" : "a skipped time runs after the gap"],
          ["Clock back", schedule.dst_fold === "first" ? "a time that occurs twice runs once" : "a time that occurs twice runs twice"],
          ["Overlap", `${OVERLAPS[schedule.overlap] ?? schedule.overlap} while the last run is active`],
          ["Catch-up", schedule.catch_up_seconds ? `after an outage, ${schedule.catch_up_mode === "all" ? "every" : "the latest"} missed run still runs if it is at most ${duration(schedule.catch_up_seconds * 1000)} late` : "occurrences missed in an outage do not run"],
          ["Calendars", schedule.calendars.length ? schedule.calendars.map((each) => <a key={each} class="tag" href={href(["calendars", each])}>{each}</a>) : "none"],
          ...(schedule.calendars.length ? ([["Excluded", EXCLUDED[schedule.on_excluded] ?? schedule.on_excluded]] as const) : []),
          ...(schedule.start_at || schedule.end_at ? ([["Between", <><Time at={schedule.start_at} /> and <Time at={schedule.end_at} /></>]] as const) : []),
          ...(schedule.remaining_runs !== null ? ([["Runs left", String(schedule.remaining_runs)]] as const) : []),
          ...(schedule.jitter_seconds ? ([["Jitter", `up to ${schedule.jitter_seconds} s`]] as const) : []),
          ...(schedule.pause_on_failure ? ([["On failure", "it is paused when a task has failed for good"]] as const) : []),
          ...expectations(schedule),
          ["Runs", `${schedule.runs_started} started, ${schedule.runs_skipped} not run`],
          ["Created", <Time at={schedule.created_at} />],
          ["Updated", <Time at={schedule.updated_at} />],
        ]}
      />
    </section>
  );
}
