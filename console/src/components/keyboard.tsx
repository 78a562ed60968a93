/** Keys: `/` search, `j` `k` rows, `r` reload, `?` help, Ctrl-K or ⌘-K the palette. Inactive while typing. */
import { signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { rereads } from "../api/live";
import { href, navigate } from "../router";
import { withOffsets } from "../search";
import { savedViews, theme } from "../settings";
import { viewLink } from "./saved_views";
import type { Hit } from "./named";
import { Dialog } from "./dialog";
import { PAGES } from "../navigation";

export const opened = signal<"" | "help" | "palette">("");

const KEYS: [string, string][] = [
  ["Ctrl K", "Go to a page, a schedule, a topology, a task or a saved view"],
  ["/", "Search"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["r", "Refresh"],
  ["Esc", "Close"],
  ["?", "This help"],
];

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    opened.value = "palette";
    return;
  }
  const at = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || at.closest("input, textarea, select, dialog")) return;
  const act = ACTS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

const ACTS: Record<string, () => void> = {
  "/": () => document.querySelector<HTMLElement>("[data-search]")?.focus(),
  "?": () => (opened.value = "help"),
  r: () => rereads.forEach((each) => each()),
  j: () => moveRow(1),
  k: () => moveRow(-1),
};

function moveRow(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row] [data-open]")];
  const at = rows.findIndex((row) => row === document.activeElement);
  rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))]?.focus();
}

export function HelpAndPalette() {
  if (opened.value === "help") return <Help />;
  if (opened.value === "palette") return <Palette />;
  return null;
}

const close = () => (opened.value = "");

function Help() {
  return (
    <Dialog title="Keyboard" close={close}>
      <dl class="keys">
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

const TASK_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

interface Entry {
  label: string;
  kind: string;
  go: () => void;
}

/** The entries of the palette: pages, views and settings, then objects with the typed name, then a task search. */
function entries(text: string, hits: readonly Hit[]): Entry[] {
  const found = [
    ...PAGES.map((page) => ({ label: page.title, kind: "page", go: () => navigate(href([page.name])) })),
    ...Object.entries(savedViews.value).map(([name, query]) => ({ label: name, kind: "saved view", go: () => navigate(viewLink(query)) })),
    ...(["light", "dark", "system"] as const).map((each) => ({
      label: `Theme: ${each}`,
      kind: "setting",
      go: () => void (theme.value = each),
    })),
  ].filter((entry) => entry.label.toLowerCase().includes(text.toLowerCase()));
  if (TASK_ID.test(text)) found.unshift({ label: `Task ${text}`, kind: "task", go: () => navigate(href(["tasks", text.toUpperCase()])) });
  const named = text ? hits.map(({ label, kind, to }) => ({ label, kind, go: () => navigate(to) })) : [];
  const isExact = (entry: Entry) => entry.label === text;
  const all = [...named.filter(isExact), ...found, ...named.filter((entry) => !isExact(entry))].slice(0, MOST);
  if (text && !TASK_ID.test(text)) all.push({ label: `Tasks: ${text}`, kind: text.includes(":") ? "search" : "search by full name", go: () => navigate(href(["tasks"], { q: withOffsets(text) })) });
  return all;
}

const MOST = 12;
const TYPED_MS = 250;

const isName = (text: string): boolean => text.length > 1 && !text.includes(":");

/** Objects with the typed name, once typing pauses. */
function useHits(text: string): { hits: readonly Hit[]; isSearching: boolean } {
  const found = useSignal<{ text: string; hits: readonly Hit[] }>({ text: "", hits: [] });
  useEffect(() => {
    if (!isName(text)) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        found.value = { text, hits: await (await import("./named")).hitsOf(text, stop.signal) };
      } catch {
        // If the API does not respond, only pages and the search are offered.
        if (!stop.signal.aborted) found.value = { text, hits: [] };
      }
    }, TYPED_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  const isCurrent = found.value.text === text;
  return { hits: isCurrent ? found.value.hits : [], isSearching: !isCurrent && isName(text) };
}

function Palette() {
  const text = useSignal("");
  const chosen = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), []);
  const { hits, isSearching } = useHits(text.value.trim());
  const list = entries(text.value.trim(), hits);
  const choose = (index: number) => {
    const entry = list[index];
    if (!entry) return;
    close();
    entry.go();
  };
  const keyed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) chosen.value = (chosen.value + step + list.length) % Math.max(1, list.length);
    else if (event.key === "Enter") choose(chosen.value);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to" close={close}>
      <input
        ref={input}
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${chosen.value}`}
        aria-label="Page, name, task id or search"
        placeholder="Page, name, task id or search"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          chosen.value = 0;
        }}
        onKeyDown={keyed}
      />
      <ul id="palette-list" role="listbox" class="options" aria-label="Results">
        {list.map((entry, index) => (
          <li
            key={`${entry.kind}/${entry.label}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onClick={() => choose(index)}
          >
            {entry.label} <span class="muted">{entry.kind}</span>
          </li>
        ))}
      </ul>
      <p class="muted" role="status">
        {isSearching && "Searching names…"}
      </p>
    </Dialog>
  );
}
