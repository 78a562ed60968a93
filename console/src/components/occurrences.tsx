/** Occurrences of a timing in its own zone, with the effects of clock changes and calendars, and a live preview. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiProblem, ask } from "../api/client";
import type { Preview, PreviewOccurrence } from "../api/types";
import { wallTime, zoneLabel } from "../time";
import { Relative } from "./basics";

const WAIT_MS = 250;

export function Occurrences({ occurrences, zone }: { occurrences: readonly PreviewOccurrence[]; zone: string }) {
  return (
    <ol class="occurrences">
      {occurrences.map((each) => (
        <li key={each.scheduled_at} class={each.runs ? "" : "not"}>
          <time dateTime={each.scheduled_at} title={each.scheduled_at}>
            {wallTime(each.local_time)}
          </time>{" "}
          <span class="muted">{label(each.scheduled_at, zone)}</span> {each.runs ? <Relative at={each.due_at} /> : <strong>does not run</strong>}{" "}
          {each.note && <span class="note">{each.note}</span>}
        </li>
      ))}
    </ol>
  );
}

/** The zone's short name; its full name if the browser does not know it. */
function label(at: string, zone: string): string {
  try {
    return zoneLabel(at, zone);
  } catch {
    return zone;
  }
}

/** The response of a preview request, debounced; null sends no request. */
export function usePreview(request: Record<string, unknown> | null): { preview: Preview | null; fault: string } {
  const found = useSignal<Preview | null>(null);
  const fault = useSignal("");
  useEffect(() => {
    if (request === null) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        found.value = await ask<Preview>("/v1/schedules/preview", request, stop.signal);
        fault.value = "";
      } catch (error) {
        if (error instanceof ApiProblem) fault.value = error.errors[0] ? `${error.errors[0].field} ${error.errors[0].reason}` : error.message;
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [JSON.stringify(request)]);
  return { preview: found.value, fault: fault.value };
}

/** The server's live interpretation of a timing: a description and the next occurrences. */
export function LivePreview({ timing, zone }: { timing: Record<string, unknown>; zone: string }) {
  const { preview, fault } = usePreview({ ...timing, count: 6 });
  return (
    <section class="preview" aria-label="Next occurrences" aria-live="polite">
      {fault && <p class="fault">{fault}</p>}
      {!fault && preview && (
        <>
          <p>
            Runs <strong>{preview.description}</strong>
          </p>
          <Occurrences occurrences={preview.occurrences} zone={zone} />
        </>
      )}
    </section>
  );
}
