/** Explains a node's trigger rule, and why the node is in its state. */
import type { TopologyNode } from "../api/types";
import type { Nodes } from "./live_topology";

export const RULES: Record<TopologyNode["trigger_rule"], string> = {
  all_success: "runs if all parents succeeded",
  all_done: "runs when all parents have ended, however they ended",
  one_success: "runs as soon as one parent succeeded",
  one_failed: "runs as soon as one parent failed",
  none_failed: "runs when all parents have ended and none of them failed",
  always: "runs at once, regardless of its parents",
};

export type Outcome = "succeeded" | "failed" | "skipped" | "open";

/** The outcome of a node, as its children's trigger rules see it. */
export function outcomeOf(node: TopologyNode): Outcome {
  if (node.state === "succeeded") return "succeeded";
  if (node.state === "cancelled" && node.reason === "skipped") return "skipped";
  return ["failed", "cancelled", "rolled_back"].includes(node.state) ? "failed" : "open";
}

/** The parents whose ends decided that a node does not run. */
export function decisive(node: TopologyNode, nodes: Nodes): string[] {
  const ended = (outcome: Outcome) => node.depends_on.filter((parent) => outcomeIn(nodes, parent) === outcome);
  if (node.reason === "upstream_failed") return ended("failed");
  if (node.reason !== "skipped") return [];
  if (isByCondition(node, nodes)) return node.depends_on;
  return node.trigger_rule === "one_failed" ? node.depends_on : ended("skipped");
}

/** Whether a node was skipped although its trigger rule was met, because its condition was false. */
function isByCondition(node: TopologyNode, nodes: Nodes): boolean {
  if (!node.when) return false;
  const outcomes = node.depends_on.map((parent) => outcomeIn(nodes, parent));
  if (node.trigger_rule === "all_success") return !outcomes.includes("skipped");
  const needed = { one_success: "succeeded", one_failed: "failed" }[node.trigger_rule as string];
  return !needed || outcomes.includes(needed as Outcome);
}

const outcomeIn = (nodes: Nodes, key: string): Outcome => {
  const node = nodes.get(key);
  return node ? outcomeOf(node) : "open";
};

const MOST_NAMED = 4;

function named(keys: readonly string[]): string {
  const shown = keys.slice(0, MOST_NAMED).join(", ");
  return keys.length > MOST_NAMED ? `${shown} and ${keys.length - MOST_NAMED} more` : shown;
}

/** The reason for a node's state, if the graph determines it. */
export function whyOf(node: TopologyNode, nodes: Nodes): string {
  const parents = decisive(node, nodes);
  if (node.reason === "skipped") {
    if (isByCondition(node, nodes)) return `Skipped: its condition ${node.when} was false.`;
    if (node.trigger_rule === "one_failed") return "Skipped: it only runs if a parent fails, and no parent did.";
    return `Skipped: ${named(parents)} ${parents.length === 1 ? "was" : "were"} skipped, so its trigger rule ${node.trigger_rule} can no longer be met.`;
  }
  if (node.reason === "upstream_failed") {
    const state = parents.map((parent) => nodes.get(parent)?.state === "failed" ? "failed" : "did not succeed");
    const text = new Set(state).size === 1 ? state[0] : "did not succeed";
    return `Not run: ${named(parents) || "a node above it"} ${text ?? "failed"}, so its trigger rule ${node.trigger_rule} can no longer be met.`;
  }
  if (node.reason === "stopped") return "Not run: the topology was stopped before this node started.";
  if (node.state === "blocked") return waitsFor(node, nodes);
  return "";
}

function waitsFor(node: TopologyNode, nodes: Nodes): string {
  const open = node.depends_on.filter((parent) => outcomeIn(nodes, parent) === "open");
  if (!open.length) return node.depends_on.length ? "Its parents have ended." : "The topology has not started.";
  return `Waits for ${open.length} of ${node.depends_on.length} parents: ${named(open)}.`;
}
