/** The progress of reading a list, as text; entries are reported as missing only at the end of the list. */
import type { ComponentChildren } from "preact";
import type { Found, Reading } from "../api/reading";
import { duration, now } from "../time";
import { Empty, Time } from "./basics";

type AnyReading = Pick<Reading<never, never>, "stop" | "loadMore" | "reload" | "isOld"> & {
  found: { readonly value: Found<unknown, unknown> | null };
  going: { readonly value: Found<unknown, unknown> | null };
  problem: { readonly value: unknown };
};

const OLD_MS = 60_000;

/** The part that was scanned, such as `4,000 tasks, up to 3 Dec 02:00`. */
function Extent({ found, what }: { found: Found<unknown, unknown>; what: string }) {
  return (
    <>
      {found.examined.toLocaleString("en")} {what}, {found.entries.length.toLocaleString("en")} found
      {found.examinedTo && (
        <>
          , up to <Time at={found.examinedTo} short />
        </>
      )}
    </>
  );
}

/** The progress of a list with several pages, with a button to stop or continue. */
export function ReadingLine({ reading, what = "tasks" }: { reading: AnyReading; what?: string }) {
  const found = reading.found.value;
  const going = reading.going.value;
  if (going)
    return (
      <p class="reading muted" role="status">
        <progress aria-label="Loading" /> <span>Examined <Extent found={going} what={what} />. Loading more…</span>{" "}
        <button type="button" class="small" onClick={reading.stop}>
          Stop
        </button>
      </p>
    );
  if (!found || reading.isOld) return reading.problem.value ? null : <p class="reading muted" role="status">Loading…</p>;
  if (found.isKnown && found.pages === 1) return null;
  if (!found.isKnown)
    return (
      <p class="reading muted" role="status">
        <span>Examined <Extent found={found} what={what} />. There may be more.</span>{" "}
        <button type="button" class="small" onClick={reading.loadMore}>
          Load more
        </button>
      </p>
    );
  const age = now.value - found.at;
  return (
    <p class="reading muted" role="status">
      <span>
        Examined <Extent found={found} what={what} />
        {age > OLD_MS && `, ${duration(age)} ago`}.
      </span>{" "}
      <button type="button" class="small quiet" onClick={() => void reading.reload()}>
        Refresh
      </button>
    </p>
  );
}

/** The time of the last change in a list, which is some seconds behind the tasks. */
function AsOf({ found }: { found: Found<unknown, unknown> }) {
  return found.lastChangeAt ? <span class="muted"> Last change listed at <Time at={found.lastChangeAt} short />.</span> : null;
}

/** The empty state of a list, shown only if the list certainly has no entries. `ReadingLine` shows the progress. */
export function NoneFound({ reading, title, children }: { reading: AnyReading; title: string; children?: ComponentChildren }) {
  const found = reading.found.value;
  if (!found || reading.isOld || found.entries.length > 0) return null;
  return found.isKnown ? <Empty title={title}>{children}<AsOf found={found} /></Empty> : <Empty title="None found so far">{null}</Empty>;
}

/** The empty state as a line of text. */
export function NoneYet({ reading, text, what = "tasks" }: { reading: AnyReading; text: string; what?: string }) {
  const found = reading.found.value;
  if (!found || reading.isOld) return <p class="muted">{reading.problem.value ? "Not known, because the request failed." : "Loading…"}</p>;
  if (found.entries.length > 0) return null;
  return <p class="muted">{found.isKnown ? <>{text}<AsOf found={found} /></> : <>None found so far. Examined <Extent found={found} what={what} />.</>}</p>;
}

/** The rows of a list, which are dimmed while they belong to an earlier search. */
export function Rows({ reading, children }: { reading: AnyReading; children: ComponentChildren }) {
  return <div class={reading.isOld ? "rows old" : "rows"} aria-busy={reading.isOld}>{children}</div>;
}
