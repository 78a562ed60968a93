/** Views of the task list: common views, and views saved in this browser with their search and order. */
import { href, place } from "../router";
import { savedViews } from "../settings";

const BUILT_IN: Record<string, string> = {
  Failed: "q=state:failed",
  Running: "q=state:preparing state:running",
  Waiting: "q=state:waiting",
  "Last hour": "q=finished:>now-1h",
};

const linkOf = (query: string): string => href(["tasks"], Object.fromEntries(new URLSearchParams(query.replaceAll("+", "%2B"))));

/** The parts of the address that define a view. */
function viewOf(query: URLSearchParams): string {
  const parts = ["q", "order", "by"].flatMap((name) => (query.get(name) ? [`${name}=${query.get(name)}`] : []));
  return parts.join("&");
}

export function SavedViews({ isNow = false }: { isNow?: boolean }) {
  const own = savedViews.value;
  const all = { ...BUILT_IN, ...own };
  const shown = isNow ? null : viewOf(place.value.query);
  const name = Object.keys(own).find((each) => own[each] === shown);
  const save = () => {
    const typed = prompt("Name of this view", place.value.query.get("q") ?? "");
    if (typed && shown) savedViews.value = { ...own, [typed]: shown };
  };
  const remove = () => {
    savedViews.value = Object.fromEntries(Object.entries(own).filter(([each]) => each !== name));
  };
  return (
    <div class="saved" role="group" aria-label="Views">
      <a href={href(["tasks", "now"])} aria-current={isNow ? "true" : undefined}>
        Now
      </a>
      <a href={href(["tasks"])} aria-current={shown === "" ? "true" : undefined}>
        All
      </a>
      {Object.entries(all).map(([each, query]) => (
        <a key={each} href={linkOf(query)} aria-current={shown === query ? "true" : undefined}>
          {each}
        </a>
      ))}
      {shown && !Object.values(all).includes(shown) && (
        <button type="button" class="quiet small" onClick={save}>
          Save this view
        </button>
      )}
      {name && (
        <button type="button" class="quiet small" onClick={remove}>
          Remove this view
        </button>
      )}
    </div>
  );
}

export const viewLink = linkOf;
