/** Searches saved in this browser, and some common ones. */
import { href, place } from "../router";
import { savedSearches } from "../settings";

const BUILT_IN: Record<string, string> = {
  Failed: "state:failed",
  Running: "state:preparing state:running",
  Waiting: "state:waiting",
  "Last hour": "finished:>now-1h",
};

export function SavedSearches({ text }: { text: string }) {
  const own = savedSearches.value;
  const all = { ...BUILT_IN, ...own };
  const known = Object.values(all).includes(text);
  const save = () => {
    const name = prompt("Name of this search", text);
    if (name) savedSearches.value = { ...own, [name]: text };
  };
  const remove = () => {
    savedSearches.value = Object.fromEntries(Object.entries(own).filter(([, q]) => q !== text));
  };
  return (
    <div class="saved" role="group" aria-label="Saved searches">
      <a href={href(["tasks"])} aria-current={text === "" ? "true" : undefined}>
        All
      </a>
      {Object.entries(all).map(([name, q]) => (
        <a key={name} href={href(["tasks"], { q })} aria-current={place.value.query.get("q") === q ? "true" : undefined}>
          {name}
        </a>
      ))}
      {text && !known && (
        <button type="button" class="quiet small" onClick={save}>
          Save this search
        </button>
      )}
      {Object.values(own).includes(text) && (
        <button type="button" class="quiet small" onClick={remove}>
          Forget it
        </button>
      )}
    </div>
  );
}
