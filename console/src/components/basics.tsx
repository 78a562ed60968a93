/** Small parts that every page uses: StateChip, Time, Took, Copy, JsonView, ProblemBox, Empty, Field, useLater. */
import { cloneElement, isValidElement, toChildArray, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useId } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { ApiProblem } from "../api/client";
import { setQuery } from "../router";
import { duration, relativeTime, shortTime, zonedTime } from "../time";

/** A state as text, with a color and a mark. */
export function StateChip({ state }: { state: string }) {
  return (
    <span class={`chip state-${state}`}>
      <i aria-hidden="true" />
      {state.replaceAll("_", " ")}
    </span>
  );
}

/** A time with its zone; `short` omits the zone where a heading shows it. */
export function Time({ at, short, zone }: { at: string | null | undefined; short?: boolean; zone?: string }) {
  if (!at) return <span class="muted">–</span>;
  return (
    <time dateTime={at} title={`${zonedTime(at, zone)} · ${at}`}>
      {short ? shortTime(at, zone) : zonedTime(at, zone)}
    </time>
  );
}

/** The time from or until now, updated continuously. */
export function Relative({ at }: { at: string | null | undefined }) {
  if (!at) return null;
  return (
    <time class="muted" dateTime={at} title={zonedTime(at)}>
      {relativeTime(at)}
    </time>
  );
}

export function Took({ ms }: { ms: number | null | undefined }) {
  return ms === null || ms === undefined ? <span class="muted">–</span> : <span>{duration(ms)}</span>;
}

/** A button that copies text, even on pages without HTTPS. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const done = useSignal(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      // Nothing outside an open dialog can be selected.
      (document.querySelector("dialog[open]") ?? document.body).append(area);
      area.select();
      const isCopied = document.execCommand("copy");
      area.remove();
      if (!isCopied) return;
    }
    done.value = true;
    setTimeout(() => (done.value = false), 1500);
  };
  return (
    <button type="button" class="quiet small" onClick={() => void copy()}>
      {done.value ? "Copied" : label}
    </button>
  );
}

/** JSON as text, collapsed if long. */
export function JsonView({ value, label }: { value: unknown; label: string }) {
  const isExpanded = useSignal(false);
  const text = JSON.stringify(value, null, 2) ?? "null";
  const isLong = text.length > MOST_SHOWN;
  return (
    <div class="json">
      <div class="json-tools">
        <Copy text={text} />
        {isLong && (
          <button type="button" class="quiet small" onClick={() => (isExpanded.value = !isExpanded.value)}>
            {isExpanded.value ? "Show less" : `Show all ${Math.ceil(text.length / 1024)} KB`}
          </button>
        )}
      </div>
      <pre tabIndex={0} aria-label={label}>
        {isLong && !isExpanded.value ? `${text.slice(0, MOST_SHOWN)}\n…` : text}
      </pre>
    </div>
  );
}

const MOST_SHOWN = 4000;

/** The API's error with its code and fields. */
export function ProblemBox({ problem, retry }: { problem: ApiProblem; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <strong>{problem.title}</strong> <code>{problem.code}</code>
      <p>{problem.message}</p>
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((fault) => (
            <li key={fault.field}>
              <code>{fault.field}</code> {fault.reason}
            </li>
          ))}
        </ul>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The empty state of a page, which says what the page would list and how to create an entry. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A command with a copy button. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} />
    </div>
  );
}

/** A control with a label (its accessible name) and a hint (its description). */
export function Field({ label, children, hint }: { label: string; children: ComponentChildren; hint?: string }) {
  const id = useId();
  const [control, ...others] = toChildArray(children);
  const described = hint ? { "aria-describedby": `${id}-hint` } : {};
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {isValidElement(control) ? cloneElement(control, { id, ...described }) : control}
      {others}
      {hint && (
        <small class="muted" id={`${id}-hint`}>
          {hint}
        </small>
      )}
    </div>
  );
}

/** A list of facts: names on the left, values on the right. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The button for the next page of a list, except on the last page. */
export function Pager({ token }: { token: string | null | undefined }) {
  if (!token) return null;
  return (
    <nav class="pager" aria-label="Pages of the list">
      <button type="button" onClick={() => setQuery({ page: token })}>
        Next page
      </button>
    </nav>
  );
}

/** A component that is loaded on first use, to keep pages small; null until then. */
export function useLater<P>(wanted: boolean, load: () => Promise<ComponentType<P>>): ComponentType<P> | null {
  const part = useSignal<{ Part: ComponentType<P> } | null>(null);
  useEffect(() => {
    if (wanted && !part.peek()) void load().then((Part) => (part.value = { Part }));
  }, [wanted]);
  return wanted ? (part.value?.Part ?? null) : null;
}
