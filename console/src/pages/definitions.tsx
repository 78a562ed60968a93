/** The topology definitions: graphs that are kept by name, with versions and parameters. */
import { useResource } from "../api/resource";
import type { DefinitionPage } from "../api/types";
import { Command, Empty, Pager, ProblemBox, Relative, Time } from "../components/basics";
import { href, usePlace } from "../router";

export function Definitions() {
  const token = usePlace("definitions").query.get("page") ?? "";
  const asked = new URLSearchParams({ limit: "100", ...(token && { next_token: token }) });
  const page = useResource<DefinitionPage>(`/v1/topologies/definitions?${asked}`);
  const read = page.data.value;
  return (
    <>
      <div class="page-head">
        <h1>Definitions</h1>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      {read && read.definitions.length === 0 && (
        <Empty title="No definitions yet">
          <p>A definition is a graph of tasks that is kept by its name, with versions and parameters. Schedules and tasks run it by its name.</p>
          <Command text="duetime topologies definitions put nightly nightly.json" />
        </Empty>
      )}
      {read && read.definitions.length > 0 && (
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
            {read.definitions.map((each) => (
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
      <Pager token={read?.next_token} />
    </>
  );
}
