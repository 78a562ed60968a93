/** Groups of tasks, without counts. */
import { useReading } from "../api/reading";
import type { GroupPage } from "../api/types";
import { Command, Pager, ProblemBox, Relative } from "../components/basics";
import { NoneFound, ReadingLine } from "../components/reading";
import { href, usePlace } from "../router";

const LIMIT = 100;

export function Groups() {
  const token = usePlace("groups").query.get("page") ?? "";
  const asked = new URLSearchParams({ limit: String(LIMIT), ...(token && { next_token: token }) });
  const page = useReading<GroupPage, GroupPage["groups"][number]>(`/v1/groups?${asked}`, { entries: (each) => each.groups, enough: LIMIT });
  const read = page.found.value;
  return (
    <>
      <div class="page-head">
        <h1>Groups</h1>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      <NoneFound reading={page} title={token ? "No more groups" : "No groups yet"}>
        <p>Tasks that name the same group belong together. Once the group is closed and all of its tasks have ended, another task can run.</p>
        <Command text="duetime tasks create import --group import-17" />
      </NoneFound>
      {read && read.entries.length > 0 && (
        <table class="cards" aria-label="Groups">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col">State</th>
              <th scope="col">Created</th>
            </tr>
          </thead>
          <tbody>
            {read.entries.map((group) => (
              <tr key={group.id} data-row={group.id}>
                <td>
                  <a href={href(["groups", group.id])} data-open>
                    <strong>{group.id}</strong>
                  </a>
                </td>
                <td>{group.state}</td>
                <td>
                  <Relative at={group.created_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <ReadingLine reading={page} what="groups" />
      <Pager token={read?.isKnown ? read.token : null} />
    </>
  );
}
