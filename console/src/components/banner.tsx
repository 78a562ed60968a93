/** A banner on every page while a switch stops tasks, with the switch's author, reason and time. */
import type { SwitchPage } from "../api/types";
import { useResource } from "../api/resource";
import { href } from "../router";
import { Time } from "./basics";

export function SwitchBanner() {
  const { data } = useResource<SwitchPage>("/v1/switches");
  const stopped = data.value?.switches.filter((each) => each.stopped) ?? [];
  const [first] = stopped;
  if (!first) return null;
  return (
    <div class="banner" role="status">
      <strong>{first.scope === "all" ? "All tasks are stopped" : `Tasks of ${first.scope} ${first.name} are stopped`}</strong>
      {first.reason && <span class="reason" title={first.reason}>{first.reason}</span>}
      <span class="muted">
        {first.updated_by} · <Time at={first.updated_at} />
      </span>
      <a href={href(["switches"])}>{stopped.length > 1 ? `${stopped.length} switches` : "Switches"}</a>
    </div>
  );
}
