/** A bulk operation's progress as counts, and as a bar if the total is known. */
import type { BulkOperation } from "../api/types";
import { href } from "../router";

const KINDS: Record<string, string> = {
  cancel: "Cancelling",
  update: "Updating",
  retry: "Retrying",
  pause: "Pausing",
  resume: "Resuming",
  end: "Finishing",
  delete: "Deleting",
  purge: "Purging",
  signal: "Waking",
};

export const titleOf = (kind: string): string => KINDS[kind] ?? kind;

/** What an operation acts on: the nodes of a topology, or tasks or schedules that match a filter. */
export const objectsOf = ({ kind, topology_id }: BulkOperation): string => (topology_id ? "nodes" : ["pause", "resume"].includes(kind) ? "schedules" : "tasks");

export const refusedOf = (operation: BulkOperation): number => Object.values(operation.refused).reduce((sum, count) => sum + count, 0);

export function OperationProgress({ operation }: { operation: BulkOperation }) {
  const { id, kind, matched, affected, examined } = operation;
  const label = `${titleOf(kind)} ${objectsOf(operation)}`;
  return (
    <p class="operation" role="status">
      <a href={href(["bulk-operations", id])}>{label}</a> {matched > 0 && <progress max={matched} value={affected} aria-label={label} />}{" "}
      <span class="muted">
        {affected.toLocaleString("en")} of {matched.toLocaleString("en")} changed, {examined.toLocaleString("en")} examined
      </span>
    </p>
  );
}
