/** The actions that a task's state allows. Each action can have a reason, and is shown as a command afterwards. */
import { useSignal, type Signal } from "@preact/signals";
import { command, type Call } from "../api/client";
import type { CreatedLink, Task, TaskState } from "../api/types";
import { href, navigate } from "../router";
import { ENDED } from "../search";
import { counted } from "../time";
import { ActionDialog, useSending, type Action } from "./action";
import { Copy, Field, ProblemBox } from "./basics";
import { Dialog } from "./dialog";

const OPEN: readonly TaskState[] = ["blocked", "scheduled", "waiting", "preparing", "running"];

interface Offer {
  name: string;
  title: string;
  text: string;
  states: readonly TaskState[];
  danger?: boolean;
  body?: Record<string, unknown>;
  /** These actions are offered only for tasks that wait for an approval. */
  approve?: boolean;
}

const OFFERS: readonly Offer[] = [
  { name: "approve", title: "Approve", text: "The task succeeds, and its dependents continue.", states: ["waiting"], approve: true },
  { name: "reject", title: "Reject", text: "The task fails with the error Rejected.", states: ["waiting"], danger: true, approve: false },
  { name: "run", title: "Run now", text: "The task is started now, regardless of its due time.", states: ["scheduled", "waiting"] },
  { name: "pause", title: "Pause", text: "The task does not start until it is resumed. A running attempt is asked to pause.", states: OPEN },
  { name: "resume", title: "Resume", text: "The task runs at its due time, or now if the due time is past.", states: ["paused"] },
  { name: "retry", title: "Retry", text: "The task runs again from its first attempt.", states: ["failed"] },
  { name: "rollback", title: "Roll back", text: "The task's target is asked to undo its work.", states: ["succeeded", "failed"] },
  {
    name: "cancel",
    title: "Cancel",
    text: "The task will not run. A running attempt is asked to stop.",
    states: [...OPEN, "paused"],
    danger: true,
    body: { force: true },
  },
];

/** Whether a task can be approved or rejected now; if it was moved to a later time, only from that time on. */
const awaitsApproval = (task: Task) => task.waiting_for?.reason === "approval" && task.next_at !== task.due_at;

/** A node that waits for its parents is paused with its topology. */
const isBlockedNode = (task: Task) => task.state === "blocked" && task.topology !== null;

const isOffered = (task: Task) => (offer: Offer) =>
  offer.states.includes(task.state) && (offer.approve === undefined || awaitsApproval(task)) && !(offer.name === "pause" && isBlockedNode(task));

/** The known children of a task. */
export interface KnownChildren {
  count: number;
  open: number;
  hasMore: boolean;
}

const childrenText = ({ count, hasMore }: KnownChildren): string => (hasMore ? `children (${count} or more)` : counted(count, "child", "children"));

/** The cancellation of a task with its children and their descendants. */
function cancellation(task: Task, reason: string): Call {
  return {
    method: "POST",
    path: `/v1/tasks/${task.id}/cancel`,
    body: { force: true, include_children: true, ...(reason ? { reason } : {}) },
    command: command("tasks", "cancel", task.id, "--force", "--children", ...(reason ? ["--reason", reason] : [])),
  };
}

function callOf(task: Task, offer: Offer, reason: string): Call {
  if (offer.approve !== undefined)
    return {
      method: "POST",
      path: `/v1/tasks/${task.id}/signal`,
      body: { approve: offer.approve, ...(reason ? { reason } : {}) },
      command: command("tasks", offer.name, task.id, ...(reason ? ["--reason", reason] : [])),
    };
  const body = { ...(["preparing", "running"].includes(task.state) ? offer.body : {}), ...(reason ? { reason } : {}) };
  return {
    method: "POST",
    path: `/v1/tasks/${task.id}/${offer.name}`,
    body,
    command: command("tasks", offer.name, task.id, ...("force" in body ? ["--force"] : []), ...(reason ? ["--reason", reason] : [])),
  };
}

type EventTarget = Extract<NonNullable<Task["target"]>, { kind: "wait_for_event" }>;

/** A signal for the event that a task waits for; a payload that is not JSON is sent as text. */
function signalOf({ event, key }: EventTarget, text: string): Call {
  const payload = text.trim();
  return {
    method: "POST",
    path: "/v1/signals",
    body: { name: event, key, payload: payload ? jsonOrText(payload) : null },
    command: command("signals", "send", event, ...(key ? ["--key", key] : []), ...(payload ? ["--payload", JSON.stringify(jsonOrText(payload))] : [])),
  };
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

const deletion = (task: Task): Action => ({
  title: "Delete",
  text: "The task is removed, with its payload, its result and its attempts. This cannot be undone.",
  verb: "Delete",
  danger: true,
  call: () => ({ method: "DELETE", path: `/v1/tasks/${task.id}`, command: command("tasks", "delete", task.id) }),
});

interface TaskActionsProps {
  task: Task;
  done: () => void;
  /** A node cannot be deleted alone, only with its topology. */
  node?: boolean;
  children?: KnownChildren | null;
}

export function TaskActions({ task, done, node, children = null }: TaskActionsProps) {
  const withChildren = useSignal(false);
  const chosen = useSignal<{ action: Action; after: () => void } | null>(null);
  const linking = useSignal(false);
  const payload = useSignal("");
  const offers = OFFERS.filter(isOffered(task));
  const offered = (offer: Offer): Action => ({
    title: offer.title,
    text: offer.text,
    verb: offer.title,
    danger: offer.danger ?? false,
    reason: true,
    call: (reason) => (offer.name === "cancel" && withChildren.value ? cancellation(task, reason) : callOf(task, offer, reason)),
    ...(offer.name === "cancel" && children && { more: <AlsoChildren children={children} checked={withChildren} /> }),
  });
  const ofChildren: Action = {
    title: "Cancel its children",
    text: "Tasks that this task started, directly or indirectly, will not run. Running attempts are asked to stop.",
    verb: "Cancel its children",
    danger: true,
    reason: true,
    call: (reason) => cancellation(task, reason),
  };
  const signalling = (target: EventTarget): Action => ({
    title: "Send the signal",
    text: `All tasks that wait for the event ${target.event}${target.key ? ` with the key ${target.key}` : ""}${target.when ? ", and whose condition the payload meets," : ""} succeed.`,
    verb: "Send",
    more: <SignalPayload payload={payload} />,
    call: () => signalOf(target, payload.value),
  });
  const mayBeOpen = children !== null && (children.open > 0 || children.hasMore);
  return (
    <>
      {offers.map((offer) => (
        <button key={offer.name} type="button" class={offer.danger ? "risky" : ""} onClick={() => (chosen.value = { action: offered(offer), after: done })}>
          {offer.title}
        </button>
      ))}
      {task.target?.kind === "wait_for_event" && task.state === "waiting" && (
        <button type="button" onClick={() => (chosen.value = { action: signalling(task.target as EventTarget), after: done })}>
          Send the signal…
        </button>
      )}
      {task.target?.kind === "approval" && !ENDED.includes(task.state) && (
        <button type="button" onClick={() => (linking.value = true)}>
          Create a link…
        </button>
      )}
      {ENDED.includes(task.state) && mayBeOpen && (
        <button type="button" class="risky" onClick={() => (chosen.value = { action: ofChildren, after: done })}>
          Cancel its children…
        </button>
      )}
      {ENDED.includes(task.state) && !node && (
        <button type="button" class="remove" onClick={() => (chosen.value = { action: deletion(task), after: () => navigate(href(["tasks"])) })}>
          Delete
        </button>
      )}
      {linking.value && <NewLink task={task} close={() => (linking.value = false)} />}
      {chosen.value && <ActionDialog action={chosen.value.action} close={() => (chosen.value = null)} done={chosen.value.after} />}
    </>
  );
}

function AlsoChildren({ children, checked }: { children: KnownChildren; checked: Signal<boolean> }) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked.value} onChange={(event) => (checked.value = event.currentTarget.checked)} />
      Also cancel its {childrenText(children)}, and their descendants
    </label>
  );
}

function SignalPayload({ payload }: { payload: Signal<string> }) {
  return (
    <Field label="Payload" hint="JSON that becomes the result of the tasks; leave empty for null.">
      <textarea rows={3} value={payload.value} onInput={(event) => (payload.value = event.currentTarget.value)} />
    </Field>
  );
}

/** Creates a link with which a person without credentials approves or rejects a task. */
function NewLink({ task, close }: { task: Task; close: () => void }) {
  const message = useSignal("");
  const days = useSignal("1");
  const takesPayload = useSignal(false);
  const made = useSignal<CreatedLink | null>(null);
  const { busy, problem, send } = useSending();
  const submit = async (event: Event) => {
    event.preventDefault();
    const body = {
      actions: ["approve", "reject"],
      expires_seconds: Number(days.value) * 86_400,
      message: message.value.trim(),
      takes_payload: takesPayload.value,
    };
    const shown = command(
      ...["links", "create", task.id, "--action", "approve", "--action", "reject", "--expires", `${days.value}d`],
      ...(body.message ? ["--message", body.message] : []),
      ...(body.takes_payload ? ["--takes-payload"] : []),
    );
    made.value = (await send<CreatedLink>({ method: "POST", path: `/v1/tasks/${task.id}/links`, body, command: shown })) ?? null;
  };
  if (made.value) {
    return (
      <Dialog title="The link is shown only now" close={close}>
        <p>
          <code class="key">{made.value.url}</code> <Copy text={made.value.url} />
        </p>
        <p class="muted">Send the link to one person. Anyone who has the link can decide, but only once.</p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create a link" close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>With the link, a person without credentials approves or rejects the task.</p>
        <Field label="Message" hint="For the person who opens the link.">
          <input maxLength={500} value={message.value} onInput={(event) => (message.value = event.currentTarget.value)} autofocus />
        </Field>
        <Field label="Valid for days">
          <input type="number" required min={1} max={90} value={days.value} onInput={(event) => (days.value = event.currentTarget.value)} />
        </Field>
        <label class="check">
          <input type="checkbox" checked={takesPayload.value} onChange={(event) => (takesPayload.value = event.currentTarget.checked)} />
          Let the person send a text, which becomes the result
        </label>
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="submit" class="primary" disabled={busy.value}>
            Create
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
