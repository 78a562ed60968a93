/** The trigger and the queues of all owners, for operators to investigate late tasks. */
import { useResource } from "../api/resource";
import type { DeploymentSettings, DispatchStatus } from "../api/types";
import { Relative, Time } from "./basics";

/** Null for users who are not operators. */
export type Dispatch = DispatchStatus | "reading" | null;

/** The state of dispatch; requested only for operators. */
export function useDispatch(): Dispatch {
  const settings = useResource<DeploymentSettings>("/v1/settings");
  const isOperator = settings.data.value?.is_operator;
  const status = useResource<DispatchStatus>(isOperator ? "/v1/dispatch" : null);
  const isRead = isOperator === false || settings.problem.value !== null || status.problem.value !== null;
  return status.data.value ?? (isRead ? null : "reading");
}

export function DispatchCard() {
  const status = useDispatch();
  if (!status || status === "reading") return null;
  return (
    <section class="card worker">
      <h2>
        Trigger and queues <span class="muted">of all owners</span>
      </h2>
      {status.last_tick_at && status.dispatched_until ? (
        <p>
          The trigger last completed a pass in the minute from <Time at={status.last_tick_at} />, <Relative at={status.last_tick_at} />. Tasks that are due before <Time at={status.dispatched_until} /> are on queues.
        </p>
      ) : (
        <p>The trigger has not run yet.</p>
      )}
      <table aria-label="Queues">
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col" class="number">Waiting</th>
            <th scope="col" class="number">Delayed</th>
            <th scope="col" class="number">In flight</th>
          </tr>
        </thead>
        <tbody>
          {status.queues.map((queue) => (
            <tr key={queue.priority ?? `type ${queue.pulled_type}`}>
              <td>{queue.priority ?? <>type <code>{queue.pulled_type}</code></>}</td>
              <td class="number">{queue.waiting.toLocaleString("en")}</td>
              <td class="number">{queue.delayed.toLocaleString("en")}</td>
              <td class="number">{queue.in_flight.toLocaleString("en")}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <table aria-label="Shards">
        <thead>
          <tr>
            <th scope="col">Shards</th>
            <th scope="col">Read by</th>
            <th scope="col" class="number">Epoch</th>
            <th scope="col">On queues until</th>
          </tr>
        </thead>
        <tbody>
          {status.groups.map((group) => (
            <tr key={group.group}>
              <td>{group.first_shard}–{group.last_shard}</td>
              <td>{group.read_by ? <code>{group.read_by}</code> : "nobody yet"}</td>
              <td class="number">{group.epoch.toLocaleString("en")}</td>
              <td>{group.dispatched_until && <Time at={group.dispatched_until} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted">SQS counts approximately. Delayed messages belong to tasks that are not due yet or will be retried.</p>
    </section>
  );
}
