/** The actions that a topology's state allows. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import type { Topology, TaskState } from "../api/types";
import { ActionDialog, type Action } from "../components/action";
import { href, navigate } from "../router";
import { ENDED } from "../search";
import { CreateTopology } from "./create_topology";

const OPEN: readonly TaskState[] = ["scheduled", "waiting", "preparing", "running"];

interface Offer {
  name: "pause" | "resume" | "retry" | "cancel";
  title: string;
  text: (topology: Topology) => string;
  isOffered: (topology: Topology) => boolean;
  danger?: boolean;
}

const isPausing = ({ state, requested_action }: Topology): boolean => state === "paused" || requested_action === "pause";

const OFFERS: readonly Offer[] = [
  {
    name: "pause",
    title: "Pause",
    text: () => "No more nodes start; running nodes continue until they end.",
    isOffered: (topology) => OPEN.includes(topology.state) && topology.requested_action === null,
  },
  { name: "resume", title: "Resume", text: () => "All of the topology's nodes continue.", isOffered: isPausing },
  {
    name: "retry",
    title: "Retry failed nodes",
    text: ({ counts }) =>
      `The ${counts["succeeded"] ?? 0} nodes that succeeded keep their results, unless they had waited for a failure. All other nodes run again, as new tasks.`,
    isOffered: ({ state }) => state === "failed",
  },
  {
    name: "cancel",
    title: "Cancel",
    text: () => "Nodes that have not started are cancelled, and running nodes are asked to stop. No node is rolled back.",
    isOffered: ({ state, requested_action }) => [...OPEN, "paused", "rolling_back"].includes(state) && requested_action !== "cancel",
    danger: true,
  },
];

/** Runs a node again with all its dependents; failed nodes elsewhere also run again. */
export function RunAgainFrom({ topology, node, done }: { topology: Topology; node: string; done: () => void }) {
  const isOpen = useSignal(false);
  if (topology.state !== "succeeded" && topology.state !== "failed") return null;
  const action: Action = {
    title: `Run again from ${node}`,
    text: "The node, all nodes that depend on it, and all failed nodes run again as new tasks. Other nodes keep their results.",
    verb: "Run again",
    reason: true,
    call: (reason) => ({
      method: "POST",
      path: `/v1/topologies/${topology.id}/retry`,
      body: { nodes: [node], ...(reason ? { reason } : {}) },
      command: command("topologies", "retry", topology.id, "--node", node, ...(reason ? ["--reason", reason] : [])),
    }),
  };
  return (
    <>
      <button type="button" onClick={() => (isOpen.value = true)}>
        Run again from here
      </button>
      {isOpen.value && <ActionDialog action={action} close={() => (isOpen.value = false)} done={done} />}
    </>
  );
}

export function TopologyActions({ topology, done }: { topology: Topology; done: () => void }) {
  const chosen = useSignal<{ action: Action; after: () => void } | null>(null);
  const path = `/v1/topologies/${topology.id}`;
  const offered = ({ name, title, text, danger }: Offer): Action => ({
    title,
    text: text(topology),
    verb: title,
    danger: danger ?? false,
    reason: true,
    call: (reason) => ({
      method: "POST",
      path: `${path}/${name}`,
      body: reason ? { reason } : {},
      command: command("topologies", name, topology.id, ...(reason ? ["--reason", reason] : [])),
    }),
  });
  const deletion: Action = {
    title: "Delete",
    text: "The topology is removed with its nodes and the nodes' payloads and results. This cannot be undone.",
    verb: "Delete",
    danger: true,
    call: () => ({ method: "DELETE", path, command: command("topologies", "delete", topology.id) }),
  };
  return (
    <div class="actions">
      {OFFERS.filter((offer) => offer.isOffered(topology)).map((offer) => (
        <button key={offer.name} type="button" class={offer.danger ? "risky" : ""} onClick={() => (chosen.value = { action: offered(offer), after: done })}>
          {offer.title}
        </button>
      ))}
      {/* A topology that is a node is deleted with its own topology. */}
      {ENDED.includes(topology.state) && topology.topology === null && (
        <button type="button" class="remove" onClick={() => (chosen.value = { action: deletion, after: () => navigate(href(["topologies"])) })}>
          Delete
        </button>
      )}
      <CreateTopology from={topology.id} />
      {chosen.value && <ActionDialog action={chosen.value.action} close={() => (chosen.value = null)} done={chosen.value.after} />}
    </div>
  );
}
