/** The actions on all tasks that match a search, which are never offered without a filter. The dialog is loaded on
 * first use. */
import { useSignal } from "@preact/signals";
import type { Search } from "../search";
import { useLater } from "./basics";

export function BulkMenu({ search, done }: { search: Search; done: () => void }) {
  const kind = useSignal<"" | "cancel" | "retry">("");
  const Dialog = useLater(kind.value !== "", async () => (await import("./bulk_dialog")).BulkDialog);
  const none = search.terms.every((term) => term.qualifier === "nodes") || search.faults.length > 0;
  const title = none ? "Search for something first, because an action on all tasks is not offered" : "";
  return (
    <div class="bulk" role="group" aria-label="All that match">
      {(["cancel", "retry"] as const).map((each) => (
        <button key={each} type="button" class="quiet small" disabled={none} title={title} onClick={() => (kind.value = each)}>
          {each === "cancel" ? "Cancel all…" : "Retry all failed…"}
        </button>
      ))}
      {Dialog && kind.value && <Dialog kind={kind.value} search={search} close={() => (kind.value = "")} done={done} />}
    </div>
  );
}
