/** Access to a task's logs, which the API does not serve: the command that reads the logs, and a link to CloudWatch. */
import type { DeploymentSettings } from "../api/types";
import { command } from "../api/client";
import { useResource } from "../api/resource";
import { Command } from "./basics";

const DAY_MS = 86_400_000;

export function Logs({ taskId, createdAt }: { taskId: string; createdAt: string }) {
  const logs = useResource<DeploymentSettings>("/v1/settings").data.value?.logs;
  if (!logs) return null;
  const days = Math.max(1, Math.ceil((Date.now() - Date.parse(createdAt)) / DAY_MS));
  const page = cloudWatch(logs, taskId);
  return (
    <section class="card wide logs">
      <h2>Logs</h2>
      <p class="muted">This command prints the logs and output of the task's attempts, each line with the number of its attempt.</p>
      <Command text={command("logs", taskId, "--stack", logs.stack, ...(days > 1 ? ["--since", `${days}d`] : []))} />
      {page && (
        <p>
          <a href={page} target="_blank" rel="noreferrer">
            Open its lines in CloudWatch
          </a>
        </p>
      )}
    </section>
  );
}

/** CloudWatch's page for the log group with a filter for the task. CloudWatch encodes the fragment twice, with `%` as
 * `$`. */
function cloudWatch(logs: NonNullable<DeploymentSettings["logs"]>, taskId: string): string {
  if (!logs.region || !logs.log_group) return "";
  const twice = (text: string) => encodeURIComponent(encodeURIComponent(text)).replaceAll("%", "$");
  const filter = encodeURIComponent(`?filterPattern=${encodeURIComponent(`{ $.task_id = "${taskId}" }`)}`).replaceAll("%", "$");
  const host = `${logs.region}.console.aws.amazon.com`;
  return `https://${host}/cloudwatch/home?region=${logs.region}#logsV2:log-groups/log-group/${twice(logs.log_group)}/log-events${filter}`;
}
