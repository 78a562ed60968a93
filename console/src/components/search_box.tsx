/** The search of the task list, with suggestions: qualifiers, states, and values seen on the page. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/client";
import type { Summary, TaskSummary } from "../api/types";
import { place, setQuery } from "../router";
import { QUALIFIERS, STATES, withOffsets, written } from "../search";
import { actsFor } from "../settings";
import { clockKnown } from "../time";

/** The owner's types with tasks. */
let types: { owner: string; names: readonly string[] } | null = null;

/** The types with tasks, requested once at the first search for a type. */
async function typesOf(seen: readonly TaskSummary[]): Promise<string[]> {
  const owner = actsFor.peek();
  if (types?.owner !== owner) {
    types = { owner, names: [] };
    try {
      const names = (await get<Summary>("/v1/summary")).types.map((each) => each.type);
      types = { owner, names };
    } catch {
      // The deployment does not count tasks; use the types on the page.
    }
  }
  return [...new Set([...types.names, ...seen.map((task) => task.type)])];
}

/** The values that a list suggests for its qualifiers. */
export type Offered = Partial<Record<string, readonly string[]>>;

async function values(qualifier: string, seen: readonly TaskSummary[], offered: Offered): Promise<string[]> {
  const own = offered[qualifier];
  if (own) return [...own];
  const of: Record<string, () => (string | null | undefined)[]> = {
    name: () => seen.map((task) => task.name),
    tag: () => seen.flatMap((task) => Object.entries(task.tags).map(([key, value]) => `${key}:${value}`)),
    schedule: () => seen.map((task) => task.schedule?.name),
    error: () => seen.map((task) => task.error?.type),
    due: () => ["<now", "<now+1h", ">now", ">now-1h", ">00:00"],
    created: () => [">now-1h", ">now-1d"],
    finished: () => [">now-1h", ">now-1d", ">00:00"],
    nodes: () => ["yes"],
  };
  if (qualifier === "state") return [...STATES];
  if (qualifier === "type") return typesOf(seen);
  return [...new Set(of[qualifier]?.().filter((each): each is string => Boolean(each)) ?? [])];
}

interface Option {
  text: string;
  hint: string;
}

async function suggest(word: string, seen: readonly TaskSummary[], qualifiers: Record<string, string>, offered: Offered): Promise<Option[]> {
  const colon = word.indexOf(":");
  if (colon < 0) {
    const names = Object.entries(qualifiers).filter(([name]) => name.startsWith(word.toLowerCase()));
    return names.map(([name, hint]) => ({ text: `${name}:`, hint }));
  }
  const [qualifier, begun] = [word.slice(0, colon).toLowerCase(), word.slice(colon + 1).replaceAll('"', "").toLowerCase()];
  const found = (await values(qualifier, seen, offered)).filter((value) => value.toLowerCase().includes(begun));
  return found.slice(0, 8).map((value) => ({ text: `${qualifier}:${written(value)} `, hint: "" }));
}

/** Adds offsets to typed times in the address, so that the link means the same in another zone. */
export function useOffsets(text: string): void {
  useEffect(() => {
    if (withOffsets(text) === text) return;
    // The meaning of "today" depends on the clock.
    void clockKnown.then(() => place.peek().query.get("q") === text && setQuery({ q: withOffsets(text) }, true));
  }, [text]);
}

interface SearchBoxProps {
  text: string;
  seen: readonly TaskSummary[];
  search: (text: string) => void;
  label?: string;
  /** The list's qualifiers, with descriptions. */
  qualifiers?: Record<string, string>;
  offered?: Offered;
  placeholder?: string;
}

const NOTHING: Offered = {};
const LAST_WORD = /(?:[^\s"]|"[^"]*"?)*$/;
const FIRST_WORD = /^(?:[^\s"]|"[^"]*"?)*/;
const EXAMPLE = "a full name, or state:failed type:report tag:team:docs due:<now+1h";

export function SearchBox({ text, seen, search, label = "Search tasks", qualifiers = QUALIFIERS, offered = NOTHING, placeholder = EXAMPLE }: SearchBoxProps) {
  const typed = useSignal(text);
  const options = useSignal<Option[]>([]);
  const chosen = useSignal(-1);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => void (typed.value = text), [text]);

  const beforeCursor = () => typed.value.slice(0, input.current?.selectionStart ?? undefined);
  const word = () => LAST_WORD.exec(beforeCursor())?.[0] ?? "";
  const look = async () => {
    const asked = word();
    const found = await suggest(asked, seen, qualifiers, offered);
    if (word() !== asked) return;
    chosen.value = -1;
    options.value = document.activeElement === input.current ? found : [];
  };
  const take = (option: Option) => {
    const begun = beforeCursor();
    const start = begun.replace(LAST_WORD, "") + option.text;
    const rest = typed.value.slice(begun.length).replace(FIRST_WORD, "").trimStart();
    typed.value = start + (rest && !start.endsWith(" ") ? " " : "") + rest;
    options.value = [];
    if (input.current) {
      // The field gets its text at once, so that the cursor can be placed before the other words.
      input.current.value = typed.value;
      input.current.focus();
      input.current.setSelectionRange(start.length, start.length);
    }
    if (option.text.endsWith(" ")) search(typed.value.trim());
    else void look();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    options.value = [];
    search(typed.value.trim());
  };
  const keyed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const option = options.value[chosen.value];
    if (step && options.value.length) {
      chosen.value = (chosen.value + step + options.value.length) % options.value.length;
    } else if (option && (event.key === "Enter" || event.key === "Tab")) take(option);
    else if (event.key === "Escape" && options.value.length) options.value = [];
    else return;
    event.preventDefault();
  };
  return (
    <form class="search" role="search" onSubmit={submit}>
      <input
        ref={input}
        data-search
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded={options.value.length > 0}
        aria-controls="search-options"
        aria-autocomplete="list"
        aria-activedescendant={chosen.value >= 0 ? `search-${chosen.value}` : undefined}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          void look();
        }}
        onFocus={() => void look()}
        onBlur={() => (options.value = [])}
        onKeyDown={keyed}
      />
      <ul id="search-options" role="listbox" class="options" aria-label="Suggestions" hidden={!options.value.length}>
        {options.value.map((option, index) => (
          <li
            key={option.text}
            id={`search-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            // This keeps the focus in the field, so that its list stays open.
            onMouseDown={(event) => {
              event.preventDefault();
              take(option);
            }}
          >
            <code>{option.text}</code> <span class="muted">{option.hint}</span>
          </li>
        ))}
      </ul>
    </form>
  );
}
