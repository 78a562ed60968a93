/** The names and types of tasks for which only the ids are known. */
import { useResource } from "../api/resource";
import type { ListedTask, TaskPage } from "../api/types";
import { href } from "../router";
import { duration, now } from "../time";

const MOST = 100;

/** The tasks with the given ids, by id, without deleted tasks. */
export function useTasks(ids: readonly string[]): ReadonlyMap<string, ListedTask> {
  const asked = [...new Set(ids)].sort().slice(0, MOST);
  const page = useResource<TaskPage>(asked.length ? `/v1/tasks?${asked.map((id) => `ids=${id}`).join("&")}` : null);
  return new Map((page.data.value?.tasks ?? []).map((task) => [task.id, task]));
}

/** A link to a task by name and type, with the time it has been running; by id while the name and
 * type are not known. */
export function TaskLink({ id, task }: { id: string; task: ListedTask | undefined }) {
  if (!task) {
    return (
      <a class="task-link" href={href(["tasks", id])}>
        <code>{id}</code>
      </a>
    );
  }
  const isRunning = task.started_at !== null && task.finished_at === null && task.lease !== null;
  return (
    <>
      <a class="task-link" href={href(["tasks", id])} title={id}>
        {task.name ?? task.type}
      </a>{" "}
      <span class="muted">
        {task.name && `· ${task.type}`}
        {isRunning && task.started_at && ` · for ${duration(Math.max(0, now.value - Date.parse(task.started_at)))}`}
      </span>
    </>
  );
}
