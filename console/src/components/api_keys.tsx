/** The deployment's API keys, which administrators can create and revoke. */
import { useSignal } from "@preact/signals";
import { command } from "../api/client";
import { useResource } from "../api/resource";
import type { ApiKey, ApiKeyPage, CreatedApiKey, Role } from "../api/types";
import { ActionDialog, useSending, type Action } from "./action";
import { Copy, Field, ProblemBox, Relative, Time } from "./basics";
import { Dialog } from "./dialog";

const ROLES: readonly Role[] = ["reader", "writer", "worker", "operator", "admin"];
const DAY = 86_400_000;

export function ApiKeys() {
  const page = useResource<ApiKeyPage>("/v1/keys");
  const creating = useSignal(false);
  const revoking = useSignal<Action | null>(null);
  const reload = () => void page.reload();
  const read = page.data.value;
  const revoke = ({ id, name, owner }: ApiKey): Action => ({
    title: `Revoke the key ${name} of ${owner}`,
    text: "Requests with this key are refused from then on. This cannot be undone.",
    verb: "Revoke",
    danger: true,
    call: () => ({ method: "DELETE", path: `/v1/keys/${id}`, command: command("keys", "revoke", id) }),
  });
  return (
    <section class="card worker">
      <h2>API keys</h2>
      <p>
        <button type="button" onClick={() => (creating.value = true)}>
          Create a key
        </button>
      </p>
      {page.problem.value && <ProblemBox problem={page.problem.value} retry={reload} />}
      {read && read.keys.length > 0 && <Keys keys={read.keys} revoke={(key) => (revoking.value = revoke(key))} />}
      {read?.next_token && <p class="muted">To list more keys: duetime keys list</p>}
      {creating.value && <NewKey close={() => (creating.value = false)} done={reload} />}
      {revoking.value && <ActionDialog action={revoking.value} close={() => (revoking.value = null)} done={reload} />}
    </section>
  );
}

function Keys({ keys, revoke }: { keys: readonly ApiKey[]; revoke: (key: ApiKey) => void }) {
  return (
    <table class="cards" aria-label="API keys">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Acts for</th>
          <th scope="col">Roles</th>
          <th scope="col">Last use</th>
          <th scope="col">State</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((each) => (
          <tr key={each.id}>
            <td title={each.id}>{each.name}</td>
            <td>{each.owner}</td>
            <td>{each.roles.join(", ")}</td>
            <td>{each.used_at ? <Relative at={each.used_at} /> : "never"}</td>
            <td>
              {each.state}
              {each.state === "active" && each.expires_at && (
                <>
                  {" "}
                  until <Time at={each.expires_at} short />
                </>
              )}
            </td>
            <td class="number">
              {each.state === "active" && (
                <button type="button" class="small" onClick={() => revoke(each)}>
                  Revoke…
                </button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function NewKey({ close, done }: { close: () => void; done: () => void }) {
  const name = useSignal("");
  const owner = useSignal("");
  const role = useSignal<Role>("writer");
  const days = useSignal("90");
  const made = useSignal<CreatedApiKey | null>(null);
  const { busy, problem, send } = useSending();
  const submit = async (event: Event) => {
    event.preventDefault();
    const body = {
      name: name.value.trim(),
      roles: [role.value],
      ...(owner.value ? { owner: owner.value } : {}),
      ...(days.value ? { expires_at: new Date(Date.now() + Number(days.value) * DAY).toISOString() } : {}),
    };
    const key = await send<CreatedApiKey>({ method: "POST", path: "/v1/keys", body });
    if (!key) return;
    made.value = key;
    done();
  };
  if (made.value) {
    return (
      <Dialog title="The key is shown only now" close={close}>
        <p>
          <code class="key">{made.value.key}</code> <Copy text={made.value.key} />
        </p>
        <p class="muted">Send the key as a bearer token to paths that begin with /key/v1.</p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create an API key" close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <Field label="Name" hint="What the key is for.">
          <input required maxLength={128} value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} autofocus />
        </Field>
        <Field label="Acts for" hint="An owner; leave empty for the owner that you act for.">
          <input maxLength={128} value={owner.value} onInput={(event) => (owner.value = event.currentTarget.value)} />
        </Field>
        <Field label="Role">
          <select value={role.value} onChange={(event) => (role.value = event.currentTarget.value as Role)}>
            {ROLES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </Field>
        <Field label="Valid for days" hint="Leave empty to keep it valid until it is revoked.">
          <input type="number" min={1} value={days.value} onInput={(event) => (days.value = event.currentTarget.value)} />
        </Field>
        {problem.value && <ProblemBox problem={problem.value} />}
        <footer>
          <button type="submit" class="primary" disabled={busy.value}>
            Create
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
