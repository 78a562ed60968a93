/** Access to a task's logs, which the API does not serve: the command that reads the logs, and a link to CloudWatch. */
import type { DeploymentSettings } from "../api/types";
import { argument } from "../api/client";
import { useResource } from "../api/resource";
import { serverNow } from "../time";
import { Command } from "./basics";

const HOUR_MS = 3_600_000;

export function Logs({ taskId, createdAt }: { taskId: string; createdAt: string }) {
  const logs = useResource<DeploymentSettings>("/v1/settings").data.value?.logs;
  if (!logs) return null;
  const hours = Math.max(1, Math.ceil((serverNow() - Date.parse(createdAt)) / HOUR_MS));
  const page = cloudWatch(logs, taskId);
  return (
    <section class="card wide logs">
      <h2>Logs</h2>
      <p class="muted">This command prints the logs and output of the task's attempts, each line with the number of its attempt.</p>
      <Command text={commandOf(logs, taskId, hours)} />
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

type LogLocation = NonNullable<DeploymentSettings["logs"]>;

/** The command for the lines since the task's creation; the local stack's lines are not in CloudWatch. The commands have
 * no `--owner`. */
function commandOf(logs: LogLocation, taskId: string, hours: number): string {
  const place = logs.log_group ? ["logs", taskId, "--stack", logs.stack] : ["local", "logs", taskId];
  // An hour is the default.
  const since = hours > 1 ? ["--since", hours > 24 ? `${Math.ceil(hours / 24)}d` : `${hours}h`] : [];
  return ["duetime", ...place, ...since].map(argument).join(" ");
}

/** CloudWatch's page for the log group with a filter for the task. CloudWatch encodes the fragment twice, with `%` as
 * `$`. */
function cloudWatch(logs: LogLocation, taskId: string): string {
  if (!logs.region || !logs.log_group) return "";
  const twice = (text: string) => encodeURIComponent(encodeURIComponent(text)).replaceAll("%", "$");
  const filter = encodeURIComponent(`?filterPattern=${encodeURIComponent(`{ $.task_id = "${taskId}" }`)}`).replaceAll("%", "$");
  const host = `${logs.region}.console.aws.amazon.com`;
  return `https://${host}/cloudwatch/home?region=${logs.region}#logsV2:log-groups/log-group/${twice(logs.log_group)}/log-events${filter}`;
}
