/** Routing, in which the fragment contains the complete view state, so that links and the back button restore it. */
import { computed, signal } from "@preact/signals";
import { useRef } from "preact/hooks";

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

/** The address without `#`, split. Segments are decoded; the query is read-only: change it with `setQuery`. */
export const place = computed(() => {
  const text = hash.value.replace(/^#\/?/, "");
  const [path = "", query = ""] = text.split("?", 2);
  return { segments: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
});

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address for one page; while the next page loads, the old page keeps its address. */
export function usePlace(page: string, subject?: string): typeof place.value {
  const own = useRef(place.value);
  const { segments } = place.value;
  if ((segments[0] ?? page) === page && segments[1] === subject) own.current = place.value;
  return own.current;
}

/** The address of a page; segments are encoded, so that names may contain any character. */
export function href(segments: readonly string[], query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString();
  return `#/${segments.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/** Navigate to a page; `replace` adds no history entry. */
export function navigate(to: string, replace = false): void {
  if (replace) history.replaceState(history.state, "", to);
  else begin(() => history.pushState({ entry }, "", to));
  hash.value = location.hash;
}

/** Change parameters of this page; an empty value removes one. */
export function setQuery(changes: Record<string, string>, replace = false): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  navigate(href(place.value.segments, Object.fromEntries(query)), replace);
}

/** The current history entry, and the scroll position of each entry, so that Back returns to the same place. */
let entry = Date.now();
let restoring = 0;
const scrolled = new Map<number, number>();
const RESTORE_MS = 10_000;
history.scrollRestoration = "manual";
history.replaceState({ entry }, "");

function begin(push: () => void): void {
  const page = location.hash.split("?", 1)[0];
  entry = Math.max(entry, Date.now()) + 1;
  cancelAnimationFrame(restoring);
  restoring = 0;
  push();
  if (location.hash.split("?", 1)[0] !== page) scrollTo(0, 0);
}

/** Scrolls to a place as soon as the content is long enough, unless the user scrolls first. */
function restore(place: number): void {
  const until = performance.now() + RESTORE_MS;
  const own = entry;
  cancelAnimationFrame(restoring);
  const step = () => {
    scrollTo(0, place);
    restoring = Math.abs(scrollY - place) > 2 && performance.now() < until && entry === own ? requestAnimationFrame(step) : 0;
  };
  restoring = requestAnimationFrame(step);
}

addEventListener("popstate", () => {
  const known = (history.state as { entry?: number } | null)?.entry;
  hash.value = location.hash;
  if (known === undefined) {
    // A link was followed.
    entry = Math.max(entry, Date.now()) + 1;
    history.replaceState({ entry }, "");
    cancelAnimationFrame(restoring);
    restoring = 0;
    scrollTo(0, 0);
  } else {
    entry = known;
    restore(scrolled.get(known) ?? 0);
  }
});
addEventListener("scroll", () => restoring || scrolled.set(entry, scrollY), { passive: true });
for (const kind of ["wheel", "keydown", "pointerdown"]) {
  addEventListener(kind, () => {
    cancelAnimationFrame(restoring);
    restoring = 0;
  }, { passive: true });
}
