/** Preferences stored in this browser: theme, time zone, columns and saved views. */
import { effect, signal, type Signal } from "@preact/signals";

function kept<T>(name: string, initial: T): Signal<T> {
  let start = initial;
  try {
    const text = localStorage.getItem(`duetime.${name}`);
    if (text !== null) start = JSON.parse(text) as T;
  } catch {
    // Storage is unavailable or has no valid value: use the default.
  }
  const made = signal(start);
  effect(() => {
    const text = JSON.stringify(made.value);
    try {
      localStorage.setItem(`duetime.${name}`, text);
    } catch {
      // Storage is unavailable, so the preference is lost when the page is closed.
    }
  });
  return made;
}

export type Theme = "system" | "light" | "dark";
export const theme = kept<Theme>("theme", "system");
/** `local`, `UTC`, or the name of an IANA zone. */
export const zone = kept<string>("zone", "local");
/** Saved views of the task list by name, each with the address's query for search and order. */
export const savedViews = kept<Record<string, string>>("views", {});
/** The owner to act for; empty for the caller itself. */
export const actsFor = kept<string>("owner", "");
/** The columns of the task list. */
export const columns = kept<readonly string[]>("columns", ["due", "late", "attempt", "note"]);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
