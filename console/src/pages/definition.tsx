/** One topology definition, with a version's parameters and nodes, its changes, and a form to run it. */
import { useSignal } from "@preact/signals";
import { command, newKey } from "../api/client";
import { useResource } from "../api/resource";
import type { Definition, DefinitionDiff, DefinitionVersions, Task } from "../api/types";
import { ActionDialog, type Action, useSending } from "../components/action";
import { Facts, Field, JsonView, ProblemBox, Relative, Time } from "../components/basics";
import { Dialog } from "../components/dialog";
import { href, navigate, usePlace } from "../router";
import { counted } from "../time";

export function DefinitionDetail({ subject: name }: { subject: string }) {
  const { query } = usePlace("definitions", name);
  const path = `/v1/topologies/definitions/${encodeURIComponent(name)}`;
  const version = query.get("version");
  const definition = useResource<Definition>(version ? `${path}?version=${encodeURIComponent(version)}` : path);
  const running = useSignal(false);
  const deleting = useSignal(false);
  const read = definition.data.value;
  if (!read) return definition.problem.value ? <ProblemBox problem={definition.problem.value} retry={() => void definition.reload()} /> : <p class="muted">Loading the definition…</p>;
  const remove: Action = {
    title: `Delete ${read.name}`,
    text: "All versions of the definition are deleted. The deletion is rejected while a schedule runs the definition; existing runs are not affected.",
    verb: "Delete",
    danger: true,
    call: () => ({ method: "DELETE", path, command: command("topologies", "definitions", "delete", read.name) }),
  };
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["definitions"])}>Definitions</a>
          </p>
          <h1>
            {read.name} <span class="tag">version {read.version}</span>
          </h1>
          <p class="muted">
            {read.description && <>{read.description} · </>}
            <a href={href(["topologies"], { q: `definition:${read.name}` })}>its runs</a>
          </p>
        </div>
        <div class="actions">
          <button type="button" class="primary" onClick={() => (running.value = true)}>
            Run…
          </button>
          <button type="button" class="remove" onClick={() => (deleting.value = true)}>
            Delete
          </button>
        </div>
      </div>
      {definition.problem.value && <ProblemBox problem={definition.problem.value} retry={() => void definition.reload()} />}
      <div class="grid">
        <About definition={read} />
        <Parameters definition={read} />
        <Versions name={name} path={path} shown={read.version} />
        <Changes path={path} name={name} from={query.get("from")} to={read.version} />
        <section class="card wide">
          <h2>Nodes</h2>
          <JsonView value={read.nodes} label="Nodes" />
        </section>
      </div>
      {running.value && <RunForm definition={read} path={path} close={() => (running.value = false)} />}
      {deleting.value && <ActionDialog action={remove} close={() => (deleting.value = false)} done={() => navigate(href(["definitions"]))} />}
    </>
  );
}

function About({ definition }: { definition: Definition }) {
  return (
    <section class="card">
      <h2>Graph</h2>
      <Facts
        rows={[
          ["Nodes", counted(Object.keys(definition.nodes).length, "node")],
          ["On failure", definition.on_failure],
          ["Time limit", definition.timeout_seconds === null ? "none" : `${definition.timeout_seconds} s`],
          ["Outputs", definition.outputs.join(", ") || "none"],
          ["Created", <><Time at={definition.created_at} /> {definition.created_by && <span class="muted">by {definition.created_by}</span>}</>],
        ]}
      />
    </section>
  );
}

function Parameters({ definition }: { definition: Definition }) {
  const all = Object.entries(definition.parameters);
  return (
    <section class="card">
      <h2>Parameters</h2>
      {all.length === 0 && <p class="muted">The definition has no parameters.</p>}
      <Facts
        rows={all.map(([name, each]) => [
          name,
          <>
            {each.type}
            {"default" in each ? <> = <code>{JSON.stringify(each.default)}</code></> : ", required"}
            {each.enum && <span class="muted"> one of {each.enum.map((value) => JSON.stringify(value)).join(", ")}</span>} <span class="muted">{each.description}</span>
          </>,
        ])}
      />
    </section>
  );
}

function Versions({ name, path, shown }: { name: string; path: string; shown: number }) {
  const resource = useResource<DefinitionVersions>(`${path}/versions`);
  const versions = resource.data.value?.versions ?? [];
  const there = new Set(versions.map((each) => each.version));
  return (
    <section class="card">
      <h2>Versions</h2>
      {resource.problem.value && <ProblemBox problem={resource.problem.value} retry={() => void resource.reload()} />}
      <table aria-label="Versions">
        <tbody>
          {versions.map((each) => (
            <tr key={each.version} aria-current={each.version === shown || undefined}>
              <td>
                <a href={href(["definitions", name], { version: String(each.version) })}>version {each.version}</a>
              </td>
              <td class="muted">
                <Relative at={each.created_at} /> {each.created_by}
              </td>
              <td>
                {there.has(each.version - 1) && (
                  <a href={href(["definitions", name], { version: String(each.version), from: String(each.version - 1) })} aria-label={`changes of version ${each.version}`}>
                    changes
                  </a>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Changes({ path, name, from, to }: { path: string; name: string; from: string | null; to: number }) {
  const diff = useResource<DefinitionDiff>(from ? `${path}/diff?${new URLSearchParams({ from, to: String(to) })}` : null);
  if (!from) return null;
  const read = diff.data.value;
  return (
    <section class="card">
      <h2>
        From version {from} to {to}
      </h2>
      {diff.problem.value && <ProblemBox problem={diff.problem.value} retry={() => void diff.reload()} />}
      {read?.changes.length === 0 && <p class="muted">No difference.</p>}
      {(read?.changes ?? []).map((each) => (
        <div key={each.path}>
          <code>{each.path}</code>
          {"from" in each && (
            <div>
              <del>{JSON.stringify(each.from)}</del>
            </div>
          )}
          {"to" in each && (
            <div>
              <ins>{JSON.stringify(each.to)}</ins>
            </div>
          )}
        </div>
      ))}
      <p>
        <a href={href(["definitions", name], { version: String(to) })}>Hide</a>
      </p>
    </section>
  );
}

/** A parameter's value as input text, which is plain for text parameters and JSON for others. */
function valueOf(type: string, text: string): unknown {
  if (type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    // The API's error names the parameter and its expected type.
    return text;
  }
}

function RunForm({ definition, path, close }: { definition: Definition; path: string; close: () => void }) {
  const typed = useSignal<Record<string, string>>({});
  // Even if the request is resent after a lost response, only one topology is created.
  const key = useSignal(newKey());
  const { busy, problem, send } = useSending();
  const parameters = Object.entries(definition.parameters);
  const submit = async (event: Event) => {
    event.preventDefault();
    const given = parameters.filter(([name]) => typed.value[name] !== undefined && typed.value[name] !== "");
    const values = Object.fromEntries(given.map(([name, each]) => [name, valueOf(each.type, typed.value[name] ?? "")]));
    const words = given.flatMap(([name]) => ["-p", `${name}=${typed.value[name]}`]);
    const made = await send<Task>({
      method: "POST",
      path: `${path}/runs`,
      headers: { "Idempotency-Key": key.value },
      body: { version: definition.version, parameters: values },
      command: command("topologies", "definitions", "run", definition.name, "--version", String(definition.version), ...words),
    });
    if (!made) return;
    close();
    navigate(href(["topologies", made.id]));
  };
  return (
    <Dialog title={`Run ${definition.name}, version ${definition.version}`} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        {parameters.length === 0 && <p>The definition has no parameters.</p>}
        {parameters.map(([name, each]) => (
          <Field key={name} label={name} hint={[each.type, each.description].filter(Boolean).join(": ")}>
            <input
              required={!("default" in each)}
              placeholder={"default" in each ? (each.type === "string" ? String(each.default) : JSON.stringify(each.default)) : ""}
              value={typed.value[name] ?? ""}
              onInput={(event) => {
                typed.value = { ...typed.value, [name]: event.currentTarget.value };
                key.value = newKey();
              }}
            />
          </Field>
        ))}
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            Run
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
