/** Resources that tasks with the same key share: rates, locks, unique keys and ordered keys. Each kind is a section
 * here. */
import { useSignal, type Signal } from "@preact/signals";
import { useReading, type Found } from "../api/reading";
import type { OrderedKeyPage, RatePage, RateSummary, UniqueKeyPage } from "../api/types";
import { Command, ProblemBox, Relative, StateChip, Time } from "../components/basics";
import { NoneFound, ReadingLine } from "../components/reading";
import { href } from "../router";
import { Locks } from "./locks";

const LIMIT = 100;

export function Limits() {
  return (
    <>
      <div class="page-head">
        <h1>Limits</h1>
      </div>
      <Rates />
      <Locks />
      <UniqueKeys />
      <OrderedKeys />
    </>
  );
}

/** The limit in force, in words. */
export function often({ limit, per_seconds: seconds, burst }: { limit: number | null; per_seconds: number | null; burst: number | null }): string {
  if (limit === null) return "not used yet";
  return `${limit} starts in ${seconds ?? 1} s${burst ? `, ${burst} more at once` : ""}`;
}

/** The state for a new task. */
export function RateState({ rate }: { rate: RateSummary }) {
  if (rate.paused_at)
    return (
      <>
        <StateChip state="paused" /> since <Time at={rate.paused_at} />
      </>
    );
  if (rate.available) return <>{rate.available} can start now</>;
  return (
    <>
      {rate.waiting} waiting; a new task starts <Relative at={rate.next_free_at} />
    </>
  );
}

interface MoreProps {
  reading: { found: { readonly value: Found<unknown, unknown> | null } };
  what: string;
  wanted: Signal<number>;
}

/** The button for more rows of a section; the page's address has the token of only one list. */
function More({ reading, what, wanted }: MoreProps) {
  const read = reading.found.value;
  if (!read?.token || !read.isKnown) return null;
  return (
    <p class="pager">
      <button type="button" onClick={() => (wanted.value = read.entries.length + LIMIT)}>
        Show more {what}
      </button>
    </p>
  );
}

function Rates() {
  const wanted = useSignal(LIMIT);
  const page = useReading<RatePage, RateSummary>(`/v1/rates?limit=${LIMIT}`, { entries: (each) => each.rates, enough: wanted.value });
  const read = page.found.value;
  return (
    <>
      <h2 class="section">Rates</h2>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title="No rate is in use">
        <p>A task that names a rate waits until the limit of the rate allows another start within the window.</p>
        <Command text="duetime tasks create report --rate-key crm --rate-limit 50" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <table class="cards" aria-label="Rates">
          <thead>
            <tr>
              <th scope="col">Rate</th>
              <th scope="col">Limit</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {read.entries.map((rate) => (
              <tr key={rate.key} data-row={rate.key}>
                <td>
                  <a href={href(["rates", rate.key])} data-open>
                    <strong>{rate.key}</strong>
                  </a>
                </td>
                <td>
                  {often(rate)} {rate.pinned && <span class="muted">· pinned</span>}
                </td>
                <td>
                  <RateState rate={rate} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <More reading={page} what="rates" wanted={wanted} />
      <ReadingLine reading={page} what="rates" />
    </>
  );
}

function UniqueKeys() {
  const wanted = useSignal(LIMIT);
  const page = useReading<UniqueKeyPage, UniqueKeyPage["unique_keys"][number]>(`/v1/unique-keys?limit=${LIMIT}`, { entries: (each) => each.unique_keys, enough: wanted.value });
  const read = page.found.value;
  return (
    <>
      <h2 class="section">Unique keys</h2>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title="No task holds a unique key">
        <p>Only one task at a time can hold a unique key, until it has started or ended.</p>
        <Command text="duetime tasks create report --unique customer-17" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <table class="cards" aria-label="Unique keys">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Kind</th>
              <th scope="col">Held by</th>
            </tr>
          </thead>
          <tbody>
            {read.entries.map(({ key, kind, until, holders }) => (
              <tr key={key}>
                <td>
                  <strong>{key}</strong>
                </td>
                <td>
                  {kind} <span class="muted">· until it has {until}</span>
                </td>
                <td>
                  {holders.map((each) => (
                    <div key={each.task_id}>
                      <a href={href(["tasks", each.task_id])}>
                        <code>{each.task_id}</code>
                      </a>{" "}
                      <StateChip state={each.state} />
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <More reading={page} what="unique keys" wanted={wanted} />
      <ReadingLine reading={page} what="unique keys" />
    </>
  );
}

function OrderedKeys() {
  const wanted = useSignal(LIMIT);
  const page = useReading<OrderedKeyPage, OrderedKeyPage["ordered_keys"][number]>(`/v1/ordered-keys?limit=${LIMIT}`, { entries: (each) => each.ordered_keys, enough: wanted.value });
  const read = page.found.value;
  return (
    <>
      <h2 class="section">Ordered keys</h2>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title="No ordered key is in use">
        <p>A task with an ordered key waits for the outcome of the task that was created before it with the same key.</p>
        <Command text="duetime tasks create report --order customer-17" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <table class="cards" aria-label="Ordered keys">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Has the turn</th>
              <th scope="col">Due</th>
            </tr>
          </thead>
          <tbody>
            {read.entries.map(({ key, turn }) => (
              <tr key={key}>
                <td>
                  <strong>{key}</strong>
                </td>
                <td>
                  {turn ? (
                    <>
                      <a href={href(["tasks", turn.task_id])}>
                        <code>{turn.task_id}</code>
                      </a>{" "}
                      <StateChip state={turn.state} />
                    </>
                  ) : (
                    <span class="muted">no task</span>
                  )}
                </td>
                <td>{turn && <Relative at={turn.due_at} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <More reading={page} what="ordered keys" wanted={wanted} />
      <ReadingLine reading={page} what="ordered keys" />
    </>
  );
}
