/** The latest bulk operations, or one of them, with progress, rejections and a stop button. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { command } from "../api/client";
import { useResource, type Resource } from "../api/resource";
import type { BulkOperation, BulkOperationList } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { Command, Copy, Empty, Facts, ProblemBox, StateChip, Time } from "../components/basics";
import { objectsOf, refusedOf, titleOf } from "../components/operation_progress";
import { href } from "../router";
import { counted } from "../time";

const EVERY_MS = 2000;

/** Operations are not pushed, so a running operation is polled every two seconds. */
function useReading<T>(resource: Resource<T>, isRunning: (data: T) => boolean): void {
  const read = resource.data.value;
  useEffect(() => {
    if (!read || !isRunning(read)) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) void resource.reload();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [read, resource.reload]);
}

export function BulkOperations() {
  const list = useResource<BulkOperationList>("/v1/bulk-operations");
  useReading(list, ({ operations }) => operations.some((each) => !each.finished_at));
  const read = list.data.value;
  const operations = read?.operations.filter((each) => !isIdle(each)) ?? [];
  const hidden = (read?.operations.length ?? 0) - operations.length;
  return (
    <>
      <div class="page-head">
        <h1>Bulk operations</h1>
      </div>
      {list.problem.value && <ProblemBox problem={list.problem.value} retry={() => void list.reload()} />}
      {read && operations.length === 0 && (
        <Empty title="No bulk operations">
          <p>An action on many tasks that takes longer than a second continues in the background, and is listed here.</p>
          <Command text="duetime tasks cancel --of-tag team=docs --per-second 10" />
        </Empty>
      )}
      {operations.length > 0 && <Table operations={operations} done={() => void list.reload()} />}
      {hidden > 0 && <p class="muted">{counted(hidden, "operation")} that duetime started and that had nothing to do {hidden === 1 ? "is" : "are"} not shown.</p>}
    </>
  );
}

/** Whether the operation was started by duetime itself and has ended without a matching task. */
const isIdle = (operation: BulkOperation): boolean => operation.created_by === null && operation.finished_at !== null && operation.matched === 0;

function Table({ operations, done }: { operations: readonly BulkOperation[]; done: () => void }) {
  return (
    <table class="cards operations" aria-label="Bulk operations">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Operation</th>
          <th scope="col">Started</th>
          <th scope="col" class="number">Examined</th>
          <th scope="col" class="number">Matched</th>
          <th scope="col" class="number">Changed</th>
          <th scope="col" class="number">Refused</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {operations.map((each) => (
          <tr key={each.id} data-row={each.id}>
            <td>
              <StateChip state={each.state} />
            </td>
            <td>
              <a href={href(["bulk-operations", each.id])} data-open>
                {each.kind} {objectsOf(each)}
              </a>
            </td>
            <td>
              <Time at={each.created_at} />
            </td>
            <Count label="examined" value={each.examined} />
            <Count label="matched" value={each.matched} />
            <Count label="changed" value={each.affected} />
            <Count label="refused" value={refusedOf(each)} />
            <td>
              <Stop operation={each} done={done} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A count, with its name on narrow screens, where the table has no headings. */
const Count = ({ label, value }: { label: string; value: number }) => (
  <td class="number">
    {value.toLocaleString("en")} <span class="narrow-only muted">{label}</span>
  </td>
);

export function BulkOperationPage({ subject: id }: { subject: string }) {
  const one = useResource<BulkOperation>(`/v1/bulk-operations/${encodeURIComponent(id)}`);
  useReading(one, (read) => !read.finished_at);
  const read = one.data.value;
  if (!read) return one.problem.value ? <ProblemBox problem={one.problem.value} retry={() => void one.reload()} /> : <p class="muted">Loading the operation…</p>;
  const refused = Object.entries(read.refused);
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["bulk-operations"])}>Bulk operations</a> <span aria-hidden="true">/</span> <code>{read.id}</code> <Copy text={read.id} label="Copy id" />
          </p>
          <h1>
            {titleOf(read.kind)} {objectsOf(read)} <StateChip state={read.state} />
          </h1>
        </div>
        <div class="actions">
          <Stop operation={read} done={() => void one.reload()} />
        </div>
      </div>
      {one.problem.value && <ProblemBox problem={one.problem.value} retry={() => void one.reload()} />}
      <section class="counts" aria-label="Counts" aria-live="polite">
        {([["examined", read.examined], ["matched", read.matched], ["changed", read.affected], ["refused", refusedOf(read)]] as const).map(([name, count]) => (
          <div key={name}>
            <strong>{count.toLocaleString("en")}</strong> <span class="muted">{name}</span>
          </div>
        ))}
      </section>
      {read.matched > 0 && <progress class="whole" max={read.matched} value={read.affected} aria-label="Matching tasks that have been changed" />}
      <div class="grid">
        <section class="card">
          <h2>About</h2>
          <Facts
            rows={[
              ["Started", <Time at={read.created_at} />],
              ["Finished", <Time at={read.finished_at} />],
              ["By", read.created_by ?? "duetime"],
              ...(read.topology_id ? ([["Topology", <a href={href(["topologies", read.topology_id])}>{read.topology_id}</a>]] as const) : []),
              ...(read.reason ? ([["Cancelled", read.reason]] as const) : []),
            ]}
          />
          {!read.finished_at && !read.topology_id && <p class="muted">The number of matching {objectsOf(read)} is known once all have been read.</p>}
        </section>
        <section class="card">
          <h2>Refused</h2>
          {refused.length === 0 && <p class="muted">None.</p>}
          <Facts rows={refused.map(([code, count]) => [count.toLocaleString("en"), <code>{code}</code>] as const)} />
        </section>
      </div>
    </>
  );
}

/** The stop button of an operation by filter; an operation on a topology is stopped through the topology. */
function Stop({ operation, done }: { operation: BulkOperation; done: () => void }) {
  const isAsked = useSignal(false);
  if (operation.finished_at || operation.topology_id) return null;
  const action: Action = {
    title: "Stop",
    text: "Changes already made are kept, and more tasks may change for a few seconds.",
    verb: "Stop",
    danger: true,
    call: () => ({ method: "POST", path: `/v1/bulk-operations/${operation.id}/cancel`, body: {}, command: command("bulk", "cancel", operation.id) }),
  };
  return (
    <>
      <button type="button" onClick={() => (isAsked.value = true)}>
        Stop
      </button>
      {isAsked.value && <ActionDialog action={action} close={() => (isAsked.value = false)} done={done} />}
    </>
  );
}
