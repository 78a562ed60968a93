/** The switches, which stop or limit tasks, each with its author, reason and time. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import { useResource } from "../api/resource";
import type { Circuit, SwitchPage } from "../api/types";
import { ActionDialog, useSending, type Action } from "../components/action";
import { Command, Empty, Field, ProblemBox, Relative, Time } from "../components/basics";
import { Dialog } from "../components/dialog";

const pathOf = (scope: string, name: string) => `/v1/switches/${encodeURIComponent(scope)}/${encodeURIComponent(name)}`;

export function Switches() {
  const page = useResource<SwitchPage>("/v1/switches");
  const setting = useSignal(false);
  const removing = useSignal<Action | null>(null);
  const reload = () => void page.reload();
  const read = page.data.value;
  const remove = (scope: string, name: string, isStop: boolean): Action => ({
    title: `${isStop ? "Start again" : "Remove the limit"}: ${scope === "all" ? "all tasks" : `${scope} ${name}`}`,
    text: isStop ? "Tasks that the switch stopped start automatically within 90 seconds." : "Tasks that the limit held back start automatically within 90 seconds.",
    verb: isStop ? "Start again" : "Remove the limit",
    call: () => ({ method: "DELETE", path: pathOf(scope, name), command: command("switches", "delete", scope, ...(scope === "all" ? [] : [name])) }),
  });
  return (
    <>
      <div class="page-head">
        <h1>Switches and rates</h1>
        <button type="button" class="primary" onClick={() => (setting.value = true)}>
          Set a switch
        </button>
      </div>
      {setting.value && <Setting close={() => (setting.value = false)} done={reload} />}
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={reload} />}
      {read && read.switches.length === 0 && (
        <Empty title="Nothing is stopped or limited">
          <p>A switch stops all tasks, or the tasks of a type or an owner, or limits how many of them run at once, without a deployment.</p>
          <Command text={'duetime switches set type report --stop --reason "the ledger is being moved"'} />
        </Empty>
      )}
      {read && read.switches.length > 0 && (
        <table class="cards" aria-label="Switches">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Does</th>
              <th scope="col">Why</th>
              <th scope="col">Who and since when</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {read.switches.map((each) => (
              <tr key={`${each.scope}/${each.name}`}>
                <td>{each.scope === "all" ? "all tasks" : `${each.scope} ${each.name}`}</td>
                <td>{each.stopped ? <span class="chip state-paused"><i aria-hidden="true" />stopped</span> : limits(each)}</td>
                <td>{each.reason}</td>
                <td>
                  {each.updated_by} · <Time at={each.updated_at} />
                </td>
                <td class="number">
                  <button type="button" class="small" onClick={() => (removing.value = remove(each.scope, each.name, each.stopped))}>
                    {each.stopped ? "Start again…" : "Remove the limit…"}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {read && read.circuits.length > 0 && <Circuits circuits={read.circuits} />}
      {removing.value && <ActionDialog action={removing.value} close={() => (removing.value = null)} done={reload} />}
    </>
  );
}

/** Hosts that are temporarily not called because calls to them kept failing. */
function Circuits({ circuits }: { circuits: readonly Circuit[] }) {
  return (
    <section class="card worker">
      <h2>Hosts that keep failing</h2>
      <table class="cards circuits" aria-label="Circuits">
        <thead>
          <tr>
            <th scope="col">Host</th>
            <th scope="col">State</th>
            <th scope="col">Why</th>
            <th scope="col">Since</th>
            <th scope="col">Called again</th>
          </tr>
        </thead>
        <tbody>
          {circuits.map((each) => (
            <tr key={`${each.owner}/${each.host}`}>
              <td>
                <strong>{each.host}</strong> <span class="muted">of {each.owner}</span>
              </td>
              <td>{each.state === "open" ? "not called" : "tested, one call at a time"}</td>
              <td>
                <code>{each.reason}</code> <span class="muted">opened {each.openings} times in a row</span>
              </td>
              <td>
                <Time at={each.opened_at} />
              </td>
              <td>
                <Relative at={each.open_until} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function limits({ max_concurrent: most, rate }: { max_concurrent: number | null; rate: { limit: number; per_seconds: number; burst: number } | null }): string {
  const starts = rate && `${rate.limit} starts in ${rate.per_seconds} s${rate.burst ? `, ${rate.burst} more at once` : ""}`;
  return [most !== null && `at most ${most} at once`, starts].filter(Boolean).join("; ");
}

function Setting({ close, done }: { close: () => void; done: () => void }) {
  const scope = useSignal("type");
  const name = useSignal("");
  const most = useSignal("");
  const starts = useSignal("");
  const seconds = useSignal("1");
  const burst = useSignal("0");
  const reason = useSignal("");
  const { busy, problem, send } = useSending();
  const limited = scope.value !== "all" && !!(most.value || starts.value);
  const submit = async (event: Event) => {
    event.preventDefault();
    const body = {
      ...(limited ? {} : { stopped: true }),
      ...(limited && most.value ? { max_concurrent: Number(most.value) } : {}),
      ...(limited && starts.value ? { rate: { limit: Number(starts.value), per_seconds: Number(seconds.value), burst: Number(burst.value) } } : {}),
      reason: reason.value.trim(),
    };
    const words = [
      ...(scope.value === "all" ? ["all"] : [scope.value, name.value]),
      ...(limited ? [] : ["--stop"]),
      ...(limited && most.value ? ["--max-concurrent", most.value] : []),
      ...(limited && starts.value ? ["--rate-limit", starts.value, "--rate-per", seconds.value, "--rate-burst", burst.value] : []),
      ...(body.reason ? ["--reason", body.reason] : []),
    ];
    await send({ method: "PUT", path: pathOf(scope.value, scope.value === "all" ? "all" : name.value), body, command: command("switches", "set", ...words) });
    if (problem.value) return;
    close();
    done();
  };
  return (
    <Dialog title="Set a switch" close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <Field label="What">
          <select value={scope.value} onChange={(event) => (scope.value = event.currentTarget.value)}>
            <option value="type">Tasks of a type</option>
            <option value="owner">Tasks of an owner</option>
            <option value="all">All tasks</option>
          </select>
        </Field>
        {scope.value !== "all" && (
          <Field label="Name">
            <input required value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
          </Field>
        )}
        {scope.value !== "all" && (
          <Field label="At most at once" hint="If this is empty and there is no limit on starts, no task starts. Running tasks continue.">
            <input type="number" min="1" value={most.value} onInput={(event) => (most.value = event.currentTarget.value)} />
          </Field>
        )}
        {scope.value !== "all" && (
          <div class="fields">
            <Field label="Starts" hint="Leave empty for no limit.">
              <input type="number" min="1" value={starts.value} onInput={(event) => (starts.value = event.currentTarget.value)} />
            </Field>
            <Field label="In seconds">
              <input type="number" min="1" required value={seconds.value} onInput={(event) => (seconds.value = event.currentTarget.value)} />
            </Field>
            <Field label="More at once">
              <input type="number" min="0" required value={burst.value} onInput={(event) => (burst.value = event.currentTarget.value)} />
            </Field>
          </div>
        )}
        <Field label="Reason" hint="Shown on each task that is held back and, for a stop, on every page.">
          <input value={reason.value} maxLength={128} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </Field>
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={busy.value}>
            {limited ? "Limit" : "Stop"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
