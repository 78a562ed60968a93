/** The schedules with timing, last run and next run, first in the schedule's own zone; sorted in the browser. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { command } from "../api/client";
import { useReading } from "../api/reading";
import type { SchedulePage, ScheduleSummary } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { Command, Empty, ProblemBox, Relative, StateChip, Time } from "../components/basics";
import { NoneFound, ReadingLine } from "../components/reading";
import { ScheduleForm } from "../components/schedule_form";
import { SearchBox } from "../components/search_box";
import { lineOf } from "../components/timing_lines";
import { href, setQuery, usePlace } from "../router";
import { parseSearch, SCHEDULE_QUALIFIERS, tagSearch, toggled, type Search } from "../search";
import { counted } from "../time";

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
const SORTS = { name: "By name", next: "Next run first", last: "Latest run first", state: "By state" } as const;

/** The address of the list, in which the API filters by state, type and tag. */
function listOf(search: Search): string {
  const query = new URLSearchParams({ limit: String(LIMIT) });
  for (const { qualifier, value } of search.terms) if (qualifier !== "name") query.append(qualifier, value);
  return `/v1/schedules?${query}`;
}

/** The schedules that match a search. Parts of names are always compared here; other terms only while a list is read
 * again. */
function matching(schedules: readonly ScheduleSummary[], search: Search): ScheduleSummary[] {
  const tests: Record<string, (each: ScheduleSummary, value: string) => boolean> = {
    type: (each, value) => each.task.type === value,
    tag: (each, value) => each.task.tags[value.slice(0, value.indexOf(":"))] === value.slice(value.indexOf(":") + 1),
    name: (each, value) => each.name.toLowerCase().includes(value.toLowerCase()),
  };
  const states = search.terms.filter((term) => term.qualifier === "state").map((term) => term.value);
  return schedules.filter((each) => (states.length === 0 || states.includes(each.state)) && search.terms.every(({ qualifier, value }) => tests[qualifier]?.(each, value) ?? true));
}

function sorted(schedules: readonly ScheduleSummary[], by: string): ScheduleSummary[] {
  // Schedules without such a time come last.
  const later = (a: string | null | undefined, b: string | null | undefined, sign: number) => (a && b ? sign * a.localeCompare(b) : Number(!a) - Number(!b));
  const orders: Record<string, (a: ScheduleSummary, b: ScheduleSummary) => number> = {
    next: (a, b) => later(a.next_at, b.next_at, 1),
    last: (a, b) => later(a.last_run?.scheduled_at, b.last_run?.scheduled_at, -1),
    state: (a, b) => a.state.localeCompare(b.state),
  };
  const order = orders[by];
  return order ? [...schedules].sort(order) : [...schedules];
}

const words = (search: Search): string[] => search.terms.map((term) => term.text);
const distinct = (values: readonly string[]): string[] => [...new Set(values)].sort();
const go = (q: string) => setQuery({ q });

export function Schedules() {
  const { query } = usePlace("schedules");
  const text = query.get("q") ?? "";
  const sort = query.get("sort") ?? "name";
  const search = parseSearch(text, SCHEDULE_QUALIFIERS);
  const page = useReading<SchedulePage, ScheduleSummary>(listOf(search), { entries: (each) => each.schedules, enough: Infinity });
  const making = useSignal(false);
  const shown = useSignal(LIMIT);
  useEffect(() => void (shown.value = LIMIT), [text, sort]);
  const all = page.found.value?.entries ?? [];
  const found = sorted(matching(all, search), sort);
  const isFiltered = search.terms.some((term) => term.qualifier !== "name");
  const offered = {
    state: ["active", "paused", "ended"],
    type: distinct(all.map((each) => each.task.type)),
    tag: distinct(all.flatMap((each) => Object.entries(each.task.tags).map(([key, value]) => `${key}:${value}`))),
    name: all.map((each) => each.name),
  };
  return (
    <>
      <div class="page-head">
        <h1>
          Schedules{" "}
          {all.length > 0 && <span class="muted count">{found.length < all.length ? `${found.length} of ${all.length}` : all.length}{page.found.value?.isKnown ? "" : " so far"}</span>}
        </h1>
        <button type="button" class="primary" onClick={() => (making.value = true)}>
          New schedule
        </button>
      </div>
      {making.value && <ScheduleForm close={() => (making.value = false)} />}
      <SearchBox text={text} seen={[]} search={go} label="Search schedules" qualifiers={SCHEDULE_QUALIFIERS} offered={offered} placeholder="a part of a name, or state:paused type:report tag:team:docs" />
      <div class="states" role="group" aria-label="States">
        {offered.state.map((each) => (
          <button key={each} type="button" class={`chip state-${each}`} aria-pressed={words(search).includes(`state:${each}`)} onClick={() => go(toggled(text, `state:${each}`, SCHEDULE_QUALIFIERS))}>
            <i aria-hidden="true" />
            {each}
          </button>
        ))}
      </div>
      {search.faults.map((fault) => (
        <p key={fault} class="fault" role="alert">
          {fault}
        </p>
      ))}
      <div class="list-tools">
        <ByTag search={search} schedules={matching(all, { terms: search.terms.filter((term) => term.qualifier === "tag"), faults: [] })} isKnown={page.found.value?.isKnown ?? false} done={() => void page.reload()} />
        <select class="small" aria-label="Order" value={sort} onChange={(event) => setQuery({ sort: event.currentTarget.value === "name" ? "" : event.currentTarget.value })}>
          {Object.entries(SORTS).map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      {found.length > 0 && <Table schedules={found.slice(0, shown.value)} />}
      {found.length > shown.value && (
        <p class="pager">
          <span class="muted">{shown.value} of {found.length} shown</span>
          <button type="button" onClick={() => (shown.value += LIMIT)}>
            Show {Math.min(LIMIT, found.length - shown.value)} more
          </button>
        </p>
      )}
      {!isFiltered && (
        <NoneFound reading={page} title="No schedules yet">
          <p>A schedule creates a task at each of its times: by cron, at a fixed rate, or on dates.</p>
          <Command text={`duetime schedules create nightly echo --cron "0 2 * * *" --timezone Europe/Berlin`} />
        </NoneFound>
      )}
      {(all.length > 0 || (isFiltered && page.found.value?.isKnown)) && found.length === 0 && (
        <Empty title={page.found.value?.isKnown ? "No schedule matches" : "None found so far"}>
          <p>Remove a term of the search, or press a state again to remove it.</p>
        </Empty>
      )}
      <ReadingLine reading={page} what="schedules" />
    </>
  );
}

/** Pauses or resumes all schedules with the tags of the search. */
function ByTag({ search, schedules, isKnown, done }: { search: Search; schedules: readonly ScheduleSummary[]; isKnown: boolean; done: () => void }) {
  const verb = useSignal<"" | "pause" | "resume">("");
  const tags = search.terms.filter((term) => term.qualifier === "tag");
  const isOffered = tags.length > 0 && tags.length === search.terms.length && search.faults.length === 0;
  const title = isOffered ? "" : "Search for tags only, such as tag:team:docs: all schedules with these tags are paused or resumed";
  return (
    <div class="bulk first" role="group" aria-label="All with these tags">
      {(["pause", "resume"] as const).map((each) => (
        <button key={each} type="button" class="quiet small" disabled={!isOffered} title={title} onClick={() => (verb.value = each)}>
          {each === "pause" ? "Pause all…" : "Resume all…"}
        </button>
      ))}
      {verb.value && <ActionDialog action={byTag(verb.value, tags.map((term) => term.value), schedules, isKnown)} close={() => (verb.value = "")} done={done} />}
    </div>
  );
}

function byTag(verb: "pause" | "resume", tags: readonly string[], schedules: readonly ScheduleSummary[], isKnown: boolean): Action {
  const count = schedules.filter((each) => each.state === (verb === "pause" ? "active" : "paused")).length;
  const pairs = tags.map((tag) => [tag.slice(0, tag.indexOf(":")), tag.slice(tag.indexOf(":") + 1)] as const);
  const verbed = verb === "pause" ? "Pause" : "Resume";
  return {
    title: `${verbed} ${isKnown ? counted(count, "schedule") : `${count} or more schedules`}`,
    text: `${verbed === "Pause" ? "Queued tasks of these schedules will not run, and no new runs start until the schedules are resumed." : "These schedules run from now on; runs missed while they were paused are not caught up."} All ${verb === "pause" ? "active" : "paused"} schedules with ${tags.join(" and ")} are affected. An action that takes longer than a second continues as a bulk operation.`,
    verb: `${verbed} ${count}${isKnown ? "" : " or more"}`,
    danger: verb === "pause",
    reason: true,
    call: (reason) => ({
      method: "POST",
      path: `/v1/schedules/${verb}`,
      body: { filter: { tags: Object.fromEntries(pairs) }, ...(reason ? { reason } : {}) },
      command: command("schedules", verb, ...pairs.flatMap(([key, value]) => ["--of-tag", `${key}=${value}`]), ...(reason ? ["--reason", reason] : [])),
    }),
  };
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
              <div class="muted">
                {each.task.type}{" "}
                {Object.entries(each.task.tags).map(([key, value]) => (
                  <a key={key} class="tag" href={href(["schedules"], { q: tagSearch(key, value) })}>
                    {key}:{value}
                  </a>
                ))}
              </div>
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
