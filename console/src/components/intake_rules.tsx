/** The deployment's intake rules, which operators set: they say which events create, cancel or wake tasks. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import { useResource } from "../api/resource";
import type { IntakeRule, IntakeRuleList } from "../api/types";
import { ActionDialog, type Action } from "./action";
import { Command, ProblemBox, Time } from "./basics";

export function IntakeRules() {
  const page = useResource<IntakeRuleList>("/v1/intake-rules");
  const deleting = useSignal<Action | null>(null);
  const reload = () => void page.reload();
  const read = page.data.value;
  // Most deployments have no intake.
  if (page.problem.value?.code === "intake_off") return null;
  const remove = ({ name }: IntakeRule): Action => ({
    title: `Delete the intake rule ${name}`,
    text: "Within ten seconds, the rule's events cease to have an effect. Tasks that they created are kept.",
    verb: "Delete",
    danger: true,
    call: () => ({ method: "DELETE", path: `/v1/intake-rules/${encodeURIComponent(name)}`, command: command("intake-rules", "delete", name) }),
  });
  return (
    <section class="card worker">
      <h2>Intake rules</h2>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={reload} />}
      {read && read.rules.length === 0 && (
        <>
          <p class="muted">There are no rules, so events other than tasks have no effect. A rule lets events create, cancel or wake tasks.</p>
          <Command text="duetime intake-rules put order-placed order-placed.json" />
        </>
      )}
      {read && read.rules.length > 0 && (
        <table class="cards rules" aria-label="Intake rules">
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col">Events</th>
              <th scope="col">Does</th>
              <th scope="col">Owner</th>
              <th scope="col">Set</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {read.rules.map((rule) => (
              <tr key={rule.name}>
                <td title={rule.description || undefined}>
                  <strong>{rule.name}</strong>
                </td>
                <td>
                  <code>{JSON.stringify(rule.pattern)}</code>
                </td>
                <td>
                  <Effect rule={rule} />
                </td>
                <td>{rule.owner}</td>
                <td>
                  {rule.updated_by} · <Time at={rule.updated_at} />
                </td>
                <td class="number">
                  <button type="button" class="small" onClick={() => (deleting.value = remove(rule))}>
                    Delete…
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {deleting.value && <ActionDialog action={deleting.value} close={() => (deleting.value = null)} done={reload} />}
    </section>
  );
}

function Effect({ rule }: { rule: IntakeRule }) {
  if (rule.create) {
    const { task, fields } = rule.create as { task: { type: string }; fields: Record<string, string> };
    return (
      <>
        creates <strong>{task.type}</strong> <Fields fields={fields} />
      </>
    );
  }
  if (rule.signal) {
    const { name, fields } = rule.signal as { name: string; fields: Record<string, string> };
    return (
      <>
        signals <strong>{name}</strong> <Fields fields={fields} />
      </>
    );
  }
  const { filter, fields } = rule.cancel as { filter: Record<string, unknown>; fields: Record<string, string> };
  return (
    <>
      cancels {Object.keys(filter).length > 0 && <code>{JSON.stringify(filter)}</code>} <Fields fields={fields} />
    </>
  );
}

function Fields({ fields }: { fields: Record<string, string> }) {
  if (Object.keys(fields).length === 0) return null;
  return (
    <span class="muted">
      with{" "}
      {Object.entries(fields)
        .map(([name, expression]) => `${name} = ${expression}`)
        .join(", ")}
    </span>
  );
}
