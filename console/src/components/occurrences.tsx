/** A timing's occurrences in its own zone, with the effects of clock changes and calendars, and a live preview. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiProblem, ask } from "../api/client";
import type { Preview, PreviewOccurrence } from "../api/types";
import { isoWithOffset, nextClockChange, wallTime, zoneLabel } from "../time";
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

interface Previewed {
  preview: Preview | null;
  fault: string;
  /** Whether the preview is for this request, and not for an earlier request. */
  isCurrent: boolean;
}

/** The response of a preview request, debounced; null sends no request. */
export function usePreview(request: Record<string, unknown> | null): Previewed {
  const found = useSignal<{ key: string; preview: Preview } | null>(null);
  const fault = useSignal("");
  const key = JSON.stringify(request);
  useEffect(() => {
    if (request === null) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        found.value = { key, preview: await ask<Preview>("/v1/schedules/preview", request, stop.signal) };
        fault.value = "";
      } catch (error) {
        if (error instanceof ApiProblem) fault.value = error.errors[0] ? `${error.errors[0].field} ${error.errors[0].reason}` : error.message;
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return { preview: found.value?.preview ?? null, fault: fault.value, isCurrent: found.value?.key === key };
}

const AROUND_MS = 12 * 3_600_000;
const MOST_AROUND = 60;

/** The effect of the zone's next clock change on the runs. `isValid` says whether the timing is known to be valid. */
function NextClockChange({ timing, zone, isValid }: { timing: Record<string, unknown>; zone: string; isValid: boolean }) {
  const at = useMemo(() => nextClockChange(zone), [zone]);
  const { preview } = usePreview(at === null || !isValid ? null : { ...timing, from: new Date(at - AROUND_MS).toISOString(), count: MOST_AROUND });
  if (at === null || !preview) return null;
  const affected = preview.occurrences.filter((each) => Math.abs(Date.parse(each.scheduled_at) - at) <= AROUND_MS && /does not exist|comes twice/.test(each.note ?? ""));
  return (
    <div class="clock-change">
      <p>
        Next clock change: <strong>{wallTime(isoWithOffset(at, zone)).replace(/ \d\d:\d\d.*/, "")}</strong>
        {affected.length === 0 && ", no run is affected"}
      </p>
      {affected.length > 0 && <Occurrences occurrences={affected.slice(0, SHOWN_AROUND)} zone={zone} />}
    </div>
  );
}

const SHOWN_AROUND = 4;

/** The server's live interpretation of a timing: a description, the next occurrences, and the next clock change. */
export function LivePreview({ timing, zone }: { timing: Record<string, unknown>; zone: string }) {
  const { preview, fault, isCurrent } = usePreview({ ...timing, count: 6 });
  return (
    <section class="preview" aria-label="Next occurrences" aria-live="polite">
      {fault && <p class="fault">{fault}</p>}
      {!fault && preview && (
        <>
          <p>
            Runs <strong>{preview.description}</strong>
          </p>
          <Occurrences occurrences={preview.occurrences} zone={zone} />
          <NextClockChange timing={timing} zone={zone} isValid={isCurrent && !fault} />
        </>
      )}
    </section>
  );
}
