/** Asks for a bearer token when the API does. The token stays in memory: it is gone with the page. */
import { useSignal } from "@preact/signals";
import { token, tokenWanted } from "../api/client";
import { connect, rereads } from "../api/live";
import { Field } from "./basics";
import { Dialog } from "./dialog";

export function SignIn() {
  const typed = useSignal("");
  if (!tokenWanted.value) return null;
  const submit = (event: Event) => {
    event.preventDefault();
    token.value = typed.value.trim();
    typed.value = "";
    tokenWanted.value = false;
    rereads.forEach((each) => each());
    void connect();
  };
  return (
    <Dialog title="Sign in" close={() => (tokenWanted.value = false)}>
      <form onSubmit={submit}>
        <Field label="Token" hint="A bearer token of your identity provider. It is kept in memory only, and gone with the page.">
          <input type="password" required autocomplete="off" value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} autofocus />
        </Field>
        <footer>
          <button type="submit" class="primary">
            Use this token
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
