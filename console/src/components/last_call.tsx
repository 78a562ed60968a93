/** The requests of the page's last action, as commands to repeat them. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { curl, lastCalls } from "../api/client";
import { place } from "../router";
import { Command } from "./basics";

export function LastCall() {
  const open = useSignal(false);
  const calls = lastCalls.value;
  const [call] = calls;
  const page = place.value.segments.join("/");
  // On another page, the commands are hidden again.
  useEffect(() => void (open.value = false), [page]);
  if (!call) return null;
  const commands = calls.flatMap((each) => each.command ?? []);
  return (
    <aside class="last-call" aria-label="The latest request">
      <div class="last-call-line" role="status">
        <span>
          Done: <code>{call.method} {call.path}</code>
          {calls.length > 1 && ` and ${calls.length - 1} more`}
        </span>
        <button type="button" class="quiet small" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
          {open.value ? "Hide commands" : "As a command"}
        </button>
        <button type="button" class="quiet small" aria-label="Dismiss" onClick={() => (lastCalls.value = [])}>
          ✕
        </button>
      </div>
      {open.value && (
        <>
          {commands.length === calls.length && <Command text={commands.join("\n")} />}
          <Command text={calls.map(curl).join("\n")} />
        </>
      )}
    </aside>
  );
}
