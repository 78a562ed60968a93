/** The deployment's limits and setup, and the caller's identity. */
import type { ComponentChildren } from "preact";
import { actFor } from "../api/client";
import { useResource } from "../api/resource";
import type { DeploymentSettings, QuotaList } from "../api/types";
import { Command, Facts, ProblemBox, useLater } from "../components/basics";
import { href } from "../router";
import { counted, now } from "../time";

const PRECISIONS: Record<DeploymentSettings["precision"], string> = {
  normal: "normal: tasks reach the worker just before they are due, and the worker waits for the due time",
  exact: "exact: delivery never delays a task; the worker waits longer",
  relaxed: "relaxed: the worker does not wait, and tasks may start a second late",
};

const AUTHENTICATION: Record<DeploymentSettings["authentication"], string> = {
  none: "none: anyone who can reach the API may use it (the local stack)",
  jwt: "bearer tokens of an identity provider",
  iam: "requests signed with AWS credentials",
};

type Quota = keyof QuotaList["defaults"];

/** Quotas in words, with the units of their limits. */
const QUOTAS: Record<Quota, readonly [string, string]> = {
  creates_per_second: ["Creations", " a second"],
  payload_bytes_per_second: ["Payload", " bytes a second"],
  reads_per_second: ["Reads", " a second"],
  open_tasks: ["Open tasks", ""],
  concurrent_attempts: ["Attempts", " at once"],
  schedules: ["Schedules", ""],
  topology_nodes: ["Nodes", " at once"],
  long_polls: ["Waiting", " requests at once"],
  pull_leases: ["Leases", " at once"],
};

const days = (count: number): string => counted(count, "day");

/** The owner that the viewer acts for, with a choice if there are several. */
function Owner({ owner, owners }: { owner: string; owners: readonly string[] }) {
  if (owners.length < 2) return <code>{owner}</code>;
  return (
    <select aria-label="Owner to act for" value={owner} onChange={(event) => actFor(event.currentTarget.value)}>
      {owners.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
}

export function Settings() {
  const page = useResource<DeploymentSettings>("/v1/settings");
  const read = page.data.value;
  const IntakeRules = useLater(read?.roles.includes("operator") ?? false, async () => (await import("../components/intake_rules")).IntakeRules);
  const ApiKeys = useLater(read?.roles.includes("admin") ?? false, async () => (await import("../components/api_keys")).ApiKeys);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Settings</h1>
          <p class="muted">The settings of this deployment. Changes are made in its code and take effect with the next deployment; owner quotas and API keys take effect at once.</p>
        </div>
      </div>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      {read && (
        <div class="grid settings">
          <Card title="You">
            <Facts
              rows={[
                [read.owners.length > 1 ? "Acting for" : "Signed in as", <Owner owner={read.owner} owners={read.owners} />],
                ["Roles", read.roles.join(", ")],
                ["Operator", read.is_operator ? "yes: you may use switches for all owners, and see the trigger and all queues" : "no: you may not use switches for all owners, or see the trigger and the queues"],
                ["Sign-in", AUTHENTICATION[read.authentication]],
              ]}
            />
          </Card>
          <Card title="Time">
            <Facts
              rows={[
                ["Precision", PRECISIONS[read.precision]],
                ["Look-ahead", `tasks are queued up to ${read.look_ahead_seconds} s before they are due`],
                ["Shards", `${read.shards}, over which the tasks of each minute are spread`],
              ]}
            />
          </Card>
          <Card title="What is kept">
            <Facts
              rows={[
                ["Ended tasks", `can be read for ${days(read.retention_days)}`],
                ...read.retention_by_type.map((each): [string, string] => [`Ended tasks of type ${each.types}`, `can be read for ${days(each.days)}`]),
                ["Archive", read.is_archived ? "afterwards, tasks are archived in S3" : "afterwards, tasks are deleted, because there is no archive"],
                ["Counts", read.is_counted ? "the overview counts tasks by state and type" : "tasks are not counted"],
              ]}
            />
            {read.is_archived && <ArchiveCommand settings={read} />}
          </Card>
          <Card title="Request limits">
            <Facts
              rows={[
                ["Rate", read.requests_per_second === null ? "not known" : `${read.requests_per_second.toLocaleString("en")} requests a second, for all callers together`],
                ["Waiting", read.waiting_requests === null ? "any number of requests may wait at once" : `${read.waiting_requests} requests may wait at once`],
              ]}
            />
          </Card>
          {read.quotas && (
            <Card title="Your quotas">
              <Facts rows={read.quotas.map(({ quota, limit, used }) => [QUOTAS[quota as Quota][0], `${used.toLocaleString("en")} of ${limit.toLocaleString("en")}${QUOTAS[quota as Quota][1]}`])} />
              {read.quotas.length === 0 && <p class="muted">No quota limits you.</p>}
            </Card>
          )}
          {read.quotas && read.is_operator && <OwnerQuotas />}
          <Card title="Types">
            <Names names={read.handler_types} none="The types with a handler are not known, so any type is accepted." link />
            {read.pulled_types.length > 0 && (
              <>
                <p class="muted">Leased by your own workers:</p>
                <Names names={read.pulled_types.map((each) => each.type)} none="" link />
              </>
            )}
          </Card>
          <Card title="What tasks may call">
            <Facts
              rows={[
                ["HTTP", read.private_http_hosts.length ? <>public addresses, and <Names names={read.private_http_hosts} none="" /></> : "public addresses"],
                ["AWS", <Names names={read.aws_targets} none="no resource is allowed" />],
              ]}
            />
          </Card>
          {read.logs && (
            <Card title="Logs">
              <Facts
                rows={[
                  ["Stack", <code>{read.logs.stack}</code>],
                  ["Log group", read.logs.log_group ? <code>{read.logs.log_group}</code> : "on the local stack: what `duetime dev` prints"],
                ]}
              />
            </Card>
          )}
        </div>
      )}
      {IntakeRules && <IntakeRules />}
      {ApiKeys && <ApiKeys />}
    </>
  );
}

function Card({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const DAY_MS = 86_400_000;
const SHOWN_DAYS = 30;

/** The command for the tasks archived last; it reads AWS, so there is none for the local stack. */
function ArchiveCommand({ settings: { logs, retention_days } }: { settings: DeploymentSettings }) {
  if (logs && !logs.log_group) return null;
  const from = new Date(now.peek() - (retention_days + SHOWN_DAYS) * DAY_MS).toISOString().slice(0, 10);
  return <Command text={`duetime archive query --from ${from} --stack ${logs?.stack ?? "STACK"} --where "state = 'failed'"`} />;
}

/** The quotas that operators have set; they take effect without a deployment. */
function OwnerQuotas() {
  const page = useResource<QuotaList>("/v1/quotas");
  const read = page.data.value;
  return (
    <Card title="Quotas of owners">
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={() => void page.reload()} />}
      {read && (
        <Facts
          rows={[
            ["By default", limits(read.defaults)],
            ...read.owners.map((each) => [each.owner, `${limits(each.own)}${each.reason && `: ${each.reason}`}`] as const),
          ]}
        />
      )}
      <Command text="duetime quotas set OWNER creates_per_second=20" />
    </Card>
  );
}

const limits = (quotas: QuotaList["defaults"]): string =>
  (Object.keys(QUOTAS) as Quota[])
    .filter((quota) => quotas[quota] !== null)
    .map((quota) => `${QUOTAS[quota][0].toLowerCase()} ${quotas[quota]?.toLocaleString("en")}${QUOTAS[quota][1]}`)
    .join(", ") || "no limits";

/** Names as tags; types link to their tasks. */
function Names({ names, none, link = false }: { names: readonly string[] | null; none: string; link?: boolean }) {
  if (!names?.length) return <span class="muted">{none}</span>;
  return (
    <>
      {names.map((name) =>
        link ? (
          <a key={name} class="tag" href={href(["tasks"], { q: `type:${name}` })}>
            {name}
          </a>
        ) : (
          <code key={name} class="tag">
            {name}
          </code>
        ),
      )}
    </>
  );
}
