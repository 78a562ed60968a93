/** The frame of every page: navigation, header, banner, and the page for the address. */
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { unreachableSince } from "./api/client";
import { connect, liveState, reconnect } from "./api/live";
import { SwitchBanner } from "./components/banner";
import { HelpAndPalette, opened } from "./components/keyboard";
import { LastCall } from "./components/last_call";
import { SignIn } from "./components/sign_in";
import { GROUPS, PAGES } from "./navigation";
import { href, place } from "./router";
import { actsFor, theme, zone, type Theme } from "./settings";
import { duration, now, serverNow, zoneLabel } from "./time";

export function App() {
  const owner = useRef(actsFor.value);
  useEffect(() => {
    if (owner.current === actsFor.value) void connect();
    else reconnect();
    owner.current = actsFor.value;
  }, [actsFor.value]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Navigation />
      <div class="column">
        <Header />
        <SwitchBanner />
        <main id="main" tabIndex={-1} key={actsFor.value}>
          <CurrentPage />
        </main>
      </div>
      <LastCall />
      <HelpAndPalette />
      <SignIn />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const current = () => PAGES.find((page) => page.name === (place.value.segments[0] ?? "overview"));

function Navigation() {
  const shown = current();
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone the navigation scrolls horizontally; the current entry must be visible.
    const link = bar.current?.querySelector<HTMLElement>("[aria-current]");
    if (link) bar.current?.scrollTo({ left: link.offsetLeft - bar.current.clientWidth / 2 + link.clientWidth / 2 });
  }, [shown]);
  return (
    <nav class="side" aria-label="Pages" ref={bar}>
      <a class="brand" href={href(["overview"])}>
        <img src="icon.svg" alt="" width="24" height="24" />
        duetime
      </a>
      {GROUPS.map((group) => (
        <div key={group} role="group" aria-label={group || "Start"}>
          {group && <span aria-hidden="true">{group}</span>}
          {PAGES.filter((page) => page.group === group).map((page) => (
            <a key={page.name} href={href(page.entry ? [page.name, page.entry] : [page.name])} aria-current={page === shown ? "page" : undefined}>
              {page.title}
            </a>
          ))}
        </div>
      ))}
    </nav>
  );
}

const LIVE = { live: "Live", connecting: "Connecting", offline: "Every 30 s" };
const LIVE_TITLES = {
  live: "Changes are shown as they happen",
  connecting: "Connecting to live updates",
  offline: "No live updates: the page refreshes every 30 seconds",
};

/** Whether the page is live, or how old its content is while the API does not respond. */
function Freshness() {
  const since = unreachableSince.value;
  if (since !== null) {
    return (
      <span class="live live-unreachable" title="The API does not respond. The page retries every 5 seconds." role="status">
        <i aria-hidden="true" />
        <span class="text">Not reachable</span> <span class="age" aria-hidden="true">{duration(Math.max(1000, now.value - serverNow() + Date.now() - since))}</span>
      </span>
    );
  }
  return (
    <span class={`live live-${liveState.value}`} title={LIVE_TITLES[liveState.value]} role="status">
      <i aria-hidden="true" />
      {LIVE[liveState.value]}
    </span>
  );
}

const ZONES = ["local", "UTC"];

function Header() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = [...new Set([...ZONES, zone.value, ...COMMON_ZONES])].filter((each) => each !== own);
  return (
    <header class="top">
      <button type="button" class="search-button" onClick={() => (opened.value = "palette")}>
        Go to… <kbd>Ctrl K</kbd>
      </button>
      <Freshness />
      {actsFor.value && (
        <a class="acts-for" href={href(["settings"])} title="The owner that you act for">
          {actsFor.value}
        </a>
      )}
      <select aria-label="Time zone" value={zone.value} onChange={(event) => (zone.value = event.currentTarget.value)}>
        {zones.map((each) => (
          <option key={each} value={each}>
            {each === "local" ? `${zoneLabel(undefined, own)} · ${own}` : each}
          </option>
        ))}
      </select>
      <select aria-label="Theme" value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
        <option value="system">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
      <button type="button" class="quiet" aria-label="Keyboard help" onClick={() => (opened.value = "help")}>
        ?
      </button>
    </header>
  );
}

const COMMON_ZONES = ["America/Los_Angeles", "America/New_York", "Europe/London", "Europe/Berlin", "Asia/Kolkata", "Asia/Tokyo", "Australia/Sydney"];

function CurrentPage() {
  const shown = useSignal<{ key: string; subject: string; Page: ComponentType<{ subject: string }> } | null>(null);
  const failed = useSignal(false);
  const wanted = useRef("");
  const page = current();
  const { segments } = place.value;
  const key = `${page?.name}/${segments[1] ?? ""}`;
  useEffect(() => {
    wanted.current = key;
    document.title = `${segments[1] ?? page?.title ?? "Not found"} · duetime`;
    if (!page) return;
    void page
      .load(segments.slice(1))
      .then((Page) => {
        if (wanted.current === key) shown.value = { key, subject: segments[1] ?? "", Page };
      })
      .catch(() => (failed.value = true));
  }, [key]);
  if (!page) return <p class="empty">There is no such page. <a href={href(["overview"])}>Overview</a></p>;
  if (failed.value) return <p class="empty">This part of the console could not be loaded. Was a new version deployed? <a href="">Load again</a></p>;
  if (!shown.value) return null;
  const { Page } = shown.value;
  return <Page key={shown.value.key} subject={shown.value.subject} />;
}
