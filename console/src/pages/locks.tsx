/** The part of the limits page with recently used locks, their holders and their expiry times. */
import { useReading } from "../api/reading";
import type { LockPage } from "../api/types";
import { Command, Pager, ProblemBox, Relative } from "../components/basics";
import { NoneFound, ReadingLine } from "../components/reading";
import { TaskLink, useTasks } from "../components/task_names";
import { href, usePlace } from "../router";

const LIMIT = 100;

export function Locks() {
  const token = usePlace("limits").query.get("page") ?? "";
  const asked = new URLSearchParams({ limit: String(LIMIT), ...(token && { next_token: token }) });
  const page = useReading<LockPage, LockPage["locks"][number]>(`/v1/locks?${asked}`, { entries: (each) => each.locks, enough: LIMIT });
  const read = page.found.value;
  const tasks = useTasks((read?.entries ?? []).flatMap((lock) => lock.holders.map((holder) => holder.task_id)));
  return (
    <>
      <h2 class="section">Locks</h2>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title={token ? "No more locks" : "No lock is in use"}>
        <p>A task that names a lock waits while the lock is held by as many tasks as its limit allows.</p>
        <Command text="duetime tasks create report --lock db-17" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <table class="cards" aria-label="Locks">
          <thead>
            <tr>
              <th scope="col">Lock</th>
              <th scope="col">Held by</th>
            </tr>
          </thead>
          <tbody>
            {read.entries.map((lock) => (
              <tr key={lock.key} data-row={lock.key}>
                <td>
                  <a href={href(["locks", lock.key])} data-open>
                    <strong>{lock.key}</strong>
                  </a>
                </td>
                <td>
                  {lock.holders.length === 0 && <span class="muted">nobody</span>}
                  {lock.holders.map((holder) => (
                    <div key={holder.task_id}>
                      <TaskLink id={holder.task_id} task={tasks.get(holder.task_id)} />{" "}
                      <span class="muted">
                        {holder.mode === "shared" && "· shared "}· ends <Relative at={holder.expires_at} />, unless renewed
                      </span>
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <ReadingLine reading={page} what="locks" />
      <Pager token={read?.isKnown ? read.token : null} />
    </>
  );
}
