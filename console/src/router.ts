/** Routing: the fragment contains the whole view state, so that links and the back button restore it. */
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

/** The address for one page; while the next page loads, the old one keeps its address. */
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
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
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

addEventListener("popstate", () => (hash.value = location.hash));
