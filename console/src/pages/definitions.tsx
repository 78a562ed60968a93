/** The topology definitions, which are named graphs with versions and parameters. */
import { useReading } from "../api/reading";
import type { DefinitionPage, DefinitionSummary } from "../api/types";
import { Command, Pager, ProblemBox, Relative, Time } from "../components/basics";
import { NoneFound, ReadingLine } from "../components/reading";
import { href, usePlace } from "../router";

const LIMIT = 100;

export function Definitions() {
  const token = usePlace("definitions").query.get("page") ?? "";
  const asked = new URLSearchParams({ limit: String(LIMIT), ...(token && { next_token: token }) });
  const page = useReading<DefinitionPage, DefinitionSummary>(`/v1/topologies/definitions?${asked}`, { entries: (each) => each.definitions, enough: LIMIT });
  const read = page.found.value;
  return (
    <>
      <div class="page-head">
        <h1>Definitions</h1>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title={token ? "No more definitions" : "No definitions yet"}>
        <p>A definition is a named graph of tasks with versions and parameters, which schedules and tasks can run.</p>
        <Command text="duetime topologies definitions put nightly nightly.json" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <table class="cards" aria-label="Definitions">
          <thead>
            <tr>
              <th scope="col">Definition</th>
              <th scope="col" class="number">Version</th>
              <th scope="col">Changed</th>
              <th scope="col">Description</th>
            </tr>
          </thead>
          <tbody>
            {read.entries.map((each) => (
              <tr key={each.name} data-row={each.name}>
                <td>
                  <a href={href(["definitions", each.name])} data-open>
                    {each.name}
                  </a>
                </td>
                <td class="number">
                  <span class="narrow-only muted">version </span>
                  {each.version}
                </td>
                <td>
                  <Time at={each.created_at} short /> <Relative at={each.created_at} />
                </td>
                <td class="muted">{each.description}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <ReadingLine reading={page} what="definitions" />
      <Pager token={read?.isKnown ? read.token : null} />
    </>
  );
}
