/** The progress of reading a list as text; nothing is reported as missing before the end of the list. */
import type { ComponentChildren } from "preact";
import type { Found, Reading } from "../api/reading";
import { duration, now } from "../time";
import { Empty, Time } from "./basics";

type AnyReading = Pick<Reading<never, never>, "stop" | "readOn" | "reload"> & {
  found: { readonly value: Found<unknown, unknown> | null };
  going: { readonly value: Found<unknown, unknown> | null };
};

const OLD_MS = 60_000;

/** The part that was scanned: `4,000 tasks, up to 3 Dec 02:00`. */
export function LookedAt({ found, what }: { found: Found<unknown, unknown>; what: string }) {
  return (
    <>
      {found.examined.toLocaleString("en")} {what}
      {found.examinedTo && (
        <>
          , up to <Time at={found.examinedTo} short />
        </>
      )}
    </>
  );
}

/** The progress of a list of several pages, with a button to stop or continue. */
export function ReadingLine({ reading, what = "tasks" }: { reading: AnyReading; what?: string }) {
  const found = reading.found.value;
  const going = reading.going.value;
  if (going)
    return (
      <p class="reading muted" role="status">
        <progress aria-label="Reading" /> <span>Looked at <LookedAt found={going} what={what} />…</span>{" "}
        <button type="button" class="small" onClick={reading.stop}>
          Stop
        </button>
      </p>
    );
  if (!found || (found.isKnown && found.pages === 1)) return null;
  if (!found.isKnown)
    return (
      <p class="reading muted" role="status">
        Stopped. Looked at <LookedAt found={found} what={what} />: there may be more.{" "}
        <button type="button" class="small" onClick={reading.readOn}>
          Read on
        </button>
      </p>
    );
  const age = now.value - found.at;
  return (
    <p class="reading muted" role="status">
      Looked at <LookedAt found={found} what={what} />
      {age > OLD_MS && `, ${duration(age)} ago`}.{" "}
      <button type="button" class="small quiet" onClick={() => void reading.reload()}>
        Look again
      </button>
    </p>
  );
}

/** The empty state of a list, shown once it is certain that there are no entries. `ReadingLine` shows the progress. */
export function NoneFound({ reading, title, children }: { reading: AnyReading; title: string; children?: ComponentChildren }) {
  const found = reading.found.value;
  if (!found || found.entries.length > 0) return null;
  return found.isKnown ? <Empty title={title}>{children}</Empty> : <Empty title="None found so far">{null}</Empty>;
}

/** The same in a line. */
export function NoneYet({ reading, text, what = "tasks" }: { reading: AnyReading; text: string; what?: string }) {
  const found = reading.found.value;
  if (!found) return <p class="muted">Reading…</p>;
  if (found.entries.length > 0) return null;
  return <p class="muted">{found.isKnown ? text : <>None found so far, among <LookedAt found={found} what={what} />.</>}</p>;
}
