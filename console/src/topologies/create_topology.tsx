/** Creates a topology from JSON, or runs a topology again with its graph to edit. Errors are shown at their fields.
 * */
import { useSignal, type Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { ApiProblem, command, get, newKey } from "../api/client";
import type { Task } from "../api/types";
import { useSending } from "../components/action";
import { Field, ProblemBox } from "../components/basics";
import { Dialog } from "../components/dialog";
import { parsed } from "../json";
import { href, navigate } from "../router";
import { placeOf, type Place } from "./json_positions";
import { subgraph, type GraphNodes } from "./subgraph";

const EXAMPLE = `{
  "name": "example",
  "on_failure": "stop",
  "nodes": {
    "fetch": {"type": "echo", "payload": "rows"},
    "check": {"type": "echo", "depends_on": ["fetch"]},
    "report": {"type": "echo", "depends_on": ["fetch", "check"]}
  }
}`;

interface CreateTopologyProps {
  /** The topology whose graph is copied. */
  from?: string;
  /** Only this node and its dependents. */
  node?: string;
}

export function CreateTopology({ from, node }: CreateTopologyProps) {
  const text = useSignal<string | null>(null);
  const { problem, attempt } = useSending();
  const open = () => {
    if (from) void attempt(() => copy(from));
    else text.value = EXAMPLE;
  };
  const copy = async (id: string) => {
    const task = await get<Task>(`/v1/tasks/${encodeURIComponent(id)}`);
    const graph = task.payload as Record<string, unknown>;
    const nodes = graph["nodes"] as GraphNodes | undefined;
    if (typeof nodes !== "object") throw new ApiProblem(0, "graph_hidden", "The graph cannot be copied", "You may not read the payload of the topology.");
    const part = node === undefined ? nodes : subgraph(nodes, node);
    text.value = JSON.stringify({ ...(task.name ? { name: task.name } : {}), type: task.type, tags: task.tags, ...graph, nodes: part }, null, 2);
  };
  return (
    <>
      <button type="button" class={from ? "" : "primary"} onClick={open}>
        {node !== undefined ? "New topology from here…" : from ? "Run again…" : "New topology"}
      </button>
      {problem.value && <ProblemBox problem={problem.value} />}
      {text.value !== null && (
        <Form
          initial={text.value}
          title={node !== undefined ? `Run from ${node}` : from ? "Run again" : "New topology"}
          note={node === undefined ? "" : "A new topology with this node and all nodes that depend on it. Results of earlier nodes are not passed on."}
          close={() => (text.value = null)}
        />
      )}
    </>
  );
}

interface FormProps {
  initial: string;
  title: string;
  note: string;
  close: () => void;
}

function Form({ initial, title, note, close }: FormProps) {
  const text = useSignal(initial);
  const fault = useSignal("");
  // Even if the request is resent after a lost response, only one topology is created.
  const key = useSignal(newKey());
  const area = useRef<HTMLTextAreaElement>(null);
  const { busy, problem, send } = useSending();

  const submit = async (event: Event) => {
    event.preventDefault();
    const { value: body, fault: wrong } = parsed(text.value);
    fault.value = wrong;
    if (wrong) return;
    const made = await send<Task>({
      method: "POST",
      path: "/v1/topologies",
      body,
      headers: { "Idempotency-Key": key.value },
      command: command("topologies", "run", "topology.json"),
    });
    if (made) {
      close();
      navigate(href(["topologies", made.id]));
    }
  };
  return (
    <Dialog title={title} close={close} wide>
      <form onSubmit={(event) => void submit(event)}>
        {note && <p class="muted">{note}</p>}
        <Field label="Graph" hint="JSON: nodes by name, each a task with the nodes that it depends on.">
          <textarea
            ref={area}
            class="graph-json"
            rows={20}
            spellcheck={false}
            value={text.value}
            onInput={(event) => {
              text.value = event.currentTarget.value;
              key.value = newKey();
              problem.value = null;
            }}
          />
        </Field>
        {fault.value && (
          <p class="fault" role="alert">
            This is not valid JSON: {fault.value}
          </p>
        )}
        {problem.value && <Faults problem={problem.value} text={text} area={area.current} />}
        <footer>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            Create
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** The rejected fields with their lines; a click selects a field. */
function Faults({ problem, text, area }: { problem: ApiProblem; text: Signal<string>; area: HTMLTextAreaElement | null }) {
  const placed = problem.errors.map((each) => ({ ...each, place: placeOf(text.value, each.field) }));
  if (!placed.some((each) => each.place)) return <ProblemBox problem={problem} />;
  return (
    <div class="problem" role="alert">
      <strong>{problem.title}</strong> <code>{problem.code}</code>
      <ol class="faults">
        {placed.map(({ field, reason, place }) => (
          <li key={field}>
            {place && (
              <button type="button" class="link" onClick={() => area && select(area, place)}>
                Line {place.line}
              </button>
            )}{" "}
            <code>{field}</code> {reason}
            {place && <pre aria-label={`Line ${place.line}`}>{text.value.split("\n")[place.line - 1]?.trim().slice(0, 200)}</pre>}
          </li>
        ))}
      </ol>
    </div>
  );
}

function select(area: HTMLTextAreaElement, place: Place): void {
  area.focus();
  area.setSelectionRange(place.start, place.end);
  const height = area.scrollHeight / Math.max(1, area.value.split("\n").length);
  area.scrollTop = Math.max(0, (place.line - 4) * height);
}
