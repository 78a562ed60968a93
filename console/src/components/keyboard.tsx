/** Keys: `/` search, `j` `k` rows, `r` reload, `?` help, Ctrl-K or ⌘-K the palette. Inactive while typing. */
import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { rereads } from "../api/live";
import { href, navigate } from "../router";
import { savedSearches, theme } from "../settings";
import { Dialog } from "./dialog";
import { PAGES } from "../navigation";

export const opened = signal<"" | "help" | "palette">("");

const KEYS: [string, string][] = [
  ["Ctrl K", "Go to a page, a task or a saved search"],
  ["/", "Search"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["r", "Read again"],
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

function entries(text: string): { label: string; kind: string; go: () => void }[] {
  const found = [
    ...PAGES.map((page) => ({ label: page.title, kind: "page", go: () => navigate(href([page.name])) })),
    ...Object.entries(savedSearches.value).map(([name, q]) => ({
      label: name,
      kind: "saved search",
      go: () => navigate(href(["tasks"], { q })),
    })),
    ...(["light", "dark", "system"] as const).map((each) => ({
      label: `Theme: ${each}`,
      kind: "setting",
      go: () => void (theme.value = each),
    })),
  ].filter((entry) => entry.label.toLowerCase().includes(text.toLowerCase()));
  if (TASK_ID.test(text)) found.unshift({ label: `Task ${text}`, kind: "task", go: () => navigate(href(["tasks", text.toUpperCase()])) });
  if (text && !found.length) found.push({ label: `Tasks: ${text}`, kind: "search", go: () => navigate(href(["tasks"], { q: text })) });
  return found.slice(0, 12);
}

function Palette() {
  const text = useSignal("");
  const chosen = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), []);
  const list = entries(text.value.trim());
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
        aria-label="Page, task id or search"
        placeholder="Page, task id or search"
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
            key={entry.label}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onClick={() => choose(index)}
          >
            {entry.label} <span class="muted">{entry.kind}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
