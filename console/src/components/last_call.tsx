/** The page's last request, as a command to repeat it. */
import { useSignal } from "@preact/signals";
import { curl, lastCall } from "../api/client";
import { Command } from "./basics";

export function LastCall() {
  const open = useSignal(false);
  const call = lastCall.value;
  if (!call) return null;
  return (
    <aside class="last-call" aria-label="The latest request">
      <div class="last-call-line" role="status">
        <span>
          Done: <code>{call.method} {call.path}</code>
        </span>
        <button type="button" class="quiet small" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
          {open.value ? "Hide commands" : "As a command"}
        </button>
        <button type="button" class="quiet small" aria-label="Dismiss" onClick={() => (lastCall.value = null)}>
          ✕
        </button>
      </div>
      {open.value && (
        <>
          {call.command && <Command text={call.command} />}
          <Command text={curl(call)} />
        </>
      )}
    </aside>
  );
}
