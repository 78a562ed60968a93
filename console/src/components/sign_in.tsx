/** Signs the user in when the API requires this, with the identity provider or a token that is kept in memory only. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { token, tokenWanted } from "../api/client";
import { connect, rereads } from "../api/live";
import { beginSignIn, provider, renewToken, signInFault } from "../api/sign_in";
import { Field } from "./basics";
import { Dialog } from "./dialog";

function begin(): void {
  tokenWanted.value = false;
  rereads.forEach((each) => each());
  void connect();
}

export function SignIn() {
  const typed = useSignal("");
  const renewing = useSignal(true);
  const wanted = tokenWanted.value;
  useEffect(() => {
    if (!wanted) return;
    renewing.value = true;
    // An expired token is renewed silently; the dialog appears if that fails.
    void renewToken().then((renewed) => (renewed ? begin() : (renewing.value = false)));
  }, [wanted]);
  if (!wanted || renewing.value) return null;
  const submit = (event: Event) => {
    event.preventDefault();
    token.value = typed.value.trim();
    typed.value = "";
    begin();
  };
  const issuer = provider.value?.issuer;
  return (
    <Dialog title="Sign in" close={() => (tokenWanted.value = false)}>
      {signInFault.value && (
        <p class="fault" role="alert">
          {signInFault.value}
        </p>
      )}
      {issuer && (
        <>
          <p>{token.value ? "Your session has expired. After signing in, you return to this page." : "This deployment requires you to sign in."}</p>
          <p>
            <button type="button" class="primary" onClick={() => void beginSignIn()} autofocus>
              Sign in at {new URL(issuer).host}
            </button>
          </p>
        </>
      )}
      <form onSubmit={submit}>
        <Field label="Token" hint={`${issuer ? "Or a" : "A"} bearer token of your identity provider, or an API key. It is kept in memory only, and is lost when you leave the page.`}>
          <input type="password" required autocomplete="off" value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} autofocus={!issuer} />
        </Field>
        <footer>
          <button type="submit" class={issuer ? "" : "primary"}>
            Use this token
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
