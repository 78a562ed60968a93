/** The actions on a task in its state; each has a reason, and is shown as a command afterwards. */
import { useSignal } from "@preact/signals";
import { command, type Call } from "../api/client";
import type { Task, TaskState } from "../api/types";
import { href, navigate } from "../router";
import { ActionDialog, type Action } from "./action";

const OPEN: readonly TaskState[] = ["blocked", "scheduled", "waiting", "preparing", "running"];
const ENDED: readonly TaskState[] = ["succeeded", "failed", "cancelled", "rolled_back"];

interface Offer {
  name: string;
  title: string;
  text: string;
  states: readonly TaskState[];
  danger?: boolean;
  body?: Record<string, unknown>;
  /** Offered only for tasks that wait for an approval. */
  approve?: boolean;
}

const OFFERS: readonly Offer[] = [
  { name: "approve", title: "Approve", text: "The task succeeds, and its dependents continue.", states: ["waiting"], approve: true },
  { name: "reject", title: "Reject", text: "The task fails with the error Rejected.", states: ["waiting"], danger: true, approve: false },
  { name: "run", title: "Run now", text: "It is started now, before its due time.", states: ["scheduled", "waiting"] },
  { name: "pause", title: "Pause", text: "It does not start until it is resumed. A running attempt is asked to pause.", states: OPEN },
  { name: "resume", title: "Resume", text: "It runs at its due time, or now if that is past.", states: ["paused"] },
  { name: "retry", title: "Retry", text: "It runs again from its first attempt.", states: ["failed"] },
  { name: "rollback", title: "Roll back", text: "Its target is asked to undo what it did.", states: ["succeeded", "failed"] },
  {
    name: "cancel",
    title: "Cancel",
    text: "It will not run. A running attempt is asked to stop.",
    states: [...OPEN, "paused"],
    danger: true,
    body: { force: true },
  },
];

const isOffered = (task: Task) => (offer: Offer) =>
  offer.states.includes(task.state) && (offer.approve === undefined || task.waiting_for?.reason === "approval");

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

const deletion = (task: Task): Action => ({
  title: "Delete",
  text: "The task is removed, with its payload, its result and its attempts. This cannot be undone.",
  verb: "Delete",
  danger: true,
  call: () => ({ method: "DELETE", path: `/v1/tasks/${task.id}`, command: command("tasks", "delete", task.id) }),
});

/** `node`: a node cannot be deleted alone, only with its topology. */
export function TaskActions({ task, done, node }: { task: Task; done: () => void; node?: boolean }) {
  const chosen = useSignal<{ action: Action; after: () => void } | null>(null);
  const offers = OFFERS.filter(isOffered(task));
  const offered = (offer: Offer): Action => ({
    title: offer.title,
    text: offer.text,
    verb: offer.title,
    danger: offer.danger ?? false,
    reason: true,
    call: (reason) => callOf(task, offer, reason),
  });
  return (
    <>
      {offers.map((offer) => (
        <button key={offer.name} type="button" class={offer.danger ? "risky" : ""} onClick={() => (chosen.value = { action: offered(offer), after: done })}>
          {offer.title}
        </button>
      ))}
      {ENDED.includes(task.state) && !node && (
        <button type="button" class="remove" onClick={() => (chosen.value = { action: deletion(task), after: () => navigate(href(["tasks"])) })}>
          Delete
        </button>
      )}
      {chosen.value && <ActionDialog action={chosen.value.action} close={() => (chosen.value = null)} done={chosen.value.after} />}
    </>
  );
}
