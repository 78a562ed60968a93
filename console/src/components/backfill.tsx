/** Backfills of a schedule: runs of a past period at a limited rate, with a preview first. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import type { Backfill, Schedule } from "../api/types";
import { counted, duration, now } from "../time";
import { ActionDialog, useSending } from "./action";
import { ProblemBox, Time } from "./basics";
import { Dialog } from "./dialog";
import { Occurrences, usePreview } from "./occurrences";
import { Text } from "./timing_fields";
import { lineOf, timingIn } from "./timing_lines";

const SHOWN = 100;
const DAY_MS = 86_400_000;

export function BackfillForm({ schedule, close, done }: { schedule: Schedule; close: () => void; done: () => void }) {
  const midnight = Math.floor(now.peek() / DAY_MS) * DAY_MS;
  const after = useSignal(iso(midnight - DAY_MS));
  const before = useSignal(iso(midnight));
  const pace = useSignal("60");
  const again = useSignal(false);
  const inTurn = useSignal(false);
  const { busy, problem, send } = useSending();
  const path = `/v1/schedules/${encodeURIComponent(schedule.name)}`;
  const submit = async (event: Event) => {
    event.preventDefault();
    const body = { scheduled_after: after.value, scheduled_before: before.value, per_minute: Number(pace.value), only_missing: !again.value, overlap: inTurn.value ? "buffer_all" : "allow_all" };
    const words = ["--after", after.value, "--before", before.value, "--per-minute", pace.value];
    if (again.value) words.push("--again");
    if (inTurn.value) words.push("--overlap", "buffer_all");
    const made = await send<Backfill>({ method: "POST", path: `${path}/backfills`, body, command: command("schedules", "backfills", "create", schedule.name, ...words) });
    if (!made) return;
    close();
    done();
  };
  return (
    <Dialog title={`Backfill ${schedule.name}`} close={close} wide>
      <form onSubmit={(event) => void submit(event)}>
        <p>Runs the occurrences of a past period according to the current schedule.</p>
        <div class="fields">
          <Text label="From" value={after.value} set={(text) => (after.value = text)} required hint="Inclusive." />
          <Text label="To" value={before.value} set={(text) => (before.value = text)} required hint="Exclusive, not in the future." />
          <Text label="Runs a minute" value={pace.value} set={(text) => (pace.value = text)} required number />
          <label>
            <input type="checkbox" checked={again.value} onChange={(event) => (again.value = event.currentTarget.checked)} /> Also rerun occurrences that already have a run
          </label>
          <label>
            <input type="checkbox" checked={inTurn.value} onChange={(event) => (inTurn.value = event.currentTarget.checked)} /> One run at a time
          </label>
        </div>
        <Period schedule={schedule} after={after.value} before={before.value} pace={Number(pace.value)} />
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            Backfill
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

const iso = (at: number): string => new Date(at).toISOString().replace(".000Z", "Z");
const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) && !Number.isNaN(Date.parse(text));

/** The occurrences in a period according to the schedule's current timing, from a preview. */
function Period({ schedule, after, before, pace }: { schedule: Schedule; after: string; before: string; pace: number }) {
  const isPeriod = isTime(after) && isTime(before) && Date.parse(after) < Date.parse(before);
  const { preview, fault } = usePreview(isPeriod ? previewOf(schedule, after) : null);
  const within = (preview?.occurrences ?? []).filter((each) => Date.parse(each.scheduled_at) < Date.parse(before));
  const runs = within.filter((each) => each.runs).length;
  const more = within.length === SHOWN;
  return (
    <section class="preview" aria-label="Occurrences of the period" aria-live="polite">
      {!isPeriod && <p class="fault">Give two times such as 2026-11-20T00:00:00Z, the earlier one first.</p>}
      {isPeriod && fault && <p class="fault">{fault}</p>}
      {isPeriod && !fault && preview && (
        <>
          <p>
            <strong>{more ? `${runs} or more runs` : counted(runs, "run")}</strong>
            {runs > 0 && pace > 0 && !more && <span class="muted">, started within {duration((Math.ceil(runs / pace) || 1) * 60_000)}</span>}
          </p>
          <Occurrences occurrences={within.slice(0, 8)} zone={schedule.timezone} />
          {within.length > 8 && <p class="muted">and {more ? "more" : within.length - 8} later</p>}
        </>
      )}
    </section>
  );
}

/** A schedule's timing as a preview request from a given time. */
function previewOf(schedule: Schedule, from: string): Record<string, unknown> {
  const { cron, rate, interval, dates, extra_dates, excluded_dates, timezone, dst_gap, dst_fold, calendars, on_excluded, end_at } = schedule;
  const timings = schedule.timings?.map((each) => timingIn(lineOf(each)));
  const dialect = cron ? { dialect: schedule.dialect } : {};
  // Intervals are counted from the schedule's start.
  const start_at = schedule.start_at ?? (rate || interval || schedule.timings?.some((each) => each.rate || each.interval) ? schedule.created_at : null);
  return { cron, rate, interval, dates, ...(timings ? { timings } : {}), extra_dates, excluded_dates, ...dialect, timezone, dst_gap, dst_fold, calendars, on_excluded, start_at, end_at, from, count: SHOWN };
}

export function Backfills({ schedule, done }: { schedule: Schedule; done: () => void }) {
  const cancelling = useSignal<Backfill | null>(null);
  if (!schedule.backfills.length) return null;
  const path = `/v1/schedules/${encodeURIComponent(schedule.name)}/backfills`;
  const chosen = cancelling.value;
  return (
    <section class="card wide">
      <h2>Backfills</h2>
      <table class="cards" aria-label="Backfills">
        <thead>
          <tr>
            <th scope="col">Period</th>
            <th scope="col">Progress</th>
            <th scope="col">Ended</th>
            <th scope="col">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {schedule.backfills.map((each) => (
            <tr key={each.id}>
              <td>
                <Time at={each.scheduled_after} zone={schedule.timezone} /> to <Time at={each.scheduled_before} zone={schedule.timezone} />
              </td>
              <td>
                <progress max={Math.max(1, each.occurrences)} value={each.runs_started + each.runs_known} aria-label="Progress" /> {each.runs_started} of {each.occurrences} started{each.runs_known > 0 && `, ${each.runs_known} had run before`}, {each.per_minute} a minute
              </td>
              <td>
                <Time at={each.finished_at} />
              </td>
              <td class="number">
                {!each.finished_at && (
                  <button type="button" class="small" onClick={() => (cancelling.value = each)}>
                    Cancel
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {chosen && (
        <ActionDialog
          action={{
            title: "Cancel the backfill",
            text: "Tasks already created still run; no more are created.",
            verb: "Cancel the backfill",
            danger: true,
            call: () => ({ method: "DELETE", path: `${path}/${encodeURIComponent(chosen.id)}`, command: command("schedules", "backfills", "cancel", schedule.name, chosen.id) }),
          }}
          close={() => (cancelling.value = null)}
          done={done}
        />
      )}
    </section>
  );
}
